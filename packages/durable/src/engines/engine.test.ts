import { callAll } from "@gyre/ai/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { Activate, Engine, WakeOptions } from "../contract/engine.ts";
import { DurableError } from "../contract/errors.ts";
import type { Store } from "../contract/store.ts";
import { openRuns, openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { sleepTool } from "../tools/sleep.ts";
import { effectTool, scriptedAgent, temporaryUrls, wrapStore } from "../worker/harness.ts";
import { Worker } from "../worker/worker.ts";
import { EngineMembers, nameQueue } from "./members.ts";

const newUrl = temporaryUrls("engines", afterAll);

/** An engine whose calls a test makes itself. */
function manualEngine(): Engine & {
  readonly wakes: { session: string; options: WakeOptions }[];
  readonly workers: Activate[];
} {
  const wakes: { session: string; options: WakeOptions }[] = [];
  const workers: Activate[] = [];
  return {
    ...{ name: "manual", wakes, workers },
    wake: async (session, options) => {
      wakes.push({ session, options });
    },
    work: async (activate) => {
      workers.push(activate);
      return { stop: async () => {} };
    },
  };
}

function takeWorker(workers: readonly Activate[], index = 0): Activate {
  const found = workers[index];
  if (!found) throw new Error("There is no such worker.");
  return found;
}

describe("an engine", () => {
  it("is asked to wake what is ready, and decides when it is worked on", async () => {
    const engine = manualEngine();
    const runs = await openRuns(newUrl(), { engine });
    const worker = new Worker(runs, { agents: [scriptedAgent(["Done."])] });
    await worker.start();
    const options = { agent: "office", id: "r", tenant: "t", pool: "", priority: 3 };
    const run = await runs.start("Go.", options);
    await vi.waitFor(() => expect(engine.wakes).toHaveLength(1), { timeout: 60_000 });
    expect(engine.wakes).toEqual([
      { session: "r", options: { tenant: "t", pool: "", priority: 3 } },
    ]);
    expect((await run.info()).status).toBe("ready");
    await takeWorker(engine.workers)("r", "one");
    expect((await run.result()).text).toBe("Done.");
    // Called too often, it has nothing to do.
    await takeWorker(engine.workers)("r", "two");
    expect(worker.stats).toMatchObject({ claims: 1, ended: 1 });
    await worker.stop();
    await runs.close();
  });

  it("has the time of a run that waits for one", async () => {
    const engine = manualEngine();
    const runs = await openRuns(newUrl(), { engine });
    const sleep = callAll([["sleep", { seconds: 60 }]]);
    const agent = scriptedAgent([sleep, "Done."], { tools: [sleepTool()] });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    await runs.start("Go.", { agent: "office", id: "r" });
    await vi.waitFor(() => expect(engine.wakes).toHaveLength(1), { timeout: 60_000 });
    await takeWorker(engine.workers)("r", "one");
    await vi.waitFor(() => expect(engine.wakes).toHaveLength(2), { timeout: 60_000 });
    const { inMs = 0 } = engine.wakes[1]?.options ?? {};
    expect(inMs).toBeGreaterThan(50_000);
    expect(inMs).toBeLessThan(61_000);
    await worker.stop();
    await runs.close();
  });

  it("D17 whose wake is lost is asked again, by all workers under one key", async () => {
    const engine = manualEngine();
    const url = newUrl();
    // A program without the engine starts it.
    const others = await openRuns(url);
    await others.start("Go.", { agent: "office", id: "r" });
    // As in two processes.
    const all = [await openRuns(url, { engine }), await openRuns(url, { engine })];
    const workers = all.map((runs) => new Worker(runs, { agents: [scriptedAgent(["Done."])] }));
    for (const worker of workers) await worker.start();
    const listKeys = (): (string | undefined)[] => engine.wakes.map(({ options }) => options.key);
    await vi.waitFor(() => expect(new Set(listKeys()).size).toBeLessThan(engine.wakes.length), {
      timeout: 60_000,
    });
    expect(listKeys()[0]).toMatch(/^r:\d+:\d+$/);
    for (const worker of workers) await worker.stop();
    for (const runs of all) await runs.close();
    await others.close();
  });

  it("D17 whose wake is lost is asked again, also where many runs wait for a worker that is not there", async () => {
    const engine = manualEngine();
    const url = newUrl();
    const others = await openRuns(url);
    for (let nth = 0; nth < 120; nth++)
      await others.start("Go.", { agent: "office", pool: "gpu", id: `gpu-${nth}` });
    await others.start("Go.", { agent: "office", pool: "large", id: "r" });
    const runs = await openRuns(url, { engine });
    const options = { agents: [scriptedAgent(["Done."])], pools: ["large"] };
    const worker = new Worker(runs, options);
    await worker.start();
    await vi.waitFor(
      () => expect(engine.wakes).toContainEqual(expect.objectContaining({ session: "r" })),
      { timeout: 60_000 },
    );
    await worker.stop();
    await runs.close();
    await others.close();
  });

  it("D17 is asked again for a run that stays ready after 1, 2 and 4 s, and not more often", async () => {
    const engine = manualEngine();
    const url = newUrl();
    const others = await openRuns(url);
    await others.start("Go.", { agent: "office", id: "r" });
    const runs = await openRuns(url, { engine });
    const worker = new Worker(runs, { agents: [scriptedAgent(["Done."])] });
    await worker.start();
    await vi.waitFor(() => expect(engine.wakes.length).toBeGreaterThan(2), { timeout: 60_000 });
    const keys = engine.wakes.map(({ options }) => options.key);
    expect(new Set(keys).size).toBe(keys.length);
    await worker.stop();
    await runs.close();
    await others.close();
  });

  it("D13 that calls another worker for the same activation has it continue at once; the first one writes nothing more", async () => {
    const engine = manualEngine();
    const url = newUrl();
    const runs = await openRuns(url, { engine });
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const pay = effectTool("pay", () => held.then(() => "paid"));
    const answers = [callAll([["pay", { to: "a" }]]), "Done."];
    const agents = [scriptedAgent(answers, { tools: [pay] })];
    const first = new Worker(runs, { agents });
    const second = new Worker(runs, { agents });
    for (const worker of [first, second]) await worker.start();
    const run = await runs.start("Pay.", { agent: "office", id: "r" });
    const lost = takeWorker(engine.workers)("r", "one");
    await vi.waitFor(() => expect(first.stats.live).toBe(1), { timeout: 60_000 });
    // Another activation does not take it from a worker that lives.
    await takeWorker(engine.workers, 1)("r", "two");
    expect(second.stats.claims).toBe(0);
    await takeWorker(engine.workers, 1)("r", "one");
    expect((await run.result()).text).toBe("Done.");
    release();
    await lost;
    expect(first.stats.lost).toBe(1);
    const results = (await run.messages()).filter(({ role }) => role === "toolResult");
    expect(results).toMatchObject([{ outcome: "interrupted" }]);
    for (const worker of [first, second]) await worker.stop();
    await runs.close();
  });

  it("D25 is asked again for a run of a tenant at its cap, as soon as another one of it has ended", async () => {
    const engine = manualEngine();
    const runs = await openRuns(newUrl(), { engine });
    await runs.limitTenant("t", { maxRunning: 1 });
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const pay = effectTool("pay", () => held.then(() => "paid"));
    const agent = scriptedAgent([callAll([["pay", { to: "a" }]]), "Done."], { tools: [pay] });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    for (const id of ["r1", "r2", "r3"])
      await runs.start("Go.", { agent: "office", tenant: "t", id });
    await vi.waitFor(() => expect(engine.wakes).toHaveLength(3), { timeout: 60_000 });
    const activate = takeWorker(engine.workers);
    const first = activate("r1", "one");
    await vi.waitFor(() => expect(worker.stats.live).toBe(1), { timeout: 60_000 });
    for (const id of ["r2", "r3"]) await activate(id, "two");
    expect(worker.stats.claims).toBe(1);
    engine.wakes.length = 0;
    release();
    await first;
    // Others that are found late have a key.
    const asked = engine.wakes.filter(({ options }) => options.key === undefined);
    expect(asked.map(({ session }) => session)).toEqual(["r2"]);
    await activate("r2", "three");
    expect((await runs.get("r2").result()).text).toBe("Done.");
    await worker.stop();
    await runs.close();
  });

  it("waits for a worker that has too much to do, which leaves the run to others", async () => {
    const engine = manualEngine();
    const runs = await openRuns(newUrl(), { engine });
    const agents = [scriptedAgent(["Done."])];
    const full = new Worker(runs, { agents, maxRssBytes: 1 });
    const other = new Worker(runs, { agents });
    for (const worker of [full, other]) await worker.start();
    const run = await runs.start("Go.", { agent: "office", id: "r" });
    const waiting = takeWorker(engine.workers)("r", "one");
    await takeWorker(engine.workers, 1)("r", "two");
    expect((await run.result()).text).toBe("Done.");
    expect([full.stats.claims, other.stats.claims]).toEqual([0, 1]);
    const [outcome] = await Promise.all([
      waiting.catch((error: unknown) => error),
      full.stop(),
      other.stop(),
    ]);
    expect(outcome).toMatchObject({ code: "closed" });
    await runs.close();
  });

  it("has its answer from a worker that stops, also where the store gives none", async () => {
    const engine = manualEngine();
    const real = await openStore(newUrl());
    const isSilent = new Set<keyof Store>(["readDue", "claim"]);
    let looks = 0;
    const store = wrapStore(real, (name, call) => {
      if (!isSilent.has(name)) return call();
      looks++;
      return new Promise(() => {});
    });
    const worker = new Worker(new Runs(store, { engine }), { agents: [scriptedAgent(["Done."])] });
    await worker.start();
    const answer = takeWorker(engine.workers)("r", "one");
    await vi.waitFor(() => expect(looks).toBe(2), { timeout: 60_000 });
    // It waits for what the store was asked.
    void worker.stop({ drainMs: 0 });
    await expect(answer).resolves.toBeUndefined();
    await real.close();
  });

  it("that calls a worker again for what it works on has it wait for that", async () => {
    const engine = manualEngine();
    const runs = await openRuns(newUrl(), { engine });
    const worker = new Worker(runs, { agents: [scriptedAgent(["Done."])] });
    await worker.start();
    await runs.start("Go.", { agent: "office", id: "r" });
    const activate = takeWorker(engine.workers);
    await Promise.all([activate("r", "one"), activate("r", "one")]);
    expect(worker.stats).toMatchObject({ claims: 1, ended: 1 });
    await worker.stop();
    await expect(activate("r", "three")).rejects.toMatchObject({ code: "closed" });
    await runs.close();
  });

  it("that cannot be reached is reported, and nothing that was stored is lost", async () => {
    const onError = vi.fn<(error: unknown, where: string) => void>();
    const error = new DurableError("unavailable", "away");
    const engine: Engine = { ...manualEngine(), wake: () => Promise.reject(error) };
    const runs = await openRuns(newUrl(), { engine, onError });
    const run = await runs.start("Go.", { agent: "office", id: "r" });
    await vi.waitFor(() => expect(onError).toHaveBeenCalledWith(error, "wake by manual"), {
      timeout: 60_000,
    });
    expect((await run.info()).status).toBe("ready");
    await runs.close();
  });
});

describe("workers of one process", () => {
  it("have names of their own for an activation, so that none takes the session from another", async () => {
    const calls: string[] = [];
    const member = (name: string): { activate: Activate } => ({
      activate: async (session, activation) => {
        calls.push(`${name} ${session} ${activation}`);
      },
    });
    const members = new EngineMembers<{ activate: Activate }>();
    const [a, b, c] = [member("a"), member("b"), member("c")];
    members.add(a);
    members.add(b);
    await members.activate(() => true, "s", "x");
    members.delete(a);
    members.add(c);
    await members.activate(() => true, "s", "y");
    expect(calls).toEqual(["a s x-0", "b s x-1", "c s y-0", "b s y-1"]);
    const none = members.activate(() => false, "s", "z");
    await expect(none).rejects.toMatchObject({ code: "closed" });
  });

  it("have a queue for each pool, of characters that engines take", () => {
    expect(nameQueue("gyre", "")).toBe("gyre");
    expect(nameQueue("gyre", "gpu_1")).toBe("gyre-gpu_1");
    expect(nameQueue("gyre", "host:/a.b")).toBe("gyre-host.3a..2f.a.2e.b");
  });
});
