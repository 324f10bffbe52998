import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type AgentTool, OutputError } from "@gyre/agent";
import { identifyProcess } from "@gyre/sessions";
import { callAll, fail, type ScriptStep, stall } from "@gyre/ai/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { Change, Claim, Fence, Store } from "../contract/store.ts";
import { DurableError } from "../contract/errors.ts";
import type { Run, RunEvent, RunResult, RunSummary } from "../contract/types.ts";
import { openRuns, openStore } from "../runs/open.ts";
import { toNewRun } from "../contract/new-run.ts";
import { Runs } from "../runs/runs.ts";
import { openDriver } from "../sqlite/driver/driver.ts";
import { askTool } from "../tools/ask.ts";
import { sleepTool } from "../tools/sleep.ts";
import { durableTask } from "../tools/task.ts";
import {
  effectTool,
  engineSpec,
  scriptedAgent,
  temporaryUrls,
  withWorker,
  wrapStore,
  isFile,
} from "./harness.ts";
import { Worker } from "./worker.ts";

const newUrl = temporaryUrls("promises", afterAll);

const payA = callAll([["pay", { to: "a" }]]);
const payB = callAll([["pay", { to: "b" }]]);
const payC = callAll([["pay", { to: "c" }]]);
const pay = effectTool("pay", (to) => `paid ${to}`);

/** Waits until a run waits for a decision. */
async function untilWaiting(run: Run): Promise<void> {
  await vi.waitFor(async () => expect((await run.info()).status).toBe("waiting"), {
    timeout: 60_000,
    interval: 5,
  });
}

async function claimFirst(store: Store, worker: string): Promise<Claim> {
  await store.register({ id: worker, agents: [], pools: [""], leaseMs: 60_000 });
  const { claims } = await store.claim({
    ...{ worker, agents: ["office"], refused: [], pools: [""], limit: 1 },
    ...{ maxDeaths: 3, alone: true },
  });
  const [claim] = claims;
  if (!claim) throw new Error("There was nothing to claim.");
  return claim;
}

function makeChange(claim: Claim, text: string): Change {
  const data = JSON.stringify({ message: { role: "user", content: text, timestamp: 0 } });
  const id = claim.seq + 1;
  const row = { id, parentId: claim.leaf, type: "message" as const, timestamp: 0, data };
  return { seq: claim.seq, entries: [row], leaf: id };
}

describe("the fence", () => {
  it("D2 no entry of a lost claim is ever in the log, also with the token of another timeline", async () => {
    const store = await openStore(newUrl());
    await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
    const old = await claimFirst(store, "w1");
    await store.unregister("w1");
    const now = await claimFirst(store, "w2");
    expect(now.token).toBe(old.token + 1);
    expect(await store.append(old, makeChange(old, "lost"))).toBe("fenced");
    const forged: Fence = { ...old, token: now.token };
    expect(await store.append(forged, makeChange(old, "forged"))).toBe("fenced");
    expect(await store.finish(forged, makeChange(old, "forged"), { status: "idle" })).toBe(
      "fenced",
    );
    expect(await store.append(now, makeChange(now, "kept"))).toBe("done");
    const rows = await store.readEntriesAfter("r", 0, 10);
    expect(rows.map(({ token }) => token)).toEqual([0, now.token]);
    await store.close();
  });

  it("D15 a commit whose answer was lost is not made twice", async () => {
    const store = await openStore(newUrl());
    await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
    const claim = await claimFirst(store, "w1");
    const change = makeChange(claim, "once");
    expect(await store.append(claim, change)).toBe("done");
    expect(await store.append(claim, change)).toBe("repeated");
    expect(await store.readEntriesAfter("r", 0, 10)).toHaveLength(2);
    await store.close();
  });

  it("D14, D15 a store that is away, and loses answers: the run goes on when it is back, no tool runs twice", async () => {
    const url = newUrl();
    const real = await openStore(url);
    let commits = 0;
    const store = wrapStore(real, async (name, call) => {
      const isCommit = name === "append" || name === "finish";
      const isLost = isCommit && ++commits % 2 === 0;
      if (isCommit && commits % 3 === 0) throw new DurableError("unavailable", "away");
      const answer = await call();
      if (isLost) throw new DurableError("unavailable", "answer lost");
      return answer;
    });
    const effects: string[] = [];
    const tool = effectTool("pay", (to) => {
      effects.push(to);
      return "ok";
    });
    const runs = new Runs(store);
    const agent = scriptedAgent([payA, payB, "Done."], { tools: [tool] });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    const run = await runs.start("Pay.", { agent: "office", id: "r" });
    expect((await run.result()).text).toBe("Done.");
    expect(effects).toEqual(["a", "b"]);
    const rows = await real.readEntriesAfter("r", 0, 100);
    expect(rows.map(({ id }) => id)).toEqual(rows.map((_, index) => index + 1));
    await worker.stop();
    await runs.close();
  });

  it("D13 a worker that was taken for dead writes nothing and begins nothing", async () => {
    const url = newUrl();
    const effects: string[] = [];
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const slow = effectTool("pay", async (to) => {
      effects.push(to);
      await held;
      return "late";
    });
    const zombie = scriptedAgent([payA, payB, "Never."], { tools: [slow] });
    const other = scriptedAgent([payA, "Done."], { tools: [pay] });
    const store = await openStore(url);
    // It is not born again: nothing reaches it but the answers to what it writes.
    const isHeard = new Set<keyof Store>(["append", "finish"]);
    let isDead = false;
    const deaf = wrapStore(store, (name, call) =>
      isDead && !isHeard.has(name) ? new Promise(() => {}) : call(),
    );
    const worker = new Worker(new Runs(deaf), { agents: [zombie], leaseMs: 60_000 });
    await worker.start();
    await withWorker(url, { agents: [] }, async (runs) => {
      const run = await runs.start("Pay.", { agent: "office", id: "r" });
      await vi.waitFor(() => expect(effects).toEqual(["a"]), { timeout: 60_000 });
      isDead = true;
      await runs.store.unregister(worker.id);
      await withWorker(url, { agents: [other] }, async () => {
        const result = await run.result();
        expect(result.text).toBe("Done.");
        const { length } = await runs.store.readEntriesAfter("r", 0, 100);
        release();
        await vi.waitFor(() => expect(worker.stats.lost).toBe(1), { timeout: 60_000 });
        expect(await runs.store.readEntriesAfter("r", 0, 100)).toHaveLength(length);
        expect(effects).toEqual(["a"]);
        const results = result.messages.filter(({ role }) => role === "toolResult");
        expect(results).toMatchObject([{ outcome: "interrupted" }]);
      });
    });
    void worker.stop({ drainMs: 0 });
    await store.close();
  });
});

describe("a tool that had begun when its worker died", () => {
  /** Runs a call whose first worker dies in it; the tool of the second worker is `second`. */
  async function dieInside(more: Partial<AgentTool>): Promise<{ keys: string[]; run: RunResult }> {
    const url = newUrl();
    const keys: string[] = [];
    const makeTool = (isFirst: boolean): AgentTool => ({
      ...pay,
      execute: (_args, { host }) => {
        keys.push(host.key ?? "");
        return isFirst ? new Promise<never>(() => {}) : "paid again";
      },
      ...more,
    });
    const first = scriptedAgent([payA, "Never."], { tools: [makeTool(true)] });
    const second = scriptedAgent([payA, "Done."], { tools: [makeTool(false)] });
    const store = await openStore(url);
    let isDead = false;
    const mortal = wrapStore(store, (_, call) => (isDead ? new Promise(() => {}) : call()));
    const dying = new Worker(new Runs(mortal), { agents: [first], leaseMs: 60_000 });
    await dying.start();
    const run = await new Runs(store).start("Pay.", { agent: "office", id: "r" });
    await vi.waitFor(() => expect(keys).toHaveLength(1), { timeout: 60_000 });
    isDead = true;
    void dying.stop({ drainMs: 0 });
    await store.unregister(dying.id);
    const result = await withWorker(url, { agents: [second] }, () => run.result());
    await store.close();
    return { keys, run: result };
  }

  it("D6 the model reads Interrupted where nothing is known of it", async () => {
    const { keys, run } = await dieInside({});
    expect(keys).toHaveLength(1);
    expect(run.messages[2]).toMatchObject({ outcome: "interrupted" });
    expect(run.text).toBe("Done.");
  });

  it("D6 recover says what became of it, by the same key", async () => {
    const recover = vi.fn<NonNullable<AgentTool["recover"]>>(
      (_args, { host }) => `paid, ${host.key}`,
    );
    const { keys, run } = await dieInside({ recover });
    expect(keys).toHaveLength(1);
    expect(recover).toHaveBeenCalledTimes(1);
    expect(run.messages[2]).toMatchObject({ content: [{ text: `paid, ${keys[0]}` }] });
  });

  it("D8 idempotent runs again, with the same key", async () => {
    const { keys, run } = await dieInside({ idempotent: true });
    expect(keys).toEqual([keys[0], keys[0]]);
    expect(keys[0]).toMatch(/^r:/);
    expect(run.messages[2]).toMatchObject({ outcome: "ok" });
  });
});

describe("what is sent", () => {
  it("D16 is delivered once and in order, whatever is sent twice", async () => {
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const slow = effectTool("pay", async () => {
      await held;
      return "ok";
    });
    const agent = scriptedAgent([payA, "1", "2", "3", "4", "5"], { tools: [slow] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Pay.", { agent: "office" });
      for (const text of ["one", "two", "three"]) {
        await run.followUp(text, { key: text });
        await run.followUp(text, { key: text });
      }
      release();
      const { messages } = await run.result();
      const prompts = messages.flatMap((message) =>
        message.role === "user" ? [message.content] : [],
      );
      expect(prompts).toEqual(["Pay.", "one", "two", "three"]);
    });
  });

  it("D17 no wake-up is lost: what is sent in the moment of parking is delivered", async () => {
    const url = newUrl();
    const real = await openStore(url);
    const runs = new Runs(real);
    const sent = new Set<string>();
    const store = wrapStore(real, async (name, call, args) => {
      const [{ session }] = args as [Fence];
      if (name === "finish" && !sent.has(session)) {
        sent.add(session);
        await runs.get(session).followUp("Wait.", { key: "wait" });
      }
      return call();
    });
    const agent = scriptedAgent(["One.", "Two."]);
    const worker = new Worker(new Runs(store), { agents: [agent] });
    await worker.start();
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        runs.start("Go.", { agent: "office", id: `r${index}` }),
      ),
    );
    for (const run of all) expect((await run.result()).text).toBe("Two.");
    await worker.stop();
    await real.close();
  });

  it("D20 an abort ends a run that waits for its model, from another connection", async () => {
    const url = newUrl();
    const agent = scriptedAgent([stall()]);
    const other = await openRuns(url);
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office", id: "r" });
      await vi.waitFor(async () => expect((await run.info()).status).toBe("running"), {
        timeout: 60_000,
      });
      await other.get("r").abort();
      expect((await run.result()).stop).toBe("aborted");
    });
    await other.close();
  });

  it("D20 an abort of a run whose worker is dead: no further model call", async () => {
    const url = newUrl();
    let requests = 0;
    const agent = scriptedAgent(["One."], { onRequest: () => requests++ });
    const runs = await openRuns(url);
    const run = await runs.start("Go.", { agent: "office" });
    await run.abort({ reason: "not needed" });
    await withWorker(url, { agents: [agent] }, async () => {
      expect((await run.result()).stop).toBe("aborted");
      expect(requests).toBe(0);
    });
    await expect(run.steer("More")).rejects.toMatchObject({ code: "ended" });
    await runs.close();
  });
});

describe("waiting without a process", () => {
  const signing = {
    tools: [effectTool("pay", (to) => `paid ${to}`, { needsApproval: true })],
  };

  it("D18 an approval outlives all processes", async () => {
    const url = newUrl();
    const agent = scriptedAgent([payA, "Done."], signing);
    await withWorker(url, { agents: [agent] }, async (runs) => {
      await untilWaiting(await runs.start("Pay.", { agent: "office", id: "r" }));
    });
    const asking = await openRuns(url);
    const { pending } = await asking.get("r").info();
    expect(pending).toMatchObject([{ waitsFor: "decision", toolCall: { name: "pay" } }]);
    await asking.get("r").decide({ [pending[0]?.toolCall.id ?? ""]: { type: "approve" } });
    await asking.close();
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const result = await runs.get("r").result();
      expect(result.text).toBe("Done.");
      expect(result.messages[2]).toMatchObject({ role: "toolResult", outcome: "ok" });
    });
  });

  it("D19 a decision counts once; for another call than was shown it does not count", async () => {
    const paid: string[] = [];
    const tool = effectTool("pay", (to) => `${paid.push(to)}`, { needsApproval: true });
    const agent = scriptedAgent([payA, "Done."], { tools: [tool] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Pay.", { agent: "office" });
      await untilWaiting(run);
      const [call] = (await run.info()).pending;
      const id = call?.toolCall.id ?? "";
      await expect(run.decide({ other: { type: "approve" } })).rejects.toThrow(
        `No call "other" of run "${run.id}" waits for a decision. These wait: "${id}" (pay).`,
      );
      await run.decide({ [id]: { type: "approve" } }, { key: "yes" });
      await run.result();
      await run.decide({ [id]: { type: "approve" } }, { key: "yes" });
      await expect(run.decide({ [id]: { type: "approve" } })).rejects.toMatchObject({
        code: "not_pending",
      });
      expect(paid).toEqual(["a"]);
    });
  });

  it("D1 a run that is seen to wait waits: it can be decided at once", async () => {
    const agent = scriptedAgent([payA, "Done."], signing);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const decide = async (run: Run): Promise<void> => {
        for await (const { event } of run.watch({ deltas: false })) {
          if (event.type !== "agent_end") continue;
          for (const { toolCall } of event.pending) {
            await run.decide({ [toolCall.id]: { type: "approve" } });
          }
        }
      };
      const all = Array.from({ length: 20 }, () => runs.start("Pay.", { agent: "office" }));
      const started = await Promise.all(all);
      await Promise.all(started.map(decide));
      for (const run of started) expect((await run.result()).text).toBe("Done.");
    });
  });

  it("a steering message answers a call that waits for a person: it is denied", async () => {
    const agent = scriptedAgent([payA, "Then not."], signing);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Pay.", { agent: "office" });
      await untilWaiting(run);
      await run.steer("Do not pay.");
      const { messages, text } = await run.result();
      expect(text).toBe("Then not.");
      expect(messages.map(({ role }) => role)).toEqual([
        "user",
        "assistant",
        "toolResult",
        "user",
        "assistant",
      ]);
      expect(messages[2]).toMatchObject({ outcome: "denied" });
    });
  });

  it("a question of askTool is answered by a decision", async () => {
    const asks = callAll([["ask", { question: "Which tea?" }]]);
    const agent = scriptedAgent([asks, "Green it is."], { tools: [askTool()] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Order tea.", { agent: "office" });
      await untilWaiting(run);
      const [call] = (await run.info()).pending;
      expect(call).toMatchObject({ reason: "Which tea?", waitsFor: "decision" });
      const result = { content: [{ type: "text" as const, text: "Green." }] };
      await run.decide({ [call?.toolCall.id ?? ""]: { type: "result", result } });
      expect((await run.result()).text).toBe("Green it is.");
    });
  });

  it("D24 a timer is never early, and comes once", async () => {
    const sleeps = callAll([["sleep", { seconds: 0.3 }]]);
    const agent = scriptedAgent([sleeps, "Awake."], { tools: [sleepTool()] });
    const url = newUrl();
    const started = performance.now();
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const run = await runs.start("Sleep.", { agent: "office", id: "r" });
      await untilWaiting(run);
      expect((await run.info()).pending).toMatchObject([{ waitsFor: "timer" }]);
    });
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const result = await runs.get("r").result();
      expect(performance.now() - started).toBeGreaterThanOrEqual(300);
      expect(result.text).toBe("Awake.");
      expect(result.messages.filter(({ role }) => role === "toolResult")).toHaveLength(1);
    });
  });

  it("a message waits while a call waits for a time", async () => {
    const sleeps = callAll([["sleep", { seconds: 0.2 }]]);
    const agent = scriptedAgent([sleeps, "Awake.", "Yes."], { tools: [sleepTool()] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Sleep.", { agent: "office" });
      await untilWaiting(run);
      await run.steer("Quick.");
      const { messages } = await run.result();
      expect(messages[2]).toMatchObject({ role: "toolResult", outcome: "ok" });
      expect(messages.filter(({ role }) => role === "user")).toHaveLength(2);
    });
  });

  it("D23 a child is started once, its end arrives once, and its usage counts", async () => {
    const delegates = callAll([
      ["task", { prompt: "Part one" }],
      ["task", { prompt: "Part two" }],
    ]);
    const parent = scriptedAgent([delegates, "Both done."], {
      tools: [durableTask({ agent: "helper" })],
    });
    const usage = { input: 10, output: 5 };
    const helper = scriptedAgent([{ parts: ["Part done."], usage }], { name: "helper" });
    await withWorker(newUrl(), { agents: [parent, helper] }, async (runs) => {
      const run = await runs.start("Do both.", { agent: "office", id: "p" });
      const result = await run.result();
      expect(result.text).toBe("Both done.");
      const { runs: children } = await runs.list({ parent: "p" });
      expect(children.map(({ status }) => status)).toEqual(["ended", "ended"]);
      const results = result.messages.filter(({ role }) => role === "toolResult");
      expect(results).toHaveLength(2);
      expect(JSON.stringify(results)).toContain("Part done.");
      expect(result.usage).toMatchObject({ input: 20, output: 10 });
    });
  });

  it("D23 an abort reaches a child", async () => {
    const parent = scriptedAgent([callAll([["task", { prompt: "Part" }]])], {
      tools: [durableTask({ agent: "helper" })],
    });
    const helper = scriptedAgent([stall()], { name: "helper" });
    await withWorker(newUrl(), { agents: [parent, helper] }, async (runs) => {
      const run = await runs.start("Do it.", { agent: "office", id: "p" });
      await untilWaiting(run);
      const [child] = (await runs.list({ parent: "p" })).runs;
      const ended = runs.get(child?.id ?? "").result();
      await run.abort();
      expect((await run.result()).stop).toBe("aborted");
      expect((await ended).stop).toBe("aborted");
    });
  });
});

describe("limits and order", () => {
  it("D22 limits hold over take-overs", async () => {
    const url = newUrl();
    let requests = 0;
    const agent = scriptedAgent([payA, payB, payC, payA, payB], {
      tools: [pay],
      onRequest: () => requests++,
    });
    const run = { agent: "office", id: "r", limits: { maxTurns: 3 } };
    const real = await openStore(url);
    let appends = 0;
    const store = wrapStore(real, (name, call) => {
      if (name === "append") appends++;
      // It dies after its second turn, and is not born again.
      const isDead = appends > 4 && (name === "append" || name === "claim");
      return isDead ? new Promise(() => {}) : call();
    });
    const first = new Worker(new Runs(store), { agents: [agent], leaseMs: 60_000 });
    await first.start();
    const runs = new Runs(real);
    await runs.start("Pay.", run);
    await vi.waitFor(() => expect(appends).toBeGreaterThan(4), { timeout: 60_000 });
    const second = new Worker(runs, { agents: [agent] });
    await second.start();
    await real.unregister(first.id);
    const result = await runs.get("r").result();
    expect(result.stop).toBe("limit");
    expect(result.turns).toBe(3);
    expect(requests).toBeLessThanOrEqual(4);
    await second.stop();
    await first.stop({ drainMs: 0 });
    await real.close();
  });

  it("D25 no tenant has more running than its cap, and no other starves", async () => {
    let running = 0;
    let most = 0;
    const busy = effectTool("pay", async () => {
      most = Math.max(most, ++running);
      await sleep(5);
      running--;
      return "ok";
    });
    const agent = scriptedAgent([payA, "Done."], { tools: [busy] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      await runs.limitTenant("large", { maxRunning: 2 });
      const large = await Promise.all(
        Array.from({ length: 20 }, () => runs.start("Go.", { agent: "office", tenant: "large" })),
      );
      await Promise.all(large.map((run) => run.result()));
      expect(most).toBeLessThanOrEqual(2);
      await runs.limitTenant("small", { maxReady: 0 });
      await expect(runs.start("Go.", { agent: "office", tenant: "small" })).rejects.toMatchObject({
        code: "rate_limited",
        message: expect.stringContaining("start it again in 1 s"),
        retryAfterMs: 1_000,
      });
    });
  });

  it("D25 a run that is not admitted waits, and an abort of it does not", async () => {
    const asked: string[] = [];
    const admit = ({ id, tenant, turns }: RunSummary): number => {
      asked.push(`${tenant} ${id} ${turns}`);
      if (id === "later" && asked.length < 3) return 1;
      return id === "never" ? 3_600_000 : 0;
    };
    const agent = scriptedAgent(["Done."]);
    await withWorker(newUrl(), { agents: [agent], admit, concurrency: 1 }, async (runs) => {
      const later = await runs.start("Go.", { agent: "office", tenant: "t", id: "later" });
      expect((await later.result()).text).toBe("Done.");
      expect(asked).toEqual(["t later 0", "t later 0", "t later 0"]);
      const never = await runs.start("Go.", { agent: "office", tenant: "t", id: "never" });
      await vi.waitFor(
        async () => {
          expect(asked).toHaveLength(4);
          expect((await never.info()).status).toBe("ready");
        },
        { timeout: 60_000 },
      );
      await never.abort();
      expect((await never.result()).stop).toBe("aborted");
      expect(asked).toHaveLength(4);
    });
  });

  it("a worker whose process has too much memory claims nothing", async () => {
    const url = newUrl();
    const agent = scriptedAgent(["Done."]);
    await withWorker(url, { agents: [agent], maxRssBytes: 1 }, async (_runs, full) => {
      await withWorker(url, { agents: [agent] }, async (runs, other) => {
        const run = await runs.start("Go.", { agent: "office" });
        expect((await run.result()).text).toBe("Done.");
        expect([full.stats.claims, other.stats.claims]).toEqual([0, 1]);
      });
    });
  });

  it("a worker whose event loop is late works on one run after the other", async () => {
    let running = 0;
    let most = 0;
    const busy = effectTool("pay", async () => {
      most = Math.max(most, ++running);
      await sleep(1);
      running--;
      return "ok";
    });
    const agent = scriptedAgent([payA, "Done."], { tools: [busy] });
    await withWorker(newUrl(), { agents: [agent], maxLagMs: 0 }, async (runs) => {
      const all = await Promise.all(
        Array.from({ length: 3 }, () => runs.start("Go.", { agent: "office" })),
      );
      for (const run of all) expect((await run.result()).text).toBe("Done.");
      expect(most).toBeGreaterThan(0);
    });
  });

  it("a run of higher priority is claimed first", async ({ skip }) => {
    skip(engineSpec !== undefined, "no D: an engine has an order of its own, docs/which-engine.md");
    const url = newUrl();
    const runs = await openRuns(url);
    const order: string[] = [];
    for (const [id, priority] of [
      ["low", 0],
      ["high", 5],
      ["middle", 1],
    ] as const) {
      await runs.start(id, { agent: "office", id, priority });
    }
    const agent = {
      ...scriptedAgent(["Done."]),
      open: (open: { id: string }) => {
        order.push(open.id);
        return scriptedAgent(["Done."]).open(open as never);
      },
    };
    await withWorker(url, { agents: [agent], concurrency: 1 }, async () => {
      for (const id of ["low", "high", "middle"]) await runs.get(id).result();
      expect(order).toEqual(["high", "middle", "low"]);
    });
    await runs.close();
  });

  it("a run of another pool is not claimed, and says what is missing", async () => {
    await withWorker(newUrl(), { agents: [scriptedAgent(["Done."])] }, async (runs, worker) => {
      const gpu = await runs.start("gpu", { agent: "office", pool: "gpu" });
      const other = await runs.start("other", { agent: "office" });
      expect((await other.result()).text).toBe("Done.");
      expect(await gpu.info()).toMatchObject({
        status: "ready",
        stuck: expect.stringContaining('{ pools: ["gpu"] }'),
      });
      expect(worker.stats.claims).toBe(1);
    });
  });

  it("D26 a run that ends its workers is claimed alone, then set aside; retry goes on with it", async () => {
    const store = await openStore(newUrl());
    const runs = new Runs(store);
    const run = await runs.start("Go.", { agent: "office", id: "r" });
    for (const worker of ["w1", "w2", "w3", "w4"]) {
      const claim = await claimFirst(store, worker);
      expect(claim.session).toBe("r");
      // Its lease is over, and the time in which it may be busy.
      await store.heartbeat(worker, -20_000, 1);
      await store.sweep({ expired: true, maxDeaths: 3 });
    }
    const info = await run.info();
    expect(info).toMatchObject({ status: "aside", deaths: 4 });
    expect(info.stuck).toContain("retry()");
    await run.retry();
    const worker = new Worker(runs, { agents: [scriptedAgent(["Done."])] });
    await worker.start();
    expect((await run.result()).text).toBe("Done.");
    await worker.stop();
    await runs.close();
  });

  it.runIf(isFile)(
    "a worker whose process runs is not taken for dead where it is busy for longer than its lease",
    async () => {
      const store = await openStore(newUrl());
      await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
      await claimFirst(store, "w1");
      await store.heartbeat("w1", -5_000, 1);
      expect(await store.sweep({ expired: true, maxDeaths: 3 })).toEqual([]);
      await store.heartbeat("w1", -20_000, 1);
      const swept = await store.sweep({ expired: true, maxDeaths: 3 });
      expect(swept).toEqual([{ session: "r", worker: "w1", status: "ready", why: "expired" }]);
      await store.close();
    },
  );

  it.runIf(isFile)(
    "D13 a worker that is busy for longer than `stallMs` loses its runs",
    async () => {
      const store = await openStore(newUrl());
      await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
      await claimFirst(store, "w1");
      await store.register({ id: "w1", agents: [], pools: [""], leaseMs: 2_000, stallMs: 3_000 });
      await store.heartbeat("w1", -500, 1);
      expect(await store.sweep({ expired: true, maxDeaths: 3 })).toEqual([]);
      await store.heartbeat("w1", -1_001, 1);
      expect(await store.sweep({ expired: true, maxDeaths: 3 })).toHaveLength(1);
      await store.close();
    },
  );

  it.runIf(isFile && process.platform === "linux")(
    "a worker that a signal has stopped is taken for dead when its lease is over",
    async () => {
      const url = newUrl();
      const store = await openStore(url);
      await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
      const code = `setInterval(() => {}, 1000); process.send("ready")`;
      const child = spawn(process.execPath, ["-e", code], {
        stdio: ["ignore", "ignore", "ignore", "ipc"],
      });
      await once(child, "message");
      const driver = await openDriver(url.slice("file:".length));
      await claimFirst(store, "w1");
      await store.heartbeat("w1", -1, 1);
      // The row of a worker in that process.
      const identity = { ...identifyProcess(), pid: child.pid ?? 0, start: "" };
      driver.prepare("update gyre_worker set process = ?").run(JSON.stringify(identity));
      expect(await store.sweep({ expired: true, maxDeaths: 3 })).toEqual([]);
      child.kill("SIGSTOP");
      await vi.waitFor(
        async () => {
          expect(await store.sweep({ expired: true, maxDeaths: 3 })).toHaveLength(1);
        },
        { timeout: 60_000 },
      );
      child.kill("SIGKILL");
      driver.close();
      await store.close();
    },
  );

  it("D27 a pinned run is never worked on by another version", async () => {
    const url = newUrl();
    const tools = [effectTool("pay", (to) => `paid ${to}`, { needsApproval: true })];
    const first = scriptedAgent([payA, "Done."], { tools });
    await withWorker(url, { agents: [first] }, async (runs) => {
      await untilWaiting(await runs.start("Pay.", { agent: "office", id: "r" }));
    });
    const runs = await openRuns(url);
    const run = runs.get("r");
    const [call] = (await run.info()).pending;
    await run.decide({ [call?.toolCall.id ?? ""]: { type: "approve" } });
    const second = { ...first, version: "2", accepts: (version: string) => version === "2" };
    await withWorker(url, { agents: [second] }, async () => {
      await vi.waitFor(
        async () => expect((await run.info()).stuck).toContain("No worker accepts version 1"),
        { timeout: 60_000 },
      );
      await withWorker(url, { agents: [first] }, async () => {
        expect((await run.result()).text).toBe("Done.");
      });
    });
    await runs.close();
  });

  it("D27 a drain interrupts no tool; another worker continues at once", async () => {
    const url = newUrl();
    const effects: string[] = [];
    let begun: () => void = () => {};
    const started = new Promise<void>((resolve) => (begun = resolve));
    const slow = effectTool("pay", async (to) => {
      effects.push(to);
      begun();
      await sleep(100);
      return "ok";
    });
    const agent = scriptedAgent([payA, payB, "Done."], { tools: [slow] });
    const runs = await openRuns(url);
    const run = await runs.start("Pay.", { agent: "office" });
    const first = new Worker(runs, { agents: [agent] });
    await first.start();
    await started;
    await first.stop();
    expect(first.stats).toMatchObject({ lost: 0, parked: 1 });
    const ends: string[] = [];
    const watching = (async () => {
      for await (const { event } of run.watch())
        if (event.type === "agent_end") ends.push(event.stop);
    })();
    await withWorker(url, { agents: [agent] }, async () => {
      const { messages, text } = await run.result();
      expect(text).toBe("Done.");
      expect(effects).toEqual(["a", "b"]);
      const results = messages.filter(({ role }) => role === "toolResult");
      expect(results).toMatchObject([{ outcome: "ok" }, { outcome: "ok" }]);
      await watching;
      expect(ends).toEqual(["done"]);
    });
    await runs.close();
  });

  it("D28 a clock that jumps back delays no run that is ready", async () => {
    const url = newUrl();
    const runs = await openRuns(url);
    const run = await runs.start("Go.", { agent: "office" });
    const { now } = Date;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
    try {
      await withWorker(url, { agents: [scriptedAgent(["Done."])] }, async () => {
        expect((await run.result()).text).toBe("Done.");
      });
    } finally {
      clock.mockRestore();
    }
    await runs.close();
  });

  it("D29 retention takes only what has ended", async () => {
    const tools = [effectTool("pay", () => "ok", { needsApproval: true })];
    const agent = scriptedAgent([payA, "Done."], { tools });
    const plain = scriptedAgent(["Done."], { name: "plain" });
    await withWorker(newUrl(), { agents: [agent, plain] }, async (runs) => {
      const waiting = await runs.start("Pay.", { agent: "office" });
      const ended = await runs.start("Go.", { agent: "plain" });
      await ended.result();
      await untilWaiting(waiting);
      expect(await runs.prune({ olderThanMs: 60_000 })).toEqual({ deleted: 0 });
      expect(await runs.prune({ olderThanMs: -1 })).toEqual({ deleted: 1 });
      await expect(ended.info()).rejects.toMatchObject({ code: "not_found" });
      expect((await waiting.info()).status).toBe("waiting");
      expect(await waiting.messages()).toHaveLength(2);
    });
  });

  it("D29 retention leaves a session that a program has open as it is", async () => {
    await withWorker(newUrl(), { agents: [scriptedAgent(["Done."])] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office", session: "s" });
      await run.result();
      const session = await runs.sessions().open("s");
      expect(await runs.prune({ olderThanMs: -1 })).toEqual({ deleted: 1 });
      const before = await runs.store.listEntries("s");
      expect(before.length).toBeGreaterThan(1);
      await session.append({ type: "title", title: "Kept" });
      expect(await runs.store.listEntries("s")).toHaveLength(before.length + 1);
      await session.close();
    });
  });
});

describe("watching and sessions", () => {
  it("D21 watching by number from another connection has no gap and no double", async () => {
    const url = newUrl();
    const agent = scriptedAgent([payA, payB, payC, "Done."], { tools: [pay] });
    const other = await openRuns(url);
    await withWorker(url, { agents: [agent] }, async (runs) => {
      await runs.start("Pay.", { agent: "office", id: "r" });
      const seen: RunEvent[] = [];
      let isEnded = false;
      // It goes away after every second event.
      while (!isEnded) {
        let count = 0;
        for await (const event of other
          .get("r")
          .watch({ after: seen.at(-1)?.seq ?? 0, deltas: false })) {
          seen.push(event);
          isEnded = event.event.type === "agent_end";
          if (++count === 2) break;
        }
      }
      const whole: RunEvent[] = [];
      for await (const event of runs.get("r").watch({ deltas: false })) whole.push(event);
      expect(seen).toEqual(whole);
      expect(seen.map(({ seq }) => seq)).toEqual([...new Set(seen.map(({ seq }) => seq))]);
    });
    await other.close();
  });

  it("deltas reach those that watch in the same process", async () => {
    const agent = scriptedAgent([{ parts: ["A long text."], chunkSize: 3 }]);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office", at: new Date(Date.now() + 50) });
      let text = "";
      for await (const { event } of run.watch()) {
        if (event.type !== "message_update") continue;
        const { assistantMessageEvent: update } = event;
        if (update.type === "text_delta") text += update.delta;
      }
      expect(text).toBe("A long text.");
    });
  });

  it("a second run of a session waits for the first, and knows what was said", async () => {
    const agent = scriptedAgent(["One.", "Two."]);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const first = await runs.start("First?", { agent: "office", session: "s" });
      const second = await runs.start("Second?", { agent: "office", session: "s" });
      const third = await second.prompt("Third?");
      expect((await first.result()).text).toBe("One.");
      expect((await second.result()).text).toBe("Two.");
      expect((await third.result()).text).toBe("More.");
      expect(await second.messages()).toHaveLength(2);
    });
  });

  it("a run that failed goes on with retry()", async () => {
    let isBroken = true;
    const agent = {
      ...scriptedAgent(["Done."]),
      open: (open: never) => {
        if (isBroken) throw new Error("no key");
        return scriptedAgent(["Done."]).open(open);
      },
    };
    const onError = vi.fn<(error: unknown, where: string) => void>();
    const runs = await openRuns(newUrl(), { onError });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office" });
    const failed = await run.result();
    expect(failed).toMatchObject({
      stop: "error",
      error: 'The agent "office" could not be opened: no key',
    });
    expect(() => failed.text).toThrow("no key");
    expect(onError).toHaveBeenCalledTimes(1);
    isBroken = false;
    await run.retry();
    expect((await run.result()).text).toBe("Done.");
    await worker.stop();
    await runs.close();
  });

  it("a run whose model failed asks it again with retry()", async () => {
    let isBroken = true;
    const agent = scriptedAgent([
      () => (isBroken ? fail("no service", { kind: "bad_request" }) : "One."),
    ]);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      expect((await run.result()).stop).toBe("error");
      await run.retry();
      expect((await run.result()).stop).toBe("error");
      isBroken = false;
      await run.retry();
      expect((await run.result()).text).toBe("One.");
    });
  });

  it("D16 a message that a failed run did not get waits for its retry", async () => {
    let isBroken = true;
    const fails: ScriptStep = () =>
      isBroken ? fail("no service", { kind: "bad_request" }) : "One.";
    const agent = scriptedAgent([fails, "Two."]);
    const url = newUrl();
    const runs = await openRuns(url);
    const run = await runs.start("Go.", { agent: "office" });
    await run.followUp("Further.", { key: "further" });
    await withWorker(url, { agents: [agent] }, async () => {
      expect((await run.result()).stop).toBe("error");
      isBroken = false;
      await run.retry();
      const { messages } = await run.result();
      const prompts = messages.flatMap((message) =>
        message.role === "user" ? [message.content] : [],
      );
      expect(prompts).toEqual(["Go.", "Further."]);
      await expect(run.retry()).rejects.toThrow("has nothing to retry");
    });
    await runs.close();
  });

  it("a run with an output schema has a checked answer", async () => {
    const output = { type: "object", properties: { tea: { type: "string" } }, required: ["tea"] };
    const agent = scriptedAgent(['{"tea":"green"}']);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Which tea?", { agent: "office", output });
      expect((await run.result()).output).toEqual({ tea: "green" });
    });
  });

  it("a result can be copied and logged, with or without an answer", async () => {
    await withWorker(newUrl(), { agents: [scriptedAgent(["Green."])] }, async (runs) => {
      const run = await runs.start("Which tea?", { agent: "office" });
      const result = await run.result();
      expect(result.text).toBe("Green.");
      expect(() => result.output).toThrow(OutputError);
      expect(JSON.parse(JSON.stringify(result))).toMatchObject({ id: run.id, stop: "done" });
      expect({ ...result }).toMatchObject({ turns: 1 });
    });
  });

  it("runs are listed page by page, the newest first", async () => {
    const runs = await openRuns(newUrl());
    for (let i = 0; i < 5; i++) await runs.start("Go.", { agent: "office", id: `r${i}` });
    const first = await runs.list({ limit: 3 });
    const second = await runs.list({ limit: 3, ...(first.next && { after: first.next }) });
    const ids = [...first.runs, ...second.runs].map(({ id }) => id);
    expect(ids.toSorted()).toEqual(["r0", "r1", "r2", "r3", "r4"]);
    expect(second.next).toBeUndefined();
    expect((await runs.list({ status: "ended" })).runs).toEqual([]);
    expect((await runs.list({ stuck: true })).runs).toHaveLength(5);
    await runs.close();
  });
});
