import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineSite, FailoverPair } from "@gyre/durable/testing";
import { type BackendName, openBackend, openBackendRuns } from "./common/backend.ts";
import { printFigure, takeMedian } from "./common/figures.ts";

const MOST_MS: Readonly<Record<BackendName, number>> = {
  ...{ sqlite: 500, postgres: 3_000, dbos: 3_000, restate: 3_000 },
};
const SEED = 1;
const LEASE_MS = 2_000;

/** Kills workers in the middle of runs: how long until another one has claimed what they had. */
export async function failover(name: BackendName, kills: number): Promise<boolean> {
  const { median, longest } = await measureFailover(name, kills);
  const what = `failover: ${name}, ${kills} kills: median ${median.toFixed(0)} ms, longest`;
  return printFigure(what, longest, MOST_MS[name]);
}

export async function measureFailover(
  name: BackendName,
  kills: number,
): Promise<{ readonly median: number; readonly longest: number }> {
  const backend = await openBackend(name, { sync: true });
  const folder = await mkdtemp(join(tmpdir(), "gyre-failover-"));
  const url = await backend.create();
  const runs = await openBackendRuns(backend, url);
  const site = await EngineSite.open(backend.engine(url));
  const options = { url, seed: SEED, folder, leaseMs: LEASE_MS };
  const pair = await FailoverPair.start(runs, options, site);
  const times: number[] = [];
  try {
    while (times.length < kills) times.push(await pair.kill());
  } finally {
    await pair.end();
    await site.close();
    await runs.close();
    await rm(folder, { recursive: true });
    await backend.remove();
  }
  return { median: takeMedian(times), longest: Math.max(...times) };
}
