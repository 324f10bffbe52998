import { type Clock, errorMessage } from "@gyre/ai";
import type { Row } from "../terminal/row.ts";
import { parseStyledLine } from "./styled-line.ts";

/** The least time from one start of the program to the next. */
export const STATUS_INTERVAL_MS = 300;
/** A program that takes longer is ended. */
export const STATUS_TIMEOUT_MS = 2_000;

/** How the program ended. */
export interface StatusEnd {
  stdout: string;
  /** Why there is no line. */
  problem?: string;
}

export interface StatusCommandOptions {
  clock: Pick<Clock, "now" | "after">;
  hasColors: boolean;
  /** Runs the program with its input. */
  run: (input: string, signal: AbortSignal) => Promise<StatusEnd>;
  /** There is another line to draw. */
  changed: () => void;
  /** Called once for each problem that differs from the last. */
  warn: (problem: string) => void;
}

/**
 * The row that a program prints. It runs when what it gets has changed, one at a time, and not more often than every 300
 * milliseconds; while nothing changes nothing runs and no timer waits.
 */
export class StatusCommand {
  readonly #options: StatusCommandOptions;
  readonly #controller = new AbortController();
  #row: Row | undefined;
  /** What the last run got, and what the next one will. */
  #input = "";
  #next = "";
  #startedAt = Number.NEGATIVE_INFINITY;
  #isRunning = false;
  #cancel: (() => void) | undefined;
  #problem: string | undefined;

  constructor(options: StatusCommandOptions) {
    this.#options = options;
  }

  /** The last line; undefined while there is none. */
  get row(): Row | undefined {
    return this.#row;
  }

  /** What the program gets on its standard input from now on. */
  update(input: string): void {
    this.#next = input;
    this.#startSoon();
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#controller.abort();
  }

  #startSoon(): void {
    const { clock } = this.#options;
    const isDue = this.#next !== this.#input && !this.#controller.signal.aborted;
    if (!isDue || this.#isRunning || this.#cancel) return;
    const wait = Math.max(0, this.#startedAt + STATUS_INTERVAL_MS - clock.now());
    this.#cancel = clock.after(wait, () => {
      this.#cancel = undefined;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    const { clock, changed, hasColors, run } = this.#options;
    this.#isRunning = true;
    this.#startedAt = clock.now();
    this.#input = this.#next;
    const end = await run(`${this.#input}\n`, this.#controller.signal).catch(
      (error: unknown): StatusEnd => ({ stdout: "", problem: errorMessage(error) }),
    );
    this.#isRunning = false;
    if (this.#controller.signal.aborted) return;
    this.#report(end.problem);
    if (end.problem === undefined) {
      this.#row = parseStyledLine(end.stdout, hasColors);
      changed();
    }
    this.#startSoon();
  }

  #report(problem: string | undefined): void {
    if (problem !== undefined && problem !== this.#problem) this.#options.warn(problem);
    this.#problem = problem;
  }
}
