import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRuns } from "@gyre/durable";
import { FailoverPair } from "@gyre/durable/testing";
import { type BackendName, openBackend } from "./backend.ts";
import { printFigure, takeMedian } from "./figures.ts";

const MOST_MS: Readonly<Record<BackendName, number>> = { sqlite: 500, postgres: 3_000 };
const SEED = 1;
const LEASE_MS = 2_000;

/** Kills workers in the middle of runs: how long until another one has claimed what they had. */
export async function failover(name: BackendName, kills: number): Promise<boolean> {
  const backend = await openBackend(name, { sync: true });
  const folder = await mkdtemp(join(tmpdir(), "gyre-failover-"));
  const url = await backend.create();
  const runs = await openRuns(url);
  const pair = await FailoverPair.start(runs, { url, seed: SEED, folder, leaseMs: LEASE_MS });
  const times: number[] = [];
  try {
    while (times.length < kills) times.push(await pair.kill());
  } finally {
    await pair.end();
    await runs.close();
    await rm(folder, { recursive: true });
    await backend.remove();
  }
  const what = `failover: ${name}, ${kills} kills: median ${takeMedian(times).toFixed(0)} ms, longest`;
  return printFigure(what, Math.max(...times), MOST_MS[name]);
}
