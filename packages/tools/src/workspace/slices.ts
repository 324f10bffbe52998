/** A key that is pressed meanwhile waits for no more. */
const SLICE_MS = 8;
/** Where something waits that takes many steps, each step waits for no more. */
const SHORT_SLICE_MS = 2;

/** Lets what else is to be done come first, now and then, in work that would keep this thread busy. */
export class Slices {
  readonly #restMs: () => number;
  #startedAt = performance.now();

  /** `restMs`: how long the work rests after each slice while this thread has more urgent work, of many steps; else 0. */
  constructor(restMs: () => number = () => 0) {
    this.#restMs = restMs;
  }

  get isDue(): boolean {
    const most = this.#restMs() > 0 ? SHORT_SLICE_MS : SLICE_MS;
    return performance.now() - this.#startedAt > most;
  }

  async pause(): Promise<void> {
    const restMs = this.#restMs();
    await new Promise<void>((resolve) => {
      if (restMs > 0) setTimeout(resolve, restMs);
      else setImmediate(resolve);
    });
    this.#startedAt = performance.now();
  }
}
