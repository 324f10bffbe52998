import type { Choice, Question } from "../../../conversation/command.ts";
import type { Block } from "./block.ts";
import type { TerminalEvent } from "../terminal/key.ts";
import type { Row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

export type { Choice };

/** A question as a panel shows it. */
export interface PanelQuestion<T> extends Omit<Question<T>, "about"> {
  /** Shown between the title and the list. */
  about?: readonly Row[];
  /**
   * The question is not to be answered by accident: what is typed as it comes up is ignored,
   * but Esc.
   */
  requiresConfirmation?: boolean;
}

/**
 * Something that takes the editor's place until it is done: a list, a tree, a question. It
 * draws itself into at most `rows` rows, and gets all that is typed but Ctrl-C.
 */
export interface Panel<T> {
  rows(columns: number, rows: number): PanelView;
  /** What was typed. The answer ends the panel. */
  take(event: TerminalEvent): PanelAnswer<T>;
}

export interface PanelView {
  rows: readonly Row[];
  /** Where the cursor stands, counted in `rows` and columns; absent: it is hidden. */
  cursor?: { row: number; column: number };
}

/** `redraw`: something changed. `done`: this is what it gave; undefined where it was left by Esc. */
export type PanelAnswer<T> =
  | { type: "redraw" }
  | { type: "none" }
  | { type: "done"; value: T | undefined };

/** Where the start of the program shows and asks. */
export interface Ui {
  readonly columns: number;
  readonly theme: Theme;
  /** Adds a text to the transcript, as Markdown. */
  say(markdown: string): void;
  /** Adds a line that something is wrong. */
  warn(text: string): void;
  /** Adds a block to the transcript. */
  show(block: Block): void;
  /** Undefined: the question was left. */
  choose<T>(question: PanelQuestion<T>): Promise<T | undefined>;
}
