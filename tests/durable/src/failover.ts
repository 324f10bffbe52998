import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRuns, type Runs } from "@gyre/durable";
import { SCRIPTED_AGENT, WorkerProcess } from "@gyre/durable/testing";
import { type BackendName, openBackend } from "./backend.ts";

/** The longest of them counts, in milliseconds. */
const BARS: Readonly<Record<BackendName, number>> = { sqlite: 500, postgres: 3_000 };
const SEED = 1;
const LEASE_MS = 2_000;
const LOOK_MS = 2;
/** A run that has not ended by then is left. */
const MAX_RUNS_MS = 20_000;

/** Kills workers in the middle of runs: how long until another one has claimed what they had. */
export async function failover(name: BackendName, kills: number): Promise<boolean> {
  const backend = await openBackend(name, { sync: true });
  const folder = await mkdtemp(join(tmpdir(), "gyre-failover-"));
  const url = await backend.create();
  const runs = await openRuns(url);
  const start = (): Promise<WorkerProcess> =>
    WorkerProcess.start({ url, seed: SEED, folder, leaseMs: LEASE_MS, concurrency: 1 });
  const workers = [await start(), await start()];
  const times: number[] = [];
  const signal = AbortSignal.timeout(kills * MAX_RUNS_MS);
  try {
    while (times.length < kills) {
      signal.throwIfAborted();
      const ms = await failOnce(runs, workers, folder, `failover-${times.length}-${Date.now()}`);
      if (ms !== undefined) times.push(ms);
      for (const [index, worker] of workers.entries()) {
        if (!worker.isAlive) workers[index] = await start();
      }
      // A worker judges others after a lease of its own.
      if (name === "postgres") await wait(LEASE_MS * 1.5);
    }
  } finally {
    for (const worker of workers) await worker.kill();
    await runs.close();
    await rm(folder, { recursive: true });
    await backend.remove();
  }
  times.sort((a, b) => a - b);
  const longest = Math.round(times.at(-1) ?? 0);
  const median = Math.round(times[Math.floor(times.length / 2)] ?? 0);
  const isGood = longest <= BARS[name];
  console.log(
    `failover: ${name}, ${kills} kills: median ${median} ms, longest ${longest} ms (bar ${BARS[name]}): ${isGood ? "ok" : "TOO SLOW"}`,
  );
  return isGood;
}

/** Nothing where the run had ended before its worker was killed. */
async function failOnce(
  runs: Runs,
  workers: readonly WorkerProcess[],
  folder: string,
  id: string,
): Promise<number | undefined> {
  await runs.start("Go.", { agent: SCRIPTED_AGENT, id });
  const first = await findOwner(runs, workers, folder, id, new Set());
  if (!first) return undefined;
  const killedAt = performance.now();
  await first.kill();
  const second = await findOwner(runs, workers, folder, id, new Set([first.pid]));
  const ms = performance.now() - killedAt;
  return second && ms;
}

/** The worker that has claimed a session, by its journal. */
async function findOwner(
  runs: Runs,
  workers: readonly WorkerProcess[],
  folder: string,
  id: string,
  without: ReadonlySet<number>,
): Promise<WorkerProcess | undefined> {
  for (let looks = 1; ; looks++) {
    for (const worker of workers) {
      if (without.has(worker.pid)) continue;
      const journal = await readFile(join(folder, `${worker.pid}.jsonl`), "utf8");
      if (journal.includes(`"claim","session":"${id}"`)) return worker;
    }
    if (looks % 50 === 0) {
      const { status } = await runs.get(id).info();
      if (status === "ended" || status === "waiting") return undefined;
    }
    await wait(LOOK_MS);
  }
}

function wait(ms: number): Promise<unknown> {
  return once(AbortSignal.timeout(ms), "abort");
}
