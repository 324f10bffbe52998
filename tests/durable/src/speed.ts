import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { type Runs, Worker } from "@gyre/durable";
import { createJournal, createSession } from "@gyre/sessions";
import { createAgents, createPayer } from "./common/agents.ts";
import { type BackendName, openBackend, openBackendRuns } from "./common/backend.ts";
import { printFigure, takeMedian, takeMs } from "./common/figures.ts";

const ROUNDS = 100;
const WARM_UP = 20;
const AT_ONCE = 500;
const P50_MS: Readonly<Record<BackendName, number>> = {
  ...{ sqlite: 20, postgres: 25, dbos: 150, restate: 60 },
};
/** 140 runs a second in a file, 100 in Postgres, 60 by an engine. */
const A_RUN_MS: Readonly<Record<BackendName, number>> = {
  ...{ sqlite: 7.1, postgres: 10, dbos: 16, restate: 16 },
};
/** Beside a session file. */
const MOST_RATIO: Readonly<Record<BackendName, number>> = {
  ...{ sqlite: 1.5, postgres: 1.5, dbos: 10, restate: 4 },
};

export interface SpeedFigures {
  /** Of a run of 4 model calls and 3 tools. */
  readonly p50Ms: number;
  /** Of the same run of an agent with a session file. */
  readonly plainP50Ms: number;
  /** Of many at once. */
  readonly aRunMs: number;
}

/** A run of 4 model calls and 3 tools, and many at once, with one worker. */
export async function speed(name: BackendName): Promise<boolean> {
  const { p50Ms, plainP50Ms, aRunMs } = await measureSpeed(name);
  const beside = `speed: ${name}, beside ${plainP50Ms.toFixed(2)} ms with a session file`;
  const atOnce = `speed: ${name}, ${AT_ONCE} runs at once (${(1000 / aRunMs).toFixed(0)} runs/s)`;
  return [
    printFigure(`speed: ${name}, a run of 4 model calls and 3 tools, p50`, p50Ms, P50_MS[name]),
    printFigure(beside, p50Ms / plainP50Ms, MOST_RATIO[name], "x"),
    printFigure(atOnce, aRunMs, A_RUN_MS[name], "ms a run"),
  ].every(Boolean);
}

export async function measureSpeed(name: BackendName): Promise<SpeedFigures> {
  const backend = await openBackend(name, { sync: true });
  const runs = await openBackendRuns(backend, await backend.create());
  const worker = new Worker(runs, { agents: createAgents() });
  await worker.start();
  const folder = await mkdtemp(join(tmpdir(), "gyre-speed-"));
  try {
    const times: number[] = [];
    const plain: number[] = [];
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      const ms = await takeMs(() => pay(runs));
      const plainMs = await takeMs(() => payPlainly(join(folder, `${round}.jsonl`)));
      if (round < 0) continue;
      times.push(ms);
      plain.push(plainMs);
    }
    const ms = await takeMs(() => Promise.all(Array.from({ length: AT_ONCE }, () => pay(runs))));
    return { p50Ms: takeMedian(times), plainP50Ms: takeMedian(plain), aRunMs: ms / AT_ONCE };
  } finally {
    await worker.stop();
    await runs.close();
    await rm(folder, { recursive: true });
    await backend.remove();
  }
}

/** The same run, in turn with the others, of an agent that writes a session file. */
async function payPlainly(path: string): Promise<void> {
  const session = await createSession(path, { cwd: "/" });
  const agent = new Agent({ ...createPayer(), sink: createJournal(session) });
  const { text } = await agent.prompt("Pay.");
  await session.close();
  if (text !== "Done.") throw new Error("A run did not come to its end.");
}

async function pay(runs: Runs): Promise<void> {
  const run = await runs.start("Pay.", { agent: "payer" });
  if ((await run.result()).text !== "Done.") throw new Error("A run did not come to its end.");
}
