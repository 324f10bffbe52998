import { type Runs, Worker } from "@gyre/durable";
import { createAgents } from "./agents.ts";
import { type BackendName, openBackend, openBackendRuns } from "./backend.ts";
import { printFigure, takeMedian, takeMs } from "./figures.ts";

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

export interface SpeedFigures {
  /** Of a run of 4 model calls and 3 tools. */
  readonly p50Ms: number;
  /** Of many at once. */
  readonly aRunMs: number;
}

/** A run of 4 model calls and 3 tools, and many at once, with one worker. */
export async function speed(name: BackendName): Promise<boolean> {
  const { p50Ms, aRunMs } = await measureSpeed(name);
  const isQuick = printFigure(
    `speed: ${name}, a run of 4 model calls and 3 tools, p50`,
    p50Ms,
    P50_MS[name],
  );
  return (
    printFigure(
      `speed: ${name}, ${AT_ONCE} runs at once (${(1000 / aRunMs).toFixed(0)} runs/s)`,
      aRunMs,
      A_RUN_MS[name],
      "ms a run",
    ) && isQuick
  );
}

export async function measureSpeed(name: BackendName): Promise<SpeedFigures> {
  const backend = await openBackend(name, { sync: true });
  const runs = await openBackendRuns(backend, await backend.create());
  const worker = new Worker(runs, { agents: createAgents() });
  await worker.start();
  try {
    const times: number[] = [];
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      const ms = await takeMs(() => pay(runs));
      if (round >= 0) times.push(ms);
    }
    const ms = await takeMs(() => Promise.all(Array.from({ length: AT_ONCE }, () => pay(runs))));
    return { p50Ms: takeMedian(times), aRunMs: ms / AT_ONCE };
  } finally {
    await worker.stop();
    await runs.close();
    await backend.remove();
  }
}

async function pay(runs: Runs): Promise<void> {
  const run = await runs.start("Pay.", { agent: "payer" });
  if ((await run.result()).text !== "Done.") throw new Error("A run did not come to its end.");
}
