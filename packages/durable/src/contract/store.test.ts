import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EntryRow } from "@gyre/sessions";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { type PostgresServer, startPostgres } from "../../../../tests/support/postgres.ts";
import { openStore } from "../runs/open.ts";
import type { Change, Claim, ItemKind, NewRun, Store } from "./store.ts";

// Random calls of workers and clients, made on both stores: all answers, and all that is stored
// after each call, have to be the same.

/** For many cases on a busy machine. */
const MANY_MS = 600_000;

const SESSIONS = ["s1", "s2", "s3", "s4"] as const;
const RUNS = ["r1", "r2", "r3", "r4", "r5", "r6"] as const;
const WORKERS = ["w1", "w2", "w3"] as const;
/** A time that no test reaches. */
const FAR_MS = 1e9;
/** A time of a schedule that no test reaches. */
const LATER_MS = 1e14;

const call = fc.oneof(
  fc.record({
    do: fc.constant("start" as const),
    run: fc.constantFrom(...RUNS),
    session: fc.constantFrom(...SESSIONS),
    agent: fc.constantFrom("a", "b"),
    tenant: fc.constantFrom("t1", "t2"),
    digest: fc.constantFrom("x", "y"),
    prompts: fc.integer({ min: 0, max: 2 }),
    isLater: fc.boolean(),
    parent: fc.option(fc.constantFrom(...RUNS), { nil: undefined }),
  }),
  fc.record({
    do: fc.constant("send" as const),
    run: fc.constantFrom(...RUNS),
    kind: fc.constantFrom<Exclude<ItemKind, "prompt">>("steering", "followUp", "decision", "abort"),
    key: fc.constantFrom("k1", "k2", "k3"),
  }),
  fc.record({
    do: fc.constant("claim" as const),
    worker: fc.constantFrom(...WORKERS),
    limit: fc.integer({ min: 1, max: 3 }),
    agents: fc.constantFrom(["a"], ["a", "b"]),
    refuses: fc.boolean(),
    alone: fc.boolean(),
  }),
  fc.record({
    do: fc.constant("append" as const),
    claim: fc.nat(20),
    entries: fc.integer({ min: 0, max: 3 }),
    offset: fc.constantFrom(0, 0, 0, 0, -1, 1),
    opens: fc.boolean(),
    takes: fc.boolean(),
    counts: fc.boolean(),
    text: fc.string({ unit: "binary", maxLength: 8 }),
    forges: fc.constantFrom(undefined, undefined, undefined, "token", "claim", "worker"),
  }),
  fc.record({
    do: fc.constant("finish" as const),
    claim: fc.nat(20),
    entries: fc.integer({ min: 0, max: 2 }),
    seen: fc.constantFrom("now", "now", "never", "old"),
    status: fc.constantFrom<"ready" | "waiting" | "idle">("ready", "waiting", "idle"),
    isLater: fc.boolean(),
    timer: fc.option(fc.constantFrom(0, FAR_MS), { nil: undefined }),
    child: fc.option(fc.constantFrom(...RUNS), { nil: undefined }),
    reports: fc.boolean(),
    abortsChildren: fc.boolean(),
    opens: fc.boolean(),
  }),
  fc.record({ do: fc.constant("repeat" as const), claim: fc.nat(20) }),
  fc.record({
    do: fc.constant("register" as const),
    worker: fc.constantFrom(...WORKERS),
    isDead: fc.boolean(),
  }),
  fc.record({ do: fc.constant("heartbeat" as const), worker: fc.constantFrom(...WORKERS) }),
  fc.record({ do: fc.constant("unregister" as const), worker: fc.constantFrom(...WORKERS) }),
  fc.record({ do: fc.constant("sweep" as const), maxDeaths: fc.integer({ min: 0, max: 2 }) }),
  fc.record({
    do: fc.constant("retry" as const),
    run: fc.constantFrom(...RUNS),
    key: fc.constantFrom(undefined, undefined, "k1", "k2"),
  }),
  fc.record({ do: fc.constant("prune" as const) }),
  fc.record({
    do: fc.constant("schedule" as const),
    id: fc.constantFrom("A", "a", "b"),
    spec: fc.constantFrom("1", "2"),
    isDue: fc.boolean(),
  }),
  fc.record({
    do: fc.constant("pause" as const),
    id: fc.constantFrom("A", "a", "b"),
    isPaused: fc.boolean(),
  }),
  fc.record({ do: fc.constant("unschedule" as const), id: fc.constantFrom("A", "a", "b") }),
  fc.record({
    do: fc.constant("fire" as const),
    run: fc.constantFrom(...RUNS),
    session: fc.constantFrom(...SESSIONS),
    agent: fc.constantFrom("a", "b"),
    tenant: fc.constantFrom("t1", "t2"),
    isOld: fc.boolean(),
    fails: fc.boolean(),
  }),
  fc.record({
    do: fc.constant("create" as const),
    session: fc.constantFrom(...SESSIONS),
    tenant: fc.constantFrom("t1", "t2"),
    pool: fc.constantFrom("", "", "p"),
  }),
  fc.record({
    do: fc.constant("hold" as const),
    worker: fc.constantFrom(...WORKERS),
    session: fc.constantFrom(...SESSIONS),
  }),
  fc.record({ do: fc.constant("remove" as const), session: fc.constantFrom(...SESSIONS) }),
  fc.record({
    do: fc.constant("limit" as const),
    tenant: fc.constantFrom("t1", "t2"),
    running: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
    ready: fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }),
  }),
);
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

interface Held {
  claim: Claim;
  seq: number;
  leaf: number | null;
  /** A program holds it, which opens no runs. */
  isProgram?: boolean;
}

/** One store and what its clients remember. */
class Side {
  readonly store: Store;
  readonly #claims: Held[] = [];
  #last: { claim: Claim; change: Change } | undefined;

  constructor(store: Store) {
    this.store = store;
  }

  async play(one: Call): Promise<unknown> {
    const { store } = this;
    switch (one.do) {
      case "start":
        return store.start(newRun(one));
      case "send":
        return store.send({ run: one.run, kind: one.kind, data: "{}", key: one.key });
      case "claim":
        return this.#claim(one);
      case "append":
        return this.#append(one);
      case "finish":
        return this.#finish(one);
      case "repeat":
        return this.#last ? store.append(this.#last.claim, this.#last.change) : undefined;
      case "register":
        return store.register({
          id: one.worker,
          agents: [{ name: "a", version: "1" }],
          pools: [""],
          leaseMs: one.isDead ? -FAR_MS : FAR_MS,
        });
      case "heartbeat":
        return store.heartbeat(one.worker, FAR_MS, 7);
      case "unregister":
        return store.unregister(one.worker);
      case "sweep":
        return sort(await store.sweep({ expired: true, maxDeaths: one.maxDeaths }));
      case "retry":
        return store.retry(one.run, one.key);
      case "prune":
        return store.prune(Date.now() + FAR_MS, 100);
      case "schedule": {
        const nextAt = one.isDue ? 1 : LATER_MS;
        return store.setSchedule({ id: one.id, spec: one.spec, start: "{}", nextAt });
      }
      case "pause":
        return store.pauseSchedule(one.id, one.isPaused, LATER_MS + 1);
      case "unschedule":
        return store.deleteSchedule(one.id);
      case "fire":
        return this.#fire(one);
      case "create":
        return store.sessions.create({
          ...{ id: one.session, tenant: one.tenant, pool: one.pool, cwd: "/tea", createdAt: 5 },
          ...{ source: '{"session":"s0"}', entries: [], leaf: null },
        });
      case "hold":
        return this.#hold(one);
      case "remove":
        return store.sessions.remove(one.session);
      case "limit":
        return store.setTenant({
          id: one.tenant,
          ...(one.running !== undefined && { maxRunning: one.running }),
          ...(one.ready !== undefined && { maxReady: one.ready }),
        });
    }
  }

  async #claim(one: Extract<Call, { do: "claim" }>): Promise<unknown> {
    const { claims } = await this.store.claim({
      ...{ worker: one.worker, agents: one.agents, pools: [""], limit: one.limit, maxDeaths: 1 },
      refused: one.refuses ? [{ agent: "a", version: "2" }] : [],
      alone: one.alone,
    });
    const sorted = [...claims].sort((a, b) => a.session.localeCompare(b.session));
    for (const claim of sorted) this.#claims.push({ claim, seq: claim.seq, leaf: claim.leaf });
    return sorted.map(({ claim: _claim, ...rest }) => rest);
  }

  async #hold(one: Extract<Call, { do: "hold" }>): Promise<unknown> {
    const outcome = await this.store.sessions.hold(one.worker, one.session);
    if (typeof outcome === "string" || !("claim" in outcome)) return outcome;
    this.#claims.push({ claim: outcome, seq: outcome.seq, leaf: outcome.leaf, isProgram: true });
    const { claim: _claim, ...rest } = outcome;
    return rest;
  }

  async #fire(one: Extract<Call, { do: "fire" }>): Promise<unknown> {
    const { schedules, nextInMs = 0 } = await this.store.readDue(2);
    const [schedule] = schedules;
    if (!schedule) return nextInMs > 0;
    const outcome = await this.store.fire({
      schedule: one.isOld ? { ...schedule, nextAt: 0 } : schedule,
      nextAt: LATER_MS,
      run: one.fails
        ? { error: "It failed." }
        : newRun({ ...CHILD, ...one, digest: "x", parent: undefined }),
    });
    return [schedules, nextInMs > 0, outcome];
  }

  #find(index: number): Held | undefined {
    return this.#claims[this.#claims.length - 1 - (index % Math.max(1, this.#claims.length))];
  }

  async #append(one: Extract<Call, { do: "append" }>): Promise<unknown> {
    const found = this.#find(one.claim);
    if (!found) return undefined;
    const change = await this.#change(found, one);
    const { claim } = found;
    const fence = {
      ...claim,
      ...(one.forges === "token" && { token: claim.token + 1 }),
      ...(one.forges === "claim" && { claim: "another" }),
      ...(one.forges === "worker" && { worker: "another" }),
    };
    const outcome = await this.store.append(fence, change);
    if (outcome === "done") this.#move(found, change);
    return outcome;
  }

  async #finish(one: Extract<Call, { do: "finish" }>): Promise<unknown> {
    const found = this.#find(one.claim);
    if (!found) return undefined;
    const { claim } = found;
    const change = await this.#change(found, { ...one, offset: 0, takes: false, counts: true });
    const inbox = await this.store.readInbox(claim.session);
    const seen = { now: inbox.wakes, never: undefined, old: inbox.wakes - 1 }[one.seen];
    const run = claim.run ?? (one.opens && !found.isProgram ? "r1" : undefined);
    const outcome = await this.store.finish(claim, change, {
      status: one.status,
      ...(seen !== undefined && { seen }),
      ...(one.isLater && { readyInMs: FAR_MS }),
      ...(one.status === "waiting" && { pending: "[1]" }),
      ...(one.timer !== undefined && {
        timers: [{ key: `timer:${claim.token}`, data: "{}", due: { inMs: one.timer } }],
      }),
      ...(one.child !== undefined && {
        children: [newRun({ ...CHILD, run: one.child, session: `of-${one.child}`, parent: run })],
      }),
      ...(one.status === "idle" &&
        run !== undefined && {
          end: {
            ...{ run, stop: "done", answer: "{}", abortsChildren: one.abortsChildren },
            ...(one.reports && { report: { run: "r2", key: `child:${run}`, data: "{}" } }),
          },
        }),
    });
    if (outcome === "done") this.#move(found, change);
    return outcome;
  }

  async #change(
    found: Held,
    one: {
      entries: number;
      offset: number;
      opens: boolean;
      takes: boolean;
      counts: boolean;
      text?: string;
    },
  ): Promise<Change> {
    const seq = found.seq + one.offset;
    const entries: EntryRow[] = Array.from({ length: one.entries }, (_, index) => ({
      ...{ id: seq + index + 1, parentId: index === 0 ? found.leaf : seq + index },
      ...{ type: "message", timestamp: 5 },
      data: JSON.stringify({ message: one.text ?? "\ud800 \u0000 \\" }),
    }));
    const inbox = await this.store.readInbox(found.claim.session);
    return {
      ...{ seq, entries, leaf: entries.at(-1)?.id ?? found.leaf },
      taken: one.takes ? inbox.items.slice(0, 1).map(({ id }) => id) : [],
      ...(one.opens && !found.isProgram && { opens: { run: "r1", version: "2" } }),
      ...(one.counts && { progress: { turns: 3, usage: '{"output":1}', activeMs: 9 } }),
    };
  }

  #move(found: Held, change: Change): void {
    found.seq = change.seq + change.entries.length;
    found.leaf = change.leaf;
    this.#last = { claim: found.claim, change };
  }

  /** All that is stored, without times and the numbers of inbox items. */
  async look(): Promise<unknown> {
    const { store } = this;
    const runs = await store.listRuns({ limit: 100 });
    const sessions = [...SESSIONS, ...RUNS.map((run) => `of-${run}`)];
    return {
      runs: sort(
        runs.map(({ startedAt: _startedAt, endedAt, readyAt, ...rest }) => ({
          ...rest,
          hasEnded: endedAt !== undefined,
          isLater: readyAt !== undefined,
        })),
      ),
      schedules: await store.listSchedules({ limit: 9 }),
      made: await store.sessions
        .list({ tenant: "t1", order: "created", limit: 9 })
        .then((made) => made.map(({ updatedAt: _updatedAt, ...rest }) => rest)),
      one: (await store.readRun("r1"))?.status,
      waiting: sort(
        (await store.listRuns({ statuses: ["waiting", "aside"], limit: 9 })).map(({ id }) => id),
      ),
      seqs: sort([...(await store.readSeqs(sessions))]),
      workers: sort(
        (await store.listWorkers()).map(({ id, live, leaseMs }) => [id, live, leaseMs > 0]),
      ),
      wakes: await Promise.all(WORKERS.map(async (id) => sort([...(await store.readWakes(id))]))),
      sessions: await Promise.all(
        sessions.map(async (session) => {
          const { wakes, items } = await store.readInbox(session);
          const entries = await store.readEntriesAfter(session, 0, 1_000);
          return [
            wakes,
            items.map(({ id: _id, dueInMs, ...rest }) => ({ ...rest, isDue: dueInMs <= 0 })),
            entries.map(({ timestamp: _timestamp, ...rest }) => rest),
            await store.listEntries(session),
          ];
        }),
      ),
    };
  }
}

const CHILD = { agent: "a", tenant: "t1", digest: "x", prompts: 1, isLater: false };

function newRun(one: {
  run: string;
  session: string;
  agent: string;
  tenant: string;
  digest: string;
  prompts: number;
  isLater: boolean;
  parent?: string | undefined;
}): NewRun {
  const { run, session, agent, tenant, digest, prompts, isLater, parent } = one;
  return {
    ...{ id: run, session, agent, tenant, digest, pool: "" },
    // Times are too close to decide who is first.
    priority: [...SESSIONS].findIndex((known) => known === session),
    prompt: Array.from({ length: prompts }, (_, index) => `{"message":${index}}`),
    ...(isLater && { at: Date.now() + FAR_MS }),
    ...(parent !== undefined && { parent: { run: parent, call: "c" } }),
    meta: '{"z":1,"a":2}',
  };
}

function sort<T>(values: readonly T[]): T[] {
  return [...values].sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
}

describe("both stores", { tags: "postgres" }, () => {
  let server: PostgresServer;
  const folder = mkdtempSync(join(tmpdir(), "gyre-stores-"));
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(folder, { recursive: true });
  });

  it(
    "D30 give the same answers to the same random calls, and store the same",
    { tags: ["long"], timeout: MANY_MS },
    async () => {
      const seed = pickSeed();
      const numRuns = countCases(4, 40, "GYRE_STORE_CALLS");
      console.log(`${numRuns} sequences of calls with GYRE_SEED=${seed}`);
      let files = 0;
      const postgres = await openStore(server.url(), { migrate: true });
      await postgres.close();
      await fc.assert(
        fc.asyncProperty(fc.array(call, { minLength: 5, maxLength: 40 }), async (calls) => {
          const schema = `g${++files}`;
          await server.run(`create schema ${schema}`);
          const stores = await Promise.all([
            openStore(`file:${join(folder, `${seed}-${files}.db`)}`, { synchronous: "normal" }),
            openStore(server.url(), { schema, pool: 2 }),
          ]);
          try {
            const sides = stores.map((store) => new Side(store));
            const begin: Call[] = WORKERS.map((worker) => ({
              do: "register",
              worker,
              isDead: false,
            }));
            for (const one of [...begin, ...calls]) {
              const [file, database] = await Promise.all(
                sides.map(async (side) => [await side.play(one), await side.look()]),
              );
              expect(database, JSON.stringify(one)).toEqual(file);
            }
          } finally {
            for (const store of stores) await store.close();
            await server.run(`drop schema ${schema} cascade`);
          }
        }),
        { seed, numRuns, endOnFailure: false },
      );
    },
  );
});
