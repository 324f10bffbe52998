import type { Choice, Question } from "@gyre/coding/internal/conversation/command";
import type { Block } from "./block.ts";
import type { TerminalEvent } from "../terminal/key.ts";
import type { Row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import type { CursorShape } from "../terminal/tty.ts";

export type { Choice };

/** A question as a panel shows it. */
export interface PanelQuestion<T> extends Omit<Question<T>, "about"> {
  /** Shown between the title and the list. */
  about?: readonly Row[];
  /** Protects against accidental answers: keys other than Esc are ignored when the question appears. */
  requiresConfirmation?: boolean;
}

/**
 * Replaces the editor until it is done: a list, a tree, a question. It draws at most `rows` rows and gets all input
 * but Ctrl-C.
 */
export interface Panel<T> {
  rows(columns: number, rows: number): PanelView;
  /** Handles an event. `done` ends the panel. */
  take(event: TerminalEvent): PanelAnswer<T>;
}

export interface PanelView {
  rows: readonly Row[];
  /** The place of the cursor in `rows`; absent: it is hidden. */
  cursor?: { row: number; column: number; shape?: CursorShape };
}

/** `redraw`: something changed. `done`: the answer; undefined where Esc left the panel. */
export type PanelAnswer<T> =
  | { type: "redraw" }
  | { type: "none" }
  | { type: "done"; value: T | undefined };

/** Shows texts and asks questions at the start of the program. */
export interface Ui {
  readonly columns: number;
  readonly theme: Theme;
  /** Adds a text to the transcript, as Markdown. */
  say(markdown: string): void;
  /** Adds a warning. */
  warn(text: string): void;
  /** Adds a block to the transcript. */
  show(block: Block): void;
  /** Undefined where the user leaves the question. */
  choose<T>(question: PanelQuestion<T>): Promise<T | undefined>;
}
