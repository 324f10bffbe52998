import { randomUUID } from "node:crypto";
import {
  checkProcess,
  type EntryInfo,
  type EntryType,
  identifyProcess,
  type ProcessIdentity,
} from "@gyre/sessions";
import type {
  AppendOutcome,
  Change,
  Claim,
  ClaimOutcome,
  ClaimWish,
  Fence,
  Finish,
  Hint,
  Inbox,
  Interest,
  NewItem,
  NewRun,
  NewWorker,
  OpenCount,
  RunEnd,
  RunRow,
  RunRowFilter,
  SendOutcome,
  StartOutcome,
  Store,
  StoredEntry,
  SweptSession,
  TenantRow,
  WorkerRow,
} from "../contract/store.ts";
import type { StoreCheck } from "../contract/types.ts";
import { Bell } from "./bell.ts";
import { checkSqlite } from "./check.ts";
import { Connection } from "./connection.ts";
import { type DriverName, explainError, openDriver } from "./driver.ts";
import {
  type CountRecord,
  countStatement,
  type EntryRecord,
  entryValues,
  explainAside,
  isChild,
  refuseChild,
  type InboxRecord,
  listStatement,
  marks,
  type RunRecord,
  SELECT_RUN_BY_ID,
  type SessionRecord,
  toClaim,
  toCount,
  toEntry,
  toInfo,
  toItem,
  toRun,
} from "../sql/rows.ts";
import { migrate } from "./schema.ts";

export interface SqliteOptions {
  migrate?: boolean;
  synchronous?: "full" | "normal";
  /** Default: what this Node has. */
  driver?: DriverName;
}

interface WorkerRecord {
  id: string;
  lease: number;
  host: string;
  pid: number;
  process: string;
  agents: string;
  pools: string;
  started_at: number;
  live: number;
}

/** How long after its lease a worker may give no sign of life whose process is there and runs. */
const MAX_STALL_MS = 10_000;
/** Rings of a bell within this time are answered together. Those that watch can wait a little. */
const CHECK_MS: Readonly<Record<Interest, number>> = { work: 2, log: 8 };
const INSERT_ENTRY =
  "insert into gyre_entry (session, seq, parent, type, data, token, at) values (?, ?, ?, ?, ?, ?, ?)";
const INSERT_ITEM = `insert into gyre_inbox (session, run, kind, data, key, due, at)
  values (?, ?, ?, ?, ?, ?, ?) on conflict (session, key) do nothing`;
/** A waiting session gets ready; one that is set aside, or is not due yet, only where it is to end. */
const WAKE = `update gyre_session set wakes = wakes + 1,
  status = case when status = 'waiting' or (status in ('idle', 'aside') and ?) then 'ready' else status end,
  due = case when status = 'waiting' or ? then null else due end,
  ready_at = case when status = 'waiting' then ? else ready_at end where id = ?`;
/** The next run of a session says which workers may have it. */
const TAKE_POOL = `update gyre_session set pool = coalesce((select r.pool from gyre_inbox i
    join gyre_run r on r.id = i.run
    where i.session = ? and i.taken is null and i.kind = 'prompt' and i.run <> ?
    order by i.due is not null and i.due > ?, i.id limit 1), pool) where id = ?`;
const OWN = "id = ? and token = ? and claim = ? and owner = ? and status = 'running' and seq = ?";

/** One SQLite file on a local disk. */
export class SqliteStore implements Store {
  readonly name = "sqlite";
  readonly #connection: Connection;
  readonly #process: ProcessIdentity = identifyProcess();
  readonly #listeners: Record<Interest, Set<(hint: Hint) => void>> = {
    work: new Set(),
    log: new Set(),
  };
  readonly #bells: Record<Interest, Bell>;
  readonly #isChecking: Record<Interest, boolean> = { work: false, log: false };
  /** What `data_version` was at the last look: it changes with commits of others alone. */
  readonly #versions: Record<Interest, number | undefined> = { work: undefined, log: undefined };

  private constructor(connection: Connection) {
    this.#connection = connection;
    const { path } = connection;
    this.#bells = { work: new Bell(`${path}-wake`), log: new Bell(`${path}-log`) };
  }

  static async open(path: string, options: SqliteOptions = {}): Promise<SqliteStore> {
    try {
      const driver = await openDriver(path, options.driver);
      const connection = new Connection(path, driver);
      await connection.read(() => {
        driver.exec("pragma busy_timeout = 0");
        driver.exec("pragma journal_mode = wal");
        driver.exec(`pragma synchronous = ${options.synchronous ?? "full"}`);
        migrate(driver, path, options.migrate ?? true);
      });
      return new SqliteStore(connection);
    } catch (error) {
      throw explainError(path, error);
    }
  }

  check(): Promise<StoreCheck[]> {
    return checkSqlite(this.#connection);
  }

  /** Statements that were run so far, for measurements. */
  get statements(): number {
    return this.#connection.statements;
  }

  async start(run: NewRun): Promise<StartOutcome> {
    const outcome = await this.#connection.write(() => this.#start(run));
    if (outcome === "started") this.#notify("work", run.session);
    else if (outcome === "queued") this.#notify("work", run.session);
    return outcome;
  }

  #start(run: NewRun): StartOutcome {
    const db = this.#connection;
    const known = db.first<{ digest: string }>("select digest from gyre_run where id = ?", run.id);
    if (known) return known.digest === run.digest ? "known" : "other";
    // A run waits for its child, which so is never refused.
    if (!run.parent && this.#isFull(run.tenant)) return "full";
    const now = Date.now();
    const session = db.first<SessionRecord>("select * from gyre_session where id = ?", run.session);
    if (session && session.agent !== run.agent) return "agent";
    if (session && session.tenant !== run.tenant) return "tenant";
    const isOpen = !session || session.status === "idle";
    this.#insertRun(run, isOpen ? (session?.seq ?? 0) + 1 : null, now);
    if (!isOpen) {
      const data = JSON.stringify(run.prompt);
      const due = run.at ?? null;
      db.run(INSERT_ITEM, run.session, run.id, "prompt", data, `prompt:${run.id}`, due, now);
      db.run(WAKE, 0, 0, now, run.session);
      return "queued";
    }
    let { seq, leaf } = session ?? { seq: 0, leaf: null };
    for (const data of run.prompt) {
      const row = { id: ++seq, parentId: leaf, type: "message" as const, timestamp: now, data };
      db.run(INSERT_ENTRY, ...entryValues(run.session, session?.token ?? 0, row));
      leaf = seq;
    }
    const due = run.at ?? null;
    if (session) {
      db.run(
        `update gyre_session set status = 'ready', run = ?, version = '', seq = ?, leaf = ?, pool = ?,
          priority = ?, ready_at = ?, due = ?, deaths = 0, wakes = wakes + 1, updated_at = ? where id = ?`,
        ...[run.id, seq, leaf, run.pool, run.priority, now, due, now, run.session],
      );
    } else {
      db.run(
        `insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, wakes, ready_at, due,
          priority, run, created_at, updated_at) values (?, ?, ?, ?, 'ready', ?, ?, 1, ?, ?, ?, ?, ?, ?)`,
        ...[run.session, run.tenant, run.pool, run.agent, seq, leaf],
        ...[now, due, run.priority, run.id, now, now],
      );
    }
    return "started";
  }

  #insertRun(run: NewRun, firstSeq: number | null, now: number): void {
    this.#connection.run(
      `insert into gyre_run (id, session, digest, agent, tenant, pool, first_seq, parent, parent_call,
        traceparent, limits, output, meta, started_at) values (${marks(14)})`,
      ...[run.id, run.session, run.digest, run.agent, run.tenant, run.pool, firstSeq],
      ...[run.parent?.run ?? null, run.parent?.call ?? null, run.traceparent ?? null],
      ...[run.limits ?? null, run.output ?? null, run.meta ?? null, now],
    );
  }

  #isFull(tenant: string): boolean {
    const limits = this.#connection.first<{ max_ready: number | null }>(
      "select max_ready from gyre_tenant where id = ?",
      tenant,
    );
    const most = limits?.max_ready ?? Infinity;
    return most < Infinity && this.#count(tenant, "ready") >= most;
  }

  #count(tenant: string, status: "ready" | "running"): number {
    const row = this.#connection.first<{ n: number }>(
      "select count(*) as n from gyre_session where tenant = ? and status = ?",
      tenant,
      status,
    );
    return row?.n ?? 0;
  }

  async send(item: NewItem): Promise<SendOutcome> {
    const { outcome, session } = await this.#connection.write(() => this.#send(item));
    if (outcome === "sent" && session !== undefined) {
      this.#notify("work", session);
      if (item.kind === "abort") this.#notify("log", session);
    }
    return outcome;
  }

  #send({ run, kind, data, key }: NewItem): { outcome: SendOutcome; session?: string } {
    const db = this.#connection;
    const found = db.first<{ session: string; ended_at: number | null; is_behind: number }>(
      `select r.session, r.ended_at, r.parent is null and s.run is not r.id
          and (s.run is not null or s.status <> 'running') as is_behind
        from gyre_run r left join gyre_session s on s.id = r.session where r.id = ?`,
      run,
    );
    if (!found) return { outcome: "not found" };
    const { session } = found;
    const known = db.first("select 1 from gyre_inbox where session = ? and key = ?", session, key);
    if (known) return { outcome: "known" };
    if (found.ended_at !== null) return { outcome: "ended" };
    const now = Date.now();
    db.run(INSERT_ITEM, session, run, kind, data, key, null, now);
    const endsBehind = kind === "abort" && found.is_behind === 1;
    const isAbort = kind === "abort" && !endsBehind ? 1 : 0;
    db.run(WAKE, isAbort, isAbort, now, session);
    if (endsBehind) {
      db.run("update gyre_run set stop = 'aborted', ended_at = ? where id = ?", now, run);
      db.run(
        "update gyre_inbox set taken = 0 where session = ? and run = ? and taken is null",
        ...[session, run],
      );
    }
    return { outcome: "sent", session };
  }

  hasItem(run: string, key: string): Promise<boolean> {
    return this.#connection.read(
      () =>
        this.#connection.first(
          `select 1 from gyre_inbox where key = ? and session = (select session from gyre_run where id = ?)`,
          key,
          run,
        ) !== undefined,
    );
  }

  async retry(run: string): Promise<"ready" | "open" | "not found"> {
    const { outcome, session } = await this.#connection.write(() => this.#retry(run));
    if (outcome === "ready" && session !== undefined) this.#notify("work", session);
    return outcome;
  }

  #retry(id: string): { outcome: "ready" | "open" | "not found"; session?: string } {
    const db = this.#connection;
    const found = db.first<RunRecord>(SELECT_RUN_BY_ID, id);
    if (!found) return { outcome: "not found" };
    const { session, status } = found;
    const other = db.first<{ run: string | null }>(
      "select run from gyre_session where id = ?",
      session,
    )?.run;
    const isOver = status === "ended" && typeof other !== "string";
    const isLast =
      found.first_seq !== null &&
      !db.first(
        "select 1 from gyre_run where session = ? and first_seq > ?",
        session,
        found.first_seq,
      );
    if (status !== "aside" && !(isOver && isLast)) return { outcome: "open" };
    const now = Date.now();
    db.run("update gyre_run set ended_at = null, stop = null, error = null where id = ?", id);
    db.run(
      `update gyre_session set status = 'ready', run = ?, deaths = 0, ready_at = ?, due = null,
        wakes = wakes + 1 where id = ?`,
      id,
      now,
      session,
    );
    return { outcome: "ready", session };
  }

  readRun(id: string): Promise<RunRow | undefined> {
    return this.#connection.read(() => {
      const record = this.#connection.first<RunRecord>(SELECT_RUN_BY_ID, id);
      return record && toRun(record, Date.now());
    });
  }

  listRuns(filter: RunRowFilter): Promise<RunRow[]> {
    const { sql, values } = listStatement(filter);
    return this.#connection.read(() =>
      this.#connection.all<RunRecord>(sql, ...values).map((record) => toRun(record, Date.now())),
    );
  }

  listWorkers(): Promise<WorkerRow[]> {
    return this.#connection.read(() =>
      this.#readWorkers().map((record) => ({
        id: record.id,
        host: record.host,
        pid: record.pid,
        agents: JSON.parse(record.agents),
        pools: JSON.parse(record.pools),
        live: record.live,
        startedAt: record.started_at,
        leaseMs: Math.round(record.lease - readMonotonic()),
      })),
    );
  }

  countOpen(): Promise<OpenCount[]> {
    return this.#connection.read(() =>
      this.#connection.all<CountRecord>(countStatement("?"), Date.now()).map(toCount),
    );
  }

  #readWorkers(): WorkerRecord[] {
    return this.#connection.all<WorkerRecord>("select * from gyre_worker");
  }

  setTenant({ id, maxRunning, maxReady }: TenantRow): Promise<void> {
    return this.#connection.write(() => {
      this.#connection.run(
        "insert or replace into gyre_tenant values (?, ?, ?)",
        id,
        maxRunning ?? null,
        maxReady ?? null,
      );
    });
  }

  prune(endedBefore: number, limit: number): Promise<number> {
    return this.#connection.write(() => {
      const db = this.#connection;
      const runs = db.all<{ id: string; session: string }>(
        `select r.id, r.session from gyre_run r where r.ended_at < ? and not exists
          (select 1 from gyre_run c where c.parent = r.id and c.ended_at is null) limit ?`,
        endedBefore,
        limit,
      );
      for (const { id } of runs) db.run("delete from gyre_run where id = ?", id);
      for (const session of new Set(runs.map((run) => run.session))) {
        if (db.first("select 1 from gyre_run where session = ? limit 1", session)) continue;
        db.run("delete from gyre_entry where session = ?", session);
        db.run("delete from gyre_inbox where session = ?", session);
        db.run("delete from gyre_session where id = ?", session);
      }
      return runs.length;
    });
  }

  readEntriesAfter(session: string, after: number, limit: number): Promise<StoredEntry[]> {
    return this.#connection.read(() =>
      this.#connection
        .all<EntryRecord>(
          "select * from gyre_entry where session = ? and seq > ? order by seq limit ?",
          session,
          after,
          limit,
        )
        .map(toEntry),
    );
  }

  readEntries(session: string, ids: readonly number[]): Promise<StoredEntry[]> {
    return this.#connection.read(() =>
      this.#connection
        .all<EntryRecord>(
          `select * from gyre_entry where session = ? and seq in (select value from json_each(?))
            order by seq`,
          session,
          JSON.stringify(ids),
        )
        .map(toEntry),
    );
  }

  listEntries(session: string): Promise<EntryInfo[]> {
    return this.#connection.read(() =>
      this.#connection
        .all<{ seq: number; parent: number | null; type: EntryType; bytes: number }>(
          `select seq, parent, type, length(data) as bytes from gyre_entry where session = ?
            order by seq`,
          session,
        )
        .map(toInfo),
    );
  }

  readSeqs(sessions: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#connection.read(() => {
      const rows = this.#connection.all<{ id: string; seq: number }>(
        "select id, seq + wakes as seq from gyre_session where id in (select value from json_each(?))",
        JSON.stringify(sessions),
      );
      return new Map(rows.map(({ id, seq }) => [id, seq]));
    });
  }

  register({ id, agents, pools, leaseMs }: NewWorker): Promise<void> {
    const { host, pid } = this.#process;
    return this.#connection.write(() => {
      this.#connection.run(
        `insert into gyre_worker (id, lease, host, pid, process, agents, pools, started_at)
          values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do update set lease = excluded.lease,
          agents = excluded.agents, pools = excluded.pools`,
        ...[id, readMonotonic() + leaseMs, host, pid, JSON.stringify(this.#process)],
        ...[JSON.stringify(agents), JSON.stringify(pools), Date.now()],
      );
    });
  }

  heartbeat(worker: string, leaseMs: number, live: number): Promise<boolean> {
    return this.#connection.writeOne(
      () =>
        this.#connection.run(
          "update gyre_worker set lease = ?, live = ? where id = ?",
          readMonotonic() + leaseMs,
          live,
          worker,
        ) > 0,
    );
  }

  async unregister(worker: string): Promise<void> {
    await this.#connection.write(() => {
      const db = this.#connection;
      db.run("delete from gyre_worker where id = ?", worker);
      db.run(
        `update gyre_session set status = 'ready', ready_at = ?, due = null where owner = ? and status = 'running'`,
        Date.now(),
        worker,
      );
    });
    this.#notify("work");
  }

  async claim(wish: ClaimWish): Promise<ClaimOutcome> {
    const { limit, worker } = wish;
    // Most calls find nothing: they take no lock on the file.
    const nextInMs = limit < 1 ? undefined : await this.#connection.read(() => this.#readNext());
    if (nextInMs === undefined || nextInMs > 0) {
      return { claims: [], isAlive: true, ...(nextInMs !== undefined && { nextInMs }) };
    }
    return this.#connection.write(() => {
      const db = this.#connection;
      const isAlive = db.first("select 1 from gyre_worker where id = ?", worker) !== undefined;
      return { claims: isAlive ? this.#claim(wish) : [], isAlive };
    });
  }

  /** In how many milliseconds a session can be claimed; 0: perhaps now. */
  #readNext(): number | undefined {
    const db = this.#connection;
    const ready = "select 1 from gyre_session where status = 'ready' and due is null limit 1";
    if (db.first(ready)) return 0;
    const next = db.first<{ due: number }>(
      `select due from gyre_session where status in ('ready', 'waiting') and due is not null
        order by due limit 1`,
    );
    return next && Math.max(0, next.due - Date.now());
  }

  #claim(wish: ClaimWish): Claim[] {
    const db = this.#connection;
    const now = Date.now();
    db.run(
      `update gyre_session set status = 'ready', due = null, ready_at = due
        where status in ('ready', 'waiting') and due <= ?`,
      now,
    );
    const claims: Claim[] = [];
    const left = this.#readLeft();
    for (const pool of wish.pools) {
      for (;;) {
        const count = wish.limit - claims.length;
        if (count < 1) return claims;
        const found = this.#findReady(wish, pool, "deaths < ?", left, count);
        for (const session of found) {
          const most = left.get(session.tenant);
          if (most !== undefined && most < 1) continue;
          if (most !== undefined) left.set(session.tenant, most - 1);
          claims.push(this.#take(session, wish.worker, now));
        }
        // Where a tenant has reached its limit meanwhile, others may follow.
        if (left.size === 0 || found.length < count) break;
      }
    }
    if (claims.length > 0 || !wish.alone) return claims;
    for (const pool of wish.pools) {
      const [session] = this.#findReady(wish, pool, "deaths >= ?", left, 1);
      if (session) return [this.#take(session, wish.worker, now)];
    }
    return claims;
  }

  /** How many more each tenant may have running, of those that have a limit. */
  #readLeft(): Map<string, number> {
    const limits = this.#connection.all<{ id: string; max_running: number }>(
      "select id, max_running from gyre_tenant where max_running is not null",
    );
    return new Map(
      limits.map(({ id, max_running: most }) => [id, most - this.#count(id, "running")]),
    );
  }

  #findReady(
    { agents, refused, maxDeaths }: ClaimWish,
    pool: string,
    deaths: string,
    left: ReadonlyMap<string, number>,
    limit: number,
  ): SessionRecord[] {
    const full = [...left].filter(([, most]) => most < 1).map(([id]) => id);
    return this.#connection.all<SessionRecord>(
      `select * from gyre_session where status = 'ready' and pool = ? and due is null and ${deaths}
        and agent in (select value from json_each(?))
        and (version = '' or agent || ' ' || version not in (select value from json_each(?)))
        and tenant not in (select value from json_each(?))
        order by priority desc, ready_at limit ?`,
      pool,
      maxDeaths,
      JSON.stringify(agents),
      JSON.stringify(refused.map(({ agent, version }) => `${agent} ${version}`)),
      JSON.stringify(full),
      limit,
    );
  }

  #take(session: SessionRecord, worker: string, now: number): Claim {
    const db = this.#connection;
    const claim = randomUUID();
    const token = session.token + 1;
    db.run(
      `update gyre_session set status = 'running', owner = ?, token = ?, claim = ?, due = null,
        updated_at = ? where id = ?`,
      ...[worker, token, claim, now, session.id],
    );
    if (session.run !== null) {
      db.run("update gyre_run set activations = activations + 1 where id = ?", session.run);
    }
    return toClaim({ ...session, token, claim }, worker);
  }

  async append(fence: Fence, change: Change): Promise<AppendOutcome> {
    const outcome = await this.#connection.write(() => this.#append(fence, change));
    this.#notify("log", fence.session);
    return outcome;
  }

  #append(fence: Fence, change: Change): AppendOutcome {
    const { session, token, claim, worker } = fence;
    const { seq, entries, leaf } = change;
    const changed = this.#connection.run(
      `update gyre_session set seq = ?, leaf = ?, deaths = 0, updated_at = ? where ${OWN}`,
      ...[seq + entries.length, leaf, Date.now()],
      ...[session, token, claim, worker, seq],
    );
    if (changed === 0) return this.#explainMiss(fence, change, "running");
    this.#addEntries(fence, change);
    return "done";
  }

  /** Why a change met no row. With `status`: the claim is held still. */
  #explainMiss(
    { session, token, claim, worker }: Fence,
    { seq, entries }: Change,
    status?: "running",
  ): "repeated" | "fenced" {
    const row = this.#connection.first<SessionRecord>(
      "select * from gyre_session where id = ?",
      session,
    );
    const isHeld = row?.status === "running" && row.owner === worker;
    const isOurs = row?.token === token && row.claim === claim && (isHeld || !status);
    return isOurs && entries.length > 0 && row.seq === seq + entries.length ? "repeated" : "fenced";
  }

  #addEntries({ session, token }: Fence, change: Change): void {
    const db = this.#connection;
    const { entries, taken = [], opens, progress, seq } = change;
    for (const row of entries) db.run(INSERT_ENTRY, ...entryValues(session, token, row));
    for (const id of taken) db.run("update gyre_inbox set taken = ? where id = ?", token, id);
    if (opens) {
      db.run(
        "update gyre_session set run = ?, version = ? where id = ?",
        opens.run,
        opens.version,
        session,
      );
      db.run(
        `update gyre_run set first_seq = coalesce(first_seq, ?), version = ?,
          activations = max(activations, 1) where id = ?`,
        seq + 1,
        opens.version,
        opens.run,
      );
    }
    if (progress) {
      db.run(
        `update gyre_run set turns = ?, usage = ?, active_ms = ?, pending = null
          where id = (select run from gyre_session where id = ?)`,
        ...[progress.turns, progress.usage, progress.activeMs, session],
      );
    }
  }

  async finish(fence: Fence, change: Change, finish: Finish): Promise<AppendOutcome | "woken"> {
    const woken = new Set<string>();
    const outcome = await this.#connection.write(() => {
      woken.clear();
      return this.#finish(fence, change, finish, woken);
    });
    if (outcome !== "woken") this.#notify("log", fence.session);
    for (const session of woken) this.#notify("work", session);
    return outcome;
  }

  #finish(
    fence: Fence,
    change: Change,
    finish: Finish,
    woken: Set<string>,
  ): AppendOutcome | "woken" {
    const db = this.#connection;
    const { session, token, claim, worker } = fence;
    const { seen, status, end, timers = [], children = [] } = finish;
    const row = db.first<SessionRecord>(
      `select * from gyre_session where ${OWN}`,
      ...[session, token, claim, worker, change.seq],
    );
    if (!row) return this.#explainMiss(fence, change);
    if (seen !== undefined && row.wakes !== seen) return "woken";
    this.#addEntries(fence, change);
    const run = change.opens?.run ?? row.run;
    const now = Date.now();
    const dues = timers.map(({ key, data, due }) => {
      const at = "at" in due ? due.at : now + due.inMs;
      db.run(INSERT_ITEM, session, run ?? "", "decision", data, key, at, now);
      return at;
    });
    if (finish.readyInMs !== undefined) dues.push(now + finish.readyInMs);
    const seq = change.seq + change.entries.length;
    db.run(
      `update gyre_session set status = ?, owner = null, seq = ?, leaf = ?, due = ?, ready_at = ?,
        run = case when ? then null else run end,
        version = case when ? then '' else version end,
        deaths = case when ? then 0 else deaths end, updated_at = ? where id = ?`,
      ...[status, seq, change.leaf, dues.length > 0 ? Math.min(...dues) : null, now],
      ...[end ? 1 : 0, end ? 1 : 0, change.entries.length > 0 ? 1 : 0, now, session],
    );
    if (end || run === null) db.run(TAKE_POOL, session, end?.run ?? "", now, session);
    if (run !== null && !end && finish.pending !== undefined) {
      db.run("update gyre_run set pending = ? where id = ?", finish.pending, run);
    }
    if (status !== "idle") woken.add(session);
    for (const child of children) {
      const outcome = this.#start(child);
      if (outcome === "started") woken.add(child.session);
      if (outcome === "started" || outcome === "queued" || run === null) continue;
      const found = db.first<RunRecord>("select * from gyre_run where id = ?", child.id);
      if (!isChild(child, found)) this.#send({ run, ...refuseChild(child) });
    }
    if (end) this.#endRun(end, seq, now, woken);
    return "done";
  }

  #endRun(
    { run, stop, error, answer, report, abortsChildren }: RunEnd,
    seq: number,
    now: number,
    woken: Set<string>,
  ): void {
    const db = this.#connection;
    db.run(
      `update gyre_run set stop = ?, error = ?, answer = ?, pending = null, last_seq = ?, ended_at = ?
        where id = ?`,
      ...[stop, error ?? null, answer ?? null, seq, now, run],
    );
    // Messages wait: the run may be retried.
    db.run(
      `update gyre_inbox set taken = 0 where run = ? and taken is null
        and session = (select session from gyre_run where id = ?) and kind in ('decision', 'abort')`,
      ...[run, run],
    );
    const send = (item: NewItem): void => {
      const { outcome, session } = this.#send(item);
      if (outcome === "sent" && session !== undefined) woken.add(session);
    };
    if (report) send({ kind: "decision", ...report });
    if (!abortsChildren) return;
    const children = db.all<{ id: string }>(
      "select id from gyre_run where parent = ? and ended_at is null",
      run,
    );
    for (const { id } of children)
      send({ run: id, kind: "abort", data: "{}", key: `abort:${run}` });
  }

  readInbox(session: string): Promise<Inbox> {
    return this.#connection.read(() => {
      const db = this.#connection;
      // In this order: what comes between the two is seen, and seen again.
      const row = db.first<{ wakes: number }>(
        "select wakes from gyre_session where id = ?",
        session,
      );
      const items = db.all<InboxRecord>(
        "select * from gyre_inbox where session = ? and taken is null order by id",
        session,
      );
      return { wakes: row?.wakes ?? 0, items: items.map((item) => toItem(item, Date.now())) };
    });
  }

  readWakes(worker: string): Promise<ReadonlyMap<string, number>> {
    return this.#connection.read(() => {
      const rows = this.#connection.all<{ id: string; wakes: number }>(
        "select id, wakes from gyre_session where owner = ? and status = 'running'",
        worker,
      );
      return new Map(rows.map(({ id, wakes }) => [id, wakes]));
    });
  }

  async sweep({
    expired,
    maxDeaths,
  }: {
    expired: boolean;
    maxDeaths: number;
  }): Promise<SweptSession[]> {
    const workers = await this.#connection.read(() => this.#readWorkers());
    const isDead = ({ process, lease }: WorkerRecord): boolean => {
      const state = checkProcess(JSON.parse(process), this.#process);
      // A process that runs may be busy with something that gives no other work a turn.
      const overMs = readMonotonic() - lease - (state === "running" ? MAX_STALL_MS : 0);
      return state === "gone" || (expired && overMs > 0);
    };
    if (!workers.some(isDead)) return [];
    const swept = await this.#connection.write(() =>
      this.#readWorkers()
        .filter(isDead)
        .flatMap(({ id }) => this.#remove(id, maxDeaths)),
    );
    if (swept.length > 0) this.#notify("work");
    return swept;
  }

  #remove(worker: string, maxDeaths: number): SweptSession[] {
    const db = this.#connection;
    const now = Date.now();
    db.run("delete from gyre_worker where id = ?", worker);
    const sessions = db.all<SessionRecord>(
      "select * from gyre_session where owner = ? and status = 'running'",
      worker,
    );
    return sessions.map(({ id, deaths, run }) => {
      // Once more than it takes to be claimed alone.
      const status = deaths >= maxDeaths ? "aside" : "ready";
      db.run(
        "update gyre_session set status = ?, deaths = deaths + 1, ready_at = ?, due = null where id = ?",
        ...[status, now, id],
      );
      if (status === "aside") {
        db.run("update gyre_run set error = ? where id = ?", explainAside(deaths + 1), run);
      }
      return { session: id, worker, status };
    });
  }

  listen(interest: Interest, listener: (hint: Hint) => void): () => void {
    this.#listeners[interest].add(listener);
    const stop = this.#bells[interest].listen(() => this.#checkOthers(interest));
    return () => {
      this.#listeners[interest].delete(listener);
      stop();
    };
  }

  async close(): Promise<void> {
    await this.#connection.close();
    for (const interest of ["work", "log"] as const) {
      this.#listeners[interest].clear();
      this.#bells[interest].close();
    }
  }

  /** A bell was rung, perhaps by this process: only what others have committed is news. */
  #checkOthers(interest: Interest): void {
    if (this.#isChecking[interest]) return;
    this.#isChecking[interest] = true;
    setTimeout(() => {
      this.#isChecking[interest] = false;
      void this.#connection
        .read(() => this.#connection.first<{ data_version: number }>("pragma data_version"))
        .then(
          (row) => {
            if (row?.data_version === this.#versions[interest]) return;
            this.#versions[interest] = row?.data_version;
            for (const listener of [...this.#listeners[interest]]) listener({});
          },
          () => {
            // It is closed, or busy for long: callers look now and then anyway.
          },
        );
    }, CHECK_MS[interest]);
  }

  #notify(interest: Interest, session?: string): void {
    this.#bells[interest].ring();
    const hint = session === undefined ? {} : { session };
    for (const listener of [...this.#listeners[interest]]) listener(hint);
  }
}

/** Milliseconds that no change of the clock moves, the same for all processes of a machine. */
function readMonotonic(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
