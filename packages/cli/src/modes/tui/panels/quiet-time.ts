/** What was typed before a question was seen is no answer to it. */
export const QUIET_MS = 300;
/** Who goes on typing has seen it by now. */
export const MAX_QUIET_MS = 2_000;

/**
 * The moment after a question has come up in which nothing is taken for an answer: whoever is
 * typing then means something else. It lasts until a pause in the typing.
 */
export class QuietTime {
  readonly #now: () => number;
  #shownAt: number | undefined;
  /** When something was typed that was not taken. */
  #lastTyped = Number.NEGATIVE_INFINITY;

  /** `now` in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The question is drawn; the first time counts. */
  begin(): void {
    this.#shownAt ??= this.#now();
  }

  /** Whether what is typed right now is to be passed over. */
  isTooEarly(): boolean {
    const now = this.#now();
    if (this.#shownAt === undefined) return true;
    if (now - this.#shownAt >= MAX_QUIET_MS) return false;
    const isEarly = now - Math.max(this.#shownAt, this.#lastTyped) < QUIET_MS;
    if (isEarly) this.#lastTyped = now;
    else this.#shownAt = Number.NEGATIVE_INFINITY;
    return isEarly;
  }
}
