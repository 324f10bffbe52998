import { callAll } from "@gyre/ai/testing";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type PostgresServer, startPostgres } from "../../../../tests/support/postgres.ts";
import type { ClaimWish, Store } from "../contract/store.ts";
import type { StoreOptions } from "../contract/types.ts";
import { openRuns, openStore } from "../runs/open.ts";
import { toNewRun } from "../contract/new-run.ts";
import { sleepTool } from "../tools/sleep.ts";
import { durableTask } from "../tools/task.ts";
import { effectTool, scriptedAgent } from "../worker/harness.ts";
import { Worker } from "../worker/worker.ts";

const original = Client.prototype.query;
const payA = callAll([["pay", { to: "a" }]]);

const wish: ClaimWish = {
  ...{ worker: "w1", agents: ["office"], refused: [], pools: [""], limit: 10 },
  ...{ maxDeaths: 3, alone: true },
};

describe("Postgres under attack", { tags: "postgres" }, () => {
  let server: PostgresServer;
  let admin: Client;
  let count = 0;
  beforeAll(async () => {
    server = await startPostgres();
    admin = new Client({ connectionString: server.url() });
    await admin.connect();
  });
  afterAll(async () => {
    await admin?.end();
    await server?.remove();
  });

  async function newSchema(name = `s${++count}`): Promise<StoreOptions> {
    await admin.query(`create schema "${name.replaceAll('"', '""')}"`);
    return { schema: name, onError: () => {} };
  }

  async function register(store: Store, ...ids: string[]): Promise<void> {
    for (const id of ids) {
      await store.register({ id, agents: [], pools: [""], leaseMs: 60_000 });
    }
  }

  it.each(['quo"te', "dollar$$&$1", "apo'strophe", "Üml äut"])(
    "a schema of any name can be used: %s",
    async (name) => {
      const options = await newSchema(name);
      const [first, second] = await Promise.all([
        openStore(server.url(), options),
        openStore(server.url(), options),
      ]);
      await first.start(toNewRun("Go.", { agent: "office", id: "r" }));
      expect((await second.readRun("r"))?.status).toBe("ready");
      await first.close();
      await second.close();
    },
  );

  it("D14 a call that waits for a connection in use is not one that the database does not answer", async () => {
    const options = await newSchema();
    const runs = await openRuns(server.url(), { ...options, pool: 1 });
    await admin.query(`begin; lock table "${options.schema}".gyre_session`);
    const starts = ["a", "b", "c"].map((id) => runs.start("Go.", { agent: "office", id }));
    // Longer than a connection may take to be made.
    await admin.query("select pg_sleep(5.5)");
    await admin.query("commit");
    expect((await Promise.all(starts)).map(({ id }) => id)).toEqual(["a", "b", "c"]);
    await runs.close();
  });

  it("D14 calls that wait for a connection fail with the one that finds the database away", async () => {
    const other = await startPostgres();
    const runs = await openRuns(other.url(), { pool: 1, onError: () => {} });
    await other.stop();
    const starts = ["a", "b", "c"].map((id) => runs.start("Go.", { agent: "office", id }));
    const outcomes = await Promise.allSettled(starts);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "unavailable" } });
    }
    await other.start();
    expect((await runs.start("Go.", { agent: "office", id: "a" })).id).toBe("a");
    await runs.close();
    await other.remove();
  });

  it("a call that waits for a connection when its store is closed is refused", async () => {
    const options = await newSchema();
    const runs = await openRuns(server.url(), { ...options, pool: 1 });
    await admin.query(`begin; lock table "${options.schema}".gyre_session`);
    const starts = ["a", "b"].map((id) => runs.start("Go.", { agent: "office", id }));
    // The first has the connection.
    await vi.waitFor(
      async () => {
        const { rows } = await admin.query("select 1 from pg_locks where not granted");
        expect(rows).toHaveLength(1);
      },
      { timeout: 10_000 },
    );
    const closed = runs.close();
    const [, second] = await Promise.allSettled([admin.query("commit"), starts[1]]);
    expect(second).toMatchObject({ status: "rejected", reason: { code: "closed" } });
    expect((await starts[0])?.id).toBe("a");
    await closed;
  });

  it("D24 a sleep of any part of a second ends", async () => {
    const runs = await openRuns(server.url(), await newSchema());
    const agent = scriptedAgent([callAll([["sleep", { seconds: 0.0011 }]]), "Done."], {
      tools: [sleepTool()],
    });
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office" });
    expect((await run.result()).text).toBe("Done.");
    await worker.stop();
    await runs.close();
  });

  it("an error text that Postgres cannot hold ends the run all the same", async () => {
    const runs = await openRuns(server.url(), await newSchema());
    const onRequest = vi.fn<() => void>();
    const agent = scriptedAgent(
      [
        () => {
          throw new Error("bad \u0000 byte \ud800");
        },
      ],
      { onRequest },
    );
    const worker = new Worker(runs, { agents: [agent] });
    await worker.start();
    const run = await runs.start("Go.", { agent: "office" });
    const { stop, error } = await run.result();
    expect(stop).toBe("error");
    expect(error).toContain("bad");
    expect(onRequest).toHaveBeenCalledTimes(1);
    await worker.stop();
    await runs.close();
  });

  it("a connection that is ended within a transaction ends no process", async () => {
    const store = await openStore(server.url(), { ...(await newSchema()), pool: 1 });
    await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
    await register(store, "w1");
    await admin.query("begin");
    await admin.query(`select * from s${count}.gyre_session for update`);
    const sent = store.send({ run: "r", kind: "steering", data: "[]", key: "k" });
    const failed = sent.catch((error: unknown) => error);
    await vi.waitFor(async () => {
      const { rows } = await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'gyre' and wait_event_type = 'Lock'`,
      );
      expect(rows).toHaveLength(1);
    });
    await admin.query("rollback");
    expect(await failed).toMatchObject({ code: "unavailable" });
    expect(await store.send({ run: "r", kind: "steering", data: "[]", key: "k" })).toBe("sent");
    await store.close();
  });

  it.each([
    ["statement_timeout", "set statement_timeout = 1000"],
    ["lock_timeout", "set lock_timeout = 1000"],
  ])("D14 a step that meets a %s waits, and goes on", async (_, setting) => {
    const options = await newSchema();
    // On a busy machine tables take longer to be made.
    const first = await openStore(server.url(), options);
    await first.start(toNewRun("Go.", { agent: "office", id: "r" }));
    await first.close();
    await admin.query(`alter role postgres ${setting}`);
    const store = await openStore(server.url(), options);
    // The connection that is used below begins with the setting.
    await store.readRun("r");
    await admin.query("alter role postgres reset all");
    await admin.query("begin");
    await admin.query(`select * from ${options.schema}.gyre_session for update`);
    const item = { run: "r", kind: "steering", data: "[]", key: "k" } as const;
    const error: unknown = await store.send(item).catch((reason: unknown) => reason);
    await admin.query("rollback");
    expect(error).toMatchObject({ code: "unavailable" });
    expect(await store.send(item)).toBe("sent");
    await store.close();
  });

  it("D14 claims that were made before their statement failed are given back", async () => {
    const options = await newSchema();
    const store = await openStore(server.url(), options);
    await register(store, "w1", "w2");
    await store.start(toNewRun("Go.", { agent: "office", id: "r1" }));
    await store.start(toNewRun("Go.", { agent: "office", id: "r2", pool: "gpu" }));
    await admin.query(`create function ${options.schema}.fail() returns trigger language plpgsql
      as $$ begin raise exception 'no'; end $$`);
    await admin.query(`create trigger fail before update on ${options.schema}.gyre_session
      for each row when (new.pool = 'gpu') execute function ${options.schema}.fail()`);
    const both = { ...wish, pools: ["", "gpu"] };
    await expect(store.claim(both)).rejects.toThrow("no");
    expect((await store.readRun("r1"))?.worker).toBe("w1");
    await admin.query(`drop trigger fail on ${options.schema}.gyre_session`);
    // Another worker of the process asks first.
    await store.claim({ ...both, worker: "w2", agents: ["another"] });
    expect((await store.claim(both)).claims).toHaveLength(2);
    await store.close();
  });

  it("D14 a claim that the database makes after its connection has broken is given back", async () => {
    const options = await newSchema();
    const { schema } = options;
    const store = await openStore(server.url(), options);
    await register(store, "w1");
    await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
    await admin.query(`create function ${schema}.fail() returns trigger language plpgsql
      as $$ begin raise exception '%', new.claim; end $$`);
    await admin.query(`create trigger fail before update on ${schema}.gyre_session
      for each row when (new.status = 'running') execute function ${schema}.fail()`);
    const error: unknown = await store.claim(wish).catch((reason: unknown) => reason);
    const claim = error instanceof Error ? error.message : "";
    await admin.query(`drop trigger fail on ${schema}.gyre_session`);
    // It looks for the lost claim, and does not find it yet.
    await store.claim({ ...wish, agents: ["another"] });
    await admin.query({
      text: `update ${schema}.gyre_session set status = 'running', owner = 'w1', token = 1, claim = $1`,
      values: [claim],
    });
    expect((await store.claim(wish)).claims).toHaveLength(1);
    await store.close();
  });

  it("D23 the same id started in many sessions at once is one run", async () => {
    const store = await openStore(server.url(), await newSchema());
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          store.start({
            ...toNewRun("Go.", { agent: "office", id: `r${round}` }),
            session: `s${round}-${index % 4}`,
          }),
        ),
      );
      expect(outcomes.filter((outcome) => outcome === "started")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === "known")).toHaveLength(7);
    }
    await store.close();
  });

  it("D29 a start in a session that is pruned in this moment is neither refused nor lost", async () => {
    const store = await openStore(server.url(), await newSchema());
    await register(store, "w1");
    for (let round = 0; round < 30; round++) {
      await store.start({ ...toNewRun("Go.", { agent: "office" }), session: "s" });
      const { claims } = await store.claim(wish);
      const [claim] = claims;
      if (!claim) throw new Error("There was nothing to claim.");
      const end = { run: claim.run ?? "", stop: "done", abortsChildren: true };
      const change = { seq: claim.seq, entries: [], leaf: claim.leaf };
      await store.finish(claim, change, { status: "idle", end });
      const next = { ...toNewRun("Next.", { agent: "office", id: `n${round}` }), session: "s" };
      const [, outcome] = await Promise.all([
        store.prune(Date.now() + 1_000_000, 100),
        store.start(next),
      ]);
      expect(outcome).toBe("started");
      const rows = await store.readEntriesAfter("s", 0, 10);
      const run = await store.readRun(`n${round}`);
      expect(rows.at(-1)?.id).toBe(run?.firstSeq);
      const again = (await store.claim(wish)).claims[0];
      if (!again) throw new Error("The start was lost.");
      await store.finish(
        again,
        { seq: again.seq, entries: [], leaf: again.leaf },
        { status: "idle", end: { run: `n${round}`, stop: "done", abortsChildren: true } },
      );
    }
    await store.close();
  });

  it("D5, D14, D23 connections are ended all the time, with one connection: all runs end, no tool runs twice", async () => {
    const runs = await openRuns(server.url(), { ...(await newSchema()), pool: 1 });
    const effects: string[] = [];
    const pay = effectTool("pay", (to) => {
      effects.push(to);
      return "paid";
    });
    const child = scriptedAgent([payA, "Child."], { name: "child", tools: [pay] });
    const parent = scriptedAgent(
      [
        callAll([
          ["task", { prompt: "One." }],
          ["task", { prompt: "Two." }],
        ]),
        payA,
        "Done.",
      ],
      { tools: [durableTask({ agent: "child" }), pay] },
    );
    const worker = new Worker(runs, { agents: [child, parent], leaseMs: 60_000 });
    await worker.start();
    const killing = (async () => {
      for (let round = 0; round < 80; round++) {
        await admin.query(
          `select pg_terminate_backend(pid), pg_sleep(0.015) from pg_stat_activity
            where application_name = 'gyre' and random() < 0.5`,
        );
      }
    })();
    const started = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        for (;;) {
          try {
            return await runs.start("Go.", { agent: "office", id: `r${index}` });
          } catch {
            // It is asked for again.
          }
        }
      }),
    );
    await killing;
    for (const run of started) {
      const result = await run.result();
      expect(result.text).toBe("Done.");
      const calls = result.messages.filter(({ role }) => role === "toolResult");
      expect(calls).toHaveLength(3);
      const rows = await runs.store.readEntriesAfter(run.id, 0, 100);
      expect(rows.map(({ id }) => id)).toEqual(rows.map((_, index) => index + 1));
    }
    expect(effects.length).toBeLessThanOrEqual(30);
    await worker.stop();
    await runs.close();
  });

  it.each([
    ["whose worker the database does not have", "delete from gyre_worker"],
    ["without the name of a worker", "update gyre_session set owner = null"],
  ])("D12 a session %s is worked on by another", async (_name, sql) => {
    const options = await newSchema();
    const store = await openStore(server.url(), options);
    await register(store, "w1");
    await store.start(toNewRun("Go.", { agent: "office", id: "r" }));
    expect((await store.claim(wish)).claims).toHaveLength(1);
    await admin.query(sql.replace("gyre_", `"${options.schema}".gyre_`));
    await store.close();
    const runs = await openRuns(server.url(), options);
    const worker = new Worker(runs, { agents: [scriptedAgent(["Done."])], leaseMs: 300 });
    await worker.start();
    expect((await runs.get("r").result()).text).toBe("Done.");
    await worker.stop();
    await runs.close();
  });

  it("D26 sessions that are set aside together share a connection, one statement at a time", async () => {
    const store = await openStore(server.url(), await newSchema());
    await store.register({ id: "w1", agents: [], pools: [""], leaseMs: 60_000 });
    for (const id of ["a", "b", "c"]) {
      await store.start(toNewRun("Go.", { agent: "office", id, session: id }));
    }
    expect((await store.claim(wish)).claims).toHaveLength(3);
    await store.heartbeat("w1", -1, 3);
    const queries = vi.spyOn(Client.prototype, "query");
    const busy = new Set<Client>();
    const overlaps: unknown[] = [];
    queries.mockImplementation(function query(this: Client, ...args: unknown[]) {
      if (busy.has(this)) overlaps.push(args[0]);
      busy.add(this);
      const result: unknown = Reflect.apply(original, this, args);
      return Promise.resolve(result).finally(() => busy.delete(this)) as never;
    });
    try {
      const swept = await store.sweep({ expired: true, maxDeaths: 0 });
      expect(swept.map(({ status }) => status)).toEqual(["aside", "aside", "aside"]);
    } finally {
      queries.mockRestore();
    }
    expect(overlaps).toEqual([]);
    expect((await store.readRun("b"))?.error).toContain("set aside");
    await store.close();
  });
});
