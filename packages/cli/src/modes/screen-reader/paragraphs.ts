/** A paragraph that is longer is given in parts, at the end of a line. */
export const MAX_PARAGRAPH_CHARS = 2_000;

/**
 * Gives a text that comes in pieces paragraph by paragraph, each when it is whole. Together
 * they are the text; empty lines between two of them come with the second.
 */
export class Paragraphs {
  readonly #give: (text: string) => void;
  #prefix = "";
  /** Of the line that is not whole yet. */
  #line = "";
  #lines: string[] = [];
  #chars = 0;
  #isAnyGiven = false;

  constructor(give: (text: string) => void) {
    this.#give = give;
  }

  /** Begins a text, which has `prefix` before it. */
  begin(prefix: string): void {
    this.end();
    this.#prefix = prefix;
  }

  feed(delta: string): void {
    let from = 0;
    for (let at = delta.indexOf("\n"); at >= 0; at = delta.indexOf("\n", from)) {
      this.#line += delta.slice(from, at);
      this.#endLine();
      from = at + 1;
    }
    this.#line += delta.slice(from);
  }

  /** The text is over: what is left of it is given. */
  end(): void {
    if (this.#line !== "") this.#endLine();
    this.#flush();
    this.#lines = [];
    this.#isAnyGiven = false;
    this.#prefix = "";
  }

  #endLine(): void {
    const line = this.#line;
    this.#line = "";
    const isEmpty = line.trim() === "";
    if (isEmpty) this.#flush();
    // Empty lines at the beginning of a text part nothing.
    if (!isEmpty || this.#isAnyGiven) this.#lines.push(isEmpty ? "" : line);
    this.#chars += line.trim().length;
    if (this.#chars > MAX_PARAGRAPH_CHARS) this.#flush();
  }

  #flush(): void {
    if (this.#chars === 0) return;
    this.#give(this.#prefix + this.#lines.join("\n"));
    this.#prefix = "";
    this.#lines = [];
    this.#chars = 0;
    this.#isAnyGiven = true;
  }
}
