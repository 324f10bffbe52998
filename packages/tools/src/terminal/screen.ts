import { charWidth } from "./char-width.ts";
import {
  blankCells,
  blankRow,
  defaultTabs,
  deleteCells,
  Grid,
  insertCells,
  type Row,
  rowText,
  splitWide,
} from "./grid.ts";
import { type Sequence, SequenceReader } from "./sequences.ts";

/** As programs in a terminal see it. */
export const SCREEN_COLUMNS = 120;
export const SCREEN_ROWS = 40;
/** What a program that asks for the kind of the terminal gets: one that can move its cursor. */
const KIND = "\x1b[?1;2c";

/** The lines of boxes that programs draw with letters, from "`" on. */
const BOX_LINES = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";
const FIRST_BOX_LINE = "`".charCodeAt(0);

/** What comes of a piece of output. */
export interface Drawn {
  /** Text that has left the screen at its top. */
  left: string;
  /** What the terminal answers to the program. */
  reply: string;
}

/**
 * A terminal as far as its text goes: characters, movements of the cursor, erasing, scrolling, the alternate
 * screen. Colors, titles and all else that a program may ask of a terminal is left out.
 */
export class Screen {
  readonly #reader = new SequenceReader(
    (text) => this.#print(text),
    (sequence) => this.#obey(sequence),
  );
  readonly #main: Grid;
  #alternate: Grid | undefined;
  #charsets = [false, false];
  #charset = 0;
  #insertsCharacters = false;
  #wraps = true;
  #isRelative = false;
  #hasApplicationKeys = false;
  /** What was printed last, if nothing came since. */
  #last = "";
  #left = "";
  #hasLeft = false;
  #reply = "";
  #isOver = false;

  constructor(columns: number = SCREEN_COLUMNS, rows: number = SCREEN_ROWS) {
    this.#main = new Grid(columns, rows);
  }

  /** Draws what a program has written. */
  write(piece: string): Drawn {
    this.#reader.write(piece);
    const drawn = { left: this.#left, reply: this.#reply };
    this.#left = "";
    this.#reply = "";
    return drawn;
  }

  /** What is on it, which then leaves it: the program has ended. */
  end(): string {
    const before = this.#hasLeft && !this.#main.at(0).isWrapped ? "\n" : "";
    const shown = [this.#main, ...(this.#alternate ? [this.#alternate] : [])].map(joinRows);
    const text = shown.filter((part) => part !== "").join("\n");
    this.#main.blankRows(0, this.#main.rows.length);
    this.#alternate = undefined;
    this.#isOver = true;
    return text === "" ? before : `${before}${text}\n`;
  }

  /** The rows as they are seen, without blank ones at the end. */
  get rows(): string[] {
    const rows = this.#grid.rows.map((row) => rowText(row));
    return rows.slice(0, rows.findLastIndex((row) => row !== "") + 1);
  }

  /** From 0. */
  get cursor(): { row: number; column: number } {
    const { x, y, columns } = this.#grid;
    return { row: y, column: Math.min(x, columns - 1) };
  }

  /** Its program has written the last of its output. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether a program uses the screen that is gone when it ends. */
  get isAlternate(): boolean {
    return this.#alternate !== undefined;
  }

  /** Whether the program has asked for application keys. */
  get hasApplicationKeys(): boolean {
    return this.#hasApplicationKeys;
  }

  get #grid(): Grid {
    return this.#alternate ?? this.#main;
  }

  #print(text: string): void {
    const isBox = this.#charsets[this.#charset] === true;
    for (const char of text) this.#put(isBox ? toBoxLine(char) : char);
  }

  #put(char: string): void {
    const grid = this.#grid;
    const { columns } = grid;
    const width = charWidth(char);
    if (width === 0) {
      this.#combine(char);
      return;
    }
    if (grid.x + width > columns) {
      if (this.#wraps) {
        blankCells(grid.row, grid.x, columns);
        grid.x = 0;
        if (grid.y === grid.bottom) this.#scroll(true);
        else {
          grid.y = Math.min(grid.y + 1, grid.rows.length - 1);
          grid.row.isWrapped = true;
        }
      } else {
        grid.x = columns - 1;
        if (width === 2) return;
      }
    }
    const { row, x } = grid;
    if (this.#insertsCharacters) insertCells(row, x, width);
    splitWide(row, x);
    splitWide(row, x + width);
    row.cells[x] = char;
    if (width === 2) row.cells[x + 1] = "";
    grid.x += width;
    this.#last = char;
  }

  #combine(char: string): void {
    const { row, x } = this.#grid;
    const at = row.cells[x - 1] === "" ? x - 2 : x - 1;
    const before = row.cells[at];
    if (this.#last !== "" && before !== undefined) row.cells[at] = before + char;
  }

  /** Has the rows of the region move up. */
  #scroll(isWrapped: boolean): void {
    const grid = this.#grid;
    const gone = grid.replace(grid.top, grid.bottom, isWrapped);
    if (grid === this.#main && grid.top === 0) this.#keep(gone, grid.at(0).isWrapped);
  }

  #keep(row: Row, goesOn: boolean): void {
    if (this.#hasLeft && !row.isWrapped) this.#left += "\n";
    this.#left += rowText(row, goesOn);
    this.#hasLeft = true;
  }

  #obey(sequence: Sequence): void {
    const { kind, final } = sequence;
    const repeated = this.#last;
    this.#last = "";
    if (kind === "control") this.#control(final);
    else if (kind === "escape") this.#escape(sequence);
    else if (final === "b") this.#print(repeated.repeat(limitCount(sequence)));
    else this.#command(sequence);
  }

  #control(char: string): void {
    const grid = this.#grid;
    switch (char) {
      case "\b":
        grid.restrict();
        if (grid.x > 0) grid.x--;
        break;
      case "\t":
        if (grid.x < grid.columns) grid.x = this.#nextTab(grid.x, 1);
        break;
      case "\n":
      case "\v":
      case "\f":
        this.#lineFeed();
        break;
      case "\r":
        grid.x = 0;
        break;
      case "\x0e":
        this.#charset = 1;
        break;
      case "\x0f":
        this.#charset = 0;
        break;
      default:
    }
  }

  #lineFeed(): void {
    const grid = this.#grid;
    if (grid.y === grid.bottom) this.#scroll(false);
    else if (grid.y < grid.rows.length - 1) {
      grid.y++;
      grid.row.isWrapped = false;
    }
    grid.restrict();
  }

  #nextTab(from: number, step: 1 | -1): number {
    const { columns, tabs } = this.#grid;
    let at = from + step;
    while (at > 0 && at < columns && !tabs.has(at)) at += step;
    return Math.min(columns - 1, Math.max(0, at));
  }

  #escape({ final, between }: Sequence): void {
    const grid = this.#grid;
    if (between === "(" || between === ")") {
      this.#charsets[between === "(" ? 0 : 1] = final === "0";
      return;
    }
    if (between === "#" && final === "8") {
      for (const row of grid.rows) {
        row.cells.fill("E");
        row.isWrapped = false;
      }
      this.#moveTo(0, 0);
      return;
    }
    if (between !== "") return;
    switch (final) {
      case "7":
        grid.saved = { x: grid.x, y: grid.y };
        break;
      case "8":
        this.#restoreCursor();
        break;
      case "D":
      case "E":
        grid.restrict();
        if (final === "E") grid.x = 0;
        if (grid.y === grid.bottom) this.#scroll(false);
        else this.#moveBy(0, 1);
        break;
      case "M":
        grid.restrict();
        if (grid.y === grid.top) grid.replace(grid.bottom, grid.top);
        else grid.y = Math.max(0, grid.y - 1);
        break;
      case "H":
        grid.tabs.add(grid.x);
        break;
      case "c":
        this.#reset();
        break;
      default:
    }
  }

  #restoreCursor(): void {
    const grid = this.#grid;
    Object.assign(grid, grid.saved);
    grid.restrict();
  }

  #reset(): void {
    this.#alternate = undefined;
    const grid = this.#main;
    grid.blankRows(0, grid.rows.length);
    this.#softReset();
    Object.assign(grid, { x: 0, y: 0, tabs: defaultTabs(grid.columns) });
  }

  #softReset(): void {
    const grid = this.#grid;
    this.#insertsCharacters = false;
    this.#isRelative = false;
    this.#hasApplicationKeys = false;
    this.#wraps = true;
    this.#charsets = [false, false];
    this.#charset = 0;
    Object.assign(grid, { top: 0, bottom: grid.rows.length - 1, saved: { x: 0, y: 0 } });
  }

  /** Of a cursor that a program moves; in the region that scrolls where it has asked for that. */
  #moveTo(x: number, y: number): void {
    const grid = this.#grid;
    grid.x = x;
    grid.y = this.#isRelative ? Math.min(grid.top + y, grid.bottom) : y;
    grid.restrict();
  }

  #moveBy(x: number, y: number): void {
    const grid = this.#grid;
    grid.restrict();
    grid.x += x;
    grid.y += y;
    grid.restrict();
  }

  #moveUp(count: number): void {
    const { y, top } = this.#grid;
    this.#moveBy(0, -(y >= top ? Math.min(y - top, count) : count));
  }

  #moveDown(count: number): void {
    const { y, bottom } = this.#grid;
    this.#moveBy(0, y <= bottom ? Math.min(bottom - y, count) : count);
  }

  #command(sequence: Sequence): void {
    const { final, prefix, between, numbers } = sequence;
    if (prefix === "?" && between === "") {
      if (final === "h" || final === "l") this.#setModes(numbers, final === "h", true);
      else if (final === "J" || final === "K") this.#erase(final, numbers[0] ?? 0);
      return;
    }
    if (between === "!" && final === "p") this.#softReset();
    if (prefix !== "" || between !== "") return;
    const grid = this.#grid;
    const count = limitCount(sequence);
    const [first = 0, second = 0] = numbers;
    switch (final) {
      case "A":
        this.#moveUp(count);
        break;
      case "B":
        this.#moveDown(count);
        break;
      case "C":
      case "a":
        this.#moveBy(count, 0);
        break;
      case "D":
        this.#moveBy(-count, 0);
        break;
      case "E":
        this.#moveDown(count);
        grid.x = 0;
        break;
      case "F":
        this.#moveUp(count);
        grid.x = 0;
        break;
      case "G":
      case "`":
        grid.x = count - 1;
        grid.restrict();
        break;
      case "H":
      case "f":
        this.#moveTo((second || 1) - 1, (first || 1) - 1);
        break;
      case "d":
        this.#moveTo(grid.x, count - 1);
        break;
      case "e":
        this.#moveBy(0, count);
        break;
      case "I":
      case "Z":
        if (grid.x >= grid.columns) break;
        for (let left = Math.min(count, grid.columns); left > 0; left--) {
          grid.x = this.#nextTab(grid.x, final === "I" ? 1 : -1);
        }
        break;
      case "J":
      case "K":
        this.#erase(final, first);
        break;
      case "L":
      case "M":
        this.#shiftRows(final === "L", count);
        break;
      case "@":
      case "P":
      case "X":
        this.#changeRow(final, count);
        break;
      case "S":
        for (let left = Math.min(count, grid.rows.length); left > 0; left--)
          grid.replace(grid.top, grid.bottom);
        break;
      case "T":
        for (let left = Math.min(count, grid.rows.length); left > 0; left--)
          grid.replace(grid.bottom, grid.top);
        break;
      case "g":
        if (first === 0) grid.tabs.delete(grid.x);
        else if (first === 3) grid.tabs.clear();
        break;
      case "h":
      case "l":
        this.#setModes(numbers, final === "h", false);
        break;
      case "r":
        this.#setRegion(first || 1, second);
        break;
      case "s":
        grid.saved = { x: grid.x, y: grid.y };
        break;
      case "u":
        this.#restoreCursor();
        break;
      case "n":
        this.#report(first);
        break;
      case "c":
        if (first === 0) this.#reply += KIND;
        break;
      default:
    }
  }

  #report(what: number): void {
    const { row, column } = this.cursor;
    if (what === 5) this.#reply += "\x1b[0n";
    if (what === 6) this.#reply += `\x1b[${row + 1};${column + 1}R`;
  }

  #setRegion(top: number, wanted: number): void {
    const grid = this.#grid;
    const rows = grid.rows.length;
    const bottom = wanted === 0 || wanted > rows ? rows : wanted;
    if (bottom <= top) return;
    grid.top = top - 1;
    grid.bottom = bottom - 1;
    this.#moveTo(0, 0);
  }

  #erase(final: string, how: number): void {
    const grid = this.#grid;
    const { columns, row, y } = grid;
    grid.restrict(columns);
    const { x } = grid;
    const rows = grid.rows.length;
    const isScreen = final === "J";
    if (how === 0) {
      blankCells(row, x, columns);
      if (x === 0) row.isWrapped = false;
      if (isScreen) grid.blankRows(y + 1, rows);
    } else if (how === 1) {
      blankCells(row, 0, Math.min(columns, x + 1));
      if (!isScreen) return;
      row.isWrapped = false;
      const next = grid.rows[y + 1];
      if (x + 1 >= columns && next) next.isWrapped = false;
      grid.blankRows(0, y);
    } else if (how === 2) {
      if (isScreen) grid.blankRows(0, rows);
      else grid.rows[y] = blankRow(columns);
    }
  }

  /** Puts blank rows in at the cursor, or takes rows out there. */
  #shiftRows(isInsert: boolean, count: number): void {
    const grid = this.#grid;
    grid.restrict();
    if (grid.y < grid.top || grid.y > grid.bottom) return;
    for (let left = Math.min(count, grid.rows.length); left > 0; left--) {
      if (isInsert) grid.replace(grid.bottom, grid.y);
      else grid.replace(grid.y, grid.bottom);
    }
    grid.x = 0;
  }

  #changeRow(final: string, count: number): void {
    const grid = this.#grid;
    grid.restrict();
    const { row, x, columns } = grid;
    if (final === "@") insertCells(row, x, count);
    else if (final === "P") deleteCells(row, x, count);
    else blankCells(row, x, Math.min(columns, x + count));
  }

  #setModes(numbers: readonly number[], isOn: boolean, isPrivate: boolean): void {
    for (const mode of numbers) {
      if (!isPrivate) {
        if (mode === 4) this.#insertsCharacters = isOn;
        continue;
      }
      if (mode === 1) this.#hasApplicationKeys = isOn;
      else if (mode === 6) {
        this.#isRelative = isOn;
        this.#moveTo(0, 0);
      } else if (mode === 7) this.#wraps = isOn;
      else if (mode === 1048) this.#saveOrRestore(isOn);
      else if (mode === 47 || mode === 1047 || mode === 1049) {
        if (mode === 1049 && isOn) this.#saveOrRestore(true);
        this.#switchTo(isOn);
        if (mode === 1049 && !isOn) this.#saveOrRestore(false);
      }
    }
  }

  #saveOrRestore(isSave: boolean): void {
    const grid = this.#grid;
    if (isSave) grid.saved = { x: grid.x, y: grid.y };
    else this.#restoreCursor();
  }

  /** To the alternate screen, which is blank then, or back to the main one. The cursor stays where it is. */
  #switchTo(isAlternate: boolean): void {
    const { x, y, columns, rows } = this.#grid;
    if (isAlternate) this.#alternate ??= new Grid(columns, rows.length);
    else this.#alternate = undefined;
    Object.assign(this.#grid, { x, y });
  }
}

/** The first number of a sequence as a count: at least one, at most what a screen can take. */
function limitCount({ numbers }: Sequence): number {
  return Math.min(numbers[0] || 1, SCREEN_COLUMNS * SCREEN_ROWS);
}

function toBoxLine(char: string): string {
  return BOX_LINES[char.charCodeAt(0) - FIRST_BOX_LINE] ?? char;
}

/** Lines as they were written: a row that was full goes on in the next. */
function joinRows({ rows }: Grid): string {
  const last = rows.findLastIndex((row) => rowText(row) !== "");
  return rows
    .slice(0, last + 1)
    .map((row, nth) => {
      const next = rows[nth + 1];
      const goesOn = nth < last && next?.isWrapped === true;
      return rowText(row, goesOn) + (nth < last && !goesOn ? "\n" : "");
    })
    .join("");
}
