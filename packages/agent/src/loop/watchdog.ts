import { type Clock, isLocalModel, type Model } from "@gyre/ai";
import type { WatchdogOptions } from "../contract/types.ts";

export const DEFAULT_FIRST_EVENT_MS = 300_000;
export const DEFAULT_BETWEEN_EVENTS_MS = 120_000;

/** Notices when a response has gone silent. One timer, set again only when it fires. */
export class Watchdog {
  readonly #clock: Clock;
  readonly #onTimeout: () => void;
  readonly #firstMs: number;
  readonly #betweenMs: number;
  #hasEvents = false;
  #lastAt: number;
  #stop: () => void = () => {};

  /** A model on this machine may take as long as it likes for its first event. */
  constructor(clock: Clock, model: Model, options: WatchdogOptions, onTimeout: () => void) {
    const { firstEventMs, betweenEventsMs } = options;
    this.#clock = clock;
    this.#onTimeout = onTimeout;
    const first = firstEventMs ?? (isLocalModel(model) ? 0 : DEFAULT_FIRST_EVENT_MS);
    this.#firstMs = first > 0 ? first : Number.POSITIVE_INFINITY;
    const between = betweenEventsMs ?? DEFAULT_BETWEEN_EVENTS_MS;
    this.#betweenMs = between > 0 ? between : Number.POSITIVE_INFINITY;
    this.#lastAt = clock.now();
    this.#arm(Math.min(this.#firstMs, this.#betweenMs));
  }

  /** An event has come. */
  touch(): void {
    this.#hasEvents = true;
    this.#lastAt = this.#clock.now();
  }

  /** Until the next `touch` nothing is overdue: the time that a sink takes is not the service's. */
  pause(): void {
    this.#hasEvents = true;
    this.#lastAt = Number.POSITIVE_INFINITY;
  }

  stop(): void {
    this.#stop();
  }

  #arm(ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#stop = this.#clock.after(ms, () => {
      const allowed = this.#hasEvents ? this.#betweenMs : this.#firstMs;
      const left = this.#lastAt + allowed - this.#clock.now();
      if (left > 0) this.#arm(Math.min(left, this.#betweenMs));
      else this.#onTimeout();
    });
  }
}
