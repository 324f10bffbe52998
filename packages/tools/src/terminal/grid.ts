const TAB_COLUMNS = 8;

/** A row of a screen: a character for each column. */
export interface Row {
  /** Undefined is blank, and "" the second column of a wide character. */
  cells: (string | undefined)[];
  /** It goes on where the row before it was full. */
  isWrapped: boolean;
}

export function blankRow(columns: number, isWrapped = false): Row {
  return { cells: Array.from<undefined>({ length: columns }), isWrapped };
}

/** The text of a row: all of it where the next one goes on, else without spaces at its end. */
export function rowText({ cells }: Row, goesOn = false): string {
  let end = cells.length;
  while (end > 0 && cells[end - 1] === undefined) end--;
  const text = cells.slice(0, end).map((cell) => cell ?? " ");
  return goesOn ? text.join("") : text.join("").trimEnd();
}

/** Blanks columns. Of a wide character that loses one of its columns nothing stays. */
export function blankCells(row: Row, from: number, to: number): void {
  splitWide(row, from);
  splitWide(row, to);
  row.cells.fill(undefined, from, to);
}

/** Has columns from `at` on move to the right by `count`; the last of them are lost. */
export function insertCells(row: Row, at: number, count: number): void {
  const { cells } = row;
  const most = Math.min(count, cells.length - at);
  splitWide(row, at);
  splitWide(row, cells.length - most);
  cells.splice(cells.length - most, most);
  cells.splice(at, 0, ...blankRow(most).cells);
}

/** Has columns to the right of those that are taken away move to the left. */
export function deleteCells(row: Row, at: number, count: number): void {
  const { cells } = row;
  const most = Math.min(count, cells.length - at);
  splitWide(row, at);
  splitWide(row, at + most);
  cells.splice(at, most);
  cells.push(...blankRow(most).cells);
}

/** Blanks a wide character whose columns are on both sides of `at`. */
export function splitWide({ cells }: Row, at: number): void {
  if (cells[at] === "") cells.fill(undefined, at - 1, at + 1);
}

export function defaultTabs(columns: number): Set<number> {
  const count = Math.ceil(columns / TAB_COLUMNS);
  return new Set(Array.from({ length: count }, (_, nth) => nth * TAB_COLUMNS));
}

/** One of the two screens that a terminal has. */
export class Grid {
  readonly columns: number;
  rows: Row[];
  /** The column may be that behind the last: the next character begins a new row. */
  x = 0;
  y = 0;
  saved: { x: number; y: number } = { x: 0, y: 0 };
  /** The rows that scroll, the last included. */
  top = 0;
  bottom: number;
  tabs: Set<number>;

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = Array.from({ length: rows }, () => blankRow(columns));
    this.bottom = rows - 1;
    this.tabs = defaultTabs(columns);
  }

  /** The row of the cursor. */
  get row(): Row {
    return this.at(this.y);
  }

  at(y: number): Row {
    const row = this.rows[y];
    if (!row) throw new RangeError(`The screen has no row ${y}.`);
    return row;
  }

  /** Takes a row out, and puts a blank one in elsewhere. Gives the one that is gone. */
  replace(out: number, into: number, isWrapped = false): Row {
    const gone = this.at(out);
    this.rows.splice(out, 1);
    this.rows.splice(into, 0, blankRow(this.columns, isWrapped));
    return gone;
  }

  blankRows(from: number, to: number): void {
    for (let y = from; y < to; y++) this.rows[y] = blankRow(this.columns);
  }

  /** Has the cursor be on the screen; `last` is the last column that it may have. */
  restrict(last: number = this.columns - 1): void {
    this.x = Math.min(last, Math.max(0, this.x));
    this.y = Math.min(this.rows.length - 1, Math.max(0, this.y));
  }
}
