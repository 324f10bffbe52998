import { callAll } from "@gyre/ai/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PostgresServer, startPostgres } from "../../../../tests/support/postgres.ts";
import { openRuns } from "../runs/open.ts";
import { effectTool, scriptedAgent } from "../worker/harness.ts";
import { Worker } from "../worker/worker.ts";

describe("a database with settings of its own", { tags: "postgres" }, () => {
  let server: PostgresServer;
  let count = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());
  const create = async (): Promise<{ name: string; url: string }> => {
    const name = `settings_${++count}`;
    await server.run(`create database ${name}`);
    return { name, url: server.url(name) };
  };

  it("serializable by default: all runs end", async () => {
    const { name, url } = await create();
    await server.run(`alter database ${name} set default_transaction_isolation = 'serializable'`);
    const [one, other] = [await openRuns(url), await openRuns(url)];
    const answers = [callAll([["pay", { to: "a" }]]), "Done."];
    const paid: string[] = [];
    const tools = [effectTool("pay", (to) => String(paid.push(to)))];
    const agents = [scriptedAgent(answers, { tools })];
    await one.limitTenant("", { maxRunning: 10 });
    const workers = [one, other].map((runs) => new Worker(runs, { agents }));
    for (const worker of workers) await worker.start();
    const runs = await Promise.all(
      Array.from({ length: 30 }, (_, n) => one.start("Go.", { agent: "office", id: `r${n}` })),
    );
    for (const run of runs) expect((await run.result()).text).toBe("Done.");
    expect(paid).toHaveLength(30);
    for (const worker of workers) await worker.stop();
    await one.close();
    await other.close();
  });

  it("a user that may only read", async () => {
    const { url } = await create();
    const runs = await openRuns(url);
    await runs.start("Go.", { agent: "office", id: "r" });
    await runs.close();
    await server.run("create role reader login");
    await server.run("grant select on all tables in schema public to reader", url);
    const reader = await openRuns(url.replace("postgres@", "reader@"));
    expect((await reader.list()).runs).toHaveLength(1);
    const start = reader.start("Go.", { agent: "office", id: "other" });
    await expect(start).rejects.toMatchObject({ code: "no_access" });
    await expect(start).rejects.toThrow(
      "the user has no right to do that: grant it SELECT, INSERT, UPDATE and DELETE on the tables",
    );
    expect((await reader.list()).runs).toHaveLength(1);
    await reader.close();
  });

  it("a database that takes no writes", async () => {
    const { name, url } = await create();
    await (await openRuns(url)).close();
    await server.run(`alter database ${name} set default_transaction_read_only = on`);
    const runs = await openRuns(url);
    const start = runs.start("Go.", { agent: "office" });
    await expect(start).rejects.toMatchObject({ code: "unavailable" });
    await expect(start).rejects.toThrow(
      "takes no writes: it is a replica, or this user or database",
    );
    await expect(start).rejects.toThrow(
      "Give the address of the primary, or a user that may write.",
    );
    expect((await runs.list()).runs).toEqual([]);
    await runs.close();
  });
});
