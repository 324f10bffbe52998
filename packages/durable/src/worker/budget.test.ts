import { call, callAll, scriptedModelInfo, type ScriptStep } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { describeStores } from "../../../../tests/support/stores.ts";
import { defineAgent } from "../contract/agent.ts";
import { openRuns } from "../runs/open.ts";
import { durableTask } from "../tools/task.ts";
import { effectTool, scriptedAgent, withWorker } from "./harness.ts";
import { Worker } from "./worker.ts";

/** Each answer costs $2: a dollar for each token. */
const model = { ...scriptedModelInfo, price: { input: 1e6, output: 1e6 } };
const usage = { input: 1, output: 1 };

/** An agent that calls a tool without end. */
function spender(name: string, tools = [effectTool("look", () => "seen")]) {
  const steps = Array.from({ length: 50 }, (_, n): ScriptStep => ({
    parts: [call("look", { to: String(n) }, `c${n}`)],
    usage,
  }));
  return scriptedAgent(steps, { name, model, tools });
}

function delegating(name: string, helper: string) {
  const step: ScriptStep = {
    parts: ["a", "b", "c"].map((id) => call("task", { prompt: `Spend ${id}.` }, id)),
    usage,
  };
  const tools = [durableTask({ agent: helper })];
  return scriptedAgent([step, { parts: ["Done."], usage }], { name, model, tools });
}

describeStores("runs that work for one run at once", (store) => {
  it("D22 share what is left of its limits", async () => {
    const agents = [delegating("parent", "helper"), spender("helper")];
    await withWorker(await store.create(), { agents }, async (runs) => {
      const run = await runs.start("Go.", { agent: "parent", id: "r", limits: { maxCostUsd: 20 } });
      const result = await run.result();
      // Each of the three may be one answer over it when the others reach the limit.
      const spent = result.usage.cost?.total ?? 0;
      expect(spent).toBeGreaterThanOrEqual(20);
      expect(spent).toBeLessThanOrEqual(20 + 3 * 2);
      const children = (await runs.list({ parent: "r" })).runs;
      expect(children.map(({ stop }) => stop)).toEqual(["limit", "limit", "limit"]);
    });
  });

  it("D22 share it with those that work for them", async () => {
    const agents = [
      ...[delegating("parent", "middle"), delegating("middle", "helper"), spender("helper")],
    ];
    await withWorker(await store.create(), { agents }, async (runs) => {
      const run = await runs.start("Go.", { agent: "parent", limits: { maxCostUsd: 40 } });
      const { usage: all } = await run.result();
      expect(all.cost?.total).toBeGreaterThanOrEqual(40);
      expect(all.cost?.total).toBeLessThanOrEqual(40 + 9 * 2 + 3 * 2);
    });
  });

  it("D22 have all of it where one of them works alone", async () => {
    const parent = scriptedAgent([callAll([["task", { prompt: "Spend." }]])], {
      ...{ name: "parent", model, tools: [durableTask({ agent: "helper" })] },
    });
    await withWorker(
      await store.create(),
      { agents: [parent, spender("helper")] },
      async (runs) => {
        const run = await runs.start("Go.", { agent: "parent", limits: { maxCostUsd: 20 } });
        expect((await run.result()).usage.cost?.total).toBe(20);
      },
    );
  });
});

describeStores("a run that waits for the one before it in its session", (store) => {
  it("keeps its priority", async () => {
    const opened: string[] = [];
    const office = scriptedAgent(["Done."]);
    const agent = defineAgent({
      ...office,
      open(run) {
        opened.push(run.id);
        return office.open(run);
      },
    });
    const runs = await openRuns(await store.create());
    await runs.start("Go.", { agent: "office", id: "first", session: "s", priority: 10 });
    await runs.start("Go.", { agent: "office", id: "low", session: "s", priority: 1 });
    await runs.start("Go.", { agent: "office", id: "middle", priority: 5 });
    await runs.start("Go.", { agent: "office", id: "top", session: "t", priority: 20 });
    await runs.start("Go.", { agent: "office", id: "high", session: "t", priority: 7 });
    const worker = new Worker(runs, { agents: [agent], concurrency: 1 });
    await worker.start();
    await Promise.all(["low", "middle", "high"].map((id) => runs.get(id).result()));
    expect(opened).toEqual(["top", "first", "high", "middle", "low"]);
    await worker.stop();
    await runs.close();
  });
});
