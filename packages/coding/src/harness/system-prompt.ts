import { PROVENANCE_NOTE } from "@gyre/tools";
import type { Settings } from "../settings/settings.ts";

const BEFORE_FOLDER = "You are gyre, a coding agent. You work in ";
const AFTER_FOLDER = ` on ${process.platform} with the tools that you have.`;

/**
 * What a model reads first. Written down with a session, and so the same in all of its
 * requests: nothing that changes with time may stand here.
 */
export function systemPrompt({
  folder,
  settings,
  more = [],
}: {
  folder: string;
  settings: Pick<Settings, "instructions">;
  /** Further paragraphs. */
  more?: readonly string[];
}): string {
  const about = `${BEFORE_FOLDER}${folder}${AFTER_FOLDER} Look before you change, keep changes small, check them by running what the project has for that. A call that was denied stays denied: go on without it, or say what you need. Answer briefly.`;
  const { instructions } = settings;
  return [about, PROVENANCE_NOTE, ...(instructions ? [instructions] : []), ...more].join("\n\n");
}

/** What sub-agents read of the folder, of the user's settings and of the project, as the agent does. */
export function subAgentGuidance({
  folder,
  settings: { instructions },
  more = [],
}: Parameters<typeof systemPrompt>[0]): string {
  const about = `You work in ${folder}${AFTER_FOLDER} Look before you change, keep changes small, check them by running what the project has for that. A call that was denied stays denied.`;
  return [about, ...(instructions ? [instructions] : []), ...more].join("\n\n");
}

/** The prompt of a session, where it may be gone on with in another folder. */
export function movedPrompt(prompt: string, folder: string): string {
  const end = prompt.indexOf(AFTER_FOLDER);
  const isOurs = prompt.startsWith(BEFORE_FOLDER) && end > 0;
  return isOurs ? `${BEFORE_FOLDER}${folder}${prompt.slice(end)}` : prompt;
}
