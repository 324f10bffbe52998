import { PassThrough } from "node:stream";

/** A terminal of lines for a test: what was written to it, and what was typed, as one sees it. */
export class LineDriver {
  readonly input: PassThrough = new PassThrough();
  readonly output: { write: (text: string) => void } = { write: (text) => this.#take(text) };
  /** All that was written, without what was typed. */
  written = "";
  /** All that one sees: a terminal shows what is typed. */
  seen = "";
  #from = 0;
  #waiting: { text: string; settle: () => void } | undefined;

  /** Types a line, and Enter. */
  type(line: string): void {
    this.seen += `${line}\n`;
    this.#from = this.seen.length;
    this.input.write(`${line}\n`);
  }

  /** Until that was written, after what was typed or waited for last. */
  until(text: string): Promise<void> {
    return new Promise((settle) => {
      this.#waiting = { text, settle };
      this.#look();
    });
  }

  #take(text: string): void {
    this.written += text;
    this.seen += text;
    this.#look();
  }

  #look(): void {
    if (!this.#waiting) return;
    const { text, settle } = this.#waiting;
    const at = this.seen.indexOf(text, this.#from);
    if (at < 0) return;
    this.#waiting = undefined;
    this.#from = at + text.length;
    settle();
  }
}
