import { describe, expect, it, vi } from "vitest";
import { describeStores } from "../../../../tests/support/stores.ts";
import type { ScheduleInfo } from "../contract/types.ts";
import { openRuns } from "../runs/open.ts";
import type { Runs } from "../runs/runs.ts";
import { scriptedAgent, withWorker } from "./harness.ts";
import { Worker } from "./worker.ts";

const HOUR_MS = 3_600_000;
/** A limit for what hangs: a busy machine takes long. */
const WAIT = { timeout: 100_000 };
const agents = [scriptedAgent(["Done."])];
const hourly = { agent: "office", cron: "0 * * * *" };

async function listRuns(runs: Runs): Promise<string[]> {
  return (await runs.list({ limit: 1_000 })).runs.map(({ id }) => id).sort();
}

async function find(runs: Runs, id: string): Promise<ScheduleInfo | undefined> {
  const { schedules } = await runs.schedules({ limit: 1_000 });
  return schedules.find((each) => each.id === id);
}

/** Has a schedule be due at another time. */
async function setDue(runs: Runs, id: string, nextAt: number): Promise<void> {
  const row = await runs.store.readSchedule(id);
  if (!row) throw new Error("There is no such schedule.");
  await runs.store.deleteSchedule(id);
  await runs.store.setSchedule({ ...row, nextAt });
}

describeStores("a schedule", (store) => {
  it("starts one run at its time, and the next one at the time after it", async () => {
    await withWorker(await store.create(), { agents }, async (runs) => {
      const schedule = { id: "tick", agent: "office", everyMs: 1_000 };
      const { nextAt } = await runs.schedule("Tick.", schedule);
      const due = nextAt.toISOString();
      const run = runs.get(`tick/${due}`);
      await vi.waitFor(() => run.info(), WAIT);
      expect((await run.result()).text).toBe("Done.");
      // Never early, by the clock of the store.
      expect((await run.info()).startedAt.getTime()).toBeGreaterThanOrEqual(nextAt.getTime());
      const after = await find(runs, "tick");
      expect((after?.nextAt.getTime() ?? 0) - nextAt.getTime()).toBeGreaterThanOrEqual(1_000);
      expect(((after?.nextAt.getTime() ?? 0) - nextAt.getTime()) % 1_000).toBe(0);
      expect(after).toMatchObject({ everyMs: 1_000, agent: "office", isPaused: false });
      expect(after?.lastRun).toMatch(/^tick\//);
    });
  });

  it("of many workers one starts each run", async () => {
    const url = await store.create();
    const runs = await openRuns(url);
    const names = Array.from({ length: 60 }, (_, n) => `s${n}`);
    const due = Date.now() - HOUR_MS;
    for (const id of names) {
      await runs.schedule("Go.", { id, ...hourly });
      await setDue(runs, id, due);
    }
    const others = await Promise.all(Array.from({ length: 3 }, () => openRuns(url)));
    const workers = [runs, ...others].map((each) => new Worker(each, { agents }));
    await Promise.all(workers.map((worker) => worker.start()));
    const expected = names.map((id) => `${id}/${new Date(due).toISOString()}`).sort();
    await vi.waitFor(async () => expect(await listRuns(runs)).toEqual(expected), WAIT);
    await Promise.all(expected.map((id) => runs.get(id).result()));
    const { schedules } = await runs.schedules({ limit: 1_000 });
    expect(schedules).toHaveLength(60);
    expect(schedules.every(({ nextAt }) => nextAt.getTime() > Date.now() - 1_000)).toBe(true);
    await Promise.all(workers.map((worker) => worker.stop()));
    await Promise.all([runs, ...others].map((each) => each.close()));
    // Those that ended their workers' work started nothing twice.
    expect(workers.reduce((sum, { stats }) => sum + stats.ended, 0)).toBe(60);
  });

  it("makes up for all times that were missed by one run", async () => {
    const url = await store.create();
    const runs = await openRuns(url);
    await runs.schedule("Go.", { id: "s", ...hourly });
    const missed = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 240 * HOUR_MS;
    await setDue(runs, "s", missed);
    await runs.close();
    await withWorker(url, { agents }, async (again) => {
      const run = again.get(`s/${new Date(missed).toISOString()}`);
      await vi.waitFor(() => run.info(), WAIT);
      const after = await find(again, "s");
      expect(after?.lastAt?.getTime()).toBe(missed);
      const left = (after?.nextAt.getTime() ?? 0) - Date.now();
      expect(left > -1_000 && left <= HOUR_MS).toBe(true);
      expect(await listRuns(again)).toEqual([run.id]);
    });
  });

  it("set again is the same; with another definition it is replaced", async () => {
    const runs = await openRuns(await store.create());
    const zone = { timeZone: "Europe/Berlin" };
    const first = await runs.schedule("Go.", { id: "s", ...hourly, ...zone });
    expect(first).toMatchObject({ cron: "0 * * * *", timeZone: "Europe/Berlin", isPaused: false });
    await setDue(runs, "s", 5);
    const again = await runs.schedule("Go.", { id: "s", ...hourly, ...zone });
    expect(again.nextAt.getTime()).toBe(5);
    const other = await runs.schedule("Stop.", { id: "s", ...hourly, ...zone });
    expect(other.nextAt.getTime()).toBe(first.nextAt.getTime());
    await runs.close();
  });

  it("can be paused, resumed and deleted", async () => {
    const runs = await openRuns(await store.create());
    const { nextAt } = await runs.schedule("Go.", { id: "s", ...hourly });
    await setDue(runs, "s", Date.now() - 50 * HOUR_MS);
    await runs.pauseSchedule("s");
    await runs.pauseSchedule("s");
    expect(await find(runs, "s")).toMatchObject({ isPaused: true });
    expect((await runs.store.readDue(10)).schedules).toEqual([]);
    // What was missed while it was paused is not made up for.
    await runs.resumeSchedule("s");
    expect(await find(runs, "s")).toMatchObject({ isPaused: false, nextAt });
    await runs.deleteSchedule("s");
    expect(await runs.schedules()).toEqual({ schedules: [] });
    const words = 'There is no schedule "s": schedules() has those that there are.';
    await expect(runs.deleteSchedule("s")).rejects.toThrow(words);
    await expect(runs.pauseSchedule("s")).rejects.toThrow(words);
    await expect(runs.resumeSchedule("s")).rejects.toThrow(words);
    await runs.close();
  });

  it("whose run cannot be started says why, and goes on with its next time", async () => {
    await withWorker(await store.create(), { agents }, async (runs) => {
      await (await runs.start("Go.", { agent: "office", session: "mine" })).result();
      await runs.schedule("Go.", { id: "s", ...hourly, agent: "other", session: "mine" });
      await setDue(runs, "s", Date.now() - HOUR_MS);
      const words = 'The session "mine" belongs to another agent than "other"';
      await vi.waitFor(
        async () => expect((await find(runs, "s"))?.error ?? "").toContain(words),
        WAIT,
      );
      expect((await find(runs, "s"))?.nextAt.getTime()).toBeGreaterThan(Date.now() - 1_000);
    });
  });

  it("of a tenant that has no room waits until there is some", async () => {
    const url = await store.create();
    const runs = await openRuns(url);
    await runs.limitTenant("t", { maxReady: 1 });
    const first = await runs.start("Go.", { agent: "unknown", tenant: "t" });
    await runs.schedule("Go.", { id: "s", ...hourly, tenant: "t" });
    const due = Date.now() - HOUR_MS;
    await setDue(runs, "s", due);
    const worker = new Worker(runs, { agents });
    await worker.start();
    const [row] = (await runs.store.readDue(10)).schedules;
    expect(row?.nextAt).toBe(due);
    await runs.limitTenant("t", {});
    const run = runs.get(`s/${new Date(due).toISOString()}`);
    await vi.waitFor(() => run.info(), WAIT);
    expect((await run.result()).stop).toBe("done");
    expect((await first.info()).status).toBe("ready");
    await worker.stop();
    await runs.close();
  });

  it("lists page by page", async () => {
    const runs = await openRuns(await store.create());
    for (const id of ["b", "A", "a", "é"]) await runs.schedule("Go.", { id, ...hourly });
    const first = await runs.schedules({ limit: 3 });
    expect(first).toMatchObject({ schedules: [{ id: "A" }, { id: "a" }, { id: "b" }], next: "b" });
    expect(await runs.schedules({ limit: 3, after: "b" })).toMatchObject({
      schedules: [{ id: "é" }],
    });
    await runs.close();
  });

  it.each([
    [{ id: "" }, "A schedule needs a name: give it as `id`."],
    [{ id: "s", cron: undefined }, 'Schedule "s" needs one of `cron`'],
    [{ id: "s", everyMs: 1_000 }, 'Schedule "s" needs one of `cron`'],
    [
      { id: "s", cron: undefined, everyMs: 10 },
      "`everyMs` is a whole number of at least 1000: got 10.",
    ],
    [{ id: "s", cron: "0 8 * *" }, "it has 4 fields and not five"],
    [{ id: "s", timeZone: "Berlin" }, '"Berlin" is no time zone'],
    [{ id: "s", agent: "" }, "A run needs the name of an agent"],
    [{ id: "x".repeat(500) }, "`id` of a run is a text of at most 512 bytes"],
  ])("that cannot be is an error, and nothing is stored: %j", async (options, words) => {
    const runs = await openRuns(await store.create());
    const given = { ...hourly, ...options } as Parameters<Runs["schedule"]>[1];
    await expect(runs.schedule("Go.", given)).rejects.toThrow(words);
    expect(await runs.schedules()).toEqual({ schedules: [] });
    await runs.close();
  });

  it("runs also where many others are due that cannot start now, or cannot be read", async () => {
    const url = await store.create();
    const runs = await openRuns(url, { onError: () => {} });
    await runs.limitTenant("full", { maxReady: 0 });
    const due = Date.now() - HOUR_MS;
    for (let nth = 0; nth < 60; nth++) {
      const start = { input: "Go.", options: { agent: "office", tenant: "full" } };
      const spec = '{"everyMs":1000}';
      await runs.store.setSchedule({
        ...{ id: `full-${nth}`, spec, start: JSON.stringify(start), nextAt: due - HOUR_MS },
      });
      await runs.store.setSchedule({ id: `bad-${nth}`, spec, start: "{oops", nextAt: due - 1 });
    }
    await runs.schedule("Go.", { id: "one", ...hourly });
    await setDue(runs, "one", due);
    const worker = new Worker(runs, { agents });
    await worker.start();
    const run = runs.get(`one/${new Date(due).toISOString()}`);
    await vi.waitFor(() => run.info(), { timeout: 20_000 });
    expect((await run.result()).text).toBe("Done.");
    // Each of those that cannot be read says so, and waits.
    await vi.waitFor(async () => {
      const bad = await runs.store.readSchedule("bad-59");
      expect(bad?.error).toContain("cannot be read");
      expect(bad?.nextAt).toBeGreaterThan(Date.now());
    }, WAIT);
    expect((await find(runs, "bad-59"))?.error).toContain("cannot be read");
    await worker.stop();
    expect((await runs.store.readSchedule("full-0"))?.nextAt).toBe(due - HOUR_MS);
    await runs.close();
  });
});

describe("the time of a schedule", () => {
  it(
    "is that of the database, whatever the clocks of workers say",
    { tags: "postgres" },
    async () => {
      const { startPostgres } = await import("../../../../tests/support/postgres.ts");
      const server = await startPostgres();
      const now = Date.now();
      vi.useFakeTimers({ toFake: ["Date"], now: now + 48 * HOUR_MS });
      try {
        await withWorker(server.url(), { agents }, async (runs) => {
          const { nextAt } = await runs.schedule("Go.", { id: "s", ...hourly });
          expect(nextAt.getTime() - now).toBeLessThanOrEqual(HOUR_MS);
          expect((await runs.store.readDue(10)).schedules).toEqual([]);
          const run = await runs.start("Go.", { agent: "office" });
          await run.result();
          // It ended a moment ago: by the clock of this process that was two days ago.
          expect(await runs.prune({ olderThanMs: HOUR_MS })).toEqual({ deleted: 0 });
        });
      } finally {
        vi.useRealTimers();
        await server.remove();
      }
    },
  );
});
