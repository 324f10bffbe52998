import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { readAccess, readPath } from "../read-access.ts";
import { lsEntry } from "./entry.ts";

/** Entries of a folder that `ls` gives in one call. */
export const LS_MAX_ENTRIES = 500;
/** How long the entries that `ls` gives may be together, in bytes. */
export const LS_MAX_BYTES: number = 50 * 1024;

/** What a listing reports to the application. */
export interface LsDetails {
  path: string;
  shownEntries: number;
  totalEntries: number;
  /** The first few, for a summary. */
  names: readonly string[];
}

/** Lists a folder, hidden files included. */
export function lsTool(env: ToolEnv): GuardedTool {
  return defineEntryTool(lsEntry, {
    label: "List",
    description:
      "List a folder: folders end with /, links show where they lead, files their size. " +
      `At most ${LS_MAX_ENTRIES} entries a call.`,
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "The folder; the workspace if absent" },
        offset: { type: "integer", minimum: 1, description: "First entry to show (1-based)" },
      },
    } as const,
    concurrent: true,
    idempotent: true,
    async execute(args, { signal }) {
      const { runLs } = await import("./run.ts");
      return runLs(env, readPath(args), args.offset ?? 1, signal);
    },
    access: (args) => readAccess(env, "List", args),
  });
}
