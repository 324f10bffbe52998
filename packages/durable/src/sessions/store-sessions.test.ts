import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { describeSessionStorage } from "@gyre/sessions/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import { openRuns } from "../runs/open.ts";
import {
  isFile,
  openUnderTest,
  scriptedAgent,
  temporaryUrls,
  withWorker,
} from "../worker/harness.ts";

const nextUrl = temporaryUrls("sessions", afterAll);

describe("sessions of a store", () => {
  describeSessionStorage(it, () => openUnderTest(nextUrl()));
});

function user(content: string) {
  return { type: "message", message: { role: "user", content, timestamp: 1 } } as const;
}

describe("a session that a program has made", () => {
  it("has the runs that are started in it, with the messages before them", async () => {
    const agents = [scriptedAgent(["Green."])];
    await withWorker(nextUrl(), { agents }, async (runs) => {
      const session = await runs.sessions().create({ cwd: "/tea", id: "7k2m" });
      await session.append(user("I like tea."));
      await session.close();
      const run = await runs.start("Which?", { agent: "office", session: "7k2m" });
      expect((await run.result()).text).toBe("Green.");
      const again = await runs.sessions().open("7k2m");
      const { messages } = await again.context();
      expect(messages.map(({ role }) => role)).toEqual(["user", "user", "assistant"]);
      expect(again.header.cwd).toBe("/tea");
      await again.close();
    });
  });

  it("is written by its program alone: a run that is started meanwhile waits until it is closed", async () => {
    const agents = [scriptedAgent(["Green."])];
    await withWorker(nextUrl(), { agents }, async (runs) => {
      const session = await runs.sessions().create({ cwd: "/tea", id: "7k2m" });
      const run = await runs.start("Which?", { agent: "office", session: "7k2m" });
      expect((await run.info()).status).toBe("queued");
      await session.append(user("Mine."));
      await session.close();
      expect((await run.result()).text).toBe("Green.");
      const again = await runs.sessions().open("7k2m", { readOnly: true });
      expect((await again.context()).messages.slice(0, 2)).toMatchObject([
        { content: "Mine." },
        { content: "Which?" },
      ]);
    });
  });

  it("is not opened to write while a run is open, and says which", async () => {
    const runs = await openRuns(nextUrl());
    await (await runs.sessions().create({ cwd: "/tea", id: "7k2m" })).close();
    await runs.start("Which?", { agent: "office", session: "7k2m", id: "r1" });
    await expect(runs.sessions().open("7k2m")).rejects.toMatchObject({
      code: "locked",
      message: 'The session 7k2m has an open run, "r1": wait for its end, or abort it.',
    });
    await runs.close();
  });

  it("outlives its runs: prune() leaves it, and remove() takes both", async () => {
    const agents = [scriptedAgent(["Green."])];
    await withWorker(nextUrl(), { agents }, async (runs) => {
      const sessions = runs.sessions();
      await (await sessions.create({ cwd: "/tea", id: "7k2m" })).close();
      const run = await runs.start("Which?", { agent: "office", session: "7k2m" });
      await run.result();
      expect(await runs.prune({ olderThanMs: -1_000 })).toEqual({ deleted: 1 });
      expect(await sessions.find("7k2m")).toMatchObject({ firstPrompt: "Which?" });
      await sessions.remove("7k2m");
      expect(await sessions.list()).toEqual([]);
      expect(await runs.store.readEntriesAfter("7k2m", 0, 10)).toEqual([]);
    });
  });

  it("of another tenant is not there", async () => {
    const runs = await openRuns(nextUrl());
    await (await runs.sessions({ tenant: "a" }).create({ cwd: "/tea", id: "7k2m" })).close();
    const other = runs.sessions({ tenant: "b" });
    await expect(other.open("7k2m")).rejects.toMatchObject({ code: "not_found" });
    expect([await other.list(), await other.locate("7k2m")]).toEqual([[], undefined]);
    await runs.close();
  });
});

describe("a session that is bound to a pool", () => {
  it("is worked on by workers of that pool alone, also where a run names none", async () => {
    const url = nextUrl();
    const here = { agents: [scriptedAgent(["Here."])], pools: ["host:here"] };
    const there = { agents: [scriptedAgent(["There."])], pools: ["", "host:there"] };
    await withWorker(url, there, async (runs, other) => {
      await (
        await runs.sessions({ pool: "host:here" }).create({ cwd: "/tea", id: "7k2m" })
      ).close();
      const run = await runs.start("Where?", { agent: "office", session: "7k2m" });
      // The other worker works, and leaves this one.
      const beside = await runs.start("Where?", { agent: "office" });
      expect((await beside.result()).text).toBe("There.");
      expect(await run.info()).toMatchObject({ status: "ready", pool: "host:here" });
      expect((await run.info()).stuck).toContain('No worker of pool "host:here"');
      await withWorker(url, here, async () => {
        expect((await run.result()).text).toBe("Here.");
      });
      expect(other.stats.claims).toBe(1);
    });
  });

  it("refuses a run for another pool", async () => {
    const runs = await openRuns(nextUrl());
    await (await runs.sessions({ pool: "host:here" }).create({ cwd: "/tea", id: "7k2m" })).close();
    const options = { agent: "office", session: "7k2m", pool: "host:there" };
    await expect(runs.start("Go.", options)).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining('bound to another pool than "host:there"'),
    });
    await runs.close();
  });

  it("is opened to write where that pool is; elsewhere it is read and forked", async () => {
    const runs = await openRuns(nextUrl());
    const here = runs.sessions({ pool: "host:here" });
    const there = runs.sessions({ pool: "host:there" });
    const session = await here.create({ cwd: "/tea", id: "7k2m" });
    await session.append(user("a"));
    await session.close();
    await expect(there.open("7k2m")).rejects.toMatchObject({
      code: "locked",
      message: expect.stringContaining('bound to the pool "host:here"'),
    });
    expect((await there.open("7k2m", { readOnly: true })).entries).toHaveLength(1);
    const copy = await there.fork("7k2m");
    await copy.close();
    expect((await there.open(copy.header.id)).entries).toHaveLength(1);
    await runs.close();
  });
});

describe("a program that has a session open", () => {
  it("and is killed: the next one opens it at once on a file, with what was stored", async () => {
    const url = nextUrl();
    const runs = await openRuns(url);
    const child = spawn(process.execPath, [
      ...["--no-warnings", "--input-type=module", "-e"],
      `import { openRuns } from ${JSON.stringify(new URL("../../dist/index.js", import.meta.url))};
      const runs = await openRuns(${JSON.stringify(url)});
      const session = await runs.sessions({ leaseMs: 1_000 }).create({ cwd: "/tea", id: "7k2m" });
      await session.append(${JSON.stringify(user("a"))});
      console.log("open");
      setInterval(() => {}, 1_000);`,
    ]);
    await once(child.stdout, "data");
    const sessions = runs.sessions({ leaseMs: 1_000 });
    await expect(sessions.open("7k2m")).rejects.toMatchObject({
      code: "locked",
      message: expect.stringContaining(`is open in process ${child.pid} on ${hostname()}.`),
    });
    child.kill("SIGKILL");
    await once(child, "exit");
    // On Postgres its lease has to end first.
    const open = () => sessions.open("7k2m");
    const session = isFile ? await open() : await vi.waitFor(open, 10_000);
    expect((await session.context()).messages).toMatchObject([{ content: "a" }]);
    await session.append(user("b"));
    await session.close();
    expect(await runs.workers()).toEqual([]);
    await runs.close();
  });

  it("and was taken for dead goes on, unless another has written since", async () => {
    const runs = await openRuns(nextUrl());
    const session = await runs.sessions().create({ cwd: "/tea", id: "7k2m" });
    await session.append(user("a"));
    const declareDead = async (): Promise<void> => {
      for (const { id } of await runs.workers()) await runs.release(id);
    };
    await declareDead();
    expect((await session.append(user("b"))).id).toBe(2);
    await declareDead();
    const other = await runs.sessions().open("7k2m");
    await other.append(user("c"));
    await other.close();
    await expect(session.append(user("late"))).rejects.toMatchObject({ code: "lock_lost" });
    await expect(session.append(user("later"))).rejects.toMatchObject({ code: "lock_lost" });
    await session.close();
    const again = await runs.sessions().open("7k2m");
    expect((await again.context()).messages).toHaveLength(3);
    await again.close();
    await runs.close();
  });

  it("is no worker: a run that no worker has is stuck", async () => {
    const runs = await openRuns(nextUrl());
    const session = await runs.sessions().create({ cwd: "/tea" });
    const run = await runs.start("Go.", { agent: "office" });
    expect((await run.info()).stuck).toBe("There is no worker: start one.");
    await session.close();
    await runs.close();
  });
});
