import { mkdirSync } from "node:fs";
import { call, callAll } from "@gyre/ai/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import { DurableError } from "../contract/errors.ts";
import type { Store } from "../contract/store.ts";
import type { Run } from "../contract/types.ts";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { durableTask } from "../tools/task.ts";
import {
  effectTool,
  scriptedAgent,
  temporaryUrls,
  withWorker,
  wrapStore,
  isFile,
} from "./harness.ts";
import { Worker } from "./worker.ts";

const newUrl = temporaryUrls("attacks", afterAll);
const payA = callAll([["pay", { to: "a" }]]);
const pay = effectTool("pay", (to) => `paid ${to}`);

interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

function makeGate(): Gate {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

async function untilStatus(run: Run, status: string): Promise<void> {
  await vi.waitFor(async () => expect((await run.info()).status).toBe(status), {
    timeout: 60_000,
    interval: 5,
  });
}

describe("a session with more than one run", () => {
  it("D17 a prompt that comes while a tool runs is worked on after it", async () => {
    const gate = makeGate();
    const begun = makeGate();
    const slow = effectTool("pay", async () => {
      begun.open();
      await gate.opened;
      return "paid";
    });
    const looks = vi.fn<() => void>();
    const agent = scriptedAgent([payA, "First.", "Second."], { tools: [slow] });
    const store = wrapStore(await openStore(newUrl()), (name, call) => {
      if (name === "readInbox") looks();
      return call();
    });
    const runs = new Runs(store);
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    const first = await runs.start("One.", { agent: "office", id: "r1", session: "s" });
    await begun.opened;
    looks.mockClear();
    const second = await first.prompt("Two.", { key: "r2" });
    // The worker has seen it, and does not look again at the end.
    await vi.waitFor(() => expect(looks).toHaveBeenCalled(), { timeout: 60_000 });
    gate.open();
    expect((await first.result()).text).toBe("First.");
    expect((await second.result()).text).toBe("Second.");
    await worker.stop();
    await runs.close();
  });

  it("D24 an abort of a run that waits behind a scheduled one does not start that early", async () => {
    const agent = scriptedAgent(["First.", "Second."]);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const at = new Date(Date.now() + 3_600_000);
      const first = await runs.start("One.", { agent: "office", id: "r1", session: "s", at });
      const second = await first.prompt("Two.", { key: "r2" });
      await second.abort();
      expect((await second.result()).stop).toBe("aborted");
      expect(await second.messages()).toEqual([]);
      expect(await first.info()).toMatchObject({ status: "ready", activations: 0 });
    });
  });

  it("D20 an abort of a run that waits behind one that waits for a person ends it at once", async () => {
    const signing = effectTool("pay", () => "paid", { needsApproval: true });
    const agent = scriptedAgent([payA, "First.", "Second."], { tools: [signing] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const first = await runs.start("One.", { agent: "office", id: "r1", session: "s" });
      await untilStatus(first, "waiting");
      const second = await first.prompt("Two.", { key: "r2" });
      await second.abort({ key: "k" });
      await second.abort({ key: "k" });
      expect((await second.result()).stop).toBe("aborted");
      for await (const { event } of second.watch()) expect(event.type).toBe("agent_end");
      const [waiting] = (await first.info()).pending;
      await first.decide({ [waiting?.toolCall.id ?? ""]: { type: "approve" } });
      expect((await first.result()).text).toBe("First.");
      const third = await first.prompt("Three.");
      expect((await third.result()).text).toBe("Second.");
    });
  });

  it("D26 an abort of a run that waits behind one that was set aside leaves that aside", async () => {
    const store = await openStore(newUrl());
    const runs = new Runs(store);
    const first = await runs.start("One.", { agent: "office", id: "r1", session: "s" });
    for (const worker of ["w1", "w2"]) {
      await store.register({ id: worker, agents: [], pools: [""], leaseMs: -20_000 });
      const wish = { worker, agents: ["office"], refused: [], pools: [""], limit: 1 };
      await store.claim({ ...wish, maxDeaths: 1, alone: true });
      await store.sweep({ expired: true, maxDeaths: 1 });
    }
    expect((await first.info()).status).toBe("aside");
    const second = await first.prompt("Two.", { key: "r2" });
    await second.abort();
    expect((await first.info()).status).toBe("aside");
    expect((await second.info()).status).toBe("ended");
    await runs.close();
  });

  it("a run that waits behind another is not worked on before its time, nor by another pool", async () => {
    const gate = makeGate();
    const slow = effectTool("pay", async () => {
      await gate.opened;
      return "paid";
    });
    const agent = scriptedAgent([payA, "First.", "Second.", "Third."], { tools: [slow] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const options = { agent: "office", session: "s" };
      const first = await runs.start("One.", { ...options, id: "r1" });
      const at = new Date(Date.now() + 3_600_000);
      const later = await runs.start("Later.", { ...options, id: "r2", at });
      const elsewhere = await runs.start("Elsewhere.", { ...options, id: "r3", pool: "gpu" });
      gate.open();
      await first.result();
      await untilStatus(elsewhere, "queued");
      expect(await elsewhere.info()).toMatchObject({ activations: 0 });
      const gpu = new Worker(runs, { agents: [agent], pools: ["gpu"] });
      await gpu.start();
      expect((await elsewhere.result()).text).toBe("Second.");
      expect(await later.info()).toMatchObject({ status: "queued", activations: 0 });
      await gpu.stop();
    });
  });

  it("D16 one key is one effect in each run of a session, and never one of the store's own", async () => {
    const signing = effectTool("pay", () => "paid", { needsApproval: true });
    const agent = scriptedAgent([payA, payA], { tools: [signing] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const first = await runs.start("One.", { agent: "office", id: "r1", session: "s" });
      await untilStatus(first, "waiting");
      await first.followUp("More.", { key: "prompt:r2" });
      await first.abort({ key: "stop" });
      await first.result();
      const second = await first.prompt("Two.", { key: "r2" });
      await untilStatus(second, "waiting");
      await second.abort({ key: "stop" });
      expect((await second.result()).stop).toBe("aborted");
    });
  });
});

describe("a worker that stops", () => {
  it("D27 while it opens an agent: the run is left to others", async () => {
    const gate = makeGate();
    const begun = makeGate();
    const url = newUrl();
    const quick = scriptedAgent(["Done."]);
    const slow = {
      ...quick,
      open: async (run: Parameters<typeof quick.open>[0]) => {
        begun.open();
        await gate.opened;
        return quick.open(run);
      },
    };
    const runs = new Runs(await openStore(url));
    const worker = new Worker(runs, { agents: [slow] });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office", id: "r" });
    await begun.opened;
    const stopped = worker.stop();
    gate.open();
    await stopped;
    expect(await run.info()).toMatchObject({ status: "ready", turns: 0 });
    await withWorker(url, { agents: [quick] }, async () => {
      expect((await run.result()).text).toBe("Done.");
    });
    await runs.close();
  });

  it("D16, D27 while a decision arrives: the decision is not lost", async () => {
    const gate = makeGate();
    const url = newUrl();
    const signing = effectTool("pay", () => "paid", { needsApproval: true });
    const quick = scriptedAgent([payA, "Done."], { tools: [signing] });
    let isSlow = false;
    const begun = makeGate();
    const slow = {
      ...quick,
      open: async (run: Parameters<typeof quick.open>[0]) => {
        if (isSlow) {
          begun.open();
          await gate.opened;
        }
        return quick.open(run);
      },
    };
    const runs = new Runs(await openStore(url));
    const worker = new Worker(runs, { agents: [slow] });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office", id: "r" });
    await untilStatus(run, "waiting");
    isSlow = true;
    const [waiting] = (await run.info()).pending;
    await run.decide({ [waiting?.toolCall.id ?? ""]: { type: "approve" } });
    await begun.opened;
    const stopped = worker.stop();
    gate.open();
    await stopped;
    await withWorker(url, { agents: [quick] }, async () => {
      expect((await run.result()).text).toBe("Done.");
    });
    await runs.close();
  });
});

/** A worker whose store fails from a moment on: as if its process had died then. */
async function withMortal(
  url: string,
  options: ConstructorParameters<typeof Worker>[1],
  act: (runs: Runs, die: () => void, worker: Worker) => Promise<void>,
  onCall: (name: keyof Store, die: () => void) => void = () => {},
): Promise<void> {
  let isDead = false;
  const die = (): void => {
    isDead = true;
  };
  const real = await openStore(url);
  const store = wrapStore(real, async (name, call) => {
    onCall(name, die);
    if (isDead) return new Promise(() => {});
    return call();
  });
  const worker = new Worker(new Runs(store), options);
  await worker.start();
  const runs = new Runs(real);
  await act(runs, die, worker);
  await real.unregister(worker.id);
  // An engine calls it no more.
  void worker.stop({ drainMs: 0 });
}

describe("a worker that dies", () => {
  it("D20 with an abort that it has read: no further model call", async () => {
    const url = newUrl();
    const gate = makeGate();
    const begun = makeGate();
    const slow = effectTool("pay", async () => {
      begun.open();
      await gate.opened;
      return "paid";
    });
    const agent = scriptedAgent([payA, "Done."], { tools: [slow] });
    let hasAborted = false;
    await withMortal(
      url,
      { agents: [agent] },
      async (runs, die, worker) => {
        const run = await runs.start("Go.", { agent: "office", id: "r" });
        await begun.opened;
        await run.abort();
        hasAborted = true;
        gate.open();
        await vi.waitFor(() => expect(worker.stats.live).toBe(1), { timeout: 60_000 });
        await vi.waitFor(
          async () => {
            const rows = await runs.store.readEntriesAfter("r", 0, 100);
            expect(rows.some(({ type }) => type === "result")).toBe(true);
          },
          { timeout: 60_000 },
        );
        die();
      },
      (name, die) => {
        if (hasAborted && name === "finish") die();
      },
    );
    const onRequest = vi.fn<() => void>();
    const next = scriptedAgent([payA, "Done."], { tools: [pay], onRequest });
    await withWorker(url, { agents: [next] }, async (runs) => {
      expect((await runs.get("r").result()).stop).toBe("aborted");
      expect(onRequest).not.toHaveBeenCalled();
    });
  });

  it("D4, D22 in the last turn that a run may have: its calls have results all the same", async () => {
    const url = newUrl();
    const begun = makeGate();
    const slow = effectTool("pay", async () => {
      begun.open();
      await new Promise(() => {});
      return "never";
    });
    const limits = { maxTurns: 1 };
    await withMortal(
      url,
      { agents: [scriptedAgent([payA], { tools: [slow] })] },
      async (runs, die) => {
        await runs.start("Go.", { agent: "office", id: "r", limits });
        await begun.opened;
        die();
      },
    );
    const onRequest = vi.fn<() => void>();
    const next = scriptedAgent([payA, "Done."], { tools: [pay], onRequest });
    await withWorker(url, { agents: [next] }, async (runs) => {
      const { stop, messages } = await runs.get("r").result();
      expect(stop).toBe("limit");
      expect(onRequest).not.toHaveBeenCalled();
      expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult"]);
    });
  });

  it("D22 a decision of the last turn that a run may have still counts", async () => {
    const effects: string[] = [];
    const signing = effectTool(
      "pay",
      (to) => {
        effects.push(to);
        return "paid";
      },
      { needsApproval: true },
    );
    const agent = scriptedAgent([payA, "Done."], { tools: [signing] });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office", id: "r", limits: { maxTurns: 1 } });
      await untilStatus(run, "waiting");
      const [waiting] = (await run.info()).pending;
      await run.decide({ [waiting?.toolCall.id ?? ""]: { type: "approve" } });
      const { stop, messages } = await run.result();
      expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult"]);
      expect(stop).toBe("limit");
      expect(effects).toEqual(["a"]);
    });
  });

  const PRICE = {
    type: "object",
    properties: { price: { type: "number" } },
    required: ["price"],
  } as const;
  const PRICES = { type: "array", items: { type: "number" } } as const;

  it.each([
    ["an object", PRICE, '{"price": 3}', { price: 3 }],
    ["a list that the service was asked for", PRICES, '{"answer": [1, 2]}', [1, 2]],
  ])(
    "after the last answer of a run with an output schema: %s is there",
    async (_, output, text, value) => {
      const url = newUrl();
      const agent = scriptedAgent([text]);
      const never = scriptedAgent([text], {
        shouldStopAfterTurn: () => new Promise(() => {}),
      });
      await withMortal(url, { agents: [never] }, async (runs, die) => {
        await runs.start("Go.", { agent: "office", id: "r", output });
        await vi.waitFor(
          async () => {
            const rows = await runs.store.readEntriesAfter("r", 0, 100);
            expect(rows.some(({ data }) => data.includes('"assistant"'))).toBe(true);
          },
          { timeout: 60_000 },
        );
        die();
      });
      await withWorker(url, { agents: [agent] }, async (runs) => {
        const result = await runs.get("r").result();
        expect(result.output).toEqual(value);
      });
    },
  );
});

describe("a store that fails in an unknown way", () => {
  it("D3, D11 the run goes on with what is stored, and the next one of the session knows it", async () => {
    const real = await openStore(newUrl());
    let failures = 0;
    const store = wrapStore(real, async (name, call) => {
      if (name === "append" && failures++ === 1) throw new Error("statement timeout");
      return call();
    });
    const runs = new Runs(store, { onError: () => {} });
    const agent = scriptedAgent([payA, "Done.", "Again."], { tools: [pay] });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office", id: "r", session: "s" });
    expect((await run.result()).text).toBe("Done.");
    const next = await run.prompt("More.");
    expect((await next.result()).text).toBe("Again.");
    const rows = await real.readEntriesAfter("s", 0, 100);
    expect(rows.map(({ id }) => id)).toEqual(rows.map((_, index) => index + 1));
    for (const { id, parentId } of rows) expect(parentId ?? 0).toBeLessThan(id);
    await worker.stop();
    await runs.close();
  });

  it("a claim that cannot be given back at once is given back later", async () => {
    const real = await openStore(newUrl());
    let failures = 0;
    const store = wrapStore(real, async (name, call) => {
      if (name === "append" && failures === 0) {
        failures++;
        throw new Error("broken");
      }
      if (name === "finish" && failures++ < 3) throw new Error("broken still");
      return call();
    });
    const runs = new Runs(store, { onError: () => {} });
    const worker = new Worker(runs, { agents: [scriptedAgent(["Done."])] });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office", id: "r" });
    expect((await run.result()).text).toBe("Done.");
    await worker.stop();
    await runs.close();
  });

  it("D27 a run of another version is left to others, also where the store is away meanwhile", async () => {
    const url = newUrl();
    const signing = effectTool("pay", () => "paid", { needsApproval: true });
    const old = scriptedAgent([payA, "Done."], { tools: [signing] });
    const real = await openStore(url);
    const runs = new Runs(real);
    let isAway = true;
    const store = wrapStore(real, async (name, call) => {
      if (name !== "finish" || !isAway) return call();
      isAway = false;
      throw new DurableError("unavailable", "away");
    });
    let run = runs.get("r");
    await withWorker(url, { agents: [old] }, async () => {
      run = await runs.start("Go.", { agent: "office", id: "r" });
      await untilStatus(run, "waiting");
    });
    const newer = { ...old, version: "2", accepts: () => false };
    const worker = new Worker(new Runs(store, { onError: () => {} }), { agents: [newer] });
    await worker.start();
    const [waiting] = (await run.info()).pending;
    await run.decide({ [waiting?.toolCall.id ?? ""]: { type: "approve" } });
    await vi.waitFor(() => expect(isAway).toBe(false), { timeout: 60_000 });
    await withWorker(url, { agents: [old] }, async () => {
      expect((await run.result()).text).toBe("Done.");
    });
    await worker.stop();
    await runs.close();
  });

  it("an agent whose close() throws: the run has ended, and the worker goes on", async () => {
    const agent = {
      ...scriptedAgent(["Done."]),
      close: () => {
        throw new Error("close");
      },
    };
    const onError = vi.fn<() => void>();
    const runs = new Runs(await openStore(newUrl()), { onError });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    expect((await (await runs.start("Go.", { agent: "office" })).result()).text).toBe("Done.");
    await vi.waitFor(() => expect(worker.stats).toMatchObject({ live: 0, ended: 1 }), {
      timeout: 60_000,
    });
    expect(onError).toHaveBeenCalled();
    await worker.stop();
    await runs.close();
  });
});

describe("what is asked for", () => {
  it.each([
    ["an id with NUL", { id: "a\0b" }],
    ["an id with half a character", { id: "a\ud800" }],
    ["an empty id", { id: "" }],
    ["an id that no index holds", { id: "x".repeat(5_000) }],
    ["a session with NUL", { session: "a\0b" }],
    ["a tenant with NUL", { tenant: "a\0b" }],
    ["a pool with NUL", { pool: "a\0b" }],
    ["a time that does not exist", { at: new Date(NaN) }],
    ["half a priority", { priority: 0.5 }],
  ])("%s is refused before anything is stored", async (_, options) => {
    const runs = new Runs(await openStore(newUrl()));
    const started = runs.start("Go.", { agent: "office", ...options });
    await expect(started).rejects.toMatchObject({ code: "invalid" });
    expect((await runs.list()).runs).toEqual([]);
    await runs.close();
  });

  it("a session of another tenant, and a decision that no entry holds, are refused", async () => {
    const runs = new Runs(await openStore(newUrl()));
    const run = await runs.start("Go.", { agent: "office", session: "s", tenant: "one" });
    const other = runs.start("Read it.", { agent: "office", session: "s", tenant: "two" });
    await expect(other).rejects.toMatchObject({ code: "invalid" });
    const reason = "x".repeat(17 * 1024 * 1024);
    await expect(run.abort({ reason })).rejects.toMatchObject({ code: "too_large" });
    await expect(run.abort({ key: "a\0b" })).rejects.toMatchObject({ code: "invalid" });
    await runs.close();
  });

  it("D23 a child whose id another run has: the call fails, the parent goes on", async () => {
    const child = scriptedAgent(["Child."], { name: "child" });
    const parent = scriptedAgent([callAll([["task", { prompt: "One." }]]), "Done."], {
      tools: [durableTask({ agent: "child" })],
    });
    const runs = new Runs(await openStore(newUrl()));
    const begun = makeGate();
    const agent = {
      ...parent,
      open: async (run: Parameters<typeof parent.open>[0]) => {
        const options = await parent.open(run);
        return {
          ...options,
          middleware: [
            {
              async tool(call: { toolCall: { id: string } }, next: () => Promise<never>) {
                await runs.start("Mine.", { agent: "office", id: `r/${call.toolCall.id}` });
                begun.open();
                return next();
              },
            },
          ],
        };
      },
    };
    const worker = new Worker(runs, { agents: [agent, child] });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office", id: "r" });
    await begun.opened;
    expect((await run.result()).text).toBe("Done.");
    await worker.stop({ drainMs: 0 });
    await runs.close();
  });
});

describe("a bell that cannot be rung", () => {
  it.runIf(isFile)("loses hints alone: what was stored is acknowledged", async () => {
    const url = newUrl();
    for (const name of ["wake", "log"]) mkdirSync(`${url.slice("file:".length)}-${name}`);
    await withWorker(url, { agents: [scriptedAgent(["Done."])] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      expect((await run.result()).text).toBe("Done.");
    });
  });
});

describe("an abort", () => {
  it("D4 answers a call that was left to a person while others went on", async () => {
    const begun = makeGate();
    const agent = scriptedAgent([[call("sign", {}, "c1"), call("pay", {}, "c2")]], {
      tools: [
        effectTool("sign", () => "signed", { needsApproval: true, concurrent: true }),
        {
          ...effectTool("pay", () => "paid", { concurrent: true }),
          execute: async (_args: unknown, { signal }: { signal: AbortSignal }) => {
            begun.open();
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
            return "stopped";
          },
        },
      ],
    });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      await begun.opened;
      await run.abort();
      const { stop, messages } = await run.result();
      expect(stop).toBe("aborted");
      const answered = messages.flatMap((message) =>
        message.role === "toolResult" ? [message.toolCallId] : [],
      );
      expect(answered.sort()).toEqual(["c1", "c2"]);
    });
  });
});

describe("retry", () => {
  it("D16 delivers what was sent before the run failed", async () => {
    const begun = makeGate();
    const gate = makeGate();
    let isBroken = true;
    const agent = scriptedAgent([
      async (context) => {
        begun.open();
        await gate.opened;
        if (isBroken) throw new Error("no model");
        return JSON.stringify(context.messages.at(-1)?.content);
      },
    ]);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office", id: "r" });
      await begun.opened;
      await run.steer("Use cash.");
      gate.open();
      expect((await run.result()).stop).toBe("error");
      isBroken = false;
      await run.retry();
      expect((await run.result()).text).toContain("Use cash.");
    });
  });

  it("a run that others of its session have followed is not retried", async () => {
    let isBroken = true;
    const agent = scriptedAgent([
      () => {
        if (isBroken) throw new Error("no model");
        return "Fine.";
      },
      "Second.",
    ]);
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const first = await runs.start("One.", { agent: "office", id: "r1", session: "s" });
      expect((await first.result()).stop).toBe("error");
      isBroken = false;
      await (await first.prompt("Two.")).result();
      await expect(first.retry()).rejects.toThrow(/nothing to retry/);
    });
  });
});
