import { callAll } from "@gyre/ai/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import { DurableError } from "../contract/errors.ts";
import type { Store } from "../contract/store.ts";
import type { WorkerLogLine } from "../contract/types.ts";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { effectTool, scriptedAgent, temporaryUrls, withWorker, wrapStore } from "./harness.ts";
import { Worker, type WorkerOptions } from "./worker.ts";

const newUrl = temporaryUrls("observer", afterAll);
const payA = callAll([["pay", { to: "a secret" }]]);

/** Starts a worker, and keeps its log. */
async function withLog(
  store: Store,
  options: WorkerOptions,
  act: (runs: Runs, worker: Worker, lines: WorkerLogLine[]) => Promise<void>,
): Promise<void> {
  const lines: WorkerLogLine[] = [];
  const runs = new Runs(store, { onError: () => {} });
  const worker = new Worker(runs, { ...options, onLog: (line) => lines.push(line) });
  await worker.start();
  try {
    await act(runs, worker, lines);
  } finally {
    await worker.stop({ drainMs: 0 });
    await runs.close();
  }
}

/** A worker claims the first ready session, and dies. */
async function claimAndDie(store: Store, worker: string): Promise<void> {
  await store.register({ id: worker, agents: [], pools: [""], leaseMs: 60_000 });
  const wish = { worker, agents: ["office"], refused: [], pools: [""], limit: 1, maxDeaths: 3 };
  const { claims } = await store.claim({ ...wish, alone: true });
  expect(claims).toHaveLength(1);
  // Its lease is over, and the time in which it may be busy.
  await store.heartbeat(worker, -20_000, 1);
}

const events = (lines: readonly WorkerLogLine[]): string[] => lines.map(({ event }) => event);

describe("the log of a worker", () => {
  it("has a line for each claim, park and end, and nothing of what was said", async () => {
    const tools = [effectTool("pay", (to) => `paid ${to}`, { needsApproval: true })];
    const agent = scriptedAgent([payA, "A secret answer."], { tools });
    await withLog(await openStore(newUrl()), { agents: [agent] }, async (runs, _worker, lines) => {
      const run = await runs.start("A secret prompt.", { agent: "office", id: "r", session: "s" });
      await vi.waitFor(() => expect(events(lines)).toEqual(["claim", "park"]));
      const [call] = (await run.info()).pending;
      await run.decide({ [call?.toolCall.id ?? ""]: { type: "approve" } });
      await run.result();
      await vi.waitFor(() => expect(lines).toHaveLength(4));
      expect(lines).toEqual([
        {
          ...{ event: "claim", session: "s", run: "r", agent: "office" },
          ...{ activation: 1, deaths: 0 },
        },
        { event: "park", session: "s", activation: 1, status: "waiting" },
        {
          ...{ event: "claim", session: "s", run: "r", agent: "office" },
          ...{ activation: 2, deaths: 0 },
        },
        {
          ...{ event: "end", session: "s", run: "r", stop: "done", turns: 2 },
          activeMs: expect.any(Number),
        },
      ]);
      expect(JSON.stringify(lines)).not.toContain("secret");
    });
  });

  it("has sweeps and takeovers, which are counted with the request that may be a repeat", async () => {
    const store = await openStore(newUrl());
    await new Runs(store).start("Go.", { agent: "office", id: "r" });
    await claimAndDie(store, "w1");
    const options = { agents: [scriptedAgent(["Done."])], leaseMs: 200 };
    await withLog(store, options, async (runs, worker, lines) => {
      expect((await runs.get("r").result()).text).toBe("Done.");
      await vi.waitFor(() => expect(events(lines)).toEqual(["sweep", "takeover", "end"]));
      expect(lines[0]).toEqual({ event: "sweep", workers: 1, sessions: 1 });
      expect(lines[1]).toMatchObject({ session: "r", activation: 2, deaths: 1 });
      const metrics = worker.metrics();
      expect(metrics).toContain('gyre_takeovers_total{why="expired"} 1\n');
      expect(metrics).toContain("\ngyre_model_repeats_total 1\n");
      expect(worker.stats.swept).toBe(1);
    });
  });

  it("has runs that are set aside", async () => {
    const store = await openStore(newUrl());
    await new Runs(store).start("Go.", { agent: "office", id: "r" });
    for (const worker of ["w1", "w2", "w3"]) {
      await claimAndDie(store, worker);
      await store.sweep({ expired: true, maxDeaths: 3 });
    }
    await claimAndDie(store, "w4");
    const options = { agents: [scriptedAgent(["Done."])], leaseMs: 200 };
    await withLog(store, options, async (_runs, _worker, lines) => {
      await vi.waitFor(() => expect(events(lines)).toEqual(["sweep", "aside"]));
      expect(lines[1]).toEqual({ event: "aside", session: "r", worker: "w4" });
    });
  });

  it("has claims that were lost, and counts calls that were interrupted by tool", async () => {
    const url = newUrl();
    const begun = vi.fn<() => void>();
    const pay = (): Promise<string> => (begun(), new Promise(() => {}));
    const tools = [effectTool("pay", pay)];
    const agent = scriptedAgent([payA, "Done."], { tools });
    const options = { agents: [agent], leaseMs: 200, concurrency: 1 };
    await withLog(await openStore(url), options, async (runs, worker, lines) => {
      const run = await runs.start("Go.", { agent: "office", id: "r" });
      await vi.waitFor(() => expect(begun).toHaveBeenCalledOnce());
      await runs.release(worker.id);
      expect((await run.result()).text).toBe("Done.");
      await vi.waitFor(() =>
        expect(events(lines).sort()).toEqual(["claim", "claim", "end", "fenced"]),
      );
      expect(lines).toContainEqual({ event: "fenced", session: "r", activation: 1 });
      expect(worker.metrics()).toContain('\ngyre_interrupted_total{tool="pay"} 1\n');
      expect(worker.metrics()).toContain("\ngyre_fenced_total 1\n");
    });
  });

  it("has an outage of the store, from its first failed heartbeat to its end", async () => {
    let failures = 3;
    const store = wrapStore(await openStore(newUrl()), async (name, call) => {
      if (name === "heartbeat" && failures-- > 0) throw new DurableError("unavailable", "Away.");
      return call();
    });
    await withLog(store, { agents: [], leaseMs: 100 }, async (_runs, _worker, lines) => {
      await vi.waitFor(() => expect(lines).toHaveLength(2));
      expect(lines).toEqual([
        { event: "outage", state: "begun" },
        { event: "outage", state: "over", durationMs: expect.any(Number) },
      ]);
    });
  });

  it("may fail, which ends no run", async () => {
    const reported: string[] = [];
    const onLog = (): never => {
      throw new Error("The disk is full.");
    };
    const options = { agents: [scriptedAgent(["Done."])], onLog };
    const onError = (_error: unknown, where: string): unknown => reported.push(where);
    await withWorker(newUrl(), { ...options, onError }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      expect((await run.result()).text).toBe("Done.");
      expect(new Set(reported)).toEqual(new Set(["onLog"]));
    });
  });
});

describe("the metrics of a worker", () => {
  it("have each name of the docs once, and histograms that add up", async () => {
    await withWorker(newUrl(), { agents: [scriptedAgent(["Done."])] }, async (runs, worker) => {
      await (await runs.start("Go.", { agent: "office" })).result();
      await vi.waitFor(() => expect(worker.stats.ended).toBe(1));
      const text = worker.metrics();
      const names = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name]) => name);
      expect(new Set(names).size).toBe(names.length);
      expect([...names].sort()).toEqual([
        "gyre_activations_total",
        "gyre_claims_total",
        "gyre_commit_seconds",
        "gyre_commits_total",
        "gyre_fenced_total",
        "gyre_heartbeat_age_seconds",
        "gyre_interrupted_total",
        "gyre_lost_answers_total",
        "gyre_model_repeats_total",
        "gyre_run_seconds",
        "gyre_takeovers_total",
        "gyre_worker_live",
        "gyre_worker_overloaded",
      ]);
      const [, commits] = /^gyre_commits_total (\d+)$/m.exec(text) ?? [];
      expect(Number(commits)).toBeGreaterThan(0);
      expect(text).toContain(`\ngyre_commit_seconds_bucket{le="+Inf"} ${commits}\n`);
      expect(text).toContain(`\ngyre_commit_seconds_count ${commits}\n`);
      expect(text).toContain('\ngyre_run_seconds_bucket{le="60"} 1\n');
    });
  });
});
