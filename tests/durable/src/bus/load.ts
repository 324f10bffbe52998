import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as later } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openRuns, type Run } from "@gyre/durable";
import { type StoreName, openBackend } from "../common/backend.ts";
import { printFigure, takeMedian } from "../common/figures.ts";
import { now } from "./agents.ts";

const RUNS = 200;
const ROUNDS = 4;
const PHASE_MS = 4_000;
/** A reader that comes later gets the message so far: what was said before does not count. */
const WARM_UP_MS = 1_000;
const P99_MS = 100;
/** Of the commits that are made while no run is watched. */
const LEAST_COMMITS = 0.9;

export async function startChild(name: string, ...args: string[]): Promise<ChildProcess> {
  for (;;) {
    const child = fork(fileURLToPath(new URL(`${name}.js`, import.meta.url)), args);
    const ready = once(child, "message").then(() => true);
    const ended = once(child, "exit").then(() => false);
    if (await Promise.race([ready, ended])) return child;
    // A busy machine may not have let it connect in time: what keeps it running starts it again.
    console.log(`bus: a ${name} ended before it was ready, and is started again`);
  }
}

/** 200 runs of 50 tokens a second in one process, watched in this one; a third makes commits. */
export async function load(name: StoreName): Promise<boolean> {
  const backend = await openBackend(name, { sync: true });
  const url = await backend.create();
  const runs = await openRuns(url);
  const children = [await startChild("worker", url), await startChild("payers", url)] as const;
  try {
    const started = Array.from({ length: RUNS }, () => runs.start("Go.", { agent: "clock" }));
    const clocks = await Promise.all(started);
    while ((await runs.list({ status: "running", limit: RUNS })).runs.length < RUNS) {
      await later(WARM_UP_MS / 10);
    }
    const delays: number[] = [];
    const rates: Record<"watched" | "unwatched", number[]> = { watched: [], unwatched: [] };
    let shares = 0;
    for (let round = 0; round < ROUNDS; round++) {
      rates.unwatched.push(await countEnded(children[1]));
      const stops = clocks.map(() => new AbortController());
      const watching = clocks.map((run, at) => watch(run, stops[at]?.signal, delays));
      await later(WARM_UP_MS);
      const cpu = process.cpuUsage();
      rates.watched.push(await countEnded(children[1]));
      const { user, system } = process.cpuUsage(cpu);
      shares += (user + system) / 1_000 / PHASE_MS;
      for (const stop of stops) stop.abort();
      await Promise.all(watching);
    }
    return print(name, delays, rates, shares / ROUNDS);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await runs.close();
    await backend.remove();
  }
}

function print(
  name: StoreName,
  delays: number[],
  rates: Readonly<Record<"watched" | "unwatched", number[]>>,
  share: number,
): boolean {
  delays.sort((a, b) => a - b);
  const p50 = delays[delays.length >> 1] ?? NaN;
  const p99 = delays[Math.floor(delays.length * 0.99)] ?? NaN;
  const what = `bus: ${name}, ${RUNS} watched runs`;
  console.log(
    `${what}: ${delays.length} tokens, p50 ${p50.toFixed(1)} ms, ${(share * 100).toFixed(0)} % of a core to watch`,
  );
  const isQuick = printFigure(`${what}, from a token to the reader, p99`, p99, P99_MS);
  const [watched, unwatched] = [takeMedian(rates.watched), takeMedian(rates.unwatched)];
  const ratio = watched / unwatched;
  const isFree = ratio >= LEAST_COMMITS;
  console.log(
    `${what}: runs beside them ${watched.toFixed(0)}/s, unwatched ${unwatched.toFixed(0)}/s: ${(ratio * 100).toFixed(0)} % (at least ${LEAST_COMMITS * 100}): ${isFree ? "ok" : "TOO FEW"}`,
  );
  return isQuick && isFree;
}

async function watch(run: Run, signal: AbortSignal | undefined, delays: number[]): Promise<void> {
  const from = now() + WARM_UP_MS;
  for await (const { event } of run.watch({ ...(signal && { signal }) })) {
    if (event.type !== "message_update") continue;
    const { assistantMessageEvent: update } = event;
    if (update.type !== "text_delta") continue;
    const at = now();
    for (const token of update.delta.trim().split(" ")) {
      if (Number(token) > from) delays.push(at - Number(token));
    }
  }
}

/** Runs a second that end in a process. */
async function countEnded(child: ChildProcess): Promise<number> {
  const [before, from] = [await askCount(child), performance.now()];
  await later(PHASE_MS);
  const count = (await askCount(child)) - before;
  return (count * 1_000) / (performance.now() - from);
}

async function askCount(child: ChildProcess): Promise<number> {
  child.send("count");
  const [count] = (await once(child, "message")) as [number];
  return count;
}
