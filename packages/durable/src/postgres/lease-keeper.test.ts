import { execFileSync } from "node:child_process";
import { callAll } from "@gyre/ai/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  findPostgres,
  type PostgresServer,
  startPostgres,
} from "../../../../tests/support/postgres.ts";
import { effectTool, scriptedAgent, withWorker } from "../worker/harness.ts";
import { type BeatState, decideBeat } from "./lease-thread.ts";

describe("the thread that keeps a lease", () => {
  const state: BeatState = { now: 0, signAt: 0, beatAt: 0, beatMs: 100, stallMs: 1_000 };

  it("rests while the main thread gives signs, and where that has hung for too long", () => {
    expect(decideBeat({ ...state, now: 149 })).toBe("rest");
    expect(decideBeat({ ...state, now: 1_001 })).toBe("rest");
  });

  it("renews it once for each heartbeat that the main thread does not send", () => {
    expect(decideBeat({ ...state, now: 150 })).toBe("beat");
    expect(decideBeat({ ...state, now: 249, beatAt: 150 })).toBe("wait");
    expect(decideBeat({ ...state, now: 250, beatAt: 150 })).toBe("beat");
    expect(decideBeat({ ...state, now: 1_000, beatAt: 900 })).toBe("beat");
  });
});

/** What another process does with the store while the event loop of this one stands still. */
const OTHER = `
  const [url, act, leaseMs] = process.argv.slice(1);
  const { openStore } = await import(${JSON.stringify(new URL("../../dist/index.js", import.meta.url).href)});
  const store = await openStore(url);
  const readLease = async () => (await store.listWorkers())[0].leaseMs;
  if (act === "watch") {
    let least = Infinity;
    for (const end = performance.now() + 4 * leaseMs; performance.now() < end; ) {
      least = Math.min(least, await readLease());
    }
    const swept = await store.sweep({ expired: true, maxDeaths: 3 });
    console.log(JSON.stringify({ isKept: least > 0, swept }));
  } else {
    while ((await readLease()) >= 0);
    const swept = await store.sweep({ expired: true, maxDeaths: 3 });
    await store.register({ id: "other", agents: [], pools: [""], leaseMs: 600_000 });
    const wish = { worker: "other", agents: ["office"], refused: [], pools: [""], limit: 1 };
    const { claims } = await store.claim({ ...wish, maxDeaths: 3, alone: true });
    console.log(JSON.stringify({ swept: swept.length, token: claims[0].token, seq: claims[0].seq }));
  }
  await store.close();`;

describe.runIf(findPostgres() !== undefined)("a worker whose event loop hangs", () => {
  const leaseMs = 600;
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    for (const name of ["kept", "lost"]) await server.run(`create database ${name}`);
  });
  afterAll(() => server?.remove());

  /** Keeps this thread busy for as long as the other process takes. */
  const runOther = (url: string, act: "watch" | "take"): string =>
    execFileSync(
      ...([
        process.execPath,
        ["--input-type=module", "-e", OTHER, url, act, `${leaseMs}`],
      ] as const),
      { encoding: "utf8" },
    );

  it("D13 keeps its runs, also for longer than a lease", async () => {
    const url = server.url("kept");
    const seen: string[] = [];
    const pay = effectTool("pay", () => (seen.push(runOther(url, "watch")), "paid"));
    const agent = scriptedAgent([callAll([["pay", { to: "a" }]]), "Done."], { tools: [pay] });
    await withWorker(url, { agents: [agent], leaseMs }, async (runs, worker) => {
      const { id } = worker;
      const run = await runs.start("Pay.", { agent: "office" });
      expect((await run.result()).text).toBe("Done.");
      expect(seen.map((text) => JSON.parse(text))).toEqual([{ isKept: true, swept: [] }]);
      expect((await run.info()).activations).toBe(1);
      expect(worker.id).toBe(id);
    });
  });

  it("D13 loses them after `stallMs`; then it writes nothing", async () => {
    const url = server.url("lost");
    const taken: { swept: number; token: number; seq: number }[] = [];
    const pay = effectTool("pay", () => (taken.push(JSON.parse(runOther(url, "take"))), "paid"));
    const agent = scriptedAgent([callAll([["pay", { to: "a" }]]), "Done."], { tools: [pay] });
    const options = { agents: [agent], leaseMs, stallMs: leaseMs / 2 };
    await withWorker(url, options, async (runs, worker) => {
      const { id } = worker;
      const run = await runs.start("Pay.", { agent: "office", id: "r" });
      await vi.waitFor(() => expect(worker.stats.lost).toBe(1), { timeout: 20_000 });
      const [other] = taken;
      expect(other).toMatchObject({ swept: 1, token: 2 });
      const log = await runs.store.readEntriesAfter("r", 0, 100);
      expect(log).toHaveLength(other?.seq ?? 0);
      expect(log.map(({ type }) => type)).not.toContain("result");
      // It comes back under another id, and goes on with what the other one leaves.
      await vi.waitFor(() => expect(worker.id).not.toBe(id), { timeout: 20_000 });
      await runs.store.unregister("other");
      expect((await run.result()).text).toBe("Done.");
      expect(taken).toHaveLength(1);
      const results = (await run.messages()).filter(({ role }) => role === "toolResult");
      expect(results).toMatchObject([{ outcome: "interrupted" }]);
    });
  });
});
