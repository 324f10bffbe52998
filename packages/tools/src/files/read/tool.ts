import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { humanSize } from "@gyre/ai/text";
import { counted, within } from "../../text/text.ts";
import { readAccess } from "../read-access.ts";
import { readEntry } from "./entry.ts";
import { keptKey, spooledName } from "./kept-results.ts";

/** Lines of a file that `read` gives in one call. */
export const READ_MAX_LINES = 2000;
/** How long the lines that `read` gives may be together, in bytes. */
export const READ_MAX_BYTES: number = 50 * 1024;
/** `read` cuts a longer line. */
export const READ_MAX_LINE_CHARS = 2000;
/** `read` refuses a larger picture. */
export const READ_MAX_IMAGE_BYTES: number = 5 * 1024 * 1024;
/** `read` refuses a larger document, sound or film. */
export const READ_MAX_FILE_BYTES: number = 20 * 1024 * 1024;
/** A file up to this size is remembered as a whole, so that edits of it can be checked. */
export const READ_MAX_SEEN_BYTES: number = 5 * 1024 * 1024;
/** How much of what is not shown is looked through to count its lines. */
export const READ_MAX_COUNTED_BYTES: number = 64 * 1024 * 1024;

export interface ReadToolOptions {
  /** Puts the number of each line and a tab before it. Default false. */
  lineNumbers?: boolean;
}

/** What an application gets to know of a read. */
export interface ReadDetails {
  path: string;
  bytes: number;
  /** Of a text: which lines are shown, and how many there are as far as they were counted. */
  firstLine?: number;
  shownLines?: number;
  totalLines?: number;
  /** Of an image, or another file that is no text. */
  mimeType?: string;
}

/** Reads text a page at a time, images, and other files where the model takes them. Never more of a file than it needs. */
export function readTool(env: ToolEnv, options: ReadToolOptions = {}): GuardedTool {
  return defineEntryTool(readEntry, {
    label: "Read",
    description:
      `Read a text file, ${counted(READ_MAX_LINES, "line")} or ${humanSize(READ_MAX_BYTES)} ` +
      "at a time, an image or a PDF.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string" },
        offset: { type: "integer", description: "First line, from 1" },
        limit: { type: "integer", description: "Lines" },
      },
      required: ["path"],
    } as const,
    concurrent: true,
    idempotent: true,
    async execute(args, { signal }) {
      const offset = within("offset", args.offset ?? 1, { least: 1 });
      const limit = within("limit", args.limit ?? READ_MAX_LINES, {
        least: 1,
        most: READ_MAX_LINES,
      });
      const { runRead } = await import("./run.ts");
      return runRead(env, args.path, { ...options, offset, limit, signal });
    },
    async access(args) {
      const { path } = args;
      if (typeof path !== "string") return readAccess(env, "Read", args);
      const isOurs = keptKey(env, path) !== undefined || spooledName(env, path) !== undefined;
      if (!isOurs) return readAccess(env, "Read", args);
      return { kind: "none", targets: [], summary: `Read the kept result ${JSON.stringify(path)}` };
    },
  });
}
