import type { Clock } from "@gyre/ai";
import { VirtualClock } from "./clock.ts";
import { drawPlan, type Plan } from "./plan.ts";
import { Random } from "./random.ts";

/** A rule that did not hold. */
export interface Broken {
  rule: string;
  text: string;
}

/** Notes that a rule was broken, and why. */
export type Fail = (rule: string, why: string) => void;

/** Work in one step without end would hang the simulator: past this it is parked. */
const MOST_OBSERVATIONS_A_STEP = 20_000;

/** What all parts of a simulated world share: its seed, its time, its log, its verdict. */
export class World {
  readonly seed: number;
  readonly plan: Plan;
  readonly clock: VirtualClock;
  readonly lines: string[] = [];
  /** Faults are off from here on (the liveness phase). */
  calm = false;
  steps = 0;
  /** Which process lives: one more after each crash. */
  epoch = 0;
  /** The process has died, and the program has not started again. */
  dead = false;
  broken: Broken | undefined;
  /** Time that sinks and listeners have made the agent wait for. */
  readonly waits: Waits;
  readonly #verbose: boolean;
  readonly #randoms = new Map<string, Random>();
  readonly #counts = new Map<string, number>();
  #observations = 0;

  constructor(seed: number, verbose: boolean) {
    this.seed = seed;
    this.#verbose = verbose;
    this.plan = drawPlan(seed);
    this.clock = new VirtualClock(this.random("clock"));
    this.waits = new Waits(this.clock);
  }

  /** The stream of numbers of one part of the world. */
  random(part: string): Random {
    let random = this.#randoms.get(part);
    if (!random) {
      random = new Random(this.seed, part);
      this.#randoms.set(part, random);
    }
    return random;
  }

  /** Counts from 1, each name on its own. */
  count(name: string): number {
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count;
  }

  get now(): number {
    return this.clock.now;
  }

  /** The clock of the agent's process; it dies with it. */
  agentClock(): Clock {
    return this.clock.of(this.agentOwner);
  }

  get agentOwner(): string {
    return `agent ${this.epoch}`;
  }

  /** Something in the agent's process that is not the agent: a model, a tool, a hook. */
  later(ms: number, run: () => void): () => void {
    return this.clock.after(`process ${this.epoch}`, ms, run);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.later(ms, resolve);
    });
  }

  /** The process dies: nothing of it has any effect from here on. */
  die(): void {
    this.note(() => "the process dies");
    this.dead = true;
    this.clock.drop(this.agentOwner);
    this.clock.drop(`process ${this.epoch}`);
    this.waits.forget();
  }

  /** Starts the program again. */
  restart(): void {
    this.note(() => "the program is started again");
    this.dead = false;
    this.epoch++;
  }

  /** Whether the process of that number is the one that lives. */
  lives(epoch: number): boolean {
    return epoch === this.epoch && !this.dead;
  }

  /** Writes to the event log, if there is one. */
  note(line: () => string): void {
    if (this.#verbose) this.lines.push(`${this.steps} ${this.now} ${line()}`);
  }

  /** Notes that a rule was broken; the first time counts. */
  fail(rule: string, text: string): void {
    this.note(() => `BROKEN ${rule}: ${text}`);
    this.broken ??= { rule, text };
  }

  check(holds: boolean, rule: string, text: () => string): void {
    if (!holds) this.fail(rule, text());
  }

  /** Called at each meeting with the code under test; true when it runs away. */
  runsAway(): boolean {
    if (++this.#observations < MOST_OBSERVATIONS_A_STEP) return false;
    this.fail("R21", "the loop never gave the event loop its turn");
    return true;
  }

  /** One step is over: everything that could go on without time has. */
  stepDone(): void {
    this.steps++;
    this.#observations = 0;
  }
}

/** How long the agent was held up by others: overlapping waits count once. */
class Waits {
  readonly #clock: VirtualClock;
  #open = 0;
  #since = 0;
  #total = 0;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get total(): number {
    return this.#total + (this.#open > 0 ? this.#clock.now - this.#since : 0);
  }

  /** A wait begins; the answer ends it. */
  begin(): () => void {
    if (this.#open++ === 0) this.#since = this.#clock.now;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#open--;
      if (this.#open === 0) this.#total += this.#clock.now - this.#since;
    };
  }

  forget(): void {
    this.#total = this.total;
    this.#open = 0;
  }
}
