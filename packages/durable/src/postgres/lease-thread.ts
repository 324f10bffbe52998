import type * as Pg from "pg";

/** What the thread is started with. */
export interface LeaseThreadData {
  /** Where `pg` is. */
  readonly driver: string;
  readonly config: Pg.ClientConfig;
  /** Renews the lease: of the worker `$1`, by `$2` milliseconds. */
  readonly statement: string;
  readonly worker: string;
  readonly leaseMs: number;
  /** Between two heartbeats of the main thread. */
  readonly beatMs: number;
  readonly stallMs: number;
  /** When the event loop of the main thread has last turned, by `process.hrtime.bigint()`. */
  readonly sign: BigInt64Array<SharedArrayBuffer>;
}

/** From the main thread: the worker has another id. */
export interface LeaseThreadOrder {
  readonly worker: string;
}

/** What it reports: a heartbeat that could not be made. */
export interface LeaseThreadReport {
  readonly error: string;
}

/** Times in milliseconds, of one clock. */
export interface BeatState {
  readonly now: number;
  /** The last sign of the main thread. */
  readonly signAt: number;
  /** The last heartbeat of the thread. */
  readonly beatAt: number;
  readonly beatMs: number;
  readonly stallMs: number;
}

/**
 * What the thread does now. `rest`: the main thread sends its heartbeats itself, or has hung for so
 * long that others are to have its runs. `wait`: the next heartbeat is not due.
 */
export function decideBeat(state: BeatState): "rest" | "wait" | "beat" {
  const { now, signAt, beatAt, beatMs, stallMs } = state;
  const silentMs = now - signAt;
  if (silentMs < 1.5 * beatMs || silentMs > stallMs) return "rest";
  return now - beatAt < beatMs ? "wait" : "beat";
}

/**
 * The whole thread: it renews the lease of a worker while the event loop of the main thread hangs.
 * It connects for that time alone. It is started from its text, so that it works from the sources,
 * from what is built and from a bundle: it uses nothing but its arguments and the globals of Node.
 */
export function keepLease(
  { parentPort, workerData }: typeof import("node:worker_threads"),
  load: (path: string) => unknown,
  decide: typeof decideBeat,
): void {
  const { driver, config, statement, leaseMs, beatMs, stallMs, sign }: LeaseThreadData = workerData;
  const { Client } = load(driver) as typeof Pg;
  const toMs = (time: bigint): number => Number(time / 1_000_000n);
  let { worker }: LeaseThreadData = workerData;
  let client: Pg.Client | undefined;
  let beatAt = 0;
  let isBusy = false;

  const connect = async (): Promise<Pg.Client> => {
    const fresh = new Client(config);
    // A connection that breaks fails the statement, or is replaced by the next one.
    fresh.on("error", () => {});
    fresh.on("end", () => {
      if (client === fresh) client = undefined;
    });
    await fresh.connect();
    client = fresh;
    return fresh;
  };
  // It is not waited for: where the network is gone, nothing answers.
  const release = (): void => {
    const old = client;
    client = undefined;
    old?.end().catch(() => {});
  };
  const act = async (): Promise<void> => {
    const times = { now: toMs(process.hrtime.bigint()), signAt: toMs(Atomics.load(sign, 0)) };
    const next = decide({ ...times, beatAt, beatMs, stallMs });
    if (next === "rest") return release();
    if (next === "wait") return undefined;
    beatAt = times.now;
    await (client ?? (await connect())).query({ text: statement, values: [worker, leaseMs] });
    return undefined;
  };
  setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    act()
      .catch((error: unknown) => {
        const report: LeaseThreadReport = { error: String(error) };
        parentPort?.postMessage(report);
        release();
      })
      .finally(() => (isBusy = false));
  }, beatMs / 4);
  parentPort?.on("message", (order: LeaseThreadOrder) => (worker = order.worker));
}
