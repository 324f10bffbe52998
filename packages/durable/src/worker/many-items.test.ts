import { callAll } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { countCases } from "../../../../tests/support/cases.ts";
import { describeStores } from "../../../../tests/support/stores.ts";
import type { Inbox } from "../contract/store.ts";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { effectTool, scriptedAgent, wrapStore } from "./harness.ts";
import { Worker } from "./worker.ts";

const AT_ONCE = 100;
/** On a machine that is busy, a worker that waits for its turn is not to count as dead. */
const LEASE_MS = 120_000;
/** A machine that does something else for a moment makes one measurement wrong, not all of them. */
const TRIES = 5;

describeStores("a run that many things are sent to", (store) => {
  it("D16 while a call runs: each of them is read once, in order", async () => {
    let rows = 0;
    const opened = await openStore(await store.create(), { synchronous: "normal" });
    const counted = wrapStore(opened, async (name, call) => {
      const value = await call();
      if (name === "readInbox") rows += (value as Inbox).items.length;
      return value;
    });
    const runs = new Runs(counted);
    let begin = (): void => {};
    let release = (_result: string): void => {};
    const began = new Promise<void>((resolve) => (begin = resolve));
    const held = new Promise<string>((resolve) => (release = resolve));
    const pay = effectTool("pay", () => {
      begin();
      return held;
    });
    const agent = scriptedAgent([callAll([["pay", {}]]), "Done."], {
      ...{ steeringMode: "all", tools: [pay] },
    });
    const worker = new Worker(runs, { agents: [agent], leaseMs: LEASE_MS });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office" });
    await began;
    const sent = Array.from({ length: 300 }, (_, n) => `m${n}`);
    for (const text of sent) await run.steer(text);
    release("Paid.");
    const { messages } = await run.result();
    const texts = messages.flatMap((each) => (each.role === "user" ? [each.content] : []));
    expect(texts).toEqual(["Go.", ...sent]);
    // Some are read twice, around the moment in which the run is parked.
    expect(rows).toBeLessThan(3 * sent.length);
    await worker.stop();
    await runs.close();
  });

  it(
    "D16 has each of them once, in order, in time that grows with their number",
    { tags: "long", timeout: 900_000 },
    async () => {
      const count = countCases(500, 10_000);
      const measure = async (items: number): Promise<{ ms: number; rows: number }> => {
        const opened = await openStore(await store.create(), { synchronous: "normal" });
        let rows = 0;
        const counted = wrapStore(opened, async (name, call) => {
          const value = await call();
          if (name === "readInbox") rows += (value as Inbox).items.length;
          return value;
        });
        const runs = new Runs(counted);
        const run = await runs.start("Go.", { agent: "office" });
        for (let from = 0; from < items; from += AT_ONCE) {
          const some = Array.from({ length: AT_ONCE }, (_, n) => from + n);
          for (const n of some) await run.steer(`m${n}`, { key: `k${n}` });
        }
        const agent = scriptedAgent(["Done."], { steeringMode: "all" });
        const worker = new Worker(runs, { agents: [agent], leaseMs: LEASE_MS });
        const began = performance.now();
        await worker.start();
        const { messages } = await run.result();
        const ms = performance.now() - began;
        const texts = messages.flatMap((each) => (each.role === "user" ? [each.content] : []));
        expect(texts).toEqual(["Go.", ...Array.from({ length: items }, (_, n) => `m${n}`)]);
        await worker.stop();
        await runs.close();
        return { ms, rows };
      };
      await measure(AT_ONCE);
      for (let tries = 1; ; tries++) {
        const [few, many] = [await measure(count / 5), await measure(count)];
        expect(many.rows).toBeLessThan(3 * count);
        const times = `${count / 5} items in ${few.ms.toFixed()} ms, ${count} in ${many.ms.toFixed()} ms`;
        console.log(times);
        // Five times as many: 25 times as long where each looks at all others.
        const isLinear = many.ms < few.ms * 15 + 1_000;
        if (!isLinear && tries < TRIES) continue;
        expect(isLinear, times).toBe(true);
        return;
      }
    },
  );
});
