/** Why the loop stops reading a response before its end. */
export type InterruptionReason = "canceled" | "stalled" | "redirected";

/** Cuts one request off, at most once: all that wait for the response stop waiting at once. */
export class Interruption {
  /** Why the request was cut off, if it was. Only `raise` sets it. */
  reason: InterruptionReason | undefined;
  #controller: AbortController | undefined;
  #leave: (() => void) | undefined;

  /** The signal of the request, made only for a provider or a middleware that reads it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.reason) this.#controller.abort();
    return this.#controller.signal;
  }

  raise(reason: InterruptionReason): void {
    if (this.reason) return;
    this.reason = reason;
    this.#controller?.abort();
    this.#leave?.();
  }

  /** Calls `leave` when the request is cut off, at once if it was. Only the newest is called. */
  onRaise(leave: () => void): void {
    this.#leave = leave;
    if (this.reason) leave();
  }

  /** What `promise` gives, or nothing once the request is cut off; `late` gets what comes then. */
  race<T>(promise: Promise<T>, late: (value: T) => void): Promise<T | undefined> {
    return new Promise<T | undefined>((resolve, reject) => {
      let left = false;
      this.onRaise(() => {
        left = true;
        resolve(undefined);
      });
      promise.then((value) => (left ? late(value) : resolve(value)), reject);
    });
  }
}
