import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type PostgresServer, startPostgres } from "../../../../tests/support/postgres.ts";
import { Database, loadPg } from "./driver/database.ts";

describe("a store on Postgres", { tags: "postgres" }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());

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

  it("a pooler that gives each transaction another connection loses no statement", async () => {
    const database = new Database(await loadPg(), {
      ...{ url: server.url(), pool: 1, isPooled: false, onError: () => {} },
    });
    const select = (): Promise<unknown> => database.all("select 1 as n");
    await select();
    // Another connection does not have the statements that this one has kept by name.
    await database.run("deallocate all");
    expect(await Promise.all([select(), select()])).toEqual([[{ n: 1 }], [{ n: 1 }]]);
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
