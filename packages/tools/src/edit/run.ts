import type { AgentToolResult } from "@gyre/agent";
import { type EditDetails, MAX_EDIT_BYTES, MAX_EDITS } from "./tool.ts";
import { formatDiff } from "./diff.ts";
import { EditError } from "./error.ts";
import type { Edit, Tolerance } from "./match.ts";
import {
  type AppliedEdit,
  type EditedFile,
  editedFile,
  type EditPlan,
  lineRange,
  planEdits,
} from "./plan.ts";
import type { ToolEnv } from "../contract/env.ts";
import { counted, textResult } from "../text/text.ts";
import type { FileInfo } from "../workspace/workspace.ts";

/** Makes the edits, all or none, and answers as the tool does. */
export async function editFile(
  env: ToolEnv,
  path: string,
  edits: readonly Edit[],
  signal: AbortSignal,
): Promise<AgentToolResult> {
  const { text, info, file, plan } = await planEdit(env, path, edits);
  signal.throwIfAborted();
  await env.workspace.write(path, plan.content, { expected: info });
  env.seen.note(info.path, plan.content);
  const notes = listNotes(plan, file.isRead);
  const done = `Applied ${counted(plan.edits.length, "edit")} to ${info.path} (${formatChangedLines(plan)}).`;
  return textResult([done, ...notes].join("\n"), createDetails(info.path, text, plan));
}

/** What the edits would make of the file as it is now. Changes nothing. */
export async function planEdit(
  env: ToolEnv,
  path: string,
  edits: readonly Edit[],
): Promise<PlannedEdit> {
  if (edits.length === 0) throw new EditError("empty", "There are no edits: nothing to change.");
  if (edits.length > MAX_EDITS) {
    throw new EditError(
      "invalid",
      `There are ${counted(edits.length, "edit")}; one call takes at most ${MAX_EDITS}. Nothing was changed.`,
    );
  }
  const { text, info } = await readForEdit(env, path);
  const file = editedFile(info.path, text, env.seen.get(info.path)?.text);
  return { text, info, file, plan: planEdits(file, edits) };
}

interface PlannedEdit {
  text: string;
  info: FileInfo;
  file: EditedFile;
  plan: EditPlan;
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
export function formatChangedLines({ edits }: EditPlan): string {
  const ranges = edits.map(({ lines }) => lineRange(lines));
  const isOne = ranges.length === 1 && !ranges[0]?.includes("-");
  return `${isOne ? "line" : "lines"} ${ranges.join(", ")}`;
}

/** What the agent should know of how its edits were taken. */
export function listNotes(plan: EditPlan, wasRead: boolean): string[] {
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

export function createDetails(path: string, before: string, plan: EditPlan): EditDetails {
  return {
    path,
    diff: formatDiff(path, before, plan),
    edits: plan.edits.map(({ lines, tolerance }) => ({ lines: lineRange(lines), tolerance })),
  };
}
