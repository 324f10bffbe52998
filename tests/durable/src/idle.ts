import { setTimeout as later } from "node:timers/promises";
import { type Runs, Worker } from "@gyre/durable";
import { createAgents } from "./common/agents.ts";
import { type Backend, type BackendName, openBackend, openBackendRuns } from "./common/backend.ts";
import { printFigure } from "./common/figures.ts";

const LOOK_MS = 10_000;
const SETTLE_MS = 2_000;
const WAITING = 1_000;
/** DBOS looks into its queue ten times a second. */
const MOST: Readonly<Record<BackendName, number>> = {
  ...{ sqlite: 10, postgres: 10, dbos: 100, restate: 15 },
};
/** Of a second: what two counts of the same may differ by. */
const MOST_MORE: Readonly<Record<BackendName, number>> = {
  ...{ sqlite: 0.5, postgres: 0.5, dbos: 2, restate: 0.5 },
};

/** Statements a second of a worker that has nothing to do, and of one with runs that wait. */
export async function idle(name: BackendName): Promise<boolean> {
  const { alone, more } = await measureIdle(name);
  const isQuiet = printFigure(`idle: ${name}, an idle worker`, alone, MOST[name], "statements/s");
  const text = `idle: ${name}, ${WAITING} waiting runs add`;
  return printFigure(text, more, MOST_MORE[name], "statements/s") && isQuiet;
}

export async function measureIdle(
  name: BackendName,
): Promise<{ readonly alone: number; readonly more: number }> {
  const backend = await openBackend(name, { counts: true });
  const runs = await openBackendRuns(backend, await backend.create());
  const worker = new Worker(runs, { agents: createAgents() });
  await worker.start();
  try {
    const read = await openCounter(backend, runs);
    const alone = await count(read);
    await Promise.all(
      Array.from({ length: WAITING }, () => runs.start("Ask.", { agent: "asker" })),
    );
    while ((await runs.list({ status: "waiting", limit: WAITING })).runs.length < WAITING) {
      await later(SETTLE_MS / 10);
    }
    return { alone, more: (await count(read)) - alone };
  } finally {
    await worker.stop();
    await runs.close();
    await backend.remove();
  }
}

/** Counts the statements of the worker, and those of an engine, which the server knows. */
async function openCounter(backend: Backend, runs: Runs): Promise<() => Promise<number>> {
  const { server } = backend;
  if (!server || backend.name === "postgres") return async () => runs.store.statements;
  await server.run("create extension pg_stat_statements");
  const sql = "select sum(calls)::int as calls from pg_stat_statements where query !~ 'pg_stat'";
  return async () => {
    const [row] = (await server.run(sql)) as { calls: number }[];
    return row?.calls ?? NaN;
  };
}

async function count(read: () => Promise<number>): Promise<number> {
  await later(SETTLE_MS);
  const before = await read();
  await later(LOOK_MS);
  return (((await read()) - before) * 1000) / LOOK_MS;
}
