import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { readPath, readAccess } from "../../files/read-access.ts";
import { within } from "../../text/text.ts";
import { findEntry } from "./entry.ts";

/** Paths that `find` gives, unless the call asks for another number. */
export const FIND_DEFAULT_LIMIT = 200;
/** The most paths that a call of `find` may ask for. */
export const FIND_MAX_LIMIT = 1000;
/** How long the paths that `find` gives may be together, in bytes. */
export const FIND_MAX_BYTES: number = 50 * 1024;
/** Of more matches than this the age is not looked up: the first are then taken. */
export const FIND_MAX_DATED = 20_000;

export interface FindToolOptions {
  /** Default `MAX_WALK_ENTRIES`. */
  maxEntries?: number;
}

/** What an application gets to know of a search. */
export interface FindDetails {
  pattern: string;
  path: string;
  shown: number;
  /** As far as the search got. */
  found: number;
  /** It ended before it had seen everything. */
  stopped: boolean;
}

/** Finds files by name, those that changed last first. */
export function findTool(env: ToolEnv, options: FindToolOptions = {}): GuardedTool {
  return defineEntryTool(findEntry, {
    label: "Find",
    description:
      "Find files by glob, newest first. A pattern without / matches names in any folder; one " +
      "that ends in / finds folders. Skips .git and what .gitignore lists.",
    parameters: {
      type: "object",
      properties: {
        pattern: { type: "string", description: "e.g. *.ts, src/**/*.test.ts" },
        path: { type: "string" },
        limit: { type: "integer" },
      },
      required: ["pattern"],
    } as const,
    concurrent: true,
    idempotent: true,
    async execute(args, { signal }) {
      const { findFiles } = await import("./run.ts");
      const { pattern, limit = FIND_DEFAULT_LIMIT } = args;
      const query = {
        pattern,
        path: readPath(args),
        limit: within("limit", limit, { least: 1, most: FIND_MAX_LIMIT }),
      };
      return findFiles(env, query, options, signal);
    },
    access: (args) => readAccess(env, "Look for files in", args),
  });
}
