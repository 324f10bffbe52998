import { formatCells, type Cell, splitCells, type Row, type Span, widthOfRow } from "./row.ts";

/** All rows that can still change, one below the other. */
export interface Frame {
  /** How many earlier rows have left the screen. */
  base: number;
  rows: readonly Row[];
  /** Where the cursor stands, counted in `rows`; absent: it is hidden. */
  cursor?: { row: number; column: number };
}

export interface Size {
  columns: number;
  rows: number;
}

/** The behavior of some terminals when they become narrower. */
export interface TerminalQuirks {
  /** Wrapped rows below the cursor move it down, away from its text, as in xterm.js. */
  lowersCursor?: boolean;
}

const BEGIN_SYNC = "\x1b[?2026h";
const END_SYNC = "\x1b[?2026l";
const SAVE_CURSOR = "\x1b7";
const RESTORE_CURSOR = "\x1b8";
const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";
const ERASE_REST = "\x1b[K";
const ASK_POSITION = "\x1b[6n";

interface Place {
  /** Counted in the rows on the screen. */
  row: number;
  column: number;
}

/**
 * Keeps the lower end of a terminal's main screen equal to the newest frame by writing the differences. Rows that
 * scroll out at the top stay in the terminal as they were; `top` counts them. Nothing is cleared, and earlier output
 * scrolls up like everything else. All movement is relative to the cursor, so the row of the first line on the screen
 * does not matter until the terminal is resized.
 */
export class Screen {
  readonly #write: (text: string) => void;
  readonly #lowersCursor: boolean;
  #size: Size;
  /** The rows on the screen; the first is row `top` of all. */
  #shown: readonly Row[] = [];
  #top = 0;
  #cursor: Place = { row: 0, column: 0 };
  #isHidden = false;
  /** Set after a resize, while the place of the cursor is unknown. */
  #resized: { from: Size } | undefined;
  #out = "";
  /** How many places the write changes; a single change needs no synchronized update. */
  #touched = 0;

  constructor(
    write: (text: string) => void,
    size: Size,
    { lowersCursor = false }: TerminalQuirks = {},
  ) {
    this.#write = write;
    this.#size = size;
    this.#lowersCursor = lowersCursor;
  }

  get size(): Size {
    return this.#size;
  }

  /** Rows of all before this one have left the screen. */
  get top(): number {
    return this.#top;
  }

  /** Whether a frame can be drawn. Not between `resize` and `settle`. */
  get isReady(): boolean {
    return this.#resized === undefined;
  }

  /** Makes the screen show a frame, with one write. Rows above `top` are left as they are. */
  draw(frame: Frame): void {
    if (!this.isReady) return;
    const rows = frame.rows.slice(Math.max(0, this.#top - frame.base));
    const parked = this.#cursor;
    this.#change(rows);
    const wanted = this.#findCursor(frame);
    const isBack = wanted && wanted.row === parked.row && wanted.column === parked.column;
    if (isBack && this.#touched === 1 && !this.#isHidden) {
      this.#out = SAVE_CURSOR + this.#out + RESTORE_CURSOR;
      this.#cursor = parked;
    }
    this.#park(wanted);
    this.#flush();
  }

  /** Handles a new size: asks where the cursor is now. The answer, or the lack of one, goes to `settle`. */
  resize(size: Size): void {
    this.#resized ??= { from: this.#size };
    this.#size = size;
    this.#write(ASK_POSITION);
  }

  /**
   * Draws all rows that fit again, in the layout of the new size, whose `base` is 0. `position` is the place of the
   * cursor as the terminal reports it; without it, the lower end is assumed.
   */
  settle(frame: Frame, position?: Place): void {
    const from = this.#resized?.from ?? this.#size;
    const { rows: height } = this.#size;
    this.#resized = undefined;
    const origin = this.#computeOrigin(from, position);
    const hasRoom = this.#top === 0 && origin >= 0;
    this.#shown = [];
    this.#top = hasRoom ? 0 : Math.max(0, frame.base + frame.rows.length - height);
    const first = hasRoom ? Math.min(origin, height - 1) : 0;
    const rows = frame.rows.slice(Math.max(0, this.#top - frame.base));
    this.#out += `\x1b[${first + 1};1H`;
    this.#cursor = { row: 0, column: 0 };
    this.#rewrite(rows, 0, true);
    this.#eraseBelow(first + this.#shown.length);
    this.#park(this.#findCursor(frame));
    this.#flush();
  }

  /** Leaves the frame on the screen, with the cursor below it. The next drawing begins with row `next`. */
  finish(next: number = this.#top + this.#shown.length): void {
    this.#move({ row: Math.max(0, this.#shown.length - 1), column: 0 });
    if (this.#shown.length > 0) this.#out += "\r\n";
    if (this.#isHidden) this.#out += SHOW_CURSOR;
    this.#isHidden = false;
    this.#write(this.#out);
    this.#out = "";
    this.#top = next;
    this.#shown = [];
    this.#cursor = { row: 0, column: 0 };
  }

  #findCursor({ base, cursor }: Frame): Place | undefined {
    if (!cursor) return undefined;
    return { row: cursor.row + base - this.#top, column: cursor.column };
  }

  #change(rows: readonly Row[]): void {
    const old = this.#shown;
    const leaving = Math.max(0, rows.length - this.#size.rows);
    const before = commonStart(old, rows);
    const after = commonEnd(old, rows, before);
    const removed = old.length - before - after;
    const added = rows.length - before - after;
    if (removed === 0 && added === 0) return;
    const more = added - removed;
    const isInPlace = more > 0 && after > 0 && leaving <= before && more < this.#size.rows;
    if (more > 0 && !isInPlace) {
      this.#rewrite(rows, before);
      return;
    }
    if (more > 0) this.#makeRoom(more, before + removed);
    else if (more < 0) this.#remove(-more, before + added);
    for (let row = before; row < before + added; row++) {
      const isFresh = row >= before + removed;
      this.#row(row - leaving, isFresh ? [] : (old[row] ?? []), rows[row] ?? []);
    }
    this.#setShown(rows);
  }

  /** Moves rows below `at` down by `count`: first makes room below, then moves them into it. */
  #makeRoom(count: number, at: number): void {
    const { rows: height } = this.#size;
    const last = this.#shown.length - 1;
    this.#move({ row: last, column: 0 });
    this.#out += "\n".repeat(count);
    const scrolled = Math.max(0, last + count + 1 - height);
    this.#cursor = { row: last + count - scrolled, column: 0 };
    this.#move({ row: at - scrolled, column: 0 });
    this.#out += sequence(count, "L");
    this.#touched += 2;
  }

  /** Moves rows below up. */
  #remove(count: number, at: number): void {
    this.#move({ row: at, column: 0 });
    this.#out += sequence(count, "M");
    this.#touched += 2;
  }

  /**
   * Writes all rows from one on; those without room push others out at the top. `isOver`: there may be other text on
   * the screen where they are written.
   */
  #rewrite(rows: readonly Row[], from: number, isOver = false): void {
    const old = this.#shown;
    const { columns, rows: height } = this.#size;
    for (let at = from; at < rows.length; at++) {
      const row = rows[at] ?? [];
      if (at < old.length) {
        this.#row(at, old[at] ?? [], row);
        continue;
      }
      if (at > 0) {
        this.#move({ row: Math.min(at, height) - 1, column: 0 });
        this.#out += "\n";
      }
      this.#cursor = { row: Math.min(at, height - 1), column: 0 };
      this.#cells(splitCells(row), 0);
      if (isOver && this.#cursor.column < columns) this.#out += ERASE_REST;
    }
    this.#touched += 2;
    this.#setShown(rows);
  }

  #setShown(rows: readonly Row[]): void {
    const leaving = Math.max(0, rows.length - this.#size.rows);
    this.#top += leaving;
    this.#shown = leaving > 0 ? rows.slice(leaving) : rows;
  }

  /** Changes one row from its first difference on. */
  #row(at: number, old: Row, now: Row): void {
    if (old === now) return;
    const had = splitCells(old);
    const has = splitCells(now);
    let same = 0;
    let column = 0;
    for (; same < has.length; same++) {
      const cell = has[same];
      if (!cell || !isSame(cell, had[same])) break;
      column += cell.width;
    }
    if (same === has.length && same === had.length) return;
    this.#touched++;
    this.#move({ row: at, column });
    this.#cells(has.slice(same), column);
    const width = this.#cursor.column;
    if (widthOfRow(old) > width && width < this.#size.columns) this.#out += ERASE_REST;
  }

  #cells(cells: readonly Cell[], from: number): void {
    this.#out += formatCells(cells, from);
    let column = from;
    for (const { width } of cells) column += width;
    this.#cursor = { row: this.#cursor.row, column };
  }

  /** Erases the rows of the screen from one on. The cursor is in the row before. */
  #eraseBelow(from: number): void {
    const count = this.#size.rows - from;
    if (count <= 0) return;
    this.#out += `\r\n${ERASE_REST}`.repeat(count) + sequence(count, "A");
    this.#cursor = { row: this.#cursor.row, column: 0 };
  }

  #move({ row, column }: Place): void {
    const down = row - this.#cursor.row;
    if (down < 0) this.#out += sequence(-down, "A");
    else if (down > 0) this.#out += sequence(down, "B");
    if (column !== this.#cursor.column || column >= this.#size.columns) {
      this.#out += column === 0 ? "\r" : `\x1b[${column + 1}G`;
    }
    this.#cursor = { row, column };
  }

  #park(wanted: Place | undefined): void {
    if (wanted) this.#move(wanted);
    const isHidden = wanted === undefined;
    if (isHidden !== this.#isHidden) this.#out += isHidden ? HIDE_CURSOR : SHOW_CURSOR;
    this.#isHidden = isHidden;
  }

  #flush(): void {
    const out = this.#touched > 1 ? BEGIN_SYNC + this.#out + END_SYNC : this.#out;
    this.#out = "";
    this.#touched = 0;
    if (out !== "") this.#write(out);
  }

  /** The row of the screen with the first line, after the terminal has wrapped wide rows. */
  #computeOrigin(from: Size, position: Place | undefined): number {
    const { columns, rows: height } = this.#size;
    const tall = (row: Row): number => Math.max(1, Math.ceil(widthOfRow(row) / columns));
    const isNarrower = columns < from.columns;
    const above = this.#shown.slice(0, this.#cursor.row);
    const heights = isNarrower ? above.map(tall) : above.map(() => 1);
    const rows = heights.reduce((sum, each) => sum + each, 0);
    if (!position) return this.#top > 0 ? -1 : Math.max(0, height - this.#shown.length);
    const isWrapped = isNarrower && this.#cursor.column >= columns && position.column < columns - 1;
    const own = isWrapped ? Math.floor(this.#cursor.column / columns) : 0;
    const below = this.#shown.slice(this.#cursor.row + 1);
    const isLowered = this.#lowersCursor && isNarrower;
    const lowered = isLowered ? below.reduce((sum, row) => sum + tall(row) - 1, 0) : 0;
    return position.row - rows - own - lowered;
  }
}

function sequence(count: number, letter: string): string {
  return `\x1b[${count === 1 ? "" : count}${letter}`;
}

function commonStart(a: readonly Row[], b: readonly Row[]): number {
  let count = 0;
  while (count < a.length && count < b.length && isSameRow(a[count], b[count])) count++;
  return count;
}

function commonEnd(a: readonly Row[], b: readonly Row[], before: number): number {
  const most = Math.min(a.length, b.length) - before;
  let count = 0;
  while (count < most && isSameRow(a[a.length - 1 - count], b[b.length - 1 - count])) count++;
  return count;
}

function isSameRow(a: Row | undefined, b: Row | undefined): boolean {
  if (a === b) return true;
  if (!a || !b || a.length !== b.length) return false;
  return a.every((span, index) => isSame(span, b[index]));
}

function isSame(a: Span, b: Span | undefined): boolean {
  return a.text === b?.text && a.style === b.style && a.link === b.link;
}
