import { closeSync } from "node:fs";
import { isatty } from "node:tty";
import type { Size } from "./screen.ts";

const BRACKETED_PASTE = { on: "\x1b[?2004h", off: "\x1b[?2004l" };
/** Keys that would look the same otherwise, such as Esc and Alt, are told apart where that is known. */
const CLEAR_KEYS = { on: "\x1b[>1u", off: "\x1b[<u" };
const SHOW_CURSOR = "\x1b[?25h";
const DEFAULT_SIZE: Size = { columns: 80, rows: 24 };
/** Below this nothing can be shown that makes sense. */
const MIN_SIZE: Size = { columns: 20, rows: 5 };
/** What a terminal has not taken yet; beyond this, frames are left out until it has. */
const MAX_WAITING_BYTES = 16 * 1024;

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
  write(text: string): unknown;
  columns?: number;
  rows?: number;
  writableLength?: number;
  /** What is below a terminal's stream, as Node has it. */
  readonly _handle?: { setBlocking?(on: boolean): unknown };
  on(event: "resize" | "drain", listener: () => void): unknown;
}

/**
 * A terminal that gives each key as it is pressed and shows nothing by itself. Whatever
 * ends the program, `restore` leaves the terminal as it was.
 */
export class Tty {
  readonly #input: TtyInput;
  readonly #output: TtyOutput;
  #isRaw = false;

  constructor(input: TtyInput, output: TtyOutput) {
    this.#input = input;
    this.#output = output;
  }

  get size(): Size {
    const { columns, rows } = this.#output;
    return {
      columns: Math.max(MIN_SIZE.columns, columns || DEFAULT_SIZE.columns),
      rows: Math.max(MIN_SIZE.rows, rows || DEFAULT_SIZE.rows),
    };
  }

  /** It has not taken what was written yet: more would only wait. */
  get isBehind(): boolean {
    return (this.#output.writableLength ?? 0) > MAX_WAITING_BYTES;
  }

  /** Tells of what comes in, of other sizes, and of the end. */
  listen(on: {
    data: (bytes: Buffer) => void;
    resize: () => void;
    drain: () => void;
    end: () => void;
  }): void {
    this.#input.on("data", on.data);
    this.#input.on("end", on.end);
    this.#input.on("close", on.end);
    // A terminal that was closed cannot be read from: that is an end like any other.
    this.#input.on("error", on.end);
    this.#output.on("resize", on.resize);
    this.#output.on("drain", on.drain);
  }

  write(text: string): void {
    this.#output.write(text);
  }

  takeOver(): void {
    if (this.#isRaw) return;
    this.#isRaw = true;
    this.#input.setRawMode?.(true);
    this.#input.resume();
    // By default Node waits with all else for a terminal that takes nothing: nobody could interrupt.
    this.#output["_handle"]?.setBlocking?.(false);
    this.#output.write(BRACKETED_PASTE.on + CLEAR_KEYS.on);
  }

  restore(): void {
    if (!this.#isRaw) return;
    this.#isRaw = false;
    this.#output.write(CLEAR_KEYS.off + BRACKETED_PASTE.off + SHOW_CURSOR);
    this.#output["_handle"]?.setBlocking?.(true);
    this.#input.setRawMode?.(false);
    this.#input.pause();
  }
}

/**
 * Lets go of a terminal that is not there any more, as the last thing that is done: Node would
 * try to reset it, and abort.
 */
export function closeLostTerminal(): void {
  [process.stdin, process.stdout, process.stderr].forEach(({ isTTY }, fd) => {
    if (isTTY && !isatty(fd)) closeSync(fd);
  });
}
