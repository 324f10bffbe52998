import { type Clock, isThenable } from "@gyre/ai";
import { contain } from "../contract/contain.ts";
import type { Cancellation } from "./cancellation.ts";

export const DEFAULT_HOOK_TIMEOUT_MS = 120_000;

/** The run was canceled while the loop waited for a callback. */
export class Canceled extends Error {
  constructor() {
    super("The run was canceled.");
    this.name = "Canceled";
  }
}

/** Calls the callbacks of the application, and waits: both end with the run. */
export class Hooks {
  readonly #clock: Clock;
  readonly #cancellation: Cancellation;
  readonly #timeoutMs: number;

  constructor(
    clock: Clock,
    cancellation: Cancellation,
    timeoutMs: number = DEFAULT_HOOK_TIMEOUT_MS,
  ) {
    this.#clock = clock;
    this.#cancellation = cancellation;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * The value of a callback, within its deadline. Throws what the callback throws, and
   * `Canceled` when the run is canceled meanwhile. `late` gets a value that comes after that.
   */
  call<T>(name: string, callback: () => T | Promise<T>, late?: (value: T) => void): T | Promise<T> {
    const given = callback();
    if (!isThenable(given)) return given;
    return new Promise<T>((resolve, reject) => {
      const ms = this.#timeoutMs;
      let left = false;
      let unlink: () => void = () => {};
      const leave = (error: Error): void => {
        left = true;
        settle();
        reject(error);
      };
      const stopTimer = this.#clock.after(ms, () =>
        leave(new Error(`${name} did not settle within ${ms} ms.`)),
      );
      const settle = (): void => {
        stopTimer();
        unlink();
      };
      unlink = this.#cancellation.onCancel(() => leave(new Canceled()));
      given.then(
        (value) => {
          if (left) contain(`What ${name} gave too late`, () => late?.(value));
          settle();
          resolve(value);
        },
        (error: unknown) => {
          settle();
          reject(error);
        },
      );
    });
  }

  /**
   * Waits. Resolves to false when the run is canceled meanwhile, or when the function is called
   * that `giveCut` received.
   */
  wait(ms: number, giveCut?: (cut: () => void) => void): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (whole: boolean): void => {
        stopTimer();
        unlink();
        resolve(whole);
      };
      let unlink: () => void = () => {};
      const stopTimer = this.#clock.after(ms, () => end(true));
      unlink = this.#cancellation.onCancel(() => end(false));
      giveCut?.(() => end(false));
    });
  }

  /** A promise of the application's within a deadline, whether or not the run is canceled. */
  withDeadline(what: string, promise: Promise<void>, ms: number = this.#timeoutMs): Promise<void> {
    return settleWithin(this.#clock, ms, promise, `${what} did not settle within ${ms} ms.`);
  }
}

/**
 * Settles as `promise` does, or rejects with a text after `ms`. With `report` it does not reject:
 * that gets every error, also one that comes too late.
 */
export function settleWithin(
  clock: Clock,
  ms: number,
  promise: Promise<void>,
  text: string,
  report?: (error: unknown) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      stopTimer();
      if (!report) return reject(error);
      report(error);
      resolve();
    };
    const stopTimer = clock.after(ms, () => fail(new Error(text)));
    promise.then(() => {
      stopTimer();
      resolve();
    }, fail);
  });
}
