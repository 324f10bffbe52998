/** From how many UTF-16 code units on joined deltas are worth one flat piece. */
export const FLAT_CHUNK_CHARS = 4096;

/**
 * A text that grows by many small deltas. Joining strings with `+` is quick because
 * the engine only notes the two halves, but those notes take ten times the memory
 * of the text. Here recent deltas are flattened `FLAT_CHUNK_CHARS` at a time, and
 * the whole never: time and memory stay linear in the text, and what an append
 * costs does not depend on how much came before it.
 */
export class GrowingText {
  #base = "";
  #recent = "";

  /** All of the text so far, at the cost of one `+`. */
  get value(): string {
    return this.#base + this.#recent;
  }

  /** Adds `delta` at the end and answers the new value. */
  append(delta: string): string {
    this.#recent += delta;
    if (this.#recent.length >= FLAT_CHUNK_CHARS) this.#settle();
    return this.value;
  }

  /** Flattens what is left and answers the value, for a text that is kept and grows no more. */
  end(): string {
    this.#settle();
    return this.value;
  }

  #settle(): void {
    flatten(this.#recent);
    this.#base += this.#recent;
    this.#recent = "";
  }
}

let lastRead = 0;

/**
 * Has the engine write out a string that was joined from pieces, in place: the
 * pieces can then be freed. Costs the length of `text`.
 */
export function flatten(text: string): void {
  // Reading a character does it. The answer is kept because an engine may leave out
  // a read whose value is not used.
  lastRead = (lastRead ^ text.charCodeAt(0)) & 0xffff;
}
