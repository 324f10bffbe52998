import { copyFileSync, renameSync, rmSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { toNewRun } from "../contract/new-run.ts";
import { openRuns, openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { scriptedAgent, temporaryUrls, withWorker } from "../worker/harness.ts";
import { Worker } from "../worker/worker.ts";
import { type DriverName, openDriver } from "./driver/driver.ts";
import { listSessions } from "../sql/sessions.ts";
import { MIGRATIONS } from "./schema.ts";
import { LIST_INDEX } from "./sessions.ts";
import { SqliteStore } from "./sqlite-store.ts";

const newUrl = temporaryUrls("file", afterAll);
const hasOwn = process.getBuiltinModule("node:sqlite") !== undefined;

describe.runIf(newUrl().startsWith("file:"))("a file", () => {
  it("that is deleted under an open store: no start is acknowledged that is lost", async () => {
    const url = newUrl();
    const path = url.slice("file:".length);
    const runs = await openRuns(url);
    await runs.start("Go.", { agent: "office", id: "kept" });
    renameSync(path, `${path}.away`);
    const words = `The file ${path} was deleted or replaced while it was open: what is written is lost.`;
    const lost = [1, 2, 3].map((n) => runs.start("Go.", { agent: "office", id: `lost-${n}` }));
    for (const each of lost) await expect(each).rejects.toThrow(words);
    await expect(lost[0]).rejects.toMatchObject({ code: "no_access" });
    // Another file of that name is another store.
    copyFileSync(`${path}.away`, path);
    await expect(runs.start("Go.", { agent: "office", id: "lost-4" })).rejects.toThrow(words);
    rmSync(path);
    renameSync(`${path}.away`, path);
    await runs.start("Go.", { agent: "office", id: "back" });
    await runs.close();
    const again = await openRuns(url);
    expect((await again.list()).runs.map(({ id }) => id)).toEqual(
      expect.arrayContaining(["kept", "back"]),
    );
    await again.close();
  });

  it("of a version without summaries of sessions gets them, and lists what was written before and after", async () => {
    const url = newUrl();
    const db = await openDriver(url.slice("file:".length));
    for (const sql of MIGRATIONS.slice(0, 6)) db.exec(sql);
    db.exec(`pragma user_version = 6;
      insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, ready_at, created_at,
        updated_at) values ('old', '', '', '', 'idle', 2, 2, 1, 1, 1);
      insert into gyre_header values ('old', '/tea', null, 1);
      insert into gyre_entry values
        ('old', 1, null, 'message', '{"message":{"role":"user","content":"Which tea?"}}', 0, 5),
        ('old', 2, 1, 'title', '{"title":"Tea"}', 0, 6)`);
    db.close();
    const again = await openRuns(url);
    const facts = { title: "Tea", firstPrompt: "Which tea?" };
    expect(await again.sessions().find("old")).toMatchObject({ id: "old", ...facts });
    const opened = await again.sessions().open("old");
    await opened.append({ type: "archive", archived: true });
    await opened.close();
    expect(await again.sessions().list({ archived: true })).toMatchObject([facts]);
    await again.close();
  });

  it("of a version without the times of sessions gets them, and a page by the last write reads no other session", async () => {
    const url = newUrl();
    const db = await openDriver(url.slice("file:".length));
    for (const sql of MIGRATIONS.slice(0, 8)) db.exec(sql);
    const add = (id: string, madeAt: number, writtenAt: number | undefined): void => {
      db.exec(`insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, ready_at,
          created_at, updated_at) values ('${id}', '', '', '', 'idle', 1, 1, 1, 1, 1);
        insert into gyre_header (session, cwd, created_at) values ('${id}', '/tea', ${madeAt})`);
      if (writtenAt === undefined) return;
      db.exec(`insert into gyre_entry values ('${id}', 1, null, 'label', '{}', 0, ${writtenAt})`);
    };
    db.exec("pragma user_version = 8");
    add("last", 1, 9);
    add("first", 2, 3);
    add("empty", 5, undefined);
    db.close();
    const again = await openRuns(url);
    const order = async (): Promise<string[]> =>
      (await again.sessions().list()).map(({ id, updatedAt }) => `${id} ${updatedAt}`);
    expect(await order()).toEqual(["last 9", "empty 5", "first 3"]);
    // As a program of an older version writes it.
    const old = await openDriver(url.slice("file:".length));
    old.exec(`insert into gyre_entry values ('first', 2, null, 'label', '{}', 0, 12);
      update gyre_session set seq = 2 where id = 'first'`);
    expect(await order()).toEqual(["first 12", "last 9", "empty 5"]);
    const filter = { tenant: "", order: "updated", limit: 50 } as const;
    const { sql, values } = listSessions(filter, LIST_INDEX);
    const plan = old.prepare(`explain query plan ${sql}`).all(...values);
    expect(JSON.stringify(plan)).toContain("s USING INDEX gyre_session_written");
    expect(JSON.stringify(plan)).toContain("h USING COVERING INDEX gyre_header_listed");
    old.close();
    await again.close();
  });

  /** A worker has claimed a run, and is never heard of again; the file is then changed by `sql`. */
  async function leaveClaimed(sql: string): Promise<string> {
    const url = newUrl();
    const store = await openStore(url);
    await store.register({ id: "w1", agents: [], pools: [""], leaseMs: 600_000 });
    await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
    const wish = { agents: ["office"], refused: [], pools: [""], limit: 1, maxDeaths: 3 };
    const { claims } = await store.claim({ worker: "w1", alone: true, ...wish });
    expect(claims).toHaveLength(1);
    await store.close();
    const db = await openDriver(url.slice("file:".length));
    db.exec(sql);
    db.close();
    return url;
  }

  it.each([
    [
      "was copied from another machine, which had run for longer",
      `update gyre_worker set lease = lease + 1e12, process = json_set(process,
        '$.host', 'elsewhere', '$.boot', 'another', '$.graceMs', 100, '$.leaseMs', 100)`,
    ],
    ["has lost its workers", "delete from gyre_worker"],
    ["does not say who has them", "update gyre_session set owner = null"],
  ])("that %s: its runs go on", async (_name, sql) => {
    const url = await leaveClaimed(sql);
    const agents = [scriptedAgent(["Done."])];
    await withWorker(url, { agents, leaseMs: 300 }, async (runs) => {
      expect((await runs.get("r").result()).text).toBe("Done.");
    });
  });

  it.runIf(hasOwn)("is the same to node:sqlite and to libsql, also at once", async () => {
    const url = newUrl();
    const open = async (driver: DriverName): Promise<Runs> =>
      new Runs(await SqliteStore.open(url.slice("file:".length), { driver }));
    const sides = [await open("node:sqlite"), await open("libsql")];
    const workers = sides.map((runs) => new Worker(runs, { agents: [scriptedAgent(["Done."])] }));
    for (const worker of workers) await worker.start();
    const started = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        sides[n % 2]?.start(`Go ${n}.`, { agent: "office", id: `r${n}` }),
      ),
    );
    for (const run of started) expect((await run?.result())?.text).toBe("Done.");
    const [own, other] = await Promise.all(sides.map((runs) => runs.list()));
    expect(own?.runs).toHaveLength(40);
    expect(other).toEqual(own);
    for (const worker of workers) await worker.stop();
    for (const runs of sides) await runs.close();
  });
});
