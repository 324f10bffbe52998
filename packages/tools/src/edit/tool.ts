import type { Access, GuardedTool } from "../contract/access.ts";
import { defineEntryTool } from "../contract/define-tool.ts";
import { looseRecord, looseText } from "../contract/loose.ts";
import type { Edit, Tolerance } from "./match.ts";
import type { ToolEnv } from "../contract/env.ts";
import { counted } from "../text/text.ts";
import { PathError } from "../workspace/workspace.ts";
import { editEntry } from "./entry.ts";

/** A file that is longer is not edited by these tools. */
export const MAX_EDIT_BYTES: number = 10 * 1024 * 1024;
/** So many edits go into one call. */
export const MAX_EDITS = 200;

/** What an edit did to one file, for the application. */
export interface EditDetails {
  path: string;
  /** Unified; cut at `MAX_DIFF_CHARS`. */
  diff: string;
  /** In the order of the file. `lines`: as they are now. */
  edits: { lines: string; tolerance: Tolerance }[];
}

/**
 * Replaces texts in a file, each at the one place where it is: all of them or none, and
 * not where the file is no longer what the agent saw.
 */
export function editTool(env: ToolEnv): GuardedTool {
  return defineEntryTool(editEntry, {
    description:
      "Replace texts in a file that you have read. Each oldText must be there exactly once: copy " +
      "it with enough lines around it. Edits refer to the file as it is now, and are made all or none.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string" },
        edits: {
          type: "array",
          items: {
            type: "object",
            properties: {
              oldText: { type: "string", description: "Without line numbers" },
              newText: { type: "string" },
            },
            required: ["oldText", "newText"],
          },
        },
      },
      required: ["path", "edits"],
    },
    async execute({ path, edits }, { signal }) {
      const { editFile } = await import("./run.ts");
      return editFile(env, path, edits, signal);
    },
    async access({ path, edits }): Promise<Access> {
      const target = await writableTarget(env, path);
      const count = Array.isArray(edits) ? edits.length : 0;
      const summary = `Edit ${target} (${counted(count, "place")})`;
      // A text that is not found is answered with what is near.
      return { kind: "write", targets: [target], reads: [target], summary };
    },
    async check(args) {
      const { planEdit } = await import("./run.ts");
      await planEdit(env, looseText(args, "path"), readEdits(args["edits"]));
    },
  });
}

/** The edits of a call whose arguments were checked. */
function readEdits(edits: unknown): Edit[] {
  const list: readonly unknown[] = Array.isArray(edits) ? edits : [];
  return list.map((edit) => {
    const given = looseRecord(edit);
    return { oldText: looseText(given, "oldText"), newText: looseText(given, "newText") };
  });
}

/** Where a path leads that is about to be written; an error where that may not be. */
export async function writableTarget(env: ToolEnv, path: unknown): Promise<string> {
  if (typeof path !== "string") throw new PathError("invalid", String(path), "No path was given.");
  const resolved = await env.workspace.resolve(path);
  if (resolved.readOnly) {
    throw new PathError(
      "read_only",
      path,
      `${resolved.path} is protected: tools may not change it.`,
    );
  }
  return resolved.path;
}
