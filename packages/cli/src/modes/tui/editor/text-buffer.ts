import { segmentText } from "../../../text/width.ts";
import type { Position, TextRows } from "./editor-rows.ts";
import { SIGNS } from "./editor-rows.ts";

/** The most steps that can be undone. */
const MAX_UNDO_STEPS = 1_000;

/** A movement of the cursor. */
export type Motion =
  | "left"
  | "right"
  /** Over a run of letters and digits, and the characters before it. */
  | "wordLeft"
  | "wordRight"
  /** To the beginning of a run without spaces. */
  | "blankLeft"
  | "lineStart"
  | "lineEnd"
  | "textStart"
  | "textEnd";

/** Decides which changes become one step. */
type ChangeKind = "typed" | "erased" | "other";

/** At `at`, `removed` was replaced by `inserted`. */
interface Change {
  kind: ChangeKind;
  at: Position;
  removed: string;
  inserted: string;
  /** Where the inserted ends. */
  end: Position;
  /** Where the cursor was before. */
  cursor: Position;
  /** Changes with the same number are undone together. */
  step?: number | undefined;
}

/** The characters of words; signs count as words. */
const LETTERS = "\\p{L}\\p{N}\\p{M}_\\u{e01f0}-\\u{e0fff}";
const WORD_LEFT = new RegExp(`[${LETTERS}]*[^${LETTERS}]*$`, "u");
const WORD_RIGHT = new RegExp(`^[^${LETTERS}]*[${LETTERS}]*`, "u");
const BLANK_LEFT = /\S*\s*$/u;
/** How far to search for the end of a word: a line can be long. */
const MAX_WORD_CHARS = 1_000;

/**
 * A text of lines with a cursor. The cost of an edit depends on the change and its line, not on the whole text. The
 * text may contain signs that stand for other texts.
 */
export class TextBuffer {
  #lines: string[] = [""];
  #cursor: Position = { line: 0, column: 0 };
  /** The column that vertical moves aim at. */
  #aim: number | undefined;
  #done: Change[] = [];
  #undone: Change[] = [];
  /** The next change may join the last one. */
  #isJoining = false;
  #killed = "";
  /** The last action was a kill, to which the next one adds. */
  #isKilling = false;
  /** The number of the open step, and of the last one. */
  #step: number | undefined;
  #lastStep = 0;

  get lines(): readonly string[] {
    return this.#lines;
  }

  get cursor(): Position {
    return this.#cursor;
  }

  get text(): string {
    return this.#lines.join("\n");
  }

  get isEmpty(): boolean {
    return this.#lines.length === 1 && this.#lines[0] === "";
  }

  /** The code units of the text before the cursor. */
  get offset(): number {
    let offset = this.#cursor.column;
    for (let line = 0; line < this.#cursor.line; line += 1) {
      offset += (this.#lines[line]?.length ?? 0) + 1;
    }
    return offset;
  }

  /** Replaces the text; the cursor moves to its end. It can be undone. */
  set(text: string): void {
    this.#change({ line: 0, column: 0 }, this.#findTarget("textEnd"), text, "other");
  }

  /** Empties the text and its undo steps. Signs are removed everywhere: they may get another meaning. */
  clear(): void {
    this.#killed = removeSigns(this.#killed);
    this.#lines = [""];
    this.#cursor = { line: 0, column: 0 };
    this.#done = [];
    this.#undone = [];
    this.#stop();
  }

  /** Inserts at the cursor. The letters of a typed word are undone as one step. */
  insert(text: string, kind: "typed" | "other" = "other"): void {
    this.#change(this.#cursor, this.#cursor, text, kind);
  }

  /** Replaces a part of the text; the cursor moves behind it. */
  replace(start: number, end: number, text: string): void {
    this.#change(this.#findPosition(start), this.#findPosition(end), text, "other");
  }

  /** Replaces what is between two positions; the cursor moves behind it. */
  change(from: Position, to: Position, text: string): void {
    this.#change(from, to, text, "other");
  }

  moveTo(position: Position): void {
    this.#stop();
    this.#cursor = position;
  }

  /** All changes up to `endStep` are undone together. */
  beginStep(): void {
    this.#lastStep += 1;
    this.#step = this.#lastStep;
    this.#stop();
  }

  endStep(): void {
    this.#step = undefined;
    this.#stop();
  }

  /** The text between two positions. */
  read(from: Position, to: Position): string {
    return this.#readBetween(from, to);
  }

  move(motion: Motion): void {
    this.#stop();
    this.#cursor = this.#findTarget(motion);
  }

  /** Moves to the row above or below on the screen; false where there is none. */
  moveRow(step: -1 | 1, rows: TextRows): boolean {
    const place = rows.findRow(this.#lines, this.#cursor);
    const next = rows.findNeighbor(this.#lines, place, step);
    if (!next) return false;
    const aim = this.#aim ?? rows.findColumn(this.#lines, this.#cursor);
    this.#stop();
    this.#aim = aim;
    this.#cursor = rows.findPosition(this.#lines, next, aim);
    return true;
  }

  /** Removes the text between the cursor and the end of a motion. */
  erase(motion: Motion): void {
    const target = this.#findTarget(motion);
    const [from, to] = sortPositions(this.#cursor, target);
    this.#change(from, to, "", "erased");
  }

  /** Removes text and keeps it for `yank`. At the end of a line it removes the line end. */
  kill(motion: Motion): void {
    let target = this.#findTarget(motion);
    if (isSame(target, this.#cursor)) {
      target = this.#findTarget(motion === "lineEnd" ? "right" : "left");
    }
    const [from, to] = sortPositions(this.#cursor, target);
    const isBackwards = isSame(from, target);
    const text = this.#readBetween(from, to);
    if (text === "") return;
    if (!this.#isKilling) this.#killed = text;
    else this.#killed = isBackwards ? text + this.#killed : this.#killed + text;
    this.#change(from, to, "", "other");
    this.#isKilling = true;
  }

  /** Inserts the killed text. */
  yank(): void {
    this.insert(this.#killed);
  }

  /** Undoes the last step. Returns where the cursor was before it, which is where it is now; undefined: there is none. */
  undo(): Position | undefined {
    return this.#walkStep(this.#done, this.#undone, (change) => {
      this.#write(change.at, change.end, change.removed);
      this.#cursor = change.cursor;
      return change.cursor;
    });
  }

  /** Does again what was undone last; the cursor is behind it. Returns where the cursor was before. */
  redo(): Position | undefined {
    let before: Position | undefined;
    return this.#walkStep(this.#undone, this.#done, (change) => {
      this.#write(change.at, findEnd(change.at, change.removed), change.inserted);
      this.#cursor = change.end;
      before ??= change.cursor;
      return before;
    });
  }

  /** Takes the changes of a step from one list to the other. */
  #walkStep(
    from: Change[],
    to: Change[],
    apply: (change: Change) => Position,
  ): Position | undefined {
    let place: Position | undefined;
    for (let change = from.pop(); change; change = from.pop()) {
      place = apply(change);
      to.push(change);
      if (change.step === undefined || from.at(-1)?.step !== change.step) break;
    }
    // What comes next is a step of its own.
    if (this.#step !== undefined) this.beginStep();
    this.#stop();
    return place;
  }

  #change(from: Position, to: Position, inserted: string, kind: ChangeKind): void {
    const removed = this.#readBetween(from, to);
    if (removed === "" && inserted === "") return;
    const isJoining = this.#isJoining;
    const change: Change = {
      kind,
      at: from,
      removed,
      inserted,
      end: this.#write(from, to, inserted),
      cursor: this.#cursor,
      step: this.#step,
    };
    this.#stop();
    this.#cursor = change.end;
    this.#undone = [];
    this.#isJoining = true;
    const last = this.#done.at(-1);
    const joined = isJoining && last ? joinChanges(last, change) : undefined;
    if (joined) this.#done[this.#done.length - 1] = joined;
    else this.#done.push(change);
    if (this.#done.length > MAX_UNDO_STEPS) this.#done.shift();
  }

  /** Replaces without an undo step; returns the end of the inserted text. */
  #write(from: Position, to: Position, text: string): Position {
    const head = (this.#lines[from.line] ?? "").slice(0, from.column);
    const tail = (this.#lines[to.line] ?? "").slice(to.column);
    if (from.line === to.line && !text.includes("\n")) {
      this.#lines[from.line] = head + text + tail;
      return { line: from.line, column: from.column + text.length };
    }
    const written = (head + text).split("\n");
    const end = { line: from.line + written.length - 1, column: (written.at(-1) ?? "").length };
    written[written.length - 1] += tail;
    // `splice` takes lines as arguments, of which there cannot be a hundred thousand.
    this.#lines = this.#lines.slice(0, from.line).concat(written, this.#lines.slice(to.line + 1));
    return end;
  }

  #readBetween(from: Position, to: Position): string {
    if (from.line === to.line) {
      return (this.#lines[from.line] ?? "").slice(from.column, to.column);
    }
    const lines = this.#lines.slice(from.line, to.line + 1);
    lines[0] = (lines[0] ?? "").slice(from.column);
    lines[lines.length - 1] = (lines.at(-1) ?? "").slice(0, to.column);
    return lines.join("\n");
  }

  #findPosition(offset: number): Position {
    let left = offset;
    for (const [line, { length }] of this.#lines.entries()) {
      if (left <= length) return { line, column: left };
      left -= length + 1;
    }
    return this.#findTarget("textEnd");
  }

  #findTarget(motion: Motion): Position {
    const { line, column } = this.#cursor;
    const text = this.#lines[line] ?? "";
    const last = this.#lines.length - 1;
    switch (motion) {
      case "lineStart":
        return { line, column: 0 };
      case "lineEnd":
        return { line, column: text.length };
      case "textStart":
        return { line: 0, column: 0 };
      case "textEnd":
        return { line: last, column: this.#lines[last]?.length ?? 0 };
      case "left":
      case "wordLeft":
      case "blankLeft": {
        if (column > 0) return { line, column: column - measureLeft(text, column, motion) };
        if (line === 0) return this.#cursor;
        return { line: line - 1, column: this.#lines[line - 1]?.length ?? 0 };
      }
      case "right":
      case "wordRight": {
        if (column < text.length) {
          return { line, column: column + measureRight(text, column, motion) };
        }
        return line === last ? this.#cursor : { line: line + 1, column: 0 };
      }
    }
  }

  /** Ends what the last key began. */
  #stop(): void {
    this.#aim = undefined;
    this.#isJoining = false;
    this.#isKilling = false;
  }
}

/** Removes the characters that only the editor may put into a buffer. */
export function removeSigns(text: string): string {
  return text.replace(SIGNS, "");
}

/** Where the character before a column begins. */
export function previousColumn(text: string, column: number): number {
  if (column <= 0) return 0;
  if (isAscii(text, column - 1)) return column - 1;
  return segmentText(text).containing(column - 1)?.index ?? column - 1;
}

/** Where the character at a column ends. */
export function nextColumn(text: string, column: number): number {
  if (column >= text.length) return text.length;
  // A combining mark belongs to the letter before it.
  const isSingle = column + 1 === text.length || isAscii(text, column + 1);
  if (isAscii(text, column) && isSingle) return column + 1;
  const found = segmentText(text).containing(column);
  return found ? found.index + found.segment.length : column + 1;
}

function measureLeft(
  text: string,
  column: number,
  motion: "left" | "wordLeft" | "blankLeft",
): number {
  if (motion === "left") return column - previousColumn(text, column);
  const before = text.slice(Math.max(0, column - MAX_WORD_CHARS), column);
  const word = (motion === "wordLeft" ? WORD_LEFT : BLANK_LEFT).exec(before)?.[0] ?? "";
  return Math.max(1, word.length);
}

function measureRight(text: string, column: number, motion: "right" | "wordRight"): number {
  if (motion === "right") return nextColumn(text, column) - column;
  const after = text.slice(column, column + MAX_WORD_CHARS);
  return Math.max(1, WORD_RIGHT.exec(after)?.[0].length ?? 1);
}

function isAscii(text: string, index: number): boolean {
  return text.charCodeAt(index) < 0x80;
}

/** The letters of a word are one step, and so are letters that were removed one after the other. */
function joinChanges(last: Change, change: Change): Change | undefined {
  if (last.kind !== change.kind || change.kind === "other") return undefined;
  if (last.step !== change.step) return undefined;
  if (change.kind === "typed") {
    const isNewWord = /\s$/.test(last.inserted) && /^\S/.test(change.inserted);
    if (isNewWord || !isSame(last.end, change.at)) return undefined;
    return { ...last, inserted: last.inserted + change.inserted, end: change.end };
  }
  if (isSame(last.at, change.at)) return { ...last, removed: last.removed + change.removed };
  if (!isSame(last.at, findEnd(change.at, change.removed))) return undefined;
  return { ...change, removed: change.removed + last.removed, cursor: last.cursor };
}

function findEnd(at: Position, text: string): Position {
  const lines = text.split("\n");
  const column = (lines.at(-1) ?? "").length;
  return lines.length === 1
    ? { line: at.line, column: at.column + column }
    : { line: at.line + lines.length - 1, column };
}

function isSame(one: Position, other: Position): boolean {
  return one.line === other.line && one.column === other.column;
}

function sortPositions(one: Position, other: Position): [Position, Position] {
  const isBefore = one.line < other.line || (one.line === other.line && one.column <= other.column);
  return isBefore ? [one, other] : [other, one];
}
