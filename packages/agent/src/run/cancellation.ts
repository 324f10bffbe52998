/** What ended the run early: the caller, the time limit, or a sink that failed. */
export type CancelReason = "aborted" | "limit" | "sink";

/**
 * Cancels a run, at most once. Cheaper than a chain of abort signals:
 * one listener on each signal of a caller, however many calls wait on it, and none left
 * on it when the run is over.
 */
export class Cancellation {
  /** Why the run was canceled, if it was. Only `cancel` sets it. */
  reason: CancelReason | undefined;
  // Few wait at once, and a list is smaller than a set.
  #waiting: (() => void)[] = [];
  readonly #signals: readonly (AbortSignal | undefined)[];
  readonly #abort = (): void => this.cancel("aborted");

  constructor(...signals: readonly (AbortSignal | undefined)[]) {
    this.#signals = signals;
    for (const signal of signals) {
      if (signal?.aborted) this.#abort();
      else signal?.addEventListener("abort", this.#abort, { once: true });
    }
  }

  cancel(reason: CancelReason): void {
    if (this.reason) return;
    this.reason = reason;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }

  /** Calls `run` when the run is canceled, at once if it was. Returns a function that undoes this. */
  onCancel(run: () => void): () => void {
    if (this.reason) {
      run();
      return () => {};
    }
    this.#waiting.push(run);
    return () => {
      const index = this.#waiting.indexOf(run);
      if (index >= 0) this.#waiting.splice(index, 1);
    };
  }

  /** Releases the signals. */
  release(): void {
    for (const signal of this.#signals) signal?.removeEventListener("abort", this.#abort);
    this.#waiting = [];
  }
}
