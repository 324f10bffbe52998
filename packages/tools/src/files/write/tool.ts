import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { PathError } from "../../workspace/workspace.ts";
import { readPath } from "../read-access.ts";
import { writeEntry } from "./entry.ts";

/** The application gets an old text up to this size. */
export const WRITE_MAX_OLD_TEXT_CHARS: number = 1024 * 1024;

/** What an application gets to know of a write. */
export interface WriteDetails {
  path: string;
  created: boolean;
  bytes: number;
  /** What was there before; absent where nothing was, or too much to show. */
  oldText?: string;
  newText: string;
}

/**
 * Makes or replaces a whole file, at once or not at all. What is there is replaced only
 * if the agent knows it: it was read, and has not changed since.
 */
export function writeTool(env: ToolEnv): GuardedTool {
  return defineEntryTool(writeEntry, {
    label: "Write",
    description: "Create a file with its folders, or replace a whole file that you have read.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string" },
        content: { type: "string" },
      },
      required: ["path", "content"],
    } as const,
    async execute({ path, content }, { signal }) {
      const { runWrite } = await import("./run.ts");
      return runWrite(env, path, content, signal);
    },
    async access(args) {
      const path = readPath(args);
      const resolved = await env.workspace.resolve(path);
      if (resolved.readOnly) {
        throw new PathError(
          "read_only",
          path,
          `${JSON.stringify(resolved.path)} is read-only for tools. Ask the person to change it.`,
        );
      }
      const verb = resolved.exists ? "Replace" : "Make";
      return {
        kind: "write",
        targets: [resolved.path],
        summary: `${verb} ${JSON.stringify(resolved.path)}`,
      };
    },
    async check(args) {
      const { checkReplaceable } = await import("./run.ts");
      await checkReplaceable(env, readPath(args));
    },
  });
}
