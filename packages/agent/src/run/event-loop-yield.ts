import type { Clock } from "@gyre/ai";

/** A run lets timers and I/O have their turn at least this often. */
export const MAX_BREATH_MS = 10;
/** Events between two looks at the clock. */
const EVENTS_A_LOOK = 16;

/** Gives the event loop its turn while a run goes on that never waits (R21). */
export class Breath {
  readonly #clock: Clock;
  #lastAt: number;
  #events = 0;

  constructor(clock: Clock, now: number) {
    this.#clock = clock;
    this.#lastAt = now;
  }

  /** Call it for each event. What it gives is to be waited for. */
  take(): Promise<void> | undefined {
    return ++this.#events % EVENTS_A_LOOK === 0 ? this.look() : undefined;
  }

  /** The same for steps that are rarer and longer than an event. */
  look(): Promise<void> | undefined {
    if (this.#clock.now() - this.#lastAt < MAX_BREATH_MS) return undefined;
    return this.#clock.turn().then(() => {
      this.#lastAt = this.#clock.now();
    });
  }
}
