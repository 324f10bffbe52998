import type { Clock } from "@gyre/ai";
import type { Random } from "./random.ts";

interface Timer {
  at: number;
  /** Decides between timers of the same time: drawn from the seed. */
  tie: number;
  order: number;
  owner: string;
  run: () => void;
  live: boolean;
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
  readonly #heap: Timer[] = [];
  readonly #live = new Map<string, number>();
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
    const timer: Timer = {
      at: this.now + ms,
      tie: this.#random.next(),
      order: this.#made++,
      owner,
      run,
      live: true,
    };
    this.#count(owner, 1);
    this.#push(timer);
    return () => this.#kill(timer);
  }

  /** How many timers an owner has set. A turn that was asked for comes by itself. */
  pending(owner: string): number {
    return this.#live.get(owner) ?? 0;
  }

  /** The owner dies: none of its timers will run. */
  drop(owner: string): void {
    this.#dead.add(owner);
    for (const timer of this.#heap) if (timer.owner === owner) this.#kill(timer);
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
    let next = this.#heap[0];
    while (next && !next.live) {
      this.#pop();
      next = this.#heap[0];
    }
    if (this.#turns.length > 0 && (!next || next.at > this.now)) {
      const [turn] = this.#turns.splice(this.#random.below(this.#turns.length), 1);
      turn?.resolve();
      return true;
    }
    if (!next) return false;
    this.#pop();
    this.#kill(next);
    this.now = Math.max(this.now, next.at);
    this.lastRunAt = next.at;
    next.run();
    return true;
  }

  #kill(timer: Timer): void {
    if (!timer.live) return;
    timer.live = false;
    this.#count(timer.owner, -1);
  }

  #count(owner: string, by: number): void {
    this.#live.set(owner, (this.#live.get(owner) ?? 0) + by);
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let index = heap.push(timer) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(timer, heap[parent])) break;
      heap[index] = heap[parent] as Timer;
      index = parent;
    }
    heap[index] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = index * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++;
      if (!isBefore(heap[child], last)) break;
      heap[index] = heap[child] as Timer;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(one: Timer | undefined, other: Timer | undefined): boolean {
  if (!one || !other) return one !== undefined;
  if (one.at !== other.at) return one.at < other.at;
  if (one.tie !== other.tie) return one.tie < other.tie;
  return one.order < other.order;
}
