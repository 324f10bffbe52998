import type { Position } from "../editor/editor-rows.ts";
import { SIGNS } from "../editor/editor-rows.ts";
import { nextColumn, previousColumn } from "../editor/text-buffer.ts";

export type Lines = readonly string[];

/** The kinds of characters that words are made of. A word has one kind. */
export type CharacterClass = "blank" | "word" | "punctuation" | "emoji" | "sign" | (string & {});

const WORD = /^[\p{L}\p{N}\p{M}_]/u;
const EMOJI = /^\p{Extended_Pictographic}/u;
/** Scripts without spaces are words of their own. */
const SCRIPTS: readonly (readonly [string, RegExp])[] = [
  ["han", /^\p{Script=Han}/u],
  ["hiragana", /^\p{Script=Hiragana}/u],
  ["katakana", /^\p{Script=Katakana}/u],
  ["hangul", /^\p{Script=Hangul}/u],
];

export function lineAt(lines: Lines, line: number): string {
  return lines[line] ?? "";
}

/** The kind of the character at a position; the end of a line is blank. */
export function classAt(
  lines: Lines,
  { line, column }: Position,
  isBlankOnly: boolean,
): CharacterClass {
  const text = lineAt(lines, line);
  const letter = text.slice(column, nextColumn(text, column));
  if (letter === "" || letter === " " || letter === "\t") return "blank";
  if (isBlankOnly) return "word";
  if (letter.search(SIGNS) === 0) return "sign";
  const script = SCRIPTS.find(([, pattern]) => pattern.test(letter));
  if (script) return script[0];
  if (WORD.test(letter)) return "word";
  return EMOJI.test(letter) ? "emoji" : "punctuation";
}

/** What a step leads to: another character, the end of the line, or another line. */
export interface Step {
  readonly at: Position;
  readonly to: "character" | "end" | "line";
}

/** The next position, the end of each line among them; undefined at the end of the text. */
export function stepForward(lines: Lines, { line, column }: Position): Step | undefined {
  const text = lineAt(lines, line);
  if (column < text.length) {
    const next = nextColumn(text, column);
    return { at: { line, column: next }, to: next < text.length ? "character" : "end" };
  }
  if (line >= lines.length - 1) return undefined;
  return { at: { line: line + 1, column: 0 }, to: "line" };
}

/** The position before; undefined at the beginning of the text. */
export function stepBack(lines: Lines, { line, column }: Position): Step | undefined {
  if (column > 0) {
    return {
      at: { line, column: previousColumn(lineAt(lines, line), column) },
      to: "character",
    };
  }
  if (line === 0) return undefined;
  return { at: { line: line - 1, column: lineAt(lines, line - 1).length }, to: "line" };
}

/** The column that is a number of characters further on. */
export function walk(text: string, column: number, count: number): number {
  let at = column;
  for (let left = count; left > 0 && at < text.length; left--) at = nextColumn(text, at);
  return at;
}

/** The column of the last character of a line; 0 in an empty one. */
export function lastColumn(text: string): number {
  return previousColumn(text, text.length);
}

/** The column of the first character that is not a space; that of the last one where there is none. */
export function firstLetter(text: string): number {
  const found = text.search(/[^ \t]/);
  return found < 0 ? lastColumn(text) : found;
}

export function isEmptyLine(lines: Lines, line: number): boolean {
  return lineAt(lines, line) === "";
}

export function isBefore(one: Position, other: Position): boolean {
  return one.line < other.line || (one.line === other.line && one.column < other.column);
}

export function isSamePlace(one: Position, other: Position): boolean {
  return one.line === other.line && one.column === other.column;
}
