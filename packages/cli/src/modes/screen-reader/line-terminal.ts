import { createInterface, type Interface } from "node:readline";
import { sanitize } from "@gyre/tools";
import { plainText } from "@gyre/coding/internal/text/plain-text";
import type { Output } from "../../core/terminal.ts";

/** A line that ends so goes on in the next one. */
const GOES_ON = "\\";

/** The terminal that the program was started in; `process.stdin` and `process.stdout` are ones. */
export interface LineStreams {
  input: NodeJS.ReadableStream;
  output: Pick<Output, "write">;
}

/** Called with what comes in. */
export interface LineListener {
  /** A line that no question waits for. */
  line: (text: string) => void;
  /** No more lines come. */
  end: () => void;
}

/** Reads one line. Undefined: the question was left, or no more lines come. */
export type ReadLine = (prompt: string, signal?: AbortSignal) => Promise<string | undefined>;

/**
 * A terminal of lines, in the mode that it was found in: what is typed is shown and edited by
 * the terminal itself, and what is written is never written over. Nothing that a terminal
 * obeys gets through.
 */
export class LineTerminal {
  readonly #input: NodeJS.ReadableStream;
  readonly #output: LineStreams["output"];
  readonly #reader: Interface;
  readonly #listener: LineListener;
  /** The lines so far of one that goes on. */
  #begun = "";
  #isPrompted = false;
  #isOver = false;
  /** Ends when the questions that were asked before have an answer. */
  #turn: Promise<unknown> = Promise.resolve();
  #answer: ((text: string | undefined) => void) | undefined;

  constructor({ input, output }: LineStreams, listener: LineListener) {
    this.#input = input;
    this.#output = output;
    this.#listener = listener;
    this.#reader = createInterface({ input, terminal: false, crlfDelay: Infinity });
    this.#reader.on("line", (line) => this.#take(line));
    this.#reader.on("close", () => this.#end());
  }

  /** Writes a line, or several. Begins a new one where a prompt stands. */
  line(text: string): void {
    this.breakLine();
    this.#output.write(`${sanitize(text)}\n`);
  }

  /** Says that a line is waited for. */
  prompt(text: string): void {
    if (this.#isOver) return;
    this.breakLine();
    this.#output.write(sanitize(text, { keepNewlines: false }));
    this.#isPrompted = true;
  }

  /** Ends the line where something stands in it that was not written by a line of ours. */
  breakLine(isBegun: boolean = this.#isPrompted): void {
    if (isBegun) this.#output.write("\n");
    this.#isPrompted = false;
  }

  /** Asks for lines. One asks at a time: the others wait for their turn. */
  question<T>(ask: (read: ReadLine) => Promise<T>): Promise<T> {
    const asked = this.#turn.then(() => ask((prompt, signal) => this.#read(prompt, signal)));
    this.#turn = asked.catch(() => {});
    return asked;
  }

  /** Leaves the question that waits for a line; returns whether one did. */
  leaveQuestion(): boolean {
    const answer = this.#answer;
    answer?.(undefined);
    return answer !== undefined;
  }

  /** Leaves what is typed to another program until `work` is done. */
  async suspend<T>(work: () => Promise<T>): Promise<T> {
    this.breakLine();
    this.#input.pause();
    try {
      return await work();
    } finally {
      if (!this.#isOver) this.#input.resume();
    }
  }

  close(): void {
    this.breakLine();
    this.#reader.close();
  }

  #read(prompt: string, signal?: AbortSignal): Promise<string | undefined> {
    if (this.#isOver || signal?.aborted) return Promise.resolve(undefined);
    return new Promise((settle) => {
      const leave = (): void => this.#answer?.(undefined);
      this.#answer = (text) => {
        this.#answer = undefined;
        signal?.removeEventListener("abort", leave);
        settle(text);
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.prompt(prompt);
    });
  }

  #take(typed: string): void {
    // The terminal has ended the line, as it shows what is typed.
    this.#isPrompted = false;
    // Arrows and the like come as sequences where the terminal does not edit the line.
    const line = this.#begun + plainText(typed);
    if (line.endsWith(GOES_ON)) {
      this.#begun = `${line.slice(0, -GOES_ON.length)}\n`;
      return;
    }
    this.#begun = "";
    if (this.#answer) this.#answer(line);
    else this.#listener.line(line);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#answer?.(undefined);
    this.#listener.end();
  }
}
