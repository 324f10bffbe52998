import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { defineTool } from "@gyre/agent";
import { callAll, scriptedModel } from "@gyre/ai/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type PostgresServer, startPostgres } from "../../../../tests/support/postgres.ts";
import { defineAgent } from "../contract/agent.ts";
import { openRuns } from "../runs/open.ts";
import { Database, loadPg } from "./database.ts";
import { Worker } from "../worker/worker.ts";

describe("a run on Postgres", { tags: "postgres" }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());

  it("goes through model and tools to its end", async () => {
    const runs = await openRuns(server.url());
    const model = scriptedModel([callAll([["pay", { to: "a" }]]), "Done."]);
    const pay = defineTool({
      name: "pay",
      description: "Pays",
      parameters: { type: "object", properties: { to: { type: "string" } } },
      execute: ({ to }) => `paid ${to}`,
    });
    const agent = defineAgent({
      name: "payer",
      version: "1",
      open: () => ({ model: model.model, protocol: model, tools: [pay], instructions: "Pay." }),
    });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    const run = await runs.start("Pay a.", { agent: "payer", id: "r1" });
    const seen: string[] = [];
    for await (const { seq, event } of run.watch({ deltas: false })) {
      seen.push(`${seq} ${event.type}`);
    }
    expect(seen.at(-1)).toBe("9 agent_end");
    const result = await run.result();
    expect(result.text).toBe("Done.");
    expect(await run.info()).toMatchObject({
      status: "ended",
      stop: "done",
      version: "1",
      turns: 2,
      activations: 1,
    });
    await worker.stop();
    await runs.close();
  });

  it("a connection that breaks in a transaction is an error of that transaction alone", async () => {
    const database = new Database(await loadPg(), {
      ...{ url: server.url(), pool: 2, isPooled: false, onError: () => {} },
    });
    const broken = database.transact(async (session) => {
      const own = await session.first<{ pid: number }>("select pg_backend_pid() as pid");
      await database.run("select pg_terminate_backend($1)", own?.pid);
      // The connection reports it by itself.
      await vi.waitFor(() => expect(session.run("select 1")).rejects.toThrow(/connection/i));
      return true;
    });
    await expect(broken).rejects.toMatchObject({ code: "unavailable" });
    expect(await database.first("select 1 as n")).toEqual({ n: 1 });
    await database.close();
  });

  it("a program that has nothing else to do comes to the end of close()", async () => {
    const code = `
      import { openRuns } from ${JSON.stringify(new URL("../../dist/index.js", import.meta.url).href)};
      const runs = await openRuns(${JSON.stringify(server.url())});
      const stop = runs.store.listen("work", () => {});
      await runs.list();
      await new Promise((resolve) => setTimeout(resolve, 300));
      await runs.close();
      console.log("closed");`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      ...["--input-type=module", "-e", code],
    ]);
    expect(stdout).toBe("closed\n");
  });
});
