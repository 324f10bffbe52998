/** Lets the senders of a transport wait while the other end cannot take more. */
export class Backpressure {
  #waiting: { promise: Promise<void>; settle: () => void } | undefined;

  /** Settles with the next `release`. */
  wait(): Promise<void> {
    if (!this.#waiting) {
      let settle = (): void => {};
      const promise = new Promise<void>((resolve) => (settle = resolve));
      this.#waiting = { promise, settle };
    }
    return this.#waiting.promise;
  }

  release(): void {
    this.#waiting?.settle();
    this.#waiting = undefined;
  }
}
