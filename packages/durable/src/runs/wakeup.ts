/** Waits until it is woken, or has been since the last `reset`. */
export class Wakeup {
  #isWoken = false;
  #wake: (() => void) | undefined;

  readonly wake = (): void => {
    this.#isWoken = true;
    this.#wake?.();
  };

  reset(): void {
    this.#isWoken = false;
  }

  /** Returns early when the signal fires. */
  async wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#isWoken || signal?.aborted) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      signal?.addEventListener("abort", this.wake);
    });
    signal?.removeEventListener("abort", this.wake);
    this.#wake = undefined;
  }
}
