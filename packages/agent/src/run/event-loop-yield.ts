import type { Clock } from "@gyre/ai";

/** A run lets timers and I/O have their turn at least this often. */
export const YIELD_INTERVAL_MS = 10;
/** The clock is read once for as many events. */
const EVENTS_PER_CHECK = 16;

/** Yields to the event loop during a run that never waits for anything else (R21). */
export class EventLoopYield {
  readonly #clock: Clock;
  #lastAt: number;
  #events = 0;

  constructor(clock: Clock, now: number) {
    this.#clock = clock;
    this.#lastAt = now;
  }

  /** Call it for each event, and wait for the promise if there is one. */
  afterEvent(): Promise<void> | undefined {
    return ++this.#events % EVENTS_PER_CHECK === 0 ? this.maybeYield() : undefined;
  }

  /** The same for steps that are rarer and longer than an event. */
  maybeYield(): Promise<void> | undefined {
    if (this.#clock.now() - this.#lastAt < YIELD_INTERVAL_MS) return undefined;
    return this.#clock.turn().then(() => {
      this.#lastAt = this.#clock.now();
    });
  }
}
