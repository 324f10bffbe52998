import type { Clock } from "@gyre/ai";

/** Runs let timers and I/O have their turn at least this often. */
export const MAX_BREATH_MS = 10;
/** Events between two looks at the clock. */
const EVENTS_A_LOOK = 16;
/** Among many runs, events that one may take in before it stops for the others' sake. */
const MAX_EVENTS_A_BREATH = 64;

/**
 * The turns of the event loop, as all runs of one clock see them. A turn is asked
 * for when none has been seen for a while, and waited for only when it does not come
 * by itself: work that waits for a network gives plenty of turns and never stops
 * here, work that never waits is stopped in time.
 */
class Turns {
  active = 0;
  /** How many turns were seen. */
  seen = 0;
  readonly #clock: Clock;
  #lastAt: number;
  #askedAt = 0;
  #asked: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastAt = clock.now();
  }

  /** The turn to wait for, if it is overdue. */
  overdue(): Promise<void> | undefined {
    const now = this.#clock.now();
    if (this.#asked) return now - this.#askedAt >= MAX_BREATH_MS / 2 ? this.#asked : undefined;
    if (now - this.#lastAt < MAX_BREATH_MS / 2) return undefined;
    this.#askedAt = now;
    this.#asked = this.#clock.turn().then(() => {
      this.#asked = undefined;
      this.#lastAt = this.#clock.now();
      this.seen++;
    });
    return undefined;
  }
}

const turnsOf = new WeakMap<Clock, Turns>();

/** One run's share in giving the event loop its turn (R21). */
export class Breath {
  readonly #turns: Turns;
  #events = 0;
  #ownSince = 0;
  #turnsSeen = 0;

  constructor(clock: Clock) {
    this.#turns = turnsOf.get(clock) ?? new Turns(clock);
    turnsOf.set(clock, this.#turns);
    this.#turns.active++;
  }

  /** Call it for each event. What it gives is to be waited for. */
  take(): Promise<void> | undefined {
    return ++this.#events % EVENTS_A_LOOK === 0 ? this.look() : undefined;
  }

  /** The same, without counting: for steps that are rarer and longer than an event. */
  look(): Promise<void> | undefined {
    const turns = this.#turns;
    if (this.#turnsSeen !== turns.seen) {
      this.#turnsSeen = turns.seen;
      this.#ownSince = 0;
    }
    this.#ownSince += EVENTS_A_LOOK;
    // With many runs at once, time passes mostly in the others.
    if (this.#ownSince < Math.min(turns.active, MAX_EVENTS_A_BREATH)) return undefined;
    return turns.overdue();
  }

  release(): void {
    this.#turns.active--;
  }
}
