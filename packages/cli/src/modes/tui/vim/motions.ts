import { measureWidth, splitClusters } from "../../../text/width.ts";
import type { Position } from "../editor/editor-rows.ts";
import { nextColumn, previousColumn } from "../editor/text-buffer.ts";
import {
  classAt,
  firstLetter,
  isBefore,
  isEmptyLine,
  lastColumn,
  lineAt,
  type Lines,
} from "./characters.ts";
import { findBracket, findMatch } from "./brackets.ts";
import { WordWalk } from "./words.ts";

/** A key that moves, with the character or the text that it looks for. */
export interface Motion {
  readonly key: string;
  readonly argument?: string | undefined;
}

/** What earlier motions left behind. */
export interface MotionMemory {
  /** The column that `j` and `k` aim at, as it is shown. */
  aim?: number | undefined;
  /** The last `f`, `F`, `t` or `T`. */
  find?: { key: string; letter: string } | undefined;
  /** The last search. */
  search?: { text: string; isForward: boolean } | undefined;
}

export interface MotionContext {
  readonly lines: Lines;
  readonly cursor: Position;
  /** Undefined where none was typed. */
  readonly count: number | undefined;
  /** Set where the motion says what an operator changes. */
  readonly operator: string | undefined;
  /** The end of a line is a place to move to, as in a selection. */
  readonly hasLineEnds: boolean;
  readonly memory: MotionMemory;
}

/** Where a motion leads, and which of the text between belongs to it. */
export interface Moved {
  readonly to: Position;
  /** `lines`: whole lines. `through`: with the character at its end. `upTo`: without it. */
  readonly covers: "lines" | "through" | "upTo";
  /** The column that vertical motions aim at from now on. */
  readonly aim?: number;
  /** The text ended before the count did: the cursor moves, and an operator does nothing. */
  readonly isCut?: boolean;
}

type Move = (context: MotionContext, argument: string) => Moved | undefined;

const PERCENT = 100;
/** Keys that are other names for motions. */
const SAME: Readonly<Record<string, string>> = {
  left: "h",
  backspace: "h",
  down: "j",
  up: "k",
  right: "l",
  " ": "l",
  home: "0",
  end: "$",
  "ctrl+n": "j",
  "ctrl+p": "k",
};

const upTo = (to: Position): Moved => ({ to, covers: "upTo" });
const through = (to: Position): Moved => ({ to, covers: "through" });

const MOVES: Readonly<Record<string, Move>> = {
  h({ lines, cursor: { line, column }, count = 1, operator }) {
    if (column === 0 && operator === undefined) return undefined;
    let at = column;
    for (let left = count; left > 0; left--) at = previousColumn(lineAt(lines, line), at);
    return upTo({ line, column: at });
  },
  l({ lines, cursor: { line, column }, count = 1, operator, hasLineEnds }) {
    const text = lineAt(lines, line);
    const end = operator === undefined && !hasLineEnds ? lastColumn(text) : text.length;
    if (column >= end) return operator === undefined ? undefined : upTo({ line, column });
    let at = column;
    for (let left = count; left > 0; left--) at = nextColumn(text, at);
    return upTo({ line, column: Math.min(at, end) });
  },
  j: (context) => moveLines(context, context.count ?? 1),
  k: (context) => moveLines(context, -(context.count ?? 1)),
  "0": ({ cursor: { line } }) => upTo({ line, column: 0 }),
  "^": ({ lines, cursor: { line } }) => upTo({ line, column: firstLetter(lineAt(lines, line)) }),
  _(context) {
    const line = findLine(context);
    return line === undefined ? undefined : toLine(context.lines, line);
  },
  $(context) {
    const { hasLineEnds, lines } = context;
    const line = findLine(context);
    if (line === undefined) return undefined;
    const to = { line, column: columnAt(lineAt(lines, line), Infinity, hasLineEnds) };
    return { to, covers: "through", aim: Infinity };
  },
  gg: ({ lines, count = 1 }) => toLine(lines, count - 1),
  G: ({ lines, count = lines.length }) => toLine(lines, count - 1),
  w: (context) => moveWords(context, false),
  W: (context) => moveWords(context, true),
  e: (context) => moveToWordEnd(context, false),
  E: (context) => moveToWordEnd(context, true),
  b: (context) => moveBack(context, false),
  B: (context) => moveBack(context, true),
  ge: (context) => moveBackToEnd(context, false),
  gE: (context) => moveBackToEnd(context, true),
  f: (context, letter) => findLetter(context, "f", letter),
  F: (context, letter) => findLetter(context, "F", letter),
  t: (context, letter) => findLetter(context, "t", letter),
  T: (context, letter) => findLetter(context, "T", letter),
  ";": (context) => findAgain(context, false),
  ",": (context) => findAgain(context, true),
  "/": (context, text) => startSearch(context, text, true),
  "?": (context, text) => startSearch(context, text, false),
  n: (context) => searchAgain(context, false),
  N: (context) => searchAgain(context, true),
  "{": (context) => moveParagraphs(context, -1),
  "}": (context) => moveParagraphs(context, 1),
  "%"({ lines, cursor, count }) {
    if (count !== undefined) {
      if (count > PERCENT) return undefined;
      return toLine(lines, Math.ceil((count * lines.length) / PERCENT) - 1);
    }
    const bracket = findBracket(lines, cursor);
    const match = bracket && findMatch(lines, bracket);
    return match && through(match);
  },
};

/** Where a motion leads; undefined where there is nothing to move to. */
export function move({ key, argument = "" }: Motion, context: MotionContext): Moved | undefined {
  return MOVES[SAME[key] ?? key]?.(context, argument);
}

export function isMotion(key: string): boolean {
  return Object.hasOwn(MOVES, SAME[key] ?? key);
}

/** The columns of a line before a position, as they are shown. */
function shownColumn(text: string, column: number): number {
  return measureWidth(text.slice(0, column));
}

/** The character of a line that a shown column is on, or its last; its end, where that is a place to be at. */
function columnAt(text: string, aim: number, hasEnd: boolean): number {
  let used = 0;
  let at = 0;
  for (const { text: letter, width } of splitClusters(text)) {
    used += width;
    if (used > aim) return at;
    at += letter.length;
  }
  return hasEnd ? text.length : lastColumn(text);
}

/** Moves as far as there are lines; undefined where there is none. */
function moveLines(context: MotionContext, step: number): Moved | undefined {
  const { cursor, hasLineEnds, lines, memory } = context;
  const line = Math.max(0, Math.min(cursor.line + step, lines.length - 1));
  if (line === cursor.line) return undefined;
  const aim = memory.aim ?? shownColumn(lineAt(lines, cursor.line), cursor.column);
  const column = columnAt(lineAt(lines, line), aim, hasLineEnds);
  return { to: { line, column }, covers: "lines", aim };
}

/** The line that a count leads to from the cursor; undefined where there is none below. */
function findLine({ lines, cursor, count = 1 }: MotionContext): number | undefined {
  const line = Math.min(cursor.line + count - 1, lines.length - 1);
  return line === cursor.line && count > 1 ? undefined : line;
}

function toLine(lines: Lines, wanted: number): Moved {
  const line = Math.max(0, Math.min(wanted, lines.length - 1));
  return { to: { line, column: firstLetter(lineAt(lines, line)) }, covers: "lines" };
}

function moveWords(context: MotionContext, isBig: boolean): Moved {
  const { lines, cursor, count = 1, operator } = context;
  const walk = new WordWalk(lines, cursor, isBig);
  // On a word, `cw` leaves the blanks behind it.
  if (operator === "c" && classAt(lines, cursor, true) !== "blank") {
    return through(walk.toEnd(count, { staysInWord: true }).at);
  }
  return upTo(walk.forward(count, operator !== undefined).at);
}

function moveToWordEnd({ lines, cursor, count = 1 }: MotionContext, isBig: boolean): Moved {
  return through(new WordWalk(lines, cursor, isBig).toEnd(count).at);
}

function moveBack({ lines, cursor, count = 1 }: MotionContext, isBig: boolean): Moved {
  const { at, isWhole } = new WordWalk(lines, cursor, isBig).back(count);
  return { ...upTo(at), isCut: !isWhole };
}

function moveBackToEnd({ lines, cursor, count = 1 }: MotionContext, isBig: boolean): Moved {
  const { at, isWhole } = new WordWalk(lines, cursor, isBig).backToEnd(count);
  return { ...through(at), isCut: !isWhole };
}

function findAgain(context: MotionContext, isReversed: boolean): Moved | undefined {
  const { find } = context.memory;
  if (!find) return undefined;
  const key = isReversed ? swapCase(find.key) : find.key;
  const found = findLetter(context, key, find.letter, true);
  context.memory.find = find;
  return found;
}

/** `isAgain`: `t` and `T` go on from a character that they stand next to. */
function findLetter(
  context: MotionContext,
  key: string,
  letter: string,
  isAgain = false,
): Moved | undefined {
  const { lines, cursor, count = 1, memory } = context;
  memory.find = { key, letter };
  const text = lineAt(lines, cursor.line);
  const isForward = key === "f" || key === "t";
  const isTill = key === "t" || key === "T";
  const step = (column: number): number =>
    isForward ? nextColumn(text, column) : previousColumn(text, column);
  const isEnd = (column: number): boolean => (isForward ? column >= text.length : column <= 0);
  let { column } = cursor;
  if (isTill && isAgain && count === 1 && !isEnd(column)) {
    const next = step(column);
    if (text.startsWith(letter, next)) column = next;
  }
  for (let left = count; left > 0; left--) {
    do {
      if (isEnd(column)) return undefined;
      column = step(column);
    } while (column >= text.length || !text.startsWith(letter, column));
  }
  if (isTill) column = isForward ? previousColumn(text, column) : nextColumn(text, column);
  const to = { line: cursor.line, column };
  return isForward ? through(to) : upTo(to);
}

function startSearch(context: MotionContext, typed: string, isForward: boolean): Moved | undefined {
  const { memory } = context;
  const text = typed === "" ? memory.search?.text : typed;
  if (text === undefined) return undefined;
  memory.search = { text, isForward };
  return findText(context, text, isForward);
}

function searchAgain(context: MotionContext, isReversed: boolean): Moved | undefined {
  const { search } = context.memory;
  return search && findText(context, search.text, search.isForward !== isReversed);
}

/** The next place of a text, round the end of the whole. Capitals count. */
function findText(
  { lines, cursor, count = 1 }: MotionContext,
  text: string,
  isForward: boolean,
): Moved | undefined {
  const places = lines.flatMap((each, line) => {
    const columns: Position[] = [];
    for (let at = each.indexOf(text); at >= 0; at = each.indexOf(text, at + 1)) {
      columns.push({ line, column: at });
    }
    return columns;
  });
  const { length } = places;
  if (length === 0) return undefined;
  const after = places.findIndex((place) => isBefore(cursor, place));
  const before = places.findLastIndex((place) => isBefore(place, cursor));
  const first = isForward ? (after < 0 ? 0 : after) : before < 0 ? length - 1 : before;
  const index = isForward ? first + count - 1 : first - count + 1;
  const to = places[((index % length) + length) % length];
  return to && upTo(to);
}

/** To the empty line before or behind a paragraph, or to the end of the text. */
function moveParagraphs(
  { lines, cursor, count = 1 }: MotionContext,
  step: 1 | -1,
): Moved | undefined {
  const end = step > 0 ? lines.length - 1 : 0;
  let { line } = cursor;
  for (let left = count; left > 0; left--) {
    let hasText = !isEmptyLine(lines, line);
    while (line !== end) {
      line += step;
      if (!isEmptyLine(lines, line)) hasText = true;
      else if (hasText) break;
    }
    const isBoundary = hasText && isEmptyLine(lines, line);
    if (line === end && !isBoundary && left > 1) return undefined;
  }
  if (step > 0 && line === end && !isEmptyLine(lines, line)) {
    return through({ line, column: lastColumn(lineAt(lines, line)) });
  }
  return upTo({ line, column: 0 });
}

function swapCase(key: string): string {
  return key === key.toLowerCase() ? key.toUpperCase() : key.toLowerCase();
}
