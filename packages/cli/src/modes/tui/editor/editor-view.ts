import type { RowPlace, Selection, TextRows } from "./editor-rows.ts";
import { fitRow, joinStyles, type Row, span } from "../terminal/row.ts";
import type { TextBuffer } from "./text-buffer.ts";
import type { Theme } from "../terminal/theme.ts";
import type { PanelView } from "../ui/ui.ts";

/** The columns of the sign before a text. */
export const SIGN_COLUMNS = 2;
const PROMPT = "› ";
const SHELL = "! ";
const INDENT = " ".repeat(SIGN_COLUMNS);
/** In a full row the cursor takes the last column. */
const CURSOR_COLUMNS = 1;
/** With fewer rows there is no mark for the rows above and below. */
const MIN_MARKED_ROWS = 3;
const FIRST: RowPlace = { line: 0, row: 0 };

/** Draws the visible part of a text that is being edited, and remembers where it begins. */
export class EditorView {
  readonly #theme: Theme;
  readonly #rows: TextRows;
  #top: RowPlace = FIRST;

  constructor(theme: Theme, rows: TextRows) {
    this.#theme = theme;
    this.#rows = rows;
  }

  draw(buffer: TextBuffer, columns: number, maxRows: number, selection?: Selection): PanelView {
    const { lines, cursor } = buffer;
    const rows = this.#rows;
    const isShell = lines[0]?.startsWith("!") ?? false;
    rows.columns = columns - SIGN_COLUMNS - CURSOR_COLUMNS;
    rows.hidden = isShell ? 1 : 0;
    const sign = isShell ? span(SHELL, this.#theme.warning) : span(PROMPT, this.#theme.accent);
    const place = rows.findRow(lines, cursor);
    const seen = this.#window(lines, place, maxRows);
    const { above, below } = this.#beyond(lines, seen);
    const hasMarks = maxRows >= MIN_MARKED_ROWS;
    const drawn: Row[] = [];
    if (hasMarks && above > 0) drawn.push(this.#mark(`↑ ${above} more`, columns));
    const cursorRow = drawn.length + seen.findIndex((each) => isSame(each, place));
    for (const each of seen)
      drawn.push([
        isSame(each, FIRST) ? sign : span(INDENT),
        ...this.#text(lines, each, selection),
      ]);
    if (hasMarks && below > 0) drawn.push(this.#mark(`↓ ${below} more`, columns));
    return {
      rows: drawn,
      cursor: { row: cursorRow, column: SIGN_COLUMNS + rows.findColumn(lines, cursor) },
    };
  }

  #text(lines: readonly string[], place: RowPlace, selection: Selection | undefined): Row {
    const { accent, selected } = this.#theme;
    return this.#rows.readRow(lines, place, selection).map(({ text, isLabel, isSelected }) => {
      return span(text, joinStyles(isLabel ? accent : "", isSelected ? selected : ""));
    });
  }

  #mark(text: string, columns: number): Row {
    return fitRow([span(INDENT + text, this.#theme.dim)], columns);
  }

  /** The visible rows: all, or as many as fit, with the cursor among them. */
  #window(lines: readonly string[], cursor: RowPlace, maxRows: number): RowPlace[] {
    const all = this.#run(lines, FIRST, 1, maxRows + 1);
    if (all.length <= maxRows) {
      this.#top = FIRST;
      return all;
    }
    const hasMarks = maxRows >= MIN_MARKED_ROWS;
    const room = Math.max(1, hasMarks ? maxRows - 2 : maxRows);
    const earliest = this.#run(lines, cursor, -1, room).at(-1) ?? FIRST;
    const last = this.#nearest(lines, { line: lines.length - 1, row: Infinity });
    const lowest = this.#run(lines, last, -1, room).at(-1) ?? FIRST;
    const top = this.#nearest(lines, this.#top);
    this.#top = earlier(later(earlier(top, cursor), earliest), lowest);
    const seen = this.#run(lines, this.#top, 1, room);
    if (!hasMarks) return seen;
    // With nothing beyond, one more row is visible in place of the mark.
    const before = this.#rows.findNeighbor(lines, seen[0] ?? FIRST, -1);
    const after = this.#rows.findNeighbor(lines, seen.at(-1) ?? FIRST, 1);
    if (!before && after) return [...seen, after];
    return before && !after ? [before, ...seen] : seen;
  }

  /** The nearest existing row: lines may have become fewer or shorter. */
  #nearest(lines: readonly string[], place: RowPlace): RowPlace {
    const line = Math.min(place.line, lines.length - 1);
    return { line, row: Math.min(place.row, this.#rows.starts(lines, line).length - 1) };
  }

  /** Up to `count` rows from a place on, in one direction. */
  #run(lines: readonly string[], from: RowPlace, step: -1 | 1, count: number): RowPlace[] {
    const run: RowPlace[] = [];
    for (
      let place: RowPlace | undefined = from;
      place && run.length < count;
      place = this.#rows.findNeighbor(lines, place, step)
    ) {
      run.push(place);
    }
    return run;
  }

  /** Counts the lines that are at least partly above and below the visible rows. */
  #beyond(lines: readonly string[], seen: readonly RowPlace[]): { above: number; below: number } {
    const first = seen[0] ?? FIRST;
    const last = seen.at(-1) ?? FIRST;
    const isCut = last.row < this.#rows.starts(lines, last.line).length - 1;
    return {
      above: first.line + (first.row > 0 ? 1 : 0),
      below: lines.length - 1 - last.line + (isCut ? 1 : 0),
    };
  }
}

function isSame(one: RowPlace, other: RowPlace): boolean {
  return one.line === other.line && one.row === other.row;
}

function earlier(one: RowPlace, other: RowPlace): RowPlace {
  return one.line < other.line || (one.line === other.line && one.row <= other.row) ? one : other;
}

function later(one: RowPlace, other: RowPlace): RowPlace {
  return earlier(one, other) === one ? other : one;
}
