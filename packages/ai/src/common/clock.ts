/**
 * Time, as it is handed in. Everything that waits or asks for the time does so
 * through a clock, so that a test can drive it second by second and a seed can
 * replay it exactly.
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once after `ms`; the answer takes it back. */
  after(ms: number, run: () => void): () => void;
  /** Resolves when timers and I/O that were due have had their turn. */
  turn(): Promise<void>;
}

/** The longest delay that a timer of the platform takes: about 24.8 days. */
export const MAX_TIMER_MS = 2_147_483_647;

/** The time and the timers of the system. */
export const systemClock: Clock = {
  now: (): number => Date.now(),
  after(ms: number, run: () => void): () => void {
    const timer = setTimeout(run, Math.min(ms, MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
  turn: (): Promise<void> =>
    new Promise((resolve) => {
      // setImmediate is far quicker than a timer; browsers have only the latter.
      const immediate = (globalThis as { setImmediate?: (run: () => void) => unknown })
        .setImmediate;
      if (immediate) immediate(resolve);
      else setTimeout(resolve, 0);
    }),
};
