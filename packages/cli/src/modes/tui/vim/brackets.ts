import type { Position } from "../editor/editor-rows.ts";
import { lineAt, type Lines } from "./characters.ts";

const OPENING = "([{";
const CLOSING = ")]}";

/** The first bracket of the line at a position or behind it. */
export function findBracket(lines: Lines, { line, column }: Position): Position | undefined {
  const text = lineAt(lines, line);
  const from = Math.min(column, Math.max(0, text.length - 1));
  const found = text.slice(from).search(/[()[\]{}]/);
  return found < 0 ? undefined : { line, column: from + found };
}

/** The bracket that belongs to the one at a position. */
export function findMatch(lines: Lines, at: Position): Position | undefined {
  const own = lineAt(lines, at.line)[at.column] ?? "";
  const index = OPENING.indexOf(own);
  const isOpening = index >= 0;
  const other = isOpening ? CLOSING[index] : OPENING[CLOSING.indexOf(own)];
  if (own === "" || other === undefined) return undefined;
  return findUnmatched(lines, at, other, own, isOpening ? 1 : -1);
}

/** The brackets around a position, or at it: the innermost, or one further out; without any, those that follow. */
export function findPair(
  lines: Lines,
  at: Position,
  [open = "", close = ""]: string,
  count: number,
): { open: Position; close: Position } | undefined {
  const own = lineAt(lines, at.line)[at.column];
  const around = own === open ? at : findUnmatched(lines, at, open, close, -1);
  const step = around ? -1 : 1;
  let start = around ?? findUnmatched(lines, at, open, close, 1);
  for (let left = count - 1; start && left > 0; left--) {
    start = findUnmatched(lines, start, open, close, step);
  }
  const end = start && findUnmatched(lines, start, close, open, 1);
  return start && end && { open: start, close: end };
}

/** The nearest `wanted` from a position on, without those that belong to an `other` between. */
function findUnmatched(
  lines: Lines,
  { line, column }: Position,
  wanted: string,
  other: string,
  step: 1 | -1,
): Position | undefined {
  let depth = 1;
  for (let at = line; at >= 0 && at < lines.length; at += step) {
    const text = lineAt(lines, at);
    const from = at === line ? column + step : step > 0 ? 0 : text.length - 1;
    for (let index = from; index >= 0 && index < text.length; index += step) {
      if (text[index] === other) depth += 1;
      else if (text[index] === wanted) depth -= 1;
      if (depth === 0) return { line: at, column: index };
    }
  }
  return undefined;
}
