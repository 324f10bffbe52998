import type { Clock } from "@gyre/ai";

/** A running timer. */
export interface QuietTimer {
  /** There was a sign of life: the time begins again. */
  restart(): void;
  stop(): void;
}

/**
 * Timers of calls that are to end after some time without a sign of life. As long as a person thinks
 * about a question of the server, none of them runs.
 */
export class QuietTimers {
  readonly #clock: Clock;
  readonly #running = new Set<{ run: () => void; halt: () => void }>();
  #pauses = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(ms: number, onQuiet: () => void): QuietTimer {
    let cancel = (): void => {};
    const timer = {
      run: (): void => {
        cancel();
        if (this.#pauses === 0) cancel = this.#clock.after(ms, onQuiet);
      },
      halt: (): void => cancel(),
    };
    this.#running.add(timer);
    timer.run();
    return {
      restart: timer.run,
      stop: () => {
        this.#running.delete(timer);
        cancel();
      },
    };
  }

  /** Halts all of them while the work is done. */
  async pausedFor<T>(work: () => Promise<T>): Promise<T> {
    if (this.#pauses++ === 0) for (const timer of this.#running) timer.halt();
    try {
      return await work();
    } finally {
      if (--this.#pauses === 0) for (const timer of this.#running) timer.run();
    }
  }
}
