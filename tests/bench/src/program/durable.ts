import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as later } from "node:timers/promises";
import { Agent, defineTool } from "@gyre/agent";
import { call, scriptedModel, type ScriptedModel } from "@gyre/ai/testing";
import { askTool, defineAgent, openRuns, type Runs, Worker } from "@gyre/durable";
import { createJournal, createSession } from "@gyre/sessions";
import { type Case, createRatio, formatMs } from "../measure/lines.ts";
import { median } from "../measure/measure.ts";

/** A run of 4 model calls and 3 tools that are not idempotent. The model answers at once. */
const TURNS = 3;
/** Runs one after the other, each beside the same run with a session file. */
const ROUNDS = 60;
const WARM_UP = 10;
/** Runs at once, for the rate. */
const RUNS = 500;
const IDLE_MS = 5_000;
const WAITING = 1_000;

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object", properties: { to: { type: "string" } } },
  execute: ({ to }) => `paid ${to}`,
});

function createModel(): ScriptedModel {
  const calls = Array.from({ length: TURNS }, (_, turn) => call("pay", { to: `a${turn}` }));
  return scriptedModel([...calls, "Done."], { keepCalls: false });
}

const payer = defineAgent({
  name: "payer",
  version: "1",
  open: () => {
    const model = createModel();
    return { model: model.model, protocol: model, tools: [pay], instructions: "Pay." };
  },
});

const asker = defineAgent({
  name: "asker",
  version: "1",
  open: () => {
    const model = scriptedModel([call("ask", { question: "Which?" })], { keepCalls: false });
    return { model: model.model, protocol: model, tools: [askTool()] };
  },
});

async function withRuns<T>(work: (runs: Runs, folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "gyre-bench-"));
  const runs = await openRuns(`file:${join(folder, "runs.db")}`);
  const worker = new Worker(runs, { agents: [payer, asker] });
  await worker.start();
  try {
    return await work(runs, folder);
  } finally {
    await worker.stop();
    await runs.close();
    await rm(folder, { recursive: true });
  }
}

async function takeMs(work: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

async function runDurably(runs: Runs): Promise<void> {
  const run = await runs.start("Pay.", { agent: "payer" });
  if ((await run.result()).text !== "Done.") throw new Error("The run did not come to its end.");
}

async function runWithFile(path: string): Promise<void> {
  const session = await createSession(path, { cwd: "/" });
  const [model, journal] = [createModel(), createJournal(session)];
  const agent = new Agent({
    model: model.model,
    protocol: model,
    tools: [pay],
    instructions: "Pay.",
    sink: journal,
    middleware: [journal.middleware],
  });
  await agent.prompt("Pay.");
  await session.close();
}

/** Statements in a second in which nothing happens. */
async function countIdle(runs: Runs): Promise<number> {
  const before = runs.store.statements;
  await later(IDLE_MS);
  return ((runs.store.statements - before) * 1000) / IDLE_MS;
}

/** Wall times: most of them are syncs of the disk. */
export const durableCases: readonly Case[] = [
  {
    name: "durable-run",
    run: () =>
      withRuns(async (runs, folder) => {
        const times: Record<"floor" | "gyre", number[]> = { floor: [], gyre: [] };
        for (let round = -WARM_UP; round < ROUNDS; round++) {
          const floor = await takeMs(() => runWithFile(join(folder, `${round}.jsonl`)));
          const gyre = await takeMs(() => runDurably(runs));
          if (round < 0) continue;
          times.floor.push(floor);
          times.gyre.push(gyre);
        }
        const medians = { floor: median(times.floor), gyre: median(times.gyre) };
        const show = formatMs(1);
        return [
          createRatio("a durable run of 4 model calls and 3 tools", medians, show, 1.5),
          {
            what: "the same, p50",
            gyre: show(medians.gyre),
            measured: medians.gyre,
            limit: 20,
            unit: " ms",
          },
        ];
      }),
  },
  {
    name: "durable-rate",
    run: () =>
      withRuns(async (runs) => {
        for (let round = 0; round < WARM_UP; round++) await runDurably(runs);
        const ms = await takeMs(() =>
          Promise.all(Array.from({ length: RUNS }, () => runDurably(runs))),
        );
        return [
          {
            what: `${RUNS} durable runs at once, one worker`,
            gyre: `${((RUNS * 1000) / ms).toFixed(0)} runs/s`,
            measured: ms / RUNS,
            limit: 7.1,
            unit: " ms a run",
          },
        ];
      }),
  },
  {
    name: "durable-idle",
    run: () =>
      withRuns(async (runs) => {
        const alone = await countIdle(runs);
        const started = Array.from({ length: WAITING }, () =>
          runs.start("Ask.", { agent: "asker" }),
        );
        await Promise.all(started);
        while ((await runs.list({ status: "waiting", limit: WAITING })).runs.length < WAITING) {
          await later(100);
        }
        const waiting = await countIdle(runs);
        const createLine = (what: string, gyre: number, limit: number) => ({
          ...{ what, gyre: gyre.toFixed(1), measured: gyre, limit, unit: " a second" },
        });
        return [
          createLine("statements of an idle worker", alone, 10),
          createLine(`further ones for ${WAITING} waiting runs`, Math.abs(waiting - alone), 0.5),
        ];
      }),
  },
];
