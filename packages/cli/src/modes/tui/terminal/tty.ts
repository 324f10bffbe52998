import { closeSync } from "node:fs";
import { isatty } from "node:tty";
import type { Size } from "./screen.ts";
import { CLUSTER_MODE } from "./emoji.ts";
import { KEEP_TITLE, RESTORE_TITLE } from "./title.ts";

const BRACKETED_PASTE = { on: "\x1b[?2004h", off: "\x1b[?2004l" };
/** Distinguishes keys such as Esc and Alt, in terminals that support it. */
const CLEAR_KEYS = { on: "\x1b[>1u", off: "\x1b[<u" };
const FOCUS = { on: "\x1b[?1004h", off: "\x1b[?1004l" };
const SHAPES = { block: "\x1b[2 q", bar: "\x1b[6 q", usual: "\x1b[0 q" };
const SHOW_CURSOR = "\x1b[?25h";
const DEFAULT_SIZE: Size = { columns: 80, rows: 24 };
/** A smaller terminal is treated as one of this size. */
const MIN_SIZE: Size = { columns: 20, rows: 5 };
/** With more unwritten bytes, frames are skipped until the terminal has read them. */
const MAX_WAITING_BYTES = 16 * 1024;

/** How the cursor looks: over a character, or before it. */
export type CursorShape = "block" | "bar";

/** The input side, as far as it is used: `process.stdin` is one. */
export interface TtyInput {
  isTTY?: boolean;
  setRawMode?(on: boolean): unknown;
  on(event: "data", listener: (bytes: Buffer) => void): unknown;
  on(event: "end" | "close" | "error", listener: () => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

/** The output side: `process.stdout` is one. */
export interface TtyOutput {
  /** `written`: called when the text was given to the system. */
  write(text: string, written?: () => void): unknown;
  columns?: number;
  rows?: number;
  writableLength?: number;
  /** The handle of Node below the stream of a terminal. */
  readonly _handle?: { setBlocking?(on: boolean): unknown };
  on(event: "resize", listener: () => void): unknown;
}

/** A terminal in raw mode. However the program ends, `restore` resets the terminal. */
export class Tty {
  readonly #input: TtyInput;
  readonly #output: TtyOutput;
  readonly #reportsFocus: boolean;
  #isRaw = false;
  #shape: CursorShape | undefined;
  #joinsClusters = false;
  #onWritten: () => void = () => {};

  /** `reportsFocus`: the terminal says when it gets and loses the focus. */
  constructor(input: TtyInput, output: TtyOutput, { reportsFocus = false } = {}) {
    this.#input = input;
    this.#output = output;
    this.#reportsFocus = reportsFocus;
  }

  get size(): Size {
    const { columns, rows } = this.#output;
    return {
      columns: Math.max(MIN_SIZE.columns, columns || DEFAULT_SIZE.columns),
      rows: Math.max(MIN_SIZE.rows, rows || DEFAULT_SIZE.rows),
    };
  }

  /** The terminal has not read the earlier output yet. */
  get isBehind(): boolean {
    return (this.#output.writableLength ?? 0) > MAX_WAITING_BYTES;
  }

  /** Registers listeners for input, other sizes, the end, and for when the terminal is not behind any more. */
  listen(on: {
    data: (bytes: Buffer) => void;
    resize: () => void;
    caughtUp: () => void;
    end: () => void;
  }): void {
    this.#input.on("data", on.data);
    this.#input.on("end", on.end);
    this.#input.on("close", on.end);
    // Reading a closed terminal fails, which is an end like any other.
    this.#input.on("error", on.end);
    this.#output.on("resize", on.resize);
    // A stream reports a drain only above its own limit, which is 64 KiB from Node 22 on.
    this.#onWritten = () => {
      if (!this.isBehind) on.caughtUp();
    };
  }

  write(text: string): void {
    this.#output.write(text, () => this.#onWritten());
  }

  /** How the cursor looks from now on; by default as the user has set it. */
  shapeCursor(shape: CursorShape | undefined): void {
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.write(SHAPES[shape ?? "usual"]);
  }

  /** What a reader sees as one character is one for the terminal too, as long as the program has it. */
  joinClusters(): void {
    this.#joinsClusters = true;
    if (this.#isRaw) this.write(CLUSTER_MODE.on);
  }

  takeOver(): void {
    if (this.#isRaw) return;
    this.#isRaw = true;
    this.#input.setRawMode?.(true);
    this.#input.resume();
    // By default Node blocks on a slow terminal, and Ctrl-C would have no effect.
    this.#output["_handle"]?.setBlocking?.(false);
    const focus = this.#reportsFocus ? FOCUS.on : "";
    const clusters = this.#joinsClusters ? CLUSTER_MODE.on : "";
    this.write(KEEP_TITLE + BRACKETED_PASTE.on + CLEAR_KEYS.on + focus + clusters);
  }

  /** Takes the terminal over again after the shell has used it, without a `restore` before. */
  retake(): void {
    if (!this.#isRaw) return;
    // Node does nothing about a mode that it takes to be set.
    this.#input.setRawMode?.(false);
    this.#isRaw = false;
    this.takeOver();
  }

  restore(): void {
    if (!this.#isRaw) return;
    this.#isRaw = false;
    this.shapeCursor(undefined);
    const clusters = this.#joinsClusters ? CLUSTER_MODE.off : "";
    const focus = clusters + (this.#reportsFocus ? FOCUS.off : "");
    this.write(focus + CLEAR_KEYS.off + BRACKETED_PASTE.off + RESTORE_TITLE + SHOW_CURSOR);
    this.#output["_handle"]?.setBlocking?.(true);
    this.#input.setRawMode?.(false);
    this.#input.pause();
  }
}

/** Closes a terminal that no longer exists, as the last action: Node would try to reset it, and abort. */
export function closeLostTerminal(): void {
  [process.stdin, process.stdout, process.stderr].forEach(({ isTTY }, fd) => {
    if (isTTY && !isatty(fd)) closeSync(fd);
  });
}
