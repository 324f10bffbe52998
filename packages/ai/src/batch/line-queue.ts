/** Of results that wait for their reader, in characters. One may be longer. */
export const MAX_QUEUED_CHARS: number = 16 * 1024 * 1024;

/** Lines on their way from a download to a reader that may be slower. */
export class LineQueue<T> implements AsyncIterable<T> {
  /** How many lines have come in all. */
  count = 0;
  readonly #signal: AbortSignal;
  readonly #lines: { value: T; chars: number }[] = [];
  #chars = 0;
  #end: { error?: Error } | undefined;
  /** Called when something has changed. */
  #wake: (() => void)[] = [];

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#notify(), { once: true });
  }

  push(value: T, chars: number): void {
    this.count++;
    this.#chars += chars;
    this.#lines.push({ value, chars });
    this.#notify();
  }

  /** Nothing more comes: all is there, or this error has ended it. */
  end(error?: Error): void {
    this.#end ??= error ? { error } : {};
    this.#notify();
  }

  /** Whether no more may be read now. */
  get isFull(): boolean {
    return this.#chars > MAX_QUEUED_CHARS && !this.#signal.aborted;
  }

  /** Resolves when more may be read, or nothing more will be. */
  async waitForRoom(): Promise<void> {
    while (this.isFull) await this.#change();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const line = this.#lines.shift();
      if (line) {
        this.#chars -= line.chars;
        this.#notify();
        yield line.value;
        continue;
      }
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return;
      await this.#change();
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
