import type { Row } from "../terminal/row.ts";

/**
 * Something that is shown one below the other: an answer, a call with its result, a notice.
 * `rows` lays it out for a width; for the same width it gives the same rows until the block
 * changes, and the same array where nothing has changed. No row is wider than `columns`.
 */
export interface Block {
  rows(columns: number): readonly Row[];
}

/** A block that may still change. */
export interface OpenBlock extends Block {
  /**
   * The first `count` rows, as they were laid out last, have left the screen and stay as they
   * are. Gives them as a block of their own; from then on this one lays out what follows
   * them, and nothing of its text is lost or shown twice. `count` is at most the number of
   * rows that the last `rows` gave.
   */
  freeze(count: number): Block;
}
