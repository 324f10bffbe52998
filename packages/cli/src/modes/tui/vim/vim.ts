import type { Position, Selection } from "../editor/editor-rows.ts";
import type { KeyMode, ModeAnswer } from "../editor/key-mode.ts";
import { nextColumn, previousColumn, removeSigns, type TextBuffer } from "../editor/text-buffer.ts";
import { formatKey, type TerminalEvent } from "../terminal/key.ts";
import type { CursorShape } from "../terminal/tty.ts";
import { splitClusters } from "../../../text/width.ts";
import { firstLetter, isBefore, isSamePlace, lastColumn, lineAt, walk } from "./characters.ts";
import { type Command, isSearching, parseCommand, type Target } from "./commands.ts";
import {
  type CaseChange,
  changeCase,
  copyRegion,
  emptyRegion,
  joinLines,
  openLine,
  putOver,
  putRegister,
  type Register,
  removeRegion,
  replaceAhead,
  replaceLetters,
  toggleLetters,
} from "./edits.ts";
import { type Motion, type MotionMemory, move, type Moved } from "./motions.ts";
import { type Region, resolveRegion, resolveSelection } from "./region.ts";
import { findObject, isQuote, type TextObject } from "./text-objects.ts";

type Mode = "insert" | "normal" | "visual" | "visual line";

/** A change that `.` repeats, with the text that was written in it. */
interface Change {
  readonly command: Command;
  /** How much was selected, where it was a change of a selection. */
  readonly extent?: Extent | undefined;
  inserted: string;
}

/** The size of a selection, to take as much from another place on. */
interface Extent {
  readonly isLines: boolean;
  readonly lines: number;
  /** Of its last line. */
  readonly letters: number;
}

/** Where text is being inserted. */
interface Insertion {
  /** The text before and behind it. */
  readonly before: string;
  readonly after: string;
  readonly count: number;
  /** Each repetition is a line of its own, as behind `o`. */
  readonly isLine: boolean;
  readonly change: Change | undefined;
}

/** Motions whose failure asks for an earlier or a later prompt. */
const PROMPT_MOTIONS: Readonly<Record<string, -1 | 1>> = { k: -1, j: 1 };
/** Keys without letters that are parts of commands. */
const NAMED_KEYS: ReadonlySet<string> = new Set(
  "left right home end backspace delete ctrl+r".split(" "),
);
/** Motions that forget the column that `j` and `k` aim at, though they find nothing. */
const SEARCHES: ReadonlySet<string> = new Set("/?nN".split(""));
/** Keys that take whole lines of a selection. */
const WHOLE_LINES: ReadonlySet<string> = new Set("DXCSRY".split(""));
const ESCAPES: ReadonlySet<string> = new Set(["escape", "ctrl+["]);

/** The modes, commands, motions and text objects of vim, for a prompt. It begins in the insert mode. */
export class Vim implements KeyMode {
  readonly #buffer: TextBuffer;
  readonly #walkHistory: (step: -1 | 1) => void;
  #mode: Mode = "insert";
  /** The keys of an incomplete command. */
  #keys: string[] = [];
  readonly #memory: MotionMemory = {};
  #register: Register = { text: "", isLines: false };
  #insertion: Insertion | undefined;
  #last: Change | undefined;
  /** Where the selection began; the cursor is its other end. */
  #anchor: Position = { line: 0, column: 0 };

  constructor(buffer: TextBuffer, walkHistory: (step: -1 | 1) => void) {
    this.#buffer = buffer;
    this.#walkHistory = walkHistory;
    this.#insert();
  }

  get label(): string {
    const typed = this.#keys.join("");
    return typed === "" ? this.#mode.toUpperCase() : `${this.#mode.toUpperCase()} ${typed}`;
  }

  get cursor(): CursorShape {
    return this.#mode === "insert" ? "bar" : "block";
  }

  get takesEscape(): boolean {
    return this.#mode !== "normal" || this.#keys.length > 0;
  }

  get selection(): Selection | undefined {
    if (!this.#isSelecting) return undefined;
    const { type, from, to } = this.#selected();
    if (type === "text") return { from, to };
    return { from: { line: from.line, column: 0 }, to: { line: to.line + 1, column: 0 } };
  }

  /** What was cut or copied last. */
  get register(): Register {
    return this.#register;
  }

  get #isSelecting(): boolean {
    return this.#mode === "visual" || this.#mode === "visual line";
  }

  take(event: TerminalEvent): ModeAnswer {
    this.settle();
    if (event.type === "text") return this.#takeText(event.text);
    if (event.type !== "key") return "pass";
    const { alt, ctrl, shift } = event;
    // Terminals send a letter with Alt as Esc and the letter, which a fast hand types as well.
    if (alt && !ctrl && [...event.name].length === 1) {
      if (this.takesEscape) this.#escape();
      return this.#takeText(shift ? event.name.toUpperCase() : event.name);
    }
    const name = formatKey(event);
    if (ESCAPES.has(name)) return this.#escape();
    if (this.#mode === "insert") return "pass";
    if (isSearching(this.#keys)) return this.#takeSearchKey(name);
    const isVertical = name === "up" || name === "down";
    if (NAMED_KEYS.has(name) || (isVertical && this.#keys.length > 0)) return this.#press(name);
    this.#keys = [];
    return "pass";
  }

  settle(): void {
    if (this.#mode === "insert") return;
    const { lines, cursor } = this.#buffer;
    const text = lineAt(lines, cursor.line);
    // A selection may end behind the last character of a line.
    if (this.#mode !== "normal" || cursor.column < text.length || text === "") return;
    this.#buffer.moveTo({ line: cursor.line, column: lastColumn(text) });
  }

  reset(): void {
    this.#keys = [];
    this.#memory.aim = undefined;
    // What a sign stands for is gone.
    this.#register = { ...this.#register, text: removeSigns(this.#register.text) };
    if (this.#last) this.#last.inserted = removeSigns(this.#last.inserted);
    this.#mode = "insert";
    this.#insert();
  }

  #takeText(text: string): ModeAnswer {
    if (this.#insertion) return "pass";
    const letters = splitClusters(text).map((cluster) => cluster.text);
    for (const [index, letter] of letters.entries()) {
      if (this.#insertion) {
        this.#buffer.insert(letters.slice(index).join(""), "typed");
        return "edited";
      }
      this.#press(letter);
    }
    return "moved";
  }

  #takeSearchKey(name: string): ModeAnswer {
    if (name === "backspace") {
      this.#keys.pop();
      if (!isSearching(this.#keys)) this.#keys = [];
    } else if (name === "enter") return this.#press(name);
    return "moved";
  }

  /** Ends the mode, or the command; without either the key is for others. */
  #escape(): ModeAnswer {
    if (this.#mode === "insert") this.#endInsertion();
    else if (this.#isSelecting && this.#keys.length === 0) this.#mode = "normal";
    else if (this.#keys.length === 0) return "pass";
    this.#keys = [];
    this.settle();
    return "moved";
  }

  #press(key: string): ModeAnswer {
    this.#keys.push(key);
    const parsed = parseCommand(this.#keys, this.#isSelecting);
    if (parsed.type === "incomplete") return "moved";
    this.#keys = [];
    if (parsed.type === "unknown") return "moved";
    // All that a command changes is undone together, with what is inserted behind it.
    this.#buffer.beginStep();
    this.#run(parsed.command);
    if (!this.#insertion) this.#buffer.endStep();
    this.settle();
    return "moved";
  }

  #run(command: Command): void {
    switch (command.type) {
      case "motion":
        return this.#moveBy(command.motion, command.count);
      case "object":
        return this.#select(command.object, command.count);
      case "operate":
        return this.#operate(command.operator, command.target, command);
      case "action":
        if (!/^[vV]$/.test(command.key)) this.#memory.aim = undefined;
        return this.#isSelecting ? this.#actOnSelection(command) : this.#act(command);
    }
  }

  #moveBy(motion: Motion, count: number | undefined): void {
    const moved = this.#findEnd(motion, count, undefined);
    if (!moved) {
      const step = count === undefined ? PROMPT_MOTIONS[motion.key] : undefined;
      if (step !== undefined && !this.#isSelecting) this.#walkHistory(step);
      return;
    }
    this.#memory.aim = moved.aim;
    this.#buffer.moveTo(moved.to);
  }

  #findEnd(
    motion: Motion,
    count: number | undefined,
    operator: string | undefined,
  ): Moved | undefined {
    const { lines, cursor } = this.#buffer;
    const hasLineEnds = this.#isSelecting;
    const memory = this.#memory;
    const moved = move(motion, { lines, cursor, count, operator, hasLineEnds, memory });
    if (!moved && SEARCHES.has(motion.key)) memory.aim = undefined;
    return moved;
  }

  /** Runs an operator on what its target stands for. */
  #operate(operator: string, target: Target, command: Command): void {
    const region = this.#resolve(operator, target, command.count);
    // An object that is not found forgets the column that `j` and `k` aim at, too.
    if (target.type === "object") this.#memory.aim = undefined;
    if (!region) return;
    this.#memory.aim = undefined;
    this.#apply(operator, region, { command, inserted: "" });
  }

  #resolve(operator: string, target: Target, count: number | undefined): Region | undefined {
    const { lines, cursor } = this.#buffer;
    if (target.type === "lines") {
      const last = cursor.line + (count ?? 1) - 1;
      if (last >= lines.length && lines.length === cursor.line + 1 && last > cursor.line) {
        return undefined;
      }
      const to = { line: Math.min(last, lines.length - 1), column: cursor.column };
      const indent = firstLetter(lineAt(lines, cursor.line));
      // Of one line the cursor moves to its first letter, but for a copy of it.
      const isKept = operator === "y" || to.line > cursor.line;
      const column = isKept ? cursor.column : Math.min(cursor.column, indent);
      return { type: "lines", from: { line: cursor.line, column }, to, lastLine: to.line };
    }
    if (target.type === "object") {
      const found = findObject(target.object, lines, cursor, count ?? 1);
      if (!found && isWordAhead(target.object)) this.#buffer.move("textEnd");
      return found && resolveRegion(lines, found.from, found, operator);
    }
    const moved = this.#findEnd(target.motion, count, operator);
    if (!moved) return undefined;
    if (moved.isCut) {
      this.#buffer.moveTo(moved.to);
      return undefined;
    }
    return resolveRegion(lines, cursor, moved, operator);
  }

  #apply(operator: string, region: Region, change: Change): void {
    const buffer = this.#buffer;
    if (operator === "y") {
      this.#register = copyRegion(buffer, region);
      buffer.moveTo(region.from);
      return;
    }
    this.#last = change;
    buffer.moveTo(region.from);
    if (operator !== "d" && operator !== "c") {
      return changeCase(buffer, region, CASES[operator] ?? "g~");
    }
    const isEmpty = region.type === "text" ? isSamePlace(region.from, region.to) : buffer.isEmpty;
    if (!isEmpty) this.#register = copyRegion(buffer, region);
    if (operator === "d") return removeRegion(buffer, region);
    emptyRegion(buffer, region);
    this.#beginInsertion(change);
  }

  #act(command: Extract<Command, { type: "action" }>): void {
    const { count = 1, key } = command;
    const buffer = this.#buffer;
    const { cursor } = buffer;
    const change: Change = { command, inserted: "" };
    const text = lineAt(buffer.lines, cursor.line);
    switch (key) {
      case "i":
        return this.#beginInsertion(change, count);
      case "a":
        buffer.moveTo({ line: cursor.line, column: nextColumn(text, cursor.column) });
        return this.#beginInsertion(change, count);
      case "I":
        buffer.moveTo({ line: cursor.line, column: measureIndent(text) });
        return this.#beginInsertion(change, count);
      case "A":
        buffer.moveTo({ line: cursor.line, column: text.length });
        return this.#beginInsertion(change, count);
      case "o":
      case "O":
        openLine(buffer, key === "o");
        return this.#beginInsertion(change, count, true);
      case "v":
      case "V":
        this.#anchor = cursor;
        this.#mode = key === "v" ? "visual" : "visual line";
        return;
      case "p":
      case "P":
        if (this.#register.text === "" && !this.#register.isLines) return;
        this.#last = change;
        return putRegister(buffer, this.#register, count, key === "P");
      case "u":
        return this.#travel(count, () => buffer.undo());
      case "ctrl+r":
        return this.#travel(count, () => buffer.redo());
      case "J":
        return this.#join(change, cursor.line, Math.max(2, count));
      case "~":
        if (toggleLetters(buffer, count)) this.#last = change;
        return;
      case "r":
        if (replaceAhead(buffer, command.argument ?? "", count)) this.#last = change;
        return;
      case ".":
        return this.#repeat(command.count);
      default:
    }
  }

  /** Undoes or does again; the cursor is where it was before the change. */
  #travel(count: number, go: () => Position | undefined): void {
    for (let left = count; left > 0; left--) {
      const place = go();
      if (!place) return;
      const last = this.#buffer.lines.length - 1;
      this.#buffer.moveTo(place.line > last ? { line: last, column: 0 } : place);
    }
  }

  #join(change: Change, first: number, count: number): void {
    const { length } = this.#buffer.lines;
    const last = Math.min(first + count - 1, length - 1);
    if (last === first) return;
    this.#last = change;
    joinLines(this.#buffer, first, last);
  }

  #select(object: TextObject, count: number | undefined): void {
    const { lines, cursor } = this.#buffer;
    const found = findObject(object, lines, cursor, count ?? 1);
    if (!found) return;
    const { from, to, covers } = found;
    const isEmpty = covers === "upTo" && isSamePlace(from, to);
    // Nothing cannot be selected: quotes without a text between them are, and brackets that follow.
    if (isEmpty && !object.isAround) {
      const opening = { line: from.line, column: from.column - 1 };
      if (isQuote(object.key)) this.#select(object, 2);
      else if (isBefore(cursor, opening)) this.#select({ ...object, isAround: true }, count);
      return;
    }
    const isLines = covers === "lines";
    if (!isLines || from.line !== this.#anchor.line) this.#anchor = from;
    this.#mode = isLines ? "visual line" : "visual";
    if (covers !== "upTo") return this.#buffer.moveTo(to);
    const line = to.column === 0 ? to.line - 1 : to.line;
    const column =
      to.column === 0 ? lineAt(lines, line).length : previousColumn(lineAt(lines, line), to.column);
    this.#buffer.moveTo({ line, column });
  }

  #selected(isLines = this.#mode === "visual line"): Region {
    const { lines, cursor } = this.#buffer;
    return resolveSelection(lines, this.#anchor, cursor, isLines);
  }

  #actOnSelection(command: Extract<Command, { type: "action" }>): void {
    const { key } = command;
    const buffer = this.#buffer;
    const { cursor } = buffer;
    if (key === "v" || key === "V") {
      const mode = key === "v" ? "visual" : "visual line";
      this.#mode = this.#mode === mode ? "normal" : mode;
      return;
    }
    if (key === "o") {
      const { line, column } = this.#anchor;
      buffer.moveTo({ line, column: Math.min(column, lineAt(buffer.lines, line).length) });
      this.#anchor = cursor;
      return;
    }
    const region = this.#selected(WHOLE_LINES.has(key) || this.#mode === "visual line");
    const change: Change = { command, extent: this.#measure(region), inserted: "" };
    this.#mode = "normal";
    this.#changeRegion(command, region, change);
  }

  /** Changes what was selected, or as much of it as was. */
  #changeRegion(
    { argument = "", count = 1, key }: Extract<Command, { type: "action" }>,
    region: Region,
    change: Change,
  ): void {
    const buffer = this.#buffer;
    switch (key) {
      case "d":
      case "x":
      case "delete":
      case "D":
      case "X":
        return this.#apply("d", region, change);
      case "c":
      case "s":
      case "C":
      case "S":
      case "R":
        return this.#apply("c", region, change);
      case "y":
      case "Y":
        return this.#apply("y", region, change);
      case "~":
      case "g~":
      case "u":
      case "gu":
      case "U":
      case "gU":
        return this.#apply(CASES[key] ?? "g~", region, change);
      case "r":
        this.#last = change;
        buffer.moveTo(region.from);
        return replaceLetters(buffer, region, argument);
      case "J": {
        const { line } = region.from;
        buffer.moveTo(region.from);
        this.#last = change;
        return this.#join(change, line, Math.max(2, region.lastLine - line + 1));
      }
      case "p":
      case "P":
        this.#last = change;
        return this.#putOver(region, count, key === "P");
      default:
    }
  }

  /** Puts what was copied in the place of a region, which is copied unless `isKept`. */
  #putOver(region: Region, count: number, isKept: boolean): void {
    const removed = copyRegion(this.#buffer, region);
    const isEmpty = this.#buffer.isEmpty && region.type === "text";
    putOver(this.#buffer, region, this.#register, count);
    if (!isKept && !isEmpty) this.#register = removed;
  }

  #measure(region: Region): Extent {
    const { type, from, to } = region;
    const start = to.line === from.line ? from.column : 0;
    const text = lineAt(this.#buffer.lines, to.line).slice(start, to.column);
    return {
      isLines: type === "lines",
      lines: to.line - from.line,
      letters: splitClusters(text).length,
    };
  }

  /** As much text from the cursor on as was selected. */
  #extend({ isLines, lines: count, letters }: Extent): Region {
    const { lines, cursor: from } = this.#buffer;
    const line = Math.min(from.line + count, lines.length - 1);
    const start = line === from.line ? from.column : 0;
    const column = isLines ? 0 : walk(lineAt(lines, line), start, letters);
    // The end of an empty line is a character, where there is another line.
    const isEnd = !isLines && letters > 0 && lineAt(lines, line) === "";
    if (isEnd && line < lines.length - 1) {
      return { type: "text", from, to: { line: line + 1, column: 0 }, lastLine: line };
    }
    return { type: isLines ? "lines" : "text", from, to: { line, column }, lastLine: line };
  }

  /** Repeats the last change at the cursor. */
  #repeat(count: number | undefined): void {
    const last = this.#last;
    if (!last) return;
    const { extent, inserted } = last;
    const command = count === undefined ? last.command : { ...last.command, count };
    const change: Change = { command, extent, inserted };
    if (extent && command.type === "action")
      this.#changeRegion(command, this.#extend(extent), change);
    else if (command.type === "operate") this.#operate(command.operator, command.target, command);
    else if (command.type === "action") this.#act(command);
    if (this.#insertion) {
      this.#buffer.insert(inserted);
      this.#endInsertion();
    }
    if (this.#last) this.#last.inserted = inserted;
  }

  #insert(): void {
    this.#buffer.beginStep();
    this.#beginInsertion(undefined);
  }

  #beginInsertion(change: Change | undefined, count = 1, isLine = false): void {
    if (change) this.#last = change;
    this.#mode = "insert";
    const { text, offset } = this.#buffer;
    const [before, after] = [text.slice(0, offset), text.slice(offset)];
    this.#insertion = { before, after, count, isLine, change };
  }

  #endInsertion(): void {
    const insertion = this.#insertion;
    const buffer = this.#buffer;
    this.#insertion = undefined;
    this.#mode = "normal";
    if (insertion) {
      const inserted = readInserted(buffer.text, insertion);
      const { change, count, isLine } = insertion;
      if (change) change.inserted = inserted;
      const more = (isLine ? `\n${inserted}` : inserted).repeat(count - 1);
      if (inserted !== "" || isLine) buffer.insert(more);
    }
    buffer.endStep();
    const { line, column } = buffer.cursor;
    buffer.moveTo({ line, column: previousColumn(lineAt(buffer.lines, line), column) });
  }
}

const CASES: Readonly<Record<string, CaseChange>> = {
  "~": "g~",
  "g~": "g~",
  u: "gu",
  gu: "gu",
  U: "gU",
  gU: "gU",
};

/** What was written between the texts that were there before; nothing where those have changed too. */
function readInserted(text: string, { before, after }: Insertion): string {
  const isBetween =
    text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after);
  return isBetween ? text.slice(before.length, text.length - after.length) : "";
}

/** With spaces at the cursor it is looked for behind them: where there is none, the end of the text was reached. */
function isWordAhead({ isAround, key }: TextObject): boolean {
  return isAround && (key === "w" || key === "W");
}

function measureIndent(text: string): number {
  return /^[ \t]*/.exec(text)?.[0].length ?? 0;
}
