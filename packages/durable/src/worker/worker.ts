import { randomUUID } from "node:crypto";
import { setTimeout as later } from "node:timers/promises";
import { defineAgent, type DurableAgent } from "../contract/agent.ts";
import { DurableError, isUnavailable } from "../contract/errors.ts";
import { assertAtLeast, assertCount } from "../contract/numbers.ts";
import { formatMetrics } from "../runs/metrics.ts";
import type { Runs } from "../runs/runs.ts";
import type { RunSummary, WorkerLogLine } from "../contract/types.ts";
import type { AgentVersion, Claim, ClaimWish, LeaseKeeper, Store } from "../contract/store.ts";
import type { EngineWork } from "../contract/engine.ts";
import { Activation, type ActivationOutcome, type ActivationParts } from "./activation.ts";
import { Observer } from "./observer.ts";
import type { WorkerTelemetry } from "./span.ts";
import { Outage } from "./outage.ts";
import { findMaxRss, LoadGauge } from "./load.ts";
import { RunLog } from "./run-log.ts";
import { Scheduler } from "./scheduler.ts";

export interface WorkerOptions {
  /** The agents whose runs it works on. */
  agents: readonly DurableAgent[];
  /** Runs at once. Default 50. */
  concurrency?: number;
  /** What this machine can do: runs of these pools are claimed. Default [""]. */
  pools?: readonly string[];
  /** How long others wait for a worker that gives no sign of life. Default 2,000. */
  leaseMs?: number;
  /** How long a worker keeps its runs whose event loop hangs, as in a long calculation. Default 10,000. */
  stallMs?: number;
  /** It claims nothing while its event loop comes later than this to what is due, p99. Default 200. */
  maxLagMs?: number;
  /** It claims nothing while its process has more memory than this. Default: 80 % of what it may have. */
  maxRssBytes?: number;
  /**
   * Called before a run is worked on, each time that it is claimed: resolves to how many milliseconds
   * the run has to wait, 0 for none. For budgets of tenants, for example. A run that was aborted is
   * not asked about.
   */
  admit?: (run: RunSummary) => number | Promise<number>;
  /** Workers in a row that may die with a run before it is claimed alone, and then set aside. Default 3. */
  maxDeaths?: number;
  /** Receives what the worker does, without content: one object for each line of a log. */
  onLog?: (line: WorkerLogLine) => void;
  /**
   * `@opentelemetry/api`: each activation is a span `gyre.activation`, in the trace of its run and
   * linked to the activation before. Spans of `tracing` in the agent's middleware nest below it.
   */
  telemetry?: WorkerTelemetry;
  /** Receives errors that no caller waits for. Default: that of the runs. */
  onError?: (error: unknown, where: string) => void;
}

/** What a worker has done since it was started. */
export interface WorkerStats {
  /** Runs that it works on. */
  readonly live: number;
  readonly claims: number;
  readonly ended: number;
  readonly parked: number;
  /** Activations that another worker has taken over. */
  readonly lost: number;
  /** Sessions that it has taken from dead workers. */
  readonly swept: number;
}

const DEFAULT_CONCURRENCY = 50;
const DEFAULT_LEASE_MS = 2_000;
const DEFAULT_STALL_MS = 10_000;
const DEFAULT_DRAIN_MS = 10_000;
const DEFAULT_MAX_DEATHS = 3;
const DEFAULT_MAX_LAG_MS = 200;
const LEAST_OPTIONS = [
  ["leaseMs", 1],
  ["stallMs", 0],
  ["maxLagMs", 0],
  ["maxRssBytes", 0],
] as const;
/** Sessions that are claimed in one transaction. */
const CLAIMED_AT_ONCE = 20;
/** Hints may be lost: ready sessions and inboxes are looked at this often in any case. */
const LOOK_EVERY_MS = 1_000;
/** An engine that calls a worker which has too much to do waits this long at a time. */
const OVERLOAD_MS = 100;
const BEATS_IN_A_LEASE = 4;
const SWEEPS_IN_A_LEASE = 8;

/**
 * Works on runs: claims those that are ready, and goes on with those of workers that died. Any
 * number of workers, in any number of processes, may share a store.
 */
export class Worker {
  readonly #runs: Runs;
  readonly #store: Store;
  readonly #agents: ReadonlyMap<string, DurableAgent>;
  readonly #pools: readonly string[];
  readonly #concurrency: number;
  readonly #leaseMs: number;
  readonly #stallMs: number;
  readonly #maxDeaths: number;
  readonly #load: LoadGauge;
  readonly #parts: ActivationParts;
  readonly #onError: WorkerOptions["onError"];
  readonly #activations = new Map<string, Activation>();
  /** What an engine waits for, by its activations. */
  readonly #awaited = new Map<string, Promise<void>>();
  /** Ends the waiting where the worker stops and what it works on does not. */
  readonly #releases = new Set<() => void>();
  #engineWork: EngineWork | undefined;
  #registering: Promise<void> | undefined;
  /** Versions of runs that an agent does not accept, by the agent's name. */
  readonly #refused = new Map<string, Set<string>>();
  readonly #observer: Observer;
  #id = randomUUID();
  #state: "new" | "working" | "draining" | "stopped" = "new";
  #timers: NodeJS.Timeout[] = [];
  #unlisten: () => void = () => {};
  #keeper: LeaseKeeper | undefined;
  #stopServing: () => void = () => {};
  /** Since when every heartbeat has reached the store. */
  #steadySince = Infinity;
  /** When the last heartbeat that has reached the store was sent. */
  #beatAt = 0;
  #claiming: Promise<void> | undefined;
  #shouldClaim = false;
  #nextClaim: NodeJS.Timeout | undefined;
  #beating: Promise<void> | undefined;
  #sweeping: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  #shouldLook = false;
  #waking: Promise<void> | undefined;
  readonly #stopped = new AbortController();
  readonly #outage = new Outage();
  readonly #scheduler: Scheduler;

  constructor(runs: Runs, options: WorkerOptions) {
    checkOptions(options);
    this.#runs = runs;
    this.#store = runs.store;
    this.#agents = new Map(options.agents.map((agent) => [agent.name, agent]));
    if (this.#agents.size < options.agents.length) {
      throw new DurableError("invalid", "Two agents of a worker have the same name.");
    }
    this.#pools = options.pools ?? [""];
    this.#concurrency = options.concurrency ?? DEFAULT_CONCURRENCY;
    this.#leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    this.#stallMs = options.stallMs ?? DEFAULT_STALL_MS;
    this.#maxDeaths = options.maxDeaths ?? DEFAULT_MAX_DEATHS;
    this.#load = new LoadGauge({
      maxLagMs: options.maxLagMs ?? DEFAULT_MAX_LAG_MS,
      maxRssBytes: options.maxRssBytes ?? findMaxRss(),
    });
    this.#onError = options.onError;
    this.#scheduler = new Scheduler(this.#store, (error) => this.#report(error, "schedules"));
    this.#observer = new Observer({
      onLog: options.onLog,
      telemetry: options.telemetry,
      report: (error, where) => this.#report(error, where),
    });
    const { admit } = options;
    this.#parts = { runs, admit, outage: this.#outage, observer: this.#observer };
  }

  /** What the store calls it. Another one after the store has taken it for dead. */
  get id(): string {
    return this.#id;
  }

  get stats(): WorkerStats {
    const { claims, activations, takeovers } = this.#observer.meter;
    const { ended, parked, released, lost } = activations;
    const swept = takeovers.gone + takeovers.expired;
    return { live: this.#activations.size, claims, ended, parked: parked + released, lost, swept };
  }

  /** What it has done since it was started, as Prometheus reads it. */
  metrics(): string {
    const beatAgeMs = this.#beatAt === 0 ? 0 : performance.now() - this.#beatAt;
    const state = { live: this.#activations.size, beatAgeMs, overload: this.#load.findOverload() };
    return formatMetrics(this.#observer.meter.list(state));
  }

  /** Begins to work, and returns. */
  async start(): Promise<void> {
    if (this.#state !== "new") {
      throw new DurableError("invalid", "A worker is started once: make another one.");
    }
    this.#state = "working";
    await this.#register();
    const beatMs = this.#leaseMs / BEATS_IN_A_LEASE;
    this.#keeper = await this.#store.keepLease?.({
      ...{ worker: this.#id, leaseMs: this.#leaseMs, beatMs, stallMs: this.#stallMs },
      onError: (error, where) => this.#report(error, where),
    });
    this.#unlisten = this.#store.listen("work", ({ session }) => {
      this.#claimSoon();
      if (session === undefined) this.#lookSoon();
      else this.#activations.get(session)?.look();
    });
    this.#load.start();
    this.#every(beatMs, () => this.#beat());
    this.#stopServing = this.#runs.live.serve();
    this.#every(this.#leaseMs / SWEEPS_IN_A_LEASE, () => this.#sweep());
    this.#every(LOOK_EVERY_MS, () => {
      if (this.#activations.size > 0) this.#lookSoon();
    });
    this.#scheduler.start();
    const { waker } = this.#runs;
    if (!waker) return this.#claimSoon();
    const options = { concurrency: this.#concurrency, pools: this.#pools };
    try {
      this.#engineWork = await waker.engine.work((...args) => this.#workOn(...args), options);
    } catch (error) {
      await this.stop({ drainMs: 0 });
      throw error;
    }
    this.#every(LOOK_EVERY_MS, () => this.#wakeLate());
  }

  /** Where workers have no place left, what waits for one has not been forgotten. */
  #wakeLate(): void {
    if (this.#countFree() < 1) return;
    this.#waking ??= this.#runs.waker?.wakeLate().finally(() => (this.#waking = undefined));
  }

  /** An engine has a session for this worker. */
  async #workOn(session: string, activation: string): Promise<void> {
    this.#runs.waker?.noteCall();
    const id = `${session} ${activation}`;
    const work = this.#awaited.get(id) ?? this.#claimOne(session, activation);
    this.#awaited.set(id, work);
    let release = (): void => {};
    try {
      await new Promise<void>((resolve, reject) => {
        release = resolve;
        this.#releases.add(release);
        work.then(resolve, reject);
      });
    } finally {
      this.#releases.delete(release);
      if (this.#awaited.get(id) === work) this.#awaited.delete(id);
      this.#onIdle();
    }
  }

  async #claimOne(session: string, activation: string): Promise<void> {
    if (this.#state !== "working") {
      throw new DurableError("closed", "The worker stops: another one goes on.");
    }
    if (this.#hasTooMuch()) {
      // Others find it meanwhile: it stays ready.
      await later(OVERLOAD_MS);
      return this.#claimOne(session, activation);
    }
    const { waker } = this.#runs;
    if (this.#countFree() < 1) return waker?.noteMissed(session);
    const wish = { ...this.#wish(1), only: { session, activation } };
    let { claims, isAlive } = await this.#store.claim(wish);
    if (!isAlive) {
      await this.#beBornAgain(wish.worker);
      ({ claims, isAlive } = await this.#store.claim({ ...wish, worker: this.#id }));
    }
    if (claims.length === 0) return waker?.noteMissed(session);
    for (const claim of claims) await this.#activate(claim);
    await waker?.wakeMissed();
  }

  /**
   * Claims nothing more. Turns that go on come to their end within `drainMs`, 10,000 by default;
   * other workers continue at once. After that time calls that still run are cut off.
   */
  async stop({ drainMs = DEFAULT_DRAIN_MS }: { drainMs?: number } = {}): Promise<void> {
    if (this.#state !== "working") return;
    this.#state = "draining";
    clearTimeout(this.#nextClaim);
    const scheduled = this.#scheduler.stop();
    for (const activation of this.#activations.values()) activation.drain();
    const stopping = this.#engineWork?.stop();
    await this.#waitForIdle(drainMs);
    this.#state = "stopped";
    for (const timer of this.#timers) clearInterval(timer);
    this.#load.stop();
    this.#unlisten();
    this.#stopServing();
    this.#stopped.abort();
    for (const activation of this.#activations.values()) activation.lose();
    for (const release of this.#releases) release();
    await Promise.all([this.#beating, this.#sweeping, this.#looking, this.#keeper?.close()]);
    await Promise.all([this.#waking, stopping, scheduled]);
    await this.#store.unregister(this.#id);
  }

  #every(ms: number, act: () => void): void {
    const timer = setInterval(act, ms);
    this.#timers.push(timer);
  }

  async #register(): Promise<void> {
    const agents = [...this.#agents.values()].map(({ name, version }): AgentVersion => {
      const refuses = [...(this.#refused.get(name) ?? [])];
      return { name, version, ...(refuses.length > 0 && { refuses }) };
    });
    const times = { leaseMs: this.#leaseMs, stallMs: this.#stallMs };
    await this.#store.register({ id: this.#id, agents, pools: this.#pools, ...times });
    this.#steadySince = Math.min(this.#steadySince, performance.now());
  }

  #beat(): void {
    this.#keeper?.mark();
    if (this.#beating) {
      // The store takes too long to answer: what it says of others does not count.
      this.#steadySince = Infinity;
      if (performance.now() - this.#beatAt > this.#leaseMs) this.#noteStore(true);
      return;
    }
    this.#beating = this.#sendBeat()
      .catch((error: unknown) => {
        this.#steadySince = Infinity;
        if (isUnavailable(error)) this.#noteStore(true);
        this.#report(error, "heartbeat");
      })
      .finally(() => (this.#beating = undefined));
  }

  async #sendBeat(): Promise<void> {
    const sentAt = performance.now();
    const isAlive = await this.#store.heartbeat(this.#id, this.#leaseMs, this.#activations.size);
    this.#noteStore(false);
    if (!isAlive) return this.#beBornAgain();
    this.#beatAt = sentAt;
    const isLate = performance.now() - sentAt > this.#leaseMs / BEATS_IN_A_LEASE;
    if (isLate) this.#steadySince = Infinity;
    else if (this.#steadySince === Infinity) this.#steadySince = performance.now();
  }

  #noteStore(isAway: boolean): void {
    this.#observer.noteStore(isAway, performance.now());
  }

  /** The store has taken it for dead: its sessions are others'. */
  async #beBornAgain(dead: string = this.#id): Promise<void> {
    if (this.#state === "stopped") return;
    // Activations notice it one by one.
    if (dead !== this.#id) return this.#registering;
    for (const activation of this.#activations.values()) activation.lose();
    this.#id = randomUUID();
    this.#keeper?.rename(this.#id);
    this.#steadySince = Infinity;
    this.#registering = this.#register();
    await this.#registering;
    this.#claimSoon();
  }

  #sweep(): void {
    this.#sweeping ??= this.#sweepOnce()
      .catch((error: unknown) => this.#report(error, "sweep"))
      .finally(() => (this.#sweeping = undefined));
  }

  /**
   * After an outage all leases are over at once: a worker judges others after a lease of its own,
   * and not where it was stopped itself.
   */
  async #sweepOnce(): Promise<void> {
    const now = performance.now();
    const isFresh = now - this.#beatAt < (2 * this.#leaseMs) / BEATS_IN_A_LEASE;
    const expired = isFresh && now - this.#steadySince > this.#leaseMs;
    const swept = await this.#store.sweep({ expired, maxDeaths: this.#maxDeaths });
    if (swept.length === 0) return;
    const workers = new Set(swept.map(({ worker }) => worker)).size;
    this.#observer.log({ event: "sweep", workers, sessions: swept.length });
    for (const { session, worker, status, why } of swept) {
      this.#observer.meter.takeovers[why]++;
      if (status === "aside") this.#observer.log({ event: "aside", session, worker });
    }
    this.#claimSoon();
  }

  #claimSoon(): void {
    if (this.#state !== "working" || this.#runs.waker) return;
    this.#shouldClaim = true;
    this.#claiming ??= this.#claimAll()
      .catch((error: unknown) => {
        this.#report(error, "claim");
        this.#claimIn(LOOK_EVERY_MS);
      })
      .finally(() => {
        this.#claiming = undefined;
        this.#onIdle();
      });
  }

  #claimIn(ms: number): void {
    clearTimeout(this.#nextClaim);
    if (this.#state !== "working") return;
    this.#nextClaim = setTimeout(() => this.#claimSoon(), ms);
  }

  async #claimAll(): Promise<void> {
    // Hints of one turn of the event loop are answered by one claim.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#shouldClaim && this.#state === "working") {
      this.#shouldClaim = false;
      const free = this.#countFree();
      if (free < 1) return;
      if (this.#hasTooMuch()) return this.#claimIn(LOOK_EVERY_MS);
      const limit = Math.min(free, CLAIMED_AT_ONCE);
      const {
        claims,
        isAlive,
        nextInMs = LOOK_EVERY_MS,
      } = await this.#store.claim(this.#wish(limit));
      if (!isAlive) return this.#beBornAgain();
      for (const claim of claims) void this.#activate(claim);
      if (claims.length > 0) this.#shouldClaim = true;
      else this.#claimIn(Math.min(nextInMs, LOOK_EVERY_MS));
    }
  }

  /** A worker without runs is late because of others on its machine: it would wait for them for ever. */
  #hasTooMuch(): boolean {
    const overload = this.#load.findOverload();
    return overload === "memory" || (overload === "lag" && this.#activations.size > 0);
  }

  #wish(limit: number): ClaimWish {
    return {
      ...{ worker: this.#id, agents: [...this.#agents.keys()], pools: this.#pools, limit },
      refused: [...this.#refused].flatMap(([agent, versions]) =>
        [...versions].map((version) => ({ agent, version })),
      ),
      ...{ maxDeaths: this.#maxDeaths, alone: this.#activations.size === 0 },
    };
  }

  #countFree(): number {
    // A run that has ended its workers has this one to itself.
    const isAlone = [...this.#activations.values()].some(
      ({ claim }) => claim.deaths >= this.#maxDeaths,
    );
    return isAlone ? 0 : this.#concurrency - this.#activations.size;
  }

  /** Resolves when the session is parked. */
  async #activate(claim: Claim): Promise<void> {
    const { session, agent: name, version, token: activation, deaths, run } = claim;
    const agent = this.#agents.get(name);
    this.#observer.meter.claims++;
    this.#observer.log({
      ...{ event: deaths > 0 ? "takeover" : "claim", session, agent: name, activation, deaths },
      ...(run !== undefined && { run }),
    });
    if (!agent || (version !== "" && agent.accepts?.(version) === false)) {
      return this.#refuse(claim);
    }
    const work = new Activation(this.#parts, claim, agent);
    if (this.#state !== "working") work.drain();
    this.#activations.set(session, work);
    const outcome = await work.work();
    if (this.#activations.get(session) === work) this.#activations.delete(session);
    this.#count(claim, outcome);
    this.#claimSoon();
    this.#onIdle();
  }

  #count({ session, token: activation }: Claim, outcome: ActivationOutcome): void {
    this.#observer.meter.activations[outcome]++;
    if (outcome === "lost") this.#observer.log({ event: "fenced", session, activation });
    else if (outcome !== "ended") {
      const status = outcome === "parked" ? "waiting" : "ready";
      this.#observer.log({ event: "park", session, activation, status });
    }
  }

  /** Leaves a run to a worker of another version. */
  async #refuse(claim: Claim): Promise<void> {
    const { agent, version } = claim;
    const versions = this.#refused.get(agent) ?? new Set();
    this.#refused.set(agent, versions.add(version));
    const report = (error: unknown): void => this.#report(error, "claim");
    const log = new RunLog(this.#store, claim, this.#stopped.signal, this.#outage);
    await log.release({ status: "ready" }, report);
    await this.#register().catch(report);
  }

  /** Looks which of its sessions were woken. */
  #lookSoon(): void {
    this.#shouldLook = true;
    this.#looking ??= this.#look()
      .catch((error: unknown) => this.#report(error, "inbox"))
      .finally(() => (this.#looking = undefined));
  }

  async #look(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#shouldLook && this.#activations.size > 0) {
      this.#shouldLook = false;
      const wakes = await this.#store.readWakes(this.#id);
      for (const [session, activation] of this.#activations) {
        const count = wakes.get(session);
        if (count !== undefined && count > activation.seen) activation.look();
      }
    }
  }

  #onIdle: () => void = () => {};

  /** Settles when nothing is worked on, or after `ms`. */
  async #waitForIdle(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#onIdle = () => {
        if (this.#activations.size + this.#awaited.size > 0 || this.#claiming) return;
        clearTimeout(timer);
        resolve();
      };
      this.#onIdle();
    });
    this.#onIdle = () => {};
  }

  #report(error: unknown, where: string): void {
    if (this.#onError) this.#onError(error, where);
    else this.#runs.report(error, where);
  }
}

/** Throws on options with which it could never work. */
function checkOptions(given: WorkerOptions): void {
  const { agents, pools }: Partial<WorkerOptions> = given ?? {};
  if (!Array.isArray(agents)) {
    throw new DurableError(
      "invalid",
      "A worker needs agents: write new Worker(runs, { agents: [agent] }).",
    );
  }
  for (const agent of agents) defineAgent(agent);
  if (pools !== undefined && !Array.isArray(pools)) {
    throw new DurableError(
      "invalid",
      `\`pools\` is a list of names: got ${JSON.stringify(pools)}.`,
    );
  }
  for (const name of ["concurrency", "maxDeaths"] as const) {
    if (given[name] !== undefined) assertCount(name, given[name], 1);
  }
  for (const [name, least] of LEAST_OPTIONS) {
    if (given[name] !== undefined) assertAtLeast(name, given[name], least);
  }
}
