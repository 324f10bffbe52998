import { defineTool } from "@gyre/agent";
import { call, scriptedModel } from "@gyre/ai/testing";
import {
  askTool,
  defineAgent,
  type DurableAgent,
  openRuns,
  type Runs,
  Worker,
} from "@gyre/durable";
import { setTimeout as later } from "node:timers/promises";
import { type Backend } from "./common/backend.ts";
import { printFigure, takeMedian } from "./common/figures.ts";

const SIZES = [500, 1_000, 2_000, 4_000] as const;
/** An answer, a result, and its message. */
const ENTRIES_A_TURN = 3;
const ROUNDS = 5;
/** For 2,000 entries. */
const MOST_MS = 100;
/** What an entry of the longest may take, of one of 1,000. */
const MOST_RATIO = 1.5;
const LOOK_MS = 5;

/** On the clock, and of this process alone. */
interface Taken {
  readonly ms: number;
  readonly cpuMs: number;
}

/** From a decision to the next request to the model, in runs whose logs are long: the log is read again. */
export async function resume(backend: Backend): Promise<boolean> {
  const runs = await openRuns(await backend.create());
  const asked = { at: 0 };
  const agents = SIZES.map((entries) => defineLong(entries, asked));
  const worker = new Worker(runs, { agents });
  await worker.start();
  try {
    const times = new Map<number, Taken>();
    for (const entries of SIZES) times.set(entries, await measure(runs, entries, asked));
    const list = [...times].map(
      ([entries, { ms, cpuMs }]) => `${entries}: ${ms.toFixed(1)} ms (CPU ${cpuMs.toFixed(1)})`,
    );
    const what = `growth: ${backend.name}, from a decision to the model, by entries of the log`;
    console.log(`${what}: ${list.join(", ")}`);
    const read = (entries: (typeof SIZES)[number]): Taken =>
      times.get(entries) ?? { ms: NaN, cpuMs: NaN };
    const ratio = read(4_000).cpuMs / 4 / read(1_000).cpuMs;
    return [
      printFigure(`growth: ${backend.name}, resume of 2,000 entries, p50`, read(2_000).ms, MOST_MS),
      printFigure(
        `growth: ${backend.name}, CPU for an entry of 4,000 beside one of 1,000`,
        ...([ratio, MOST_RATIO, "x"] as const),
      ),
    ].every(Boolean);
  } finally {
    await worker.stop();
    await runs.close();
  }
}

/** Looks until its log is long, and asks then, again and again. */
function defineLong(entries: number, asked: { at: number }): DurableAgent {
  const turns = Math.floor(entries / ENTRIES_A_TURN);
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: { type: "object" },
    idempotent: true,
    execute: () => "A line of what was found there, as a tool would return it.",
  });
  const model = scriptedModel(
    ({ messages }) => {
      asked.at = performance.now();
      const turn = messages.filter(({ role }) => role === "assistant").length;
      if (turn < turns) return call("look", { at: turn });
      return turn <= turns + ROUNDS ? call("ask", { question: `Further than ${turn}?` }) : "Done.";
    },
    { keepCalls: false },
  );
  const options = { model: model.model, protocol: model, limits: { maxTurns: 100_000 } };
  return defineAgent({
    ...{ name: `long-${entries}`, version: "1" },
    open: () => ({ ...options, tools: [look, askTool()] }),
  });
}

async function measure(runs: Runs, entries: number, asked: { at: number }): Promise<Taken> {
  const run = await runs.start("Look around.", { agent: `long-${entries}` });
  const times: Taken[] = [];
  for (;;) {
    const { status, pending, stop, error } = await run.info();
    if (status === "ended") {
      if (times.length > ROUNDS) {
        return {
          ms: takeMedian(times.map(({ ms }) => ms)),
          cpuMs: takeMedian(times.map(({ cpuMs }) => cpuMs)),
        };
      }
      throw new Error(`The run has ended: ${stop}, ${error}`);
    }
    const [waiting] = pending;
    if (status !== "waiting" || !waiting) {
      await later(LOOK_MS);
      continue;
    }
    const before = asked.at;
    const from = performance.now();
    const cpu = process.cpuUsage();
    const result = { content: [{ type: "text" as const, text: "Yes." }] };
    await run.decide({ [waiting.toolCall.id]: { type: "result", result } });
    while (asked.at === before) await later(1);
    const { user, system } = process.cpuUsage(cpu);
    times.push({ ms: asked.at - from, cpuMs: (user + system) / 1000 });
  }
}
