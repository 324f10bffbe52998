import { PROVENANCE_NOTE } from "@gyre/tools";
import type { Settings } from "./settings.ts";

/** What an agent has unless told otherwise, in the order in which a model is told of them. */
export const DEFAULT_TOOLS: readonly string[] = [
  "read",
  "edit",
  "write",
  "shell",
  "jobs",
  "grep",
  "find",
];

/**
 * What a model is told first. Written down with a session, and so the same in all of its
 * requests: nothing that changes with time may stand here.
 */
export function systemPrompt({
  folder,
  settings,
}: {
  folder: string;
  settings: Pick<Settings, "instructions">;
}): string {
  const about = `You are gyre, a coding agent. You work in ${folder} on ${process.platform} with the tools that you have. Look before you change, keep changes small, check them by running what the project has for that. A call that was denied stays denied: go on without it, or say what you need. Answer briefly.`;
  const { instructions } = settings;
  return [about, PROVENANCE_NOTE, ...(instructions ? [instructions] : [])].join("\n\n");
}
