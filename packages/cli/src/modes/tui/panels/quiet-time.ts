/** Keys that were pressed before the user saw a question do not answer it. */
export const QUIET_MS = 300;
/** A user who still types after this time has seen the question. */
export const MAX_QUIET_MS = 2_000;

/**
 * The moment after a question has appeared in which no key is an answer: the user is still typing something else. It
 * lasts until a pause in the typing.
 */
export class QuietTime {
  readonly #now: () => number;
  #shownAt: number | undefined;
  /** When the last ignored key was pressed. */
  #lastTyped = Number.NEGATIVE_INFINITY;

  /** `now` in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The question is drawn; the first time counts. */
  begin(): void {
    this.#shownAt ??= this.#now();
  }

  /** Whether to ignore a key that is pressed now. */
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
