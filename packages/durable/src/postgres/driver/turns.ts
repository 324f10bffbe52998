interface Waiting {
  readonly begin: () => void;
  readonly fail: (error: unknown) => void;
}

/** Calls take turns where there are fewer connections than calls. */
export class Turns {
  #free: number;
  #waiting: Waiting[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves when it is the caller's turn, which `end` ends. */
  async begin(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push({ begin: resolve, fail: reject });
    });
  }

  end(): void {
    const next = this.#waiting.shift();
    if (next) next.begin();
    else this.#free++;
  }

  /** No connection can be made: those that wait for their turn need not try. */
  fail(error: unknown): void {
    for (const { fail } of this.#waiting.splice(0)) fail(error);
  }
}
