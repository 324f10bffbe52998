import { setTimeout as later } from "node:timers/promises";
import { openRuns, type Runs, Worker } from "@gyre/durable";
import { createAgents } from "./agents.ts";
import { type BackendName, openBackend } from "./backend.ts";
import { printFigure } from "./figures.ts";

const LOOK_MS = 10_000;
const SETTLE_MS = 2_000;
const WAITING = 1_000;
const MOST = 10;
/** Of a second: what two counts of the same may differ by. */
const MOST_MORE = 0.5;

/** Statements a second of a worker that has nothing to do, and of one with runs that wait. */
export async function idle(name: BackendName): Promise<boolean> {
  const backend = await openBackend(name);
  const runs = await openRuns(await backend.create());
  const worker = new Worker(runs, { agents: createAgents() });
  await worker.start();
  try {
    const alone = await count(runs);
    const isQuiet = printFigure(`idle: ${name}, an idle worker`, alone, MOST, "statements/s");
    await Promise.all(
      Array.from({ length: WAITING }, () => runs.start("Ask.", { agent: "asker" })),
    );
    while ((await runs.list({ status: "waiting", limit: WAITING })).runs.length < WAITING) {
      await later(SETTLE_MS / 10);
    }
    const more = (await count(runs)) - alone;
    return (
      printFigure(`idle: ${name}, ${WAITING} waiting runs add`, more, MOST_MORE, "statements/s") &&
      isQuiet
    );
  } finally {
    await worker.stop();
    await runs.close();
    await backend.remove();
  }
}

async function count(runs: Runs): Promise<number> {
  await later(SETTLE_MS);
  const before = runs.store.statements;
  await later(LOOK_MS);
  return ((runs.store.statements - before) * 1000) / LOOK_MS;
}
