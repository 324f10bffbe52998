import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import type { GrepQuery } from "./run.ts";
import { readPath, readAccess } from "../../files/read-access.ts";
import { counted, within } from "../../text/text.ts";
import { grepEntry } from "./entry.ts";

/** Matches that `grep` gives, unless the call asks for another number. */
export const GREP_DEFAULT_LIMIT = 100;
/** The most matches that a call of `grep` may ask for. */
export const GREP_MAX_LIMIT = 1000;
/** The most lines before and after a match that a call of `grep` may ask for. */
export const GREP_MAX_CONTEXT = 20;
/** `grep` refuses a longer pattern. */
export const GREP_MAX_PATTERN_CHARS = 2000;
/** How long the matches that `grep` gives may be together, in bytes. */
export const GREP_MAX_BYTES: number = 50 * 1024;
/** A search ends by then, with what it has found. */
export const GREP_TIMEOUT_MS = 20_000;

export interface GrepToolOptions {
  /** The program to use; null for none. Default: the one that comes with this package. */
  ripgrep?: string | null;
  /** Default `MAX_WALK_ENTRIES`. */
  maxEntries?: number;
  /** Default `GREP_TIMEOUT_MS`. */
  timeoutMs?: number;
}

/** What an application gets to know of a search. */
export interface GrepDetails {
  pattern: string;
  path: string;
  /** Shown. */
  matches: number;
  files: number;
  /** Lines of the result's text that show matches. */
  shownLines: number;
  /** What there is was not all shown, or not all looked at. */
  isPartial: boolean;
  engine: "ripgrep" | "javascript";
}

/**
 * Finds lines. What is searched is decided by our own walk, and what is shown is read
 * through the workspace; ripgrep only reports which lines of which files are worth it.
 * Without it the answer is the same, and takes longer.
 */
export function grepTool(env: ToolEnv, options: GrepToolOptions = {}): GuardedTool {
  return defineEntryTool(grepEntry, {
    label: "Search",
    description:
      "Search lines of files for a regular expression. Skips binary files, .git and what .gitignore lists.",
    parameters: {
      type: "object",
      properties: {
        pattern: { type: "string" },
        path: { type: "string" },
        glob: { type: "string", description: "e.g. *.ts" },
        ignoreCase: { type: "boolean" },
        literal: { type: "boolean" },
        context: { type: "integer", description: "Lines around" },
        filesOnly: { type: "boolean" },
        limit: { type: "integer" },
      },
      required: ["pattern"],
    } as const,
    concurrent: true,
    idempotent: true,
    async execute(args, { signal }) {
      const { searchFiles } = await import("./run.ts");
      return searchFiles(env, checkQuery(args), readPath(args), options, signal);
    },
    access: (args) => readAccess(env, "Search in", args),
  });
}

/** The arguments of a call, checked. */
function checkQuery(args: Omit<GrepQuery, "limit"> & { limit?: number }): GrepQuery {
  const { pattern, context = 0, limit = GREP_DEFAULT_LIMIT } = args;
  if (pattern === "") throw new Error("The pattern is empty: it would match every line.");
  if (pattern.length > GREP_MAX_PATTERN_CHARS) {
    throw new Error(
      `The pattern has ${counted(pattern.length, "character")}; at most ${GREP_MAX_PATTERN_CHARS} are taken.`,
    );
  }
  return {
    ...args,
    context: within("context", context, { least: 0, most: GREP_MAX_CONTEXT }),
    limit: within("limit", limit, { least: 1, most: GREP_MAX_LIMIT }),
  };
}
