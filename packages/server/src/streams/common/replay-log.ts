/** What a run has sent so far, for readers that come and go. */
export class ReplayLog<T> {
  readonly #values: T[] = [];
  #wakers: (() => void)[] = [];
  #hasEnded = false;

  add(value: T): void {
    this.#values.push(value);
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /** All of it from the start, then what comes, until the end. */
  async *read(): AsyncGenerator<T, void> {
    for (let at = 0; ; at++) {
      while (at >= this.#values.length) {
        if (this.#hasEnded) return;
        await new Promise<void>((resolve) => this.#wakers.push(resolve));
      }
      yield this.#values[at] as T;
    }
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const wake of wakers) wake();
  }
}
