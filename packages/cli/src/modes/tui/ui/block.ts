import { fitRow, type Row } from "../terminal/row.ts";

/**
 * A part of the transcript: an answer, a call with its result, a notice. `rows` lays it out for a width; for the same
 * width it returns the same array until the block changes. No row is wider than `columns`.
 */
export interface Block {
  rows(columns: number): readonly Row[];
}

/** A block that lays out its rows once for a width, and truncates wide ones. */
export function cacheRows(layout: (columns: number) => readonly Row[]): Block {
  let last: { columns: number; rows: readonly Row[] } | undefined;
  return {
    rows(columns) {
      if (last?.columns !== columns) {
        last = { columns, rows: layout(columns).map((row) => fitRow(row, columns)) };
      }
      return last.rows;
    },
  };
}

/** A block that may still change. */
export interface OpenBlock extends Block {
  /**
   * The first `count` rows of the last layout have left the screen and stay as they are. Returns them as a block of
   * their own. From then on this block lays out what follows them; no text is lost or shown twice. `count` is at most
   * the number of rows that the last `rows` returned.
   */
  freeze(count: number): Block;
}
