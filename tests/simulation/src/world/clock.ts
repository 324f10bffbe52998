import type { Clock } from "@gyre/ai";
import type { Random } from "./random.ts";

interface Timer {
  at: number;
  /** Decides between timers of the same time: drawn from the seed. */
  tie: number;
  order: number;
  owner: string;
  run: () => void;
}

interface Turn {
  owner: string;
  resolve: () => void;
}

/** Any date will do; this one makes it plain in a log that time is not the machine's. */
const START_MS = 1_000_000;

/**
 * Time that moves only when the simulator says so. Timers belong to an owner, so
 * that a process can die with all of its timers, and so that what the code under
 * test leaves behind can be distinguished from what the world still has to do.
 */
export class VirtualClock {
  now: number = START_MS;
  /** The time of the last timer that was run: everything due before it has been run. */
  lastRunAt: number = START_MS;
  /** Time that work has taken since anything else had its turn. */
  burned = 0;
  readonly #random: Random;
  /** The first to run is the first. */
  #timers: Timer[] = [];
  readonly #dead = new Set<string>();
  readonly #clocks = new Map<string, Clock>();
  #turns: Turn[] = [];
  #made = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** The clock that one owner is given. */
  of(owner: string): Clock {
    const known = this.#clocks.get(owner);
    if (known) return known;
    const clock: Clock = {
      now: () => this.now,
      after: (ms, run) => this.after(owner, ms, run),
      turn: () =>
        new Promise((resolve) => {
          this.#turns.push({ owner, resolve });
        }),
    };
    this.#clocks.set(owner, clock);
    return clock;
  }

  after(owner: string, ms: number, run: () => void): () => void {
    // The dead set no timers; what they had on their way to it is lost.
    if (this.#dead.has(owner)) return () => {};
    if (!(ms >= 0)) throw new RangeError(`A timer of ${ms} ms cannot be set.`);
    const at = this.now + ms;
    const timer: Timer = { at, tie: this.#random.next(), order: this.#made++, owner, run };
    const place = this.#timers.findLastIndex((other) => isBefore(other, timer)) + 1;
    this.#timers.splice(place, 0, timer);
    return () => this.#remove(timer);
  }

  /** How many timers an owner has set. A turn that was asked for comes by itself. */
  pending(owner: string): number {
    return this.#timers.filter((timer) => timer.owner === owner).length;
  }

  /** The owner dies: none of its timers will run. */
  drop(owner: string): void {
    this.#dead.add(owner);
    this.#timers = this.#timers.filter((timer) => timer.owner !== owner);
    this.#turns = this.#turns.filter((turn) => turn.owner !== owner);
  }

  /** Time that work takes: passes without a timer being run. */
  burn(ms: number): void {
    this.now += ms;
    this.burned += ms;
  }

  /** Runs what is next: a timer that is due, a turn, or the first timer to come. */
  advance(): boolean {
    this.burned = 0;
    const [next] = this.#timers;
    if (this.#turns.length > 0 && (!next || next.at > this.now)) {
      const [turn] = this.#turns.splice(this.#random.below(this.#turns.length), 1);
      turn?.resolve();
      return true;
    }
    if (!next) return false;
    this.#remove(next);
    this.now = Math.max(this.now, next.at);
    this.lastRunAt = next.at;
    next.run();
    return true;
  }

  #remove(timer: Timer): void {
    const place = this.#timers.indexOf(timer);
    if (place >= 0) this.#timers.splice(place, 1);
  }
}

function isBefore(one: Timer, other: Timer): boolean {
  if (one.at !== other.at) return one.at < other.at;
  if (one.tie !== other.tie) return one.tie < other.tie;
  return one.order < other.order;
}
