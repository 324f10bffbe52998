import { type Clock, systemClock } from "../common/clock.ts";
import { waitForLoading } from "../common/loading.ts";

/** Turns of the event loop that work gets to settle in, before and after each timer. */
const SETTLE_TURNS = 3;

/** A timer that sets itself again with no delay would never let `advance` return. */
const MAX_TIMERS_PER_ADVANCE = 100_000;

/** A clock that stands still until a test moves it on. */
export interface ManualClock extends Clock {
  /**
   * Moves the time on by `ms`, running what falls due in order of time, then of
   * setting. Work that waits for a promise gets its turn before, between and after
   * the timers, so that what it sets on the way is run as well.
   */
  advance(ms: number): Promise<void>;
  /** How many timers are set. */
  readonly pending: number;
}

interface Timer {
  at: number;
  run: () => void;
}

/** A clock for tests: time moves by `advance` alone, and starts at `start`. */
export function manualClock(start = 0): ManualClock {
  const timers = new Set<Timer>();
  let now = start;

  // A set keeps the order of insertion, so that of two timers for one time the older wins.
  const firstDue = (until: number): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers) {
      if (timer.at <= until && (!first || timer.at < first.at)) first = timer;
    }
    return first;
  };

  return {
    now: () => now,
    after(ms, run) {
      const timer: Timer = { at: now + Math.max(0, ms), run };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    turn: () => systemClock.turn(),
    get pending() {
      return timers.size;
    },
    async advance(ms) {
      const until = now + ms;
      await settle();
      let ran = 0;
      for (let timer = firstDue(until); timer; timer = firstDue(until)) {
        if (++ran > MAX_TIMERS_PER_ADVANCE) {
          throw new Error(
            `More than ${MAX_TIMERS_PER_ADVANCE} timers fell due within ${ms} ms. Does one set itself again without a delay?`,
          );
        }
        timers.delete(timer);
        now = timer.at;
        timer.run();
        await settle();
      }
      now = until;
    },
  };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < SETTLE_TURNS; turn++) {
    await systemClock.turn();
    const loaded = waitForLoading();
    if (!loaded) continue;
    await loaded;
    turn = 0;
  }
}
