import type { Position } from "../editor/editor-rows.ts";
import { nextColumn } from "../editor/text-buffer.ts";
import { isBefore, lineAt, type Lines } from "./characters.ts";
import type { Moved } from "./motions.ts";

/** What an operator works on: whole lines, or the text from a position up to another. */
export interface Region {
  readonly type: "lines" | "text";
  readonly from: Position;
  readonly to: Position;
  /** The last line of which it has something, be it the end. */
  readonly lastLine: number;
}

/** What is between a position and the end of a motion, as an operator takes it. */
export function resolveRegion(
  lines: Lines,
  start: Position,
  { to: end, covers }: Pick<Moved, "to" | "covers">,
  operator: string,
): Region {
  const [from, last] = isBefore(end, start) ? [end, start] : [start, end];
  if (covers === "lines") return { type: "lines", from, to: last, lastLine: last.line };
  let to = covers === "through" ? behind(lines, last) : last;
  // A motion that ends at the beginning of a line leaves that line alone; from a line's beginning it takes whole lines.
  if (covers === "upTo" && to.column === 0 && to.line > from.line) {
    to = { line: to.line - 1, column: lineAt(lines, to.line - 1).length };
    if (isInIndent(lines, from)) return { type: "lines", from, to, lastLine: to.line };
  }
  const isAll =
    operator === "d" &&
    to.line > from.line &&
    isInIndent(lines, from) &&
    lineAt(lines, to.line).slice(to.column).trim() === "";
  return { type: isAll ? "lines" : "text", from, to, lastLine: to.line };
}

/** The lines or the text between the two ends of a selection, both within. */
export function resolveSelection(
  lines: Lines,
  anchor: Position,
  cursor: Position,
  isLines: boolean,
): Region {
  const [from, last] = isBefore(cursor, anchor) ? [cursor, anchor] : [anchor, cursor];
  if (isLines) {
    const column = cursor.line < anchor.line ? cursor.column : 0;
    return { type: "lines", from: { line: from.line, column }, to: last, lastLine: last.line };
  }
  const text = lineAt(lines, last.line);
  // The end of a line is a character, where there is another line.
  const hasEnd = last.column >= text.length && last.line < lines.length - 1;
  const to = hasEnd ? { line: last.line + 1, column: 0 } : behind(lines, last);
  return { type: "text", from, to, lastLine: last.line };
}

function behind(lines: Lines, { line, column }: Position): Position {
  return { line, column: nextColumn(lineAt(lines, line), column) };
}

function isInIndent(lines: Lines, { line, column }: Position): boolean {
  return /^[ \t]*$/.test(lineAt(lines, line).slice(0, column));
}
