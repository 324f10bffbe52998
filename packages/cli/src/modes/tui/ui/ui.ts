import type { Harness } from "../../../harness/harness.ts";
import type { Io } from "../../../core/io.ts";
import type { Setup } from "../../../harness/setup.ts";
import type { Block } from "./block.ts";
import type { TerminalEvent } from "../terminal/key.ts";
import type { Row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

/** One thing of a list. */
export interface Choice<T> {
  value: T;
  label: string;
  /** Shown dim behind the label. */
  detail?: string;
  /** What is typed is looked for in this too. */
  search?: string;
  /** A key that takes it at once: `y`. */
  key?: string;
}

export interface Question<T> {
  title: string;
  /** Shown between the title and the list. */
  about?: readonly Row[];
  choices: readonly Choice<T>[];
  /** Which is marked at first. Default: the first. */
  start?: number;
  /** What is typed narrows the list down. Default: false. */
  filter?: boolean;
  /** It is not to be answered by accident: what is typed as it comes up is passed over, but Esc. */
  isGrave?: boolean;
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

/** What a command can do to the screen. */
export interface Ui {
  readonly columns: number;
  readonly theme: Theme;
  /** Draws again: something that a panel shows has changed. */
  draw(): void;
  /** Adds a text to the transcript, as Markdown. */
  say(markdown: string): void;
  /** Adds a line that something is wrong. */
  warn(text: string): void;
  /** Adds a block to the transcript. */
  show(block: Block): void;
  /** Puts a panel in the editor's place. Undefined: it was left. */
  open<T>(panel: Panel<T>): Promise<T | undefined>;
  choose<T>(question: Question<T>): Promise<T | undefined>;
  /** Puts a text into the editor. */
  edit(text: string): void;
  /** Gives the terminal to another program, and takes it back. */
  suspend<T>(work: () => Promise<T>): Promise<T>;
  /** Writes what a terminal obeys and nobody sees: a bell, the clipboard. False: it gets no such thing. */
  control(sequence: string): boolean;
}

/** What a command works with. */
export interface CommandWorld {
  ui: Ui;
  /** The one that is open now. */
  harness: Harness;
  io: Io;
  setup: Setup;
  /** Fires when the user stops the command. It is let go of then, and nothing that it does is seen. */
  signal: AbortSignal;
  /** Goes on with another session, or with another place in this one: `OpenRequest`. */
  reopen(request: OpenRequest): Promise<void>;
  /** Sends a prompt to the model, whatever it begins with: it is never taken for a command. */
  prompt(text: string): void;
  /** Ends the program. */
  quit(): void;
}

export type OpenRequest =
  /** Another session, by its id or file. */
  | { session: string }
  /** This one, from an entry on; null: from its beginning. */
  | { entry: number | null; edit?: string }
  /** A new one; `prompt` is put into the editor. */
  | { new: true; prompt?: string };

/** A command of the editor: `/name rest`. */
export interface TerminalCommand {
  name: string;
  about: string;
  /** What to write behind its name. */
  hint?: string;
  /** Whether it may be used while the agent works. Default: it may not. */
  anytime?: boolean;
  /** Throws what to tell the user. */
  run(rest: string, world: CommandWorld): void | Promise<void>;
  /** What may follow, for the list below the editor. */
  complete?(
    rest: string,
    world: CommandWorld,
  ): readonly Choice<string>[] | Promise<readonly Choice<string>[]>;
}
