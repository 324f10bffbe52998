import { splitClusters } from "../../../text/width.ts";
import type { Position } from "../editor/editor-rows.ts";
import { previousColumn, type TextBuffer } from "../editor/text-buffer.ts";
import { firstLetter, isSamePlace, lastColumn, lineAt, walk } from "./characters.ts";
import type { Region } from "./region.ts";

/** What was cut or copied last. */
export interface Register {
  readonly text: string;
  /** Whole lines, which are put below or above one. */
  readonly isLines: boolean;
}

/** How an operator changes letters. */
export type CaseChange = "g~" | "gu" | "gU";

/** The text of a region, as it is copied. */
export function copyRegion(buffer: TextBuffer, { type, from, to }: Region): Register {
  const isLines = type === "lines";
  return {
    text: isLines ? buffer.lines.slice(from.line, to.line + 1).join("\n") : buffer.read(from, to),
    isLines,
  };
}

/** Removes a region. The cursor is where it was. */
export function removeRegion(buffer: TextBuffer, region: Region): void {
  if (region.type === "text") {
    buffer.change(region.from, region.to, "");
    return;
  }
  removeLines(buffer, region.from.line, region.to.line);
  moveToLetter(buffer, Math.min(region.from.line, buffer.lines.length - 1));
}

/** Empties a region to write another text there. Of lines, one stays. */
export function emptyRegion(buffer: TextBuffer, { type, from, to }: Region): void {
  if (type === "text") return buffer.change(from, to, "");
  const end = { line: to.line, column: lineAt(buffer.lines, to.line).length };
  buffer.change({ line: from.line, column: 0 }, end, "");
  buffer.moveTo({ line: from.line, column: 0 });
}

function removeLines(buffer: TextBuffer, first: number, last: number): void {
  const { lines } = buffer;
  const toEnd = (line: number): Position => ({ line, column: lineAt(lines, line).length });
  if (last < lines.length - 1) {
    buffer.change({ line: first, column: 0 }, { line: last + 1, column: 0 }, "");
  } else if (first > 0) {
    buffer.change(toEnd(first - 1), toEnd(last), "");
  } else {
    buffer.change({ line: 0, column: 0 }, toEnd(last), "");
  }
}

/** Puts what was copied behind the cursor, or before it. */
export function putRegister(
  buffer: TextBuffer,
  { text, isLines }: Register,
  count: number,
  isBefore: boolean,
): void {
  const { lines, cursor } = buffer;
  const current = lineAt(lines, cursor.line);
  if (isLines) {
    const all = Array.from({ length: count }, () => text).join("\n");
    const line = isBefore ? cursor.line : cursor.line + 1;
    if (isBefore) buffer.change({ line, column: 0 }, { line, column: 0 }, `${all}\n`);
    else {
      const end = { line: cursor.line, column: current.length };
      buffer.change(end, end, `\n${all}`);
    }
    return moveToLetter(buffer, line);
  }
  const column = isBefore ? cursor.column : walk(current, cursor.column, 1);
  const at = { line: cursor.line, column };
  const all = text.repeat(count);
  buffer.change(at, at, all);
  // Of one line the cursor is on the last character, of several at the beginning.
  const put = lineAt(buffer.lines, at.line).slice(0, column + all.length);
  buffer.moveTo(text.includes("\n") ? at : { line: at.line, column: lastColumn(put) });
}

/** Puts what was copied in the place of a region. */
export function putOver(buffer: TextBuffer, region: Region, put: Register, count: number): void {
  if (buffer.isEmpty && region.type === "text") return putRegister(buffer, put, count, false);
  const { from, lastLine, to, type } = region;
  const { line } = from;
  const isLast = lastLine >= buffer.lines.length - 1;
  const isAtEnd = to.column >= lineAt(buffer.lines, to.line).length;
  buffer.moveTo(from);
  if (type === "lines" && put.isLines) {
    removeRegion(buffer, region);
    putRegister(buffer, put, count, !isLast);
    // Where all lines were removed, an empty one was left.
    if (line === 0 && isLast) removeLines(buffer, 0, 0);
    return moveToLetter(buffer, line);
  }
  if (type === "lines") {
    emptyRegion(buffer, region);
    putRegister(buffer, put, count, true);
    return moveToLetter(buffer, line);
  }
  buffer.change(from, to, "");
  if (put.isLines) {
    buffer.change(from, from, "\n");
    buffer.moveTo(from);
    return putRegister(buffer, put, count, false);
  }
  const before = previousColumn(lineAt(buffer.lines, line), from.column);
  const isBehind = isAtEnd && from.column > 0;
  buffer.moveTo(isBehind ? { line, column: before } : from);
  putRegister(buffer, put, count, !isBehind);
}

function moveToLetter(buffer: TextBuffer, line: number): void {
  buffer.moveTo({ line, column: firstLetter(lineAt(buffer.lines, line)) });
}

/** Opens an empty line below or above the cursor, for the cursor. */
export function openLine(buffer: TextBuffer, isBelow: boolean): void {
  const { line } = buffer.cursor;
  const at = { line, column: isBelow ? lineAt(buffer.lines, line).length : 0 };
  buffer.change(at, at, "\n");
  buffer.moveTo({ line: isBelow ? line + 1 : line, column: 0 });
}

/** Changes the case of characters from the cursor on, which moves behind them. False: there are none. */
export function toggleLetters(buffer: TextBuffer, count: number): boolean {
  const region = findAhead(buffer, count);
  if (isSamePlace(region.from, region.to)) return false;
  changeCase(buffer, region, "g~");
  buffer.moveTo(region.to);
  return true;
}

/** Replaces characters from the cursor on, which moves to the last of them. False: there are fewer. */
export function replaceAhead(buffer: TextBuffer, letter: string, count: number): boolean {
  const region = findAhead(buffer, count);
  const { from, to } = region;
  if (splitClusters(buffer.read(from, to)).length < count) return false;
  replaceLetters(buffer, region, letter);
  buffer.moveTo({ line: from.line, column: from.column + letter.length * (count - 1) });
  return true;
}

/** As many characters of the line as there are. */
function findAhead({ cursor, lines }: TextBuffer, count: number): Region {
  const { line, column } = cursor;
  const to = { line, column: walk(lineAt(lines, line), column, count) };
  return { type: "text", from: cursor, to, lastLine: line };
}

/** Changes the case of a region; the cursor moves to its beginning. */
export function changeCase(buffer: TextBuffer, region: Region, change: CaseChange): void {
  const { from, to } = wholeText(buffer, region);
  const text = buffer.read(from, to);
  buffer.change(from, to, swapCase(text, change));
  buffer.moveTo(region.from);
}

function swapCase(text: string, change: CaseChange): string {
  if (change === "gu") return text.toLowerCase();
  if (change === "gU") return text.toUpperCase();
  return Array.from(text, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  ).join("");
}

/** Replaces each character of a region but the line ends; the cursor moves to its beginning. */
export function replaceLetters(buffer: TextBuffer, region: Region, letter: string): void {
  const { from, to } = wholeText(buffer, region);
  const replaced = splitClusters(buffer.read(from, to))
    .map(({ text }) => (text === "\n" ? text : letter))
    .join("");
  buffer.change(from, to, replaced);
  buffer.moveTo(from);
}

/** The positions of a region's text. */
function wholeText(
  { lines }: TextBuffer,
  { type, from, to }: Region,
): { from: Position; to: Position } {
  if (type === "text") return { from, to };
  return {
    from: { line: from.line, column: 0 },
    to: { line: to.line, column: lineAt(lines, to.line).length },
  };
}

/** Joins lines with one space between them. The cursor is where the last were joined. */
export function joinLines(buffer: TextBuffer, first: number, last: number): void {
  let joined = lineAt(buffer.lines, first);
  let piece = joined;
  let column = 0;
  for (const line of buffer.lines.slice(first + 1, last + 1)) {
    const hasSpace = piece.endsWith(" ");
    piece = line.replace(/^[ \t]+/, "");
    column = joined.length;
    const needsSpace = joined !== "" && !hasSpace && piece !== "" && !piece.startsWith(")");
    joined += (needsSpace ? " " : "") + piece;
  }
  const end = { line: last, column: lineAt(buffer.lines, last).length };
  buffer.change({ line: first, column: 0 }, end, joined);
  buffer.moveTo({ line: first, column });
}
