import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { present } from "@gyre/agent";
import { type ApprovalRequest, type EffectsReport, sanitize } from "@gyre/tools";
import { findPresentation } from "@gyre/coding/internal/core/presentations";
import type { ReadText } from "@gyre/coding/internal/conversation/view";
import { measureWidth, splitClusters, takeClusters } from "../../../text/width.ts";
import { effectRows } from "./effects-preview.ts";
import { diffTexts, type DiffFile, type DiffLine, fileRows } from "../transcript/diff-view.ts";
import { type Row, row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { wrapText } from "../terminal/wrap.ts";

/** A longer file is not read: the change is shown alone. */
const MAX_FILE_BYTES = 1024 * 1024;
/** Of a longer preview the middle is left out. */
export const MAX_PREVIEW_ROWS = 2_000;
const TAB = "    ";
const JSON_INDENT = 2;

export type { ReadText };

/** The effect of a call in detail. */
export type Preview =
  | { type: "command"; text: string }
  /** `problem`: why the call is certain to fail. */
  | { type: "diff"; files: readonly DiffFile[]; problem?: string }
  | { type: "patch"; text: string }
  /** What a command did already, in a layer. */
  | { type: "effects"; command: string; report: EffectsReport }
  /** The arguments of a tool that does not describe what it does. */
  | { type: "arguments"; text: string }
  | { type: "none" };

/** The preview of a call that waits for permission. Its texts are not sanitized yet. */
export function createPreview(
  { tool, args, access, effects }: ApprovalRequest,
  readText: ReadText,
): Preview {
  const presentation = findPresentation(tool);
  const [target] = access?.targets ?? [];
  if (effects) return { type: "effects", command: target ?? "", report: effects };
  if (presentation?.kind === "execute" && access?.kind === "run" && target !== undefined) {
    return { type: "command", text: target };
  }
  const proposal = present(() => presentation?.proposal?.(args));
  if (proposal?.type === "patch") return { type: "patch", text: proposal.text };
  if (proposal) {
    // The approval is for the target of the path.
    const path = target ?? proposal.path;
    const text = readText(path);
    if (proposal.type === "write") {
      return { type: "diff", files: [{ path, lines: diffTexts(text ?? "", proposal.newText) }] };
    }
    const problem = text === undefined ? undefined : findProblem(text, proposal.edits);
    const files = [{ path, lines: diffEdits(text, proposal.edits) }];
    return { type: "diff", files, ...(problem !== undefined && { problem }) };
  }
  if (access && presentation) return { type: "none" };
  return { type: "arguments", text: JSON.stringify(args, undefined, JSON_INDENT) };
}

/** At most `MAX_PREVIEW_ROWS` rows; the end is always among them. */
export function previewRows(preview: Preview, theme: Theme, columns: number): Row[] {
  switch (preview.type) {
    case "command":
      return cutMiddle(commandRows(preview.text, theme, columns), theme, MAX_PREVIEW_ROWS);
    case "effects": {
      const rows = effectRows(preview.report, theme, columns, safeLine);
      const command = commandRows(preview.command, theme, columns);
      return cutMiddle([...command, ...rows], theme, MAX_PREVIEW_ROWS);
    }
    case "diff": {
      const parts = preview.files.map(({ path, lines }) => ({ path, ...keepEnds(lines) }));
      const files = parts.map(({ path, ends }) => ({ path, lines: ends }));
      const hidden = parts.reduce((sum, part) => sum + part.hidden, 0);
      const shown = { theme, columns, indent: 0, maxRows: Infinity, shown: safeLine };
      return cutMiddle(fileRows(files, shown), theme, MAX_PREVIEW_ROWS, hidden);
    }
    case "patch":
    case "arguments": {
      const { ends, hidden } = keepEnds(safeText(preview.text).split("\n"));
      const rows = ends.flatMap((line) =>
        wrapText(line, columns, getLineStyle(preview.type, line, theme)),
      );
      return cutMiddle(rows, theme, MAX_PREVIEW_ROWS, hidden);
    }
    case "none":
      return [];
    default:
      return preview satisfies never;
  }
}

/** Drops lines in the middle that can have no row, as each line takes at least one. */
function keepEnds<T>(lines: readonly T[]): { ends: readonly T[]; hidden: number } {
  const hidden = Math.max(0, lines.length - MAX_PREVIEW_ROWS);
  if (hidden === 0) return { ends: lines, hidden };
  const half = MAX_PREVIEW_ROWS / 2;
  return { ends: [...lines.slice(0, half), ...lines.slice(-half)], hidden };
}

/** A text on one line; the middle of a long one is left out. */
export function fitMiddle(text: string, columns: number): string {
  if (measureWidth(text) <= columns) return text;
  const clusters = splitClusters(text);
  const tailRoom = Math.floor((columns - 1) / 2);
  const tail = takeClusters(clusters.toReversed(), tailRoom).reverse();
  const head = takeClusters(clusters, columns - 1 - tailRoom);
  return `${head.join("")}…${tail.join("")}`;
}

/** The rows that fit, with a count of those in the middle that are left out. */
export function cutMiddle(
  rows: readonly Row[],
  theme: Theme,
  room: number,
  alsoHidden = 0,
  hint = "",
): Row[] {
  if (rows.length <= room && alsoHidden <= 0) return [...rows];
  const kept = Math.max(1, room - 1);
  // The end of a command matters most: a long beginning may distract from it.
  const tail = Math.ceil(kept / 2);
  const head = kept - tail;
  const hidden = Math.max(0, rows.length - kept) + Math.max(0, alsoHidden);
  const end = rows.slice(Math.max(head, rows.length - tail));
  return room < 2 ? end : [...rows.slice(0, head), moreRow(hidden, theme, hint), ...end];
}

/** Says how many rows are not shown. */
function moreRow(hidden: number, theme: Theme, hint = ""): Row {
  return row(`… ${hidden} more ${hidden === 1 ? "line" : "lines"}${hint}`, theme.dim);
}

/** Makes hidden characters visible and control sequences harmless. */
export function safeText(text: string): string {
  return sanitize(text, { exact: true }).replaceAll("\t", TAB);
}

/** The same on one line. */
export function safeLine(text: string): string {
  return sanitize(text, { exact: true, keepNewlines: false }).replaceAll("\t", TAB);
}

function commandRows(text: string, { accent }: Theme, columns: number): Row[] {
  return wrapText(safeText(text), columns, "", { first: row("$ ", accent), rest: row("  ") });
}

function getLineStyle(type: "patch" | "arguments", line: string, theme: Theme): string {
  if (type === "arguments" || line.startsWith("***")) return theme.dim;
  if (line.startsWith("+")) return theme.added;
  return line.startsWith("-") ? theme.removed : "";
}

interface TextEdit {
  oldText: string;
  newText: string;
}

/**
 * Why edits are certain to fail. The edit tool tolerates other white space, quotes and line numbers, but the letters
 * of the old text must be in the file.
 */
function findProblem(text: string, edits: readonly TextEdit[]): string | undefined {
  const wanted = edits.filter(({ oldText }) => oldText !== "");
  const several = wanted.find(({ oldText }) => {
    const at = text.indexOf(oldText);
    return at >= 0 && text.includes(oldText, at + oldText.length);
  });
  const letters = keepLetters(text);
  if (wanted.some(({ oldText }) => !letters.includes(keepLetters(oldText)))) {
    return "The text to replace is not in the file: this will fail.";
  }
  return several && "The text to replace is in the file more than once: this will fail.";
}

function keepLetters(text: string): string {
  return text.replace(/\P{L}/gu, "");
}

const KINDS: Readonly<Record<string, string>> = {
  read: "Reading files",
  write: "Writing files",
  run: "Running commands",
  network: "Using the network",
  agent: "Starting an agent",
};

/** The reason of the question as a sentence. It is not sanitized yet. */
export function reasonText({ reason, byMode }: Pick<ApprovalRequest, "reason" | "byMode">): string {
  if (!byMode) return reason;
  const { mode, about, notes } = byMode;
  const what = Object.hasOwn(KINDS, about) ? KINDS[about] : `The tool ${about}`;
  return [`${what} is asked about in mode ${mode}.`, ...notes].join(" ");
}

/** The changes of edits in a file; where the exact old text is not found, each edit alone. */
function diffEdits(text: string | undefined, edits: readonly TextEdit[]): DiffLine[] {
  const whole = text === undefined ? undefined : applyEdits(text, edits);
  if (text !== undefined && whole !== undefined) return diffTexts(text, whole);
  const pieces = edits.map(({ oldText, newText }) => diffTexts(oldText, newText));
  const lines = pieces.flatMap((piece, index): DiffLine[] =>
    index === 0 ? piece : [{ type: "gap" }, ...piece],
  );
  return [{ type: "note", text: "(lines are counted within each edit)" }, ...lines];
}

function applyEdits(text: string, edits: readonly TextEdit[]): string | undefined {
  const places = edits.map(({ oldText, newText }) => {
    const at = oldText === "" ? -1 : text.indexOf(oldText);
    const isOnly = at >= 0 && !text.includes(oldText, at + 1);
    return { at: isOnly ? at : -1, end: at + oldText.length, newText };
  });
  places.sort((one, other) => one.at - other.at);
  let next = "";
  let from = 0;
  for (const { at, end, newText } of places) {
    if (at < from) return undefined;
    next += text.slice(from, at) + newText;
    from = end;
  }
  return next + text.slice(from);
}

/** Reads the files of a folder that are text and not too long. */
export function createTextReader(folder: string): ReadText {
  return (path) => {
    try {
      // Without blocking: opening a pipe would wait for its writer.
      const flags = constants.O_RDONLY | constants.O_NONBLOCK;
      const file = openSync(isAbsolute(path) ? path : join(folder, path), flags);
      try {
        const found = fstatSync(file);
        if (!found.isFile() || found.size > MAX_FILE_BYTES) return undefined;
        const bytes = Buffer.alloc(found.size);
        const length = readSync(file, bytes);
        return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length));
      } finally {
        closeSync(file);
      }
    } catch {
      // Missing, not readable, or no text: the change is shown without the old text.
      return undefined;
    }
  };
}
