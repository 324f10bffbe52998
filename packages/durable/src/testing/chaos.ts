import { setMaxListeners } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isUnavailable } from "../contract/errors.ts";
import { openRuns } from "../runs/open.ts";
import type { Runs } from "../runs/runs.ts";
import { checkRun, type Finding } from "./checkers.ts";
import { type DrivenRun, driveRun, gatherEvidence, pause } from "./drive.ts";
import { EngineSite, type EngineSpec, openEngine } from "./engine.ts";
import { type JournalLine, readJournals } from "./journal.ts";
import { WorkerProcess } from "./processes.ts";
import { DatabaseProxy } from "./proxy.ts";
import { Random } from "./random.ts";

/**
 * What is done to workers and their store. `kill`: SIGKILL, and another one is started. `stop`:
 * SIGSTOP for longer than a lease, then SIGCONT. `stall`: the event loop of a worker is blocked.
 * `skew`: its clock is off by up to two hours; processes that share a file share a clock. `hole`:
 * nothing passes between a worker and the database. `reset`: its connections break. `cut`: the
 * answers to its commits are lost. `restart` and `crash`: of the database.
 */
export type Failure =
  | "kill"
  | "stop"
  | "stall"
  | "skew"
  | "hole"
  | "reset"
  | "cut"
  | "restart"
  | "crash";

export const FILE_FAILURES: readonly Failure[] = ["kill", "stop", "stall"];
export const DATABASE_FAILURES: readonly Failure[] = [
  ...FILE_FAILURES,
  ...(["skew", "hole", "reset", "cut", "restart", "crash"] as const),
];

/** The server below a database, for those failures that are its own. */
export interface DatabaseServer {
  stop(mode: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
}

export interface ChaosOptions {
  /** An empty store: "file:..." or "postgres://...". */
  readonly url: string;
  readonly runs: number;
  readonly seed: number;
  readonly failures: readonly Failure[];
  /** How many failures there are in all. Default: one for 25 runs, at least 8. */
  readonly count?: number;
  readonly workers?: number;
  /** Runs that are under way at a time. Default 30. */
  readonly atOnce?: number;
  readonly leaseMs?: number;
  /** Workers lose their runs where their event loop is blocked for longer. Default: 1.5 leases. */
  readonly stallMs?: number;
  /** For how long it is blocked at most. Default: 3 leases. */
  readonly maxStallMs?: number;
  /** The database is away for this long at least. Default 50. */
  readonly minAwayMs?: number;
  /** And at most. Default 1,500. */
  readonly maxAwayMs?: number;
  readonly server?: DatabaseServer;
  /** In the place of the store's own order of work. */
  readonly engine?: EngineSpec;
  /** Another build of the worker. */
  readonly workerModule?: string;
  /** All runs have to end within this time. Default 120,000. */
  readonly timeoutMs?: number;
  readonly onLine?: (line: string) => void;
}

export interface ChaosReport {
  readonly seed: number;
  readonly runs: number;
  readonly ms: number;
  readonly failures: Readonly<Partial<Record<Failure, number>>>;
  readonly claims: number;
  readonly calls: number;
  readonly interrupted: number;
  readonly requests: number;
  readonly answers: number;
  readonly sent: number;
  readonly findings: readonly Finding[];
}

const DEFAULT_WORKERS = 2;
const DEFAULT_AT_ONCE = 30;
const DEFAULT_LEASE_MS = 1_000;
const DEFAULT_TIMEOUT_MS = 120_000;
const RUNS_FOR_A_FAILURE = 25;
const MIN_FAILURES = 10;
const STALL_LEASES = 1.5;
const MAX_STALL_LEASES = 3;
const MAX_SKEW_MS = 7_200_000;
/** The database is away for this long at least. */
const MIN_AWAY_MS = 50;
const MAX_AWAY_MS = 1_500;
/** The answers to its first commits may be lost. */
const START_TRIES = 10;

/** Runs many runs over workers that fail, and holds each of them to the promises. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const folder = await mkdtemp(join(tmpdir(), "gyre-chaos-"));
  const engine = options.engine && (await openEngine(options.engine));
  const runs = await openRuns(options.url, {
    ...{ synchronous: "normal", onError: () => {} },
    ...(engine && { engine }),
  });
  const cluster = new Cluster(options, folder);
  try {
    const from = performance.now();
    await cluster.start();
    const driven = await driveAll(runs, options, cluster);
    const ms = Math.round(performance.now() - from);
    options.onLine?.(`${driven.filter(({ isOver }) => isOver).length} runs were seen to end`);
    await cluster.end();
    return {
      ...(await check(runs, options, driven, readJournals(folder))),
      ms,
      failures: cluster.failures,
    };
  } finally {
    await cluster.end();
    await runs.close();
    await rm(folder, { recursive: true });
  }
}

async function driveAll(
  runs: Runs,
  { runs: count, seed, timeoutMs = DEFAULT_TIMEOUT_MS, ...options }: ChaosOptions,
  cluster: Cluster,
): Promise<DrivenRun[]> {
  const driven = Array.from({ length: count }, (_, index): DrivenRun => ({
    id: `run-${index + 1}`,
    seen: new Map(),
    sent: [],
    isOver: false,
  }));
  const waiting = [...driven];
  const signal = AbortSignal.timeout(timeoutMs);
  // Each run that is watched listens to it.
  setMaxListeners(0, signal);
  let ended = 0;
  const progress = (): number => ended / count;
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await driveRun(runs, seed, next, signal).catch((error: unknown) => {
        // The time is over, and the database away: the run is found not to have ended.
        if (!signal.aborted || !isUnavailable(error)) throw error;
      });
      ended++;
    }
  };
  const lanes = Array.from({ length: options.atOnce ?? DEFAULT_AT_ONCE }, lane);
  const done = new AbortController();
  const failing = cluster.fail(progress, AbortSignal.any([signal, done.signal]));
  try {
    await Promise.all(lanes);
  } finally {
    done.abort();
    await failing;
  }
  return driven;
}

async function check(
  runs: Runs,
  options: ChaosOptions,
  driven: readonly DrivenRun[],
  journal: readonly JournalLine[],
): Promise<Omit<ChaosReport, "ms" | "failures">> {
  const bySession = new Map<string, JournalLine[]>();
  const findings: Finding[] = [];
  for (const line of journal) {
    if (line.at === "error") {
      findings.push({ promise: "error", run: "", text: `${line.where}: ${line.message}` });
      continue;
    }
    const lines = bySession.get(line.session) ?? [];
    bySession.set(line.session, lines);
    lines.push(line);
  }
  const counts = { calls: 0, interrupted: 0, answers: 0, sent: 0 };
  for (const run of driven) {
    const evidence = await gatherEvidence(runs, run, bySession.get(run.id) ?? []);
    findings.push(...checkRun(evidence));
    for (const message of evidence.messages) {
      if (message.role === "assistant") counts.answers++;
      if (message.role !== "toolResult") continue;
      counts.calls++;
      if (message.outcome === "interrupted") counts.interrupted++;
    }
    counts.sent += run.sent.length;
  }
  const promise = findHarmless(options);
  if (promise !== undefined && counts.interrupted > 0) {
    findings.push({ promise, run: "", text: `${counts.interrupted} calls are interrupted` });
  }
  const count = (at: JournalLine["at"]): number => journal.filter((line) => line.at === at).length;
  return {
    ...{ seed: options.seed, runs: driven.length, findings, ...counts },
    ...{ claims: count("claim"), requests: count("ask") },
  };
}

/** Workers that live take nothing from each other: the promise where no failure ends one. */
function findHarmless({
  failures,
  stallMs = 0,
  maxStallMs = Infinity,
}: ChaosOptions): string | undefined {
  const promises: Partial<Record<Failure, string>> = {
    ...{ restart: "D14", crash: "D14", skew: "D28" },
    ...(maxStallMs < stallMs && { stall: "D13" }),
  };
  const [first] = failures;
  return first && failures.every((failure) => failure in promises) ? promises[first] : undefined;
}

interface Member {
  process: WorkerProcess;
  skewMs: number;
  readonly engine: EngineSpec | undefined;
  readonly proxy: DatabaseProxy | undefined;
}

/** Workers, each behind a proxy of its own where there is a database. */
class Cluster {
  readonly failures: Partial<Record<Failure, number>> = {};
  readonly #options: ChaosOptions;
  readonly #folder: string;
  readonly #random: Random;
  readonly #members: Member[] = [];
  #site: EngineSite | undefined;
  readonly #leaseMs: number;
  /** Failures that last for a while. */
  readonly #pending = new Set<Promise<void>>();

  constructor(options: ChaosOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
    this.#random = new Random(`failures ${options.seed}`);
    this.#leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
  }

  async start(): Promise<void> {
    const { url, workers = DEFAULT_WORKERS } = this.#options;
    const site = (this.#site = await EngineSite.open(this.#options.engine));
    for (let index = 0; index < workers; index++) {
      const proxy = url.startsWith("file:")
        ? undefined
        : await DatabaseProxy.start(Number(new URL(url).port));
      const member = { skewMs: 0, proxy, engine: await site.place(proxy?.wrap.bind(proxy)) };
      this.#members.push({ ...member, process: await this.#startProcess(member) });
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.#pending);
    for (const { process, proxy } of this.#members.splice(0)) {
      process.continue();
      await process.kill();
      await proxy?.close();
    }
    await this.#site?.close();
    this.#site = undefined;
  }

  /** Lets things fail, one after the other, as the runs go on. */
  async fail(progress: () => number, signal: AbortSignal): Promise<void> {
    const { failures, runs, onLine } = this.#options;
    const { count = Math.max(MIN_FAILURES, Math.ceil(runs / RUNS_FOR_A_FAILURE)) } = this.#options;
    if (failures.length === 0) return;
    const random = this.#random;
    for (let index = 0; index < count; index++) {
      const failure = failures[(index + random.below(2)) % failures.length] ?? "kill";
      const member = this.#members[random.below(this.#members.length)];
      const afterMs = random.below(this.#leaseMs / 2);
      while (progress() < index / count && !signal.aborted) await pause(5);
      await pause(afterMs);
      if (signal.aborted || !member) return;
      onLine?.(`${Math.round(progress() * 100)} %: ${failure}`);
      this.failures[failure] = (this.failures[failure] ?? 0) + 1;
      await this.#apply(failure, member);
    }
  }

  async #apply(failure: Failure, member: Member): Promise<void> {
    const { server, minAwayMs = MIN_AWAY_MS, maxAwayMs = MAX_AWAY_MS } = this.#options;
    const random = this.#random;
    switch (failure) {
      case "kill":
        await member.process.kill();
        member.process = await this.#startProcess(member);
        return;
      case "stop": {
        const { process } = member;
        process.stop();
        this.#later(random.between(this.#leaseMs, 3 * this.#leaseMs), () => process.continue());
        return;
      }
      case "stall": {
        const { maxStallMs = MAX_STALL_LEASES * this.#leaseMs } = this.#options;
        member.process.disturb({ stallMs: random.between(this.#leaseMs / 2, maxStallMs) });
        return;
      }
      case "skew":
        member.skewMs = random.between(-MAX_SKEW_MS, MAX_SKEW_MS);
        member.process.disturb({ skewMs: member.skewMs });
        return;
      case "hole":
        member.proxy?.hold();
        this.#later(random.between(this.#leaseMs / 4, 3 * this.#leaseMs), () =>
          member.proxy?.release(),
        );
        return;
      case "reset":
        member.proxy?.reset();
        return;
      case "cut":
        member.proxy?.cutAfterCommit(random.between(1, 5));
        return;
      case "restart":
      case "crash":
        await server?.stop(failure === "crash" ? "immediate" : "fast");
        await pause(random.between(minAwayMs, maxAwayMs));
        await server?.start();
        return;
      default:
        failure satisfies never;
    }
  }

  #later(ms: number, act: () => void): void {
    const pending = pause(ms).then(act);
    this.#pending.add(pending);
    void pending.finally(() => this.#pending.delete(pending));
  }

  /** A worker that comes to no start is started again, as a supervisor does. */
  async #startProcess(member: Omit<Member, "process">): Promise<WorkerProcess> {
    for (let left = START_TRIES; ; left--) {
      try {
        return await this.#tryStart(member);
      } catch (error) {
        if (left <= 1) throw error;
      }
    }
  }

  #tryStart({ proxy, skewMs, engine }: Omit<Member, "process">): Promise<WorkerProcess> {
    const { url, seed, workerModule, atOnce: concurrency = DEFAULT_AT_ONCE } = this.#options;
    const leaseMs = this.#leaseMs;
    const { stallMs = STALL_LEASES * leaseMs } = this.#options;
    const own = { seed, folder: this.#folder, leaseMs, stallMs, concurrency, skewMs };
    const options = { ...own, ...(engine && { engine }) };
    return WorkerProcess.start({ ...options, url: proxy?.wrap(url) ?? url }, workerModule);
  }
}
