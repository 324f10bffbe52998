import type { Position } from "../editor/editor-rows.ts";
import { previousColumn } from "../editor/text-buffer.ts";
import { findPair } from "./brackets.ts";
import { classAt, isBefore, lineAt, type Lines, stepBack, stepForward } from "./characters.ts";
import type { Moved } from "./motions.ts";
import { WordWalk } from "./words.ts";

/** `i` or `a`, and what is meant: `w`, `"`, `(`, `p`. */
export interface TextObject {
  readonly isAround: boolean;
  readonly key: string;
}

/** The text that an object stands for. */
export interface ObjectRange extends Pick<Moved, "to" | "covers"> {
  readonly from: Position;
}

const PAIRS: Readonly<Record<string, string>> = {
  "(": "()",
  ")": "()",
  b: "()",
  "[": "[]",
  "]": "[]",
  "{": "{}",
  "}": "{}",
  B: "{}",
  "<": "<>",
  ">": "<>",
};
const QUOTES = "\"'`";
const ESCAPE = "\\";

export function isObject(key: string): boolean {
  return "wWp".includes(key) || isQuote(key) || Object.hasOwn(PAIRS, key);
}

export function isQuote(key: string): boolean {
  return QUOTES.includes(key);
}

/** What an object at a position stands for; undefined where there is none. */
export function findObject(
  { isAround, key }: TextObject,
  lines: Lines,
  at: Position,
  count: number,
): ObjectRange | undefined {
  if (key === "w" || key === "W") return findWords(lines, at, key === "W", isAround, count);
  if (key === "p") return findParagraphs(lines, at.line, isAround, count);
  if (isQuote(key)) return findQuoted(lines, at, key, isAround, count);
  const pair = PAIRS[key];
  return pair === undefined ? undefined : findBlock(lines, at, pair, isAround, count);
}

function findWords(
  lines: Lines,
  at: Position,
  isBig: boolean,
  isAround: boolean,
  count: number,
): ObjectRange | undefined {
  const isBlank = (place: Position): boolean => classAt(lines, place, isBig) === "blank";
  const start = findStart(lines, at, isBig);
  /** The blanks behind its words belong to the object, and else those before them. */
  const endsBlank = isAround && !isBlank(start);
  let end = start;
  let covers: Moved["covers"] = "through";
  for (let left = count; left > 0; left--) {
    covers = "through";
    if (left < count) {
      const next = nextLetter(lines, end);
      if (!next) return undefined;
      end = next;
    }
    const walk = new WordWalk(lines, end, isBig);
    if (isBlank(end) === isAround) {
      const { at: last, isWhole } = walk.toEnd(1, { staysInWord: true, stopsAtEmpty: true });
      if (!isWhole) return undefined;
      end = last;
      continue;
    }
    const { at: next, isWhole } = walk.forward(1, true);
    if (!isWhole && left < count && left > 1) return undefined;
    if (next.column > 0) end = before(lines, next);
    else if (left === count) end = previousLetter(lines, next);
    else {
      end = next;
      covers = "upTo";
    }
  }
  const endsWithText = !isBlank(end) || (end.column === 0 && covers === "upTo");
  const from = endsBlank && endsWithText ? findBlanksBefore(lines, start, isBig) : start;
  return { from, to: end, covers };
}

/** The next character; an empty line counts as one. */
function nextLetter(lines: Lines, at: Position): Position | undefined {
  const step = stepForward(lines, at);
  return step?.to === "end" ? stepForward(lines, step.at)?.at : step?.at;
}

/** The character before; an empty line counts as one. */
function previousLetter(lines: Lines, at: Position): Position {
  const step = stepBack(lines, at)?.at ?? at;
  return at.column === 0 && step.column > 0 ? before(lines, step) : step;
}

/** Where the word or the blanks at a position begin, in its line. */
function findStart(lines: Lines, at: Position, isBig: boolean): Position {
  const text = lineAt(lines, at.line);
  const kind = classAt(lines, at, isBig);
  let { column } = at;
  while (column > 0) {
    const previous = previousColumn(text, column);
    if (classAt(lines, { line: at.line, column: previous }, isBig) !== kind) break;
    column = previous;
  }
  return { line: at.line, column };
}

/** The beginning of the blanks before a word, unless its line begins with them. */
function findBlanksBefore(lines: Lines, start: Position, isBig: boolean): Position {
  if (start.column === 0) return start;
  const blanks = findStart(lines, before(lines, start), isBig);
  return classAt(lines, blanks, isBig) === "blank" && blanks.column > 0 ? blanks : start;
}

function before(lines: Lines, { line, column }: Position): Position {
  return { line, column: previousColumn(lineAt(lines, line), column) };
}

/** Paragraphs, and what is between them, are lines with and without text. */
function findParagraphs(
  lines: Lines,
  line: number,
  isAround: boolean,
  count: number,
): ObjectRange | undefined {
  const isBlank = (at: number): boolean => lineAt(lines, at).trim() === "";
  const isStart = isBlank(line);
  let first = line;
  while (first > 0 && isBlank(first - 1) === isStart) first--;
  let last = line;
  const extend = (): boolean => {
    if (last >= lines.length - 1) return false;
    const kind = isBlank(last + 1);
    while (last < lines.length - 1 && isBlank(last + 1) === kind) last++;
    return true;
  };
  while (last < lines.length - 1 && isBlank(last + 1) === isStart) last++;
  const parts = isAround ? count * 2 : count;
  for (let part = 1; part < parts; part++) {
    if (extend()) continue;
    // Without blank lines behind the paragraph, those before it are taken.
    if (!isAround || isStart || part < parts - 1) return undefined;
    while (first > 0 && isBlank(first - 1)) first--;
  }
  return { from: { line: first, column: 0 }, to: { line: last, column: 0 }, covers: "lines" };
}

function findQuoted(
  lines: Lines,
  { line, column }: Position,
  quote: string,
  isAround: boolean,
  count: number,
): ObjectRange | undefined {
  const text = lineAt(lines, line);
  const pair =
    text[column] === quote ? pairAt(text, column, quote) : pairAround(text, column, quote);
  if (!pair) return undefined;
  let [from, to] = pair;
  if (!isAround && count === 1) {
    return { from: { line, column: from + 1 }, to: { line, column: to }, covers: "upTo" };
  }
  to += 1;
  // Twice within is with the quotes, and without the blanks.
  if (!isAround) return { from: { line, column: from }, to: { line, column: to }, covers: "upTo" };
  const blanks = /^[ \t]+/.exec(text.slice(to))?.[0].length ?? 0;
  if (blanks > 0) to += blanks;
  else from -= /[ \t]*$/.exec(text.slice(0, from))?.[0].length ?? 0;
  return { from: { line, column: from }, to: { line, column: to }, covers: "upTo" };
}

/** The quotes of which one is at a column: they are counted from the beginning of the line. */
function pairAt(text: string, column: number, quote: string): [number, number] | undefined {
  for (let from = nextQuote(text, 0, quote); from >= 0 && from <= column;) {
    const to = nextQuote(text, from + 1, quote);
    if (to < 0) return undefined;
    if (column <= to) return [from, to];
    from = nextQuote(text, to + 1, quote);
  }
  return undefined;
}

/** The quotes around a column, or the next ones. */
function pairAround(text: string, column: number, quote: string): [number, number] | undefined {
  let from = -1;
  for (let at = column - 1; at >= 0 && from < 0; at--) {
    if (text[at] === quote && !isEscaped(text, at)) from = at;
  }
  if (from < 0) from = nextQuote(text, column, quote);
  const to = from < 0 ? -1 : nextQuote(text, from + 1, quote);
  return to < 0 ? undefined : [from, to];
}

function nextQuote(text: string, from: number, quote: string): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === ESCAPE) at++;
    else if (text[at] === quote) return at;
  }
  return -1;
}

function isEscaped(text: string, at: number): boolean {
  const escapes = /\\*$/.exec(text.slice(0, at))?.[0].length ?? 0;
  return escapes % 2 === 1;
}

function findBlock(
  lines: Lines,
  at: Position,
  pair: string,
  isAround: boolean,
  count: number,
): ObjectRange | undefined {
  const indent = /^[ \t]*/.exec(lineAt(lines, at.line))?.[0].length ?? 0;
  // Braces in an indent are those of the line.
  const isBeforeText = pair === "{}" && at.column < indent;
  const place = isBeforeText ? { line: at.line, column: indent } : at;
  const found = findPair(lines, place, pair, count);
  if (!found) return undefined;
  const { open, close } = found;
  if (isAround) return { from: open, to: close, covers: "through" };
  // The line end behind the first bracket and the indent before the last one are not within.
  let from: Position = { line: open.line, column: open.column + 1 };
  if (from.column >= lineAt(lines, from.line).length && from.line < close.line) {
    from = { line: from.line + 1, column: 0 };
  }
  const isIndented = /^[ \t]*$/.test(lineAt(lines, close.line).slice(0, close.column));
  const to = isIndented && close.line > open.line ? { line: close.line, column: 0 } : close;
  return { from, to: isBefore(to, from) ? from : to, covers: "upTo" };
}
