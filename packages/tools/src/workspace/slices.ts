/** A key that is pressed meanwhile waits for no more. */
const SLICE_MS = 8;
/** Where something waits that takes many steps, each step waits for no more. */
const SHORT_SLICE_MS = 2;
const REST_MS = 4;

/** Lets what else is to be done come first, now and then, in work that would keep this thread busy. */
export class Slices {
  readonly #isWaitedFor: () => boolean;
  #startedAt = performance.now();

  /** `isWaitedFor`: whether this thread has more urgent work, of many steps, to do. */
  constructor(isWaitedFor: () => boolean = () => false) {
    this.#isWaitedFor = isWaitedFor;
  }

  get isDue(): boolean {
    const most = this.#isWaitedFor() ? SHORT_SLICE_MS : SLICE_MS;
    return performance.now() - this.#startedAt > most;
  }

  async pause(): Promise<void> {
    const isWaitedFor = this.#isWaitedFor();
    await new Promise<void>((resolve) => {
      if (isWaitedFor) setTimeout(resolve, REST_MS);
      else setImmediate(resolve);
    });
    this.#startedAt = performance.now();
  }
}
