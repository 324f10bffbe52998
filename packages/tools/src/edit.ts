import { defineTool } from "@gyre/agent";
import type { Access, GuardedTool } from "./access.ts";
import { diffOf } from "./edit-diff.ts";
import { EditError } from "./edit-error.ts";
import type { Tolerance } from "./edit-match.ts";
import { type AppliedEdit, editedFile, type EditPlan, lineRange, planEdits } from "./edit-plan.ts";
import type { ToolEnv } from "./env.ts";
import { counted, textResult } from "./text.ts";
import { type FileInfo, PathError } from "./workspace.ts";

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
  const tool = defineTool({
    name: "edit",
    description:
      "Replace texts in a file. Each oldText must be at exactly one place in the file: copy it as " +
      "it is there, with enough lines around it to be the only one. All edits are matched against " +
      "the file as it is now, must not overlap, and are made all or none. To insert, repeat a " +
      "neighbouring line in both texts. Read the file first.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "The file, relative to the workspace" },
        edits: {
          type: "array",
          minItems: 1,
          maxItems: MAX_EDITS,
          items: {
            type: "object",
            properties: {
              oldText: { type: "string", description: "What is there, without line numbers" },
              newText: { type: "string", description: "What is to be there instead" },
            },
            required: ["oldText", "newText"],
          },
        },
      },
      required: ["path", "edits"],
    },
    async execute(_id, { path, edits }, signal) {
      const { text, info } = await readForEdit(env, path);
      const file = editedFile(info.path, text, env.seen.get(info.path)?.text);
      const plan = planEdits(file, edits);
      signal.throwIfAborted();
      await env.workspace.write(path, plan.content, { expected: info });
      env.seen.note(info.path, plan.content);
      const notes = notesOf(plan, file.isRead);
      const done = `Applied ${counted(plan.edits.length, "edit")} to ${info.path} (${linesTold(plan)}).`;
      return textResult([done, ...notes].join("\n"), detailsOf(info.path, text, plan));
    },
  });
  return {
    ...tool,
    async access({ path, edits }): Promise<Access> {
      const target = await writableTarget(env, path);
      const count = Array.isArray(edits) ? edits.length : 0;
      const summary = `Edit ${target} (${counted(count, "place")})`;
      return { kind: "write", targets: [target], summary };
    },
  };
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

/** The text of a file, byte for byte: what is not UTF-8 is an error, as it could not be kept. */
export async function readForEdit(
  env: ToolEnv,
  path: string,
): Promise<{ text: string; info: FileInfo }> {
  const { bytes, info } = await env.workspace.read(path, MAX_EDIT_BYTES);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, info };
  } catch (cause) {
    throw new EditError(
      "invalid",
      `${info.path} is not text in UTF-8 and cannot be edited without damage` +
        ` (${cause instanceof Error ? cause.message : String(cause)}). Use a program for its format.`,
    );
  }
}

/** "lines 10-12, 40". */
export function linesTold({ edits }: EditPlan): string {
  const ranges = edits.map(({ lines }) => lineRange(lines));
  const isOne = ranges.length === 1 && !ranges[0]?.includes("-");
  return `${isOne ? "line" : "lines"} ${ranges.join(", ")}`;
}

/** What the agent should know of how its edits were taken. */
export function notesOf(plan: EditPlan, wasRead: boolean): string[] {
  const notes = plan.edits.flatMap((edit) => toleranceNote(edit));
  if (!wasRead) notes.push("You had not read this file before.");
  if (plan.isChangedElsewhere) {
    notes.push(
      "The file has changed since you read it, at other places: read it before you rely on them.",
    );
  }
  return notes;
}

const ADAPTED: Readonly<Record<Tolerance, string>> = {
  exact: "",
  "line ends": "",
  "byte order mark": "",
  "trailing white space": "white space at line ends differed from the file",
  punctuation:
    "quotes, dashes or spaces differed from the file, whose own were kept where it could be",
  "line numbers": "line numbers were taken off both texts",
  indentation: "indentation differed from the file; newText was indented as the file is",
};

function toleranceNote({ name, tolerance, lines }: AppliedEdit): string[] {
  const note = ADAPTED[tolerance];
  return note === "" ? [] : [`At line ${lineRange(lines)} (${name}): ${note}.`];
}

export function detailsOf(path: string, before: string, plan: EditPlan): EditDetails {
  return {
    path,
    diff: diffOf(path, before, plan),
    edits: plan.edits.map(({ lines, tolerance }) => ({ lines: lineRange(lines), tolerance })),
  };
}
