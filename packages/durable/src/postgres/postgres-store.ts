import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { EntryInfo, EntryType } from "@gyre/sessions";
import {
  type CountRecord,
  countStatement,
  type EntryRecord,
  explainAside,
  isChild,
  refuseChild,
  type InboxRecord,
  listStatement,
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
import type {
  AppendOutcome,
  Change,
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
import type { StoreCheck, StoreOptions } from "../contract/types.ts";
import { checkPostgres } from "./check.ts";
import { Database, explainError, loadPg, Rollback, type Session } from "./database.ts";
import { Notifier } from "./notifier.ts";
import { migrate } from "./schema.ts";

const DEFAULT_POOL = 10;
/** Claims of tenants with limits are made one after the other. */
const CLAIM_LOCK = 4_715_020_212;
const STAY_MS = 1_000;
const UNIQUE_VIOLATION = "23505";
/** How long a statement whose connection has broken may still be made. */
const LOST_CLAIM_MS = 600_000;

/** By the clock of the database, at the beginning of the transaction. */
const NOW = "(extract(epoch from now()) * 1000)::bigint";

const OWN =
  "id = $1 and token = $2 and claim = $3 and owner = $4 and status = 'running' and seq = $5";

/** A run in a session that nothing else has: one statement, and so one round trip. */
const START_FRESH = `with session as (
    insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, wakes, ready_at, due,
      priority, run, created_at, updated_at)
    select $1, $2, $3, $4, 'ready', $5::bigint, nullif($5::bigint, 0), 1, ${NOW}, $6::bigint, $7::bigint, $8,
      ${NOW}, ${NOW}
    where ($10::text is not null
        or not exists (select 1 from gyre_tenant where id = $2 and max_ready is not null))
      and not exists (select 1 from gyre_run where id = $8)
    on conflict do nothing returning id
  ), run as (
    insert into gyre_run (id, session, digest, agent, tenant, pool, first_seq, parent, parent_call,
      traceparent, limits, output, meta, started_at)
    select $8, id, $9, $4, $2, $3, 1, $10, $11, $12, $13, $14, $15, ${NOW} from session
  ), entries as (
    insert into gyre_entry (session, seq, parent, type, data, token, at)
    select session.id, at.n, nullif(at.n - 1, 0), 'message', at.data, 0, ${NOW}
    from session, unnest($16::text[]) with ordinality as at(data, n)
  ) select id from session`;

const INSERT_RUN = `insert into gyre_run (id, session, digest, agent, tenant, pool, first_seq, parent,
    parent_call, traceparent, limits, output, meta, started_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, ${NOW})`;

/** A waiting session gets ready; one that is set aside, or is not due yet, only where it is to end. */
const WAKE = `update gyre_session set wakes = wakes + 1,
  status = case when status = 'waiting' or (status in ('idle', 'aside') and $2) then 'ready' else status end,
  due = case when status = 'waiting' or $2 then null else due end,
  ready_at = case when status = 'waiting' then ${NOW} else ready_at end
  where id = $1`;

/** The run may have ended, and the item may be there, since the caller looked. */
const INSERT_ITEM = `insert into gyre_inbox (session, run, kind, data, key, due, at)
  select session, id, $2, $3, $4, $5::bigint, ${NOW} from gyre_run where id = $1 and ended_at is null
  on conflict (session, key) do nothing`;

/** The next run of a session says which workers may have it. */
const TAKE_POOL = `update gyre_session set pool = coalesce((select r.pool from gyre_inbox i
    join gyre_run r on r.id = i.run
    where i.session = $1 and i.taken is null and i.kind = 'prompt' and i.run <> $2
    order by i.due is not null and i.due > ${NOW}, i.id limit 1), pool) where id = $1`;

const READY = `status = 'ready' and pool = $1 and due is null and agent = any($3)
  and (version = '' or agent || ' ' || version <> all($4))`;

/** The worker's row is locked, so that no sweep removes it meanwhile. */
const CLAIM_FREE = `with me as materialized (select id from gyre_worker where id = $5 for share),
  found as materialized (
    select id from gyre_session where ${READY} and deaths < $2 and exists (select 1 from me)
      and not exists (select 1 from gyre_tenant where max_running is not null)
    order by priority desc, ready_at limit $6 for update skip locked
  ), claimed as (
    update gyre_session s set status = 'running', owner = $5, token = s.token + 1,
      claim = $7::text || ':' || s.token, due = null, updated_at = ${NOW}
    from found where s.id = found.id returning s.*
  ), counted as (
    update gyre_run r set activations = r.activations + 1 from claimed where r.id = claimed.run
  ) select * from claimed order by priority desc`;

const CLAIM_THESE = `with claimed as (
    update gyre_session set status = 'running', owner = $2, token = token + 1,
      claim = $3::text || ':' || token, due = null, updated_at = ${NOW}
    where id = any($1) returning *
  ), counted as (
    update gyre_run r set activations = r.activations + 1 from claimed where r.id = claimed.run
  ) select * from claimed`;

/** What is to do before and after a claim: one round trip. */
const LOOK_AROUND = `with due as (
    update gyre_session s set status = 'ready', due = null, ready_at = s.due from (
      select id from gyre_session where status in ('ready', 'waiting') and due <= ${NOW}
      for update skip locked) found
    where s.id = found.id returning 1
  ) select exists (select 1 from gyre_worker where id = $1) as alive,
    exists (select 1 from gyre_tenant where max_running is not null) as capped,
    (select count(*) from due) > 0 or exists (
      select 1 from gyre_session where status = 'ready' and due is null) as ready,
    (select min(due) from gyre_session where status in ('ready', 'waiting') and due > ${NOW}) - ${NOW} as next`;

/**
 * A step: entries, what they deliver, and how far the run has come. The open run is updated once,
 * as a statement cannot change a row twice.
 */
const APPEND = `with own as (
    update gyre_session set seq = $6, leaf = $7, deaths = 0, updated_at = ${NOW},
      run = coalesce($8, run), version = coalesce($9, version)
    where ${OWN} returning id, run
  ), entries as (
    insert into gyre_entry (session, seq, parent, type, data, token, at)
    select own.id, e.seq, e.parent, e.type, e.data, $2, e.at from own,
      unnest($10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::bigint[])
        as e(seq, parent, type, data, at)
  ), delivered as (
    update gyre_inbox set taken = $2 where id = any($15::bigint[]) and exists (select 1 from own)
  ), counted as (
    update gyre_run r set
      first_seq = case when $8::text is null then r.first_seq else coalesce(r.first_seq, $5 + 1) end,
      version = coalesce($9, r.version),
      activations = case when $8::text is null then r.activations else greatest(r.activations, 1) end,
      turns = coalesce($16, r.turns), usage = coalesce($17, r.usage),
      active_ms = coalesce($18, r.active_ms),
      pending = case when $16::bigint is null then r.pending end
    from own where r.id = own.run and ($8::text is not null or $16::bigint is not null)
  ) select id from own`;

/** One Postgres, for workers on any number of machines. */
export class PostgresStore implements Store {
  readonly name = "postgres";
  readonly #database: Database;
  /** Leases do not wait behind work. */
  readonly #leases: Database;
  readonly #notifier: Notifier;
  /** Claims whose answer was lost, and when: this process does not work on them. */
  readonly #lostClaims = new Map<string, { worker: string; at: number }>();

  private constructor(database: Database, leases: Database, notifier: Notifier) {
    this.#database = database;
    this.#leases = leases;
    this.#notifier = notifier;
  }

  static async open(url: string, options: StoreOptions = {}): Promise<PostgresStore> {
    const pg = await loadPg();
    const { schema, listenUrl, pool = DEFAULT_POOL } = options;
    const onError = options.onError ?? ((error) => process.emitWarning(String(error)));
    const shared = { url, schema, isPooled: listenUrl !== undefined, onError };
    const database = new Database(pg, { ...shared, pool });
    try {
      const place = database.place;
      await database.transact(async (session) => {
        await migrate(session, place, options.migrate ?? true);
        return true;
      });
    } catch (error) {
      await database.close();
      throw explainError(database.place, error);
    }
    const leases = new Database(pg, { ...shared, pool: 1 });
    const notifier = new Notifier({
      ...{ pg, database, onError },
      listenUrl: listenUrl ?? url,
      schema: schema ?? "",
    });
    return new PostgresStore(database, leases, notifier);
  }

  async countOpen(): Promise<OpenCount[]> {
    return (await this.#database.all<CountRecord>(countStatement(NOW))).map(toCount);
  }

  check(): Promise<StoreCheck[]> {
    return checkPostgres(this.#database, this.#notifier);
  }

  /** Statements that were run so far, for measurements. */
  get statements(): number {
    return this.#database.statements + this.#leases.statements + this.#notifier.sent;
  }

  async start(run: NewRun): Promise<StartOutcome> {
    const outcome = (await this.#startFresh(run)) ? "started" : await this.#startBeside(run);
    if (outcome === "started" || outcome === "queued") this.#notifier.notify("work", run.session);
    return outcome;
  }

  async #startFresh(run: NewRun): Promise<boolean> {
    try {
      const started = await this.#database.run(
        START_FRESH,
        ...[run.session, run.tenant, run.pool, run.agent, run.prompt.length, run.at ?? null],
        ...[run.priority, run.id, run.digest, run.parent?.run ?? null, run.parent?.call ?? null],
        ...[run.traceparent ?? null, run.limits ?? null, run.output ?? null, run.meta ?? null],
        run.prompt,
      );
      return started > 0;
    } catch (error) {
      // Another process starts the same run in this moment.
      if (isUniqueViolation(error)) return false;
      throw error;
    }
  }

  async #startBeside(run: NewRun, isAgain = false): Promise<StartOutcome> {
    try {
      const started = await this.#database.transact(async (db) => {
        const outcome = await this.#start(db, run);
        return outcome === "started" || outcome === "queued" ? outcome : new Rollback(outcome);
      });
      return started instanceof Rollback ? started.value : started;
    } catch (error) {
      // The same run was started in another session in this moment.
      if (isAgain || !isUniqueViolation(error)) throw error;
      return this.#startBeside(run, true);
    }
  }

  async #start(db: Session, run: NewRun): Promise<StartOutcome> {
    const known = await readDigest(db, run.id);
    if (known !== undefined) return known === run.digest ? "known" : "other";
    const session = await lockSession(db, run);
    const rival = await readDigest(db, run.id);
    if (rival !== undefined) return rival === run.digest ? "known" : "other";
    // A run waits for its child, which so is never refused.
    if (!run.parent && (await this.#isFull(db, run.tenant))) return "full";
    if (session.agent !== run.agent) return "agent";
    if (session.tenant !== run.tenant) return "tenant";
    const isOpen = session.status === "idle";
    await db.run(
      INSERT_RUN,
      ...[run.id, run.session, run.digest, run.agent, run.tenant, run.pool],
      ...[isOpen ? session.seq + 1 : null, run.parent?.run ?? null, run.parent?.call ?? null],
      ...[run.traceparent ?? null, run.limits ?? null, run.output ?? null, run.meta ?? null],
    );
    if (!isOpen) {
      const data = JSON.stringify(run.prompt);
      await db.run(INSERT_ITEM, run.id, "prompt", data, `prompt:${run.id}`, run.at ?? null);
      await db.run(WAKE, run.session, false);
      return "queued";
    }
    const { seq, leaf, token } = session;
    const last = seq + run.prompt.length;
    await db.run(
      `insert into gyre_entry (session, seq, parent, type, data, token, at)
        select $1, $2 + n, case when n = 1 then $3 else $2 + n - 1 end, 'message', data, $4::bigint, ${NOW}
        from unnest($5::text[]) with ordinality as e(data, n)`,
      ...[run.session, seq, leaf, token, run.prompt],
    );
    await db.run(
      `update gyre_session set status = 'ready', run = $2, version = '', seq = $3,
        leaf = $4, pool = $5, priority = $6, ready_at = ${NOW}, due = $7,
        deaths = 0, wakes = wakes + 1, updated_at = ${NOW} where id = $1`,
      ...[run.session, run.id, last, last > seq ? last : leaf],
      ...[run.pool, run.priority, run.at ?? null],
    );
    return "started";
  }

  async #isFull(db: Session, tenant: string): Promise<boolean> {
    // The tenant's row is locked, so that two starts do not both take the last place.
    const limits = await db.first<{ max_ready: number | null }>(
      "select max_ready from gyre_tenant where id = $1 for update",
      tenant,
    );
    const most = limits?.max_ready ?? undefined;
    if (most === undefined) return false;
    const row = await db.first<{ n: number }>(
      "select count(*) as n from gyre_session where tenant = $1 and status = 'ready'",
      tenant,
    );
    return (row?.n ?? 0) >= most;
  }

  async send(item: NewItem): Promise<SendOutcome> {
    const found = await this.#database.first<{ session: string }>(
      "select session from gyre_run where id = $1",
      item.run,
    );
    if (!found) return "not found";
    const sent = await this.#database.transact((db) => this.#send(db, found.session, item));
    if (!sent) {
      return (await this.hasItem(item.run, item.key)) ? "known" : "ended";
    }
    this.#notifier.notify("work", found.session);
    if (item.kind === "abort") this.#notifier.notify("log", found.session);
    return "sent";
  }

  /** The row of the session is locked before anything is looked at. */
  async #send(db: Session, session: string, item: NewItem): Promise<true | undefined> {
    const { run, kind, data, key } = item;
    const endsBehind = kind === "abort" && (await isBehind(db, session, run));
    await db.run(WAKE, session, kind === "abort" && !endsBehind);
    if ((await db.run(INSERT_ITEM, run, kind, data, key, null)) === 0) return undefined;
    if (endsBehind) {
      await db.run(`update gyre_run set stop = 'aborted', ended_at = ${NOW} where id = $1`, run);
      await db.run("update gyre_inbox set taken = 0 where run = $1 and taken is null", run);
    }
    return true;
  }

  async hasItem(run: string, key: string): Promise<boolean> {
    const found = await this.#database.first(
      `select 1 from gyre_inbox where key = $1
        and session = (select session from gyre_run where id = $2)`,
      ...[key, run],
    );
    return found !== undefined;
  }

  async retry(run: string): Promise<"ready" | "open" | "not found"> {
    const found = await this.readRun(run);
    if (!found) return "not found";
    const isReady = await this.#database.transact((db) => this.#retry(db, found));
    if (!isReady) return "open";
    this.#notifier.notify("work", found.session);
    return "ready";
  }

  async #retry(db: Session, { id, session }: RunRow): Promise<true | undefined> {
    const changed = await db.run(
      `update gyre_session s set status = 'ready', run = $2, deaths = 0, ready_at = ${NOW},
        due = null, wakes = wakes + 1 where id = $1 and ((status = 'aside' and run = $2) or (run is null
        and exists (select 1 from gyre_run r where id = $2 and ended_at is not null
          and first_seq is not null and not exists
            (select 1 from gyre_run o where o.session = $1 and o.first_seq > r.first_seq))))`,
      ...[session, id],
    );
    if (changed === 0) return undefined;
    await db.run(
      "update gyre_run set ended_at = null, stop = null, error = null where id = $1",
      id,
    );
    return true;
  }

  async readRun(id: string): Promise<RunRow | undefined> {
    const [row] = await this.#listRuns(SELECT_RUN_BY_ID, [id]);
    return row;
  }

  listRuns(filter: RunRowFilter): Promise<RunRow[]> {
    const { sql, values } = listStatement(filter);
    return this.#listRuns(sql, values);
  }

  async #listRuns(sql: string, values: readonly unknown[]): Promise<RunRow[]> {
    const numbered = numberMarks(sql).replace("select r.*", `select ${NOW} as now, r.*`);
    const rows = await this.#database.all<RunRecord & { now: number }>(numbered, ...values);
    return rows.map((row) => toRun(row, row.now));
  }

  async listWorkers(): Promise<WorkerRow[]> {
    const rows = await this.#database.all<WorkerRecord>(
      `select *, lease - ${NOW} as left_ms from gyre_worker order by started_at, id`,
    );
    return rows.map((row) => ({
      ...{ id: row.id, host: row.host, pid: row.pid, live: row.live },
      ...{ startedAt: row.started_at, leaseMs: row.left_ms },
      agents: JSON.parse(row.agents),
      pools: JSON.parse(row.pools),
    }));
  }

  async setTenant({ id, maxRunning, maxReady }: TenantRow): Promise<void> {
    await this.#database.run(
      `insert into gyre_tenant values ($1, $2, $3) on conflict (id) do update
        set max_running = excluded.max_running, max_ready = excluded.max_ready`,
      ...[id, maxRunning ?? null, maxReady ?? null],
    );
  }

  async prune(endedBefore: number, limit: number): Promise<number> {
    const deleted = await this.#database.transact(async (db) => {
      const runs = await db.all<{ id: string; session: string }>(
        `delete from gyre_run where id in (select r.id from gyre_run r where r.ended_at < $1
          and not exists (select 1 from gyre_run c where c.parent = r.id and c.ended_at is null)
          order by r.ended_at limit $2 for update skip locked) returning id, session`,
        ...[endedBefore, limit],
      );
      const sessions = [...new Set(runs.map(({ session }) => session))];
      const empty = await db.all<{ id: string }>(
        `select id from gyre_session s where id = any($1) and status = 'idle'
          and not exists (select 1 from gyre_run where session = s.id) for update`,
        sessions,
      );
      const ids = empty.map(({ id }) => id);
      await db.run("delete from gyre_entry where session = any($1)", ids);
      await db.run("delete from gyre_inbox where session = any($1)", ids);
      // A run may have been started since: its session stays.
      await db.run(
        `delete from gyre_session s where id = any($1) and status = 'idle'
          and not exists (select 1 from gyre_run where session = s.id)`,
        ids,
      );
      return runs.length;
    });
    return deleted;
  }

  async readEntriesAfter(session: string, after: number, limit: number): Promise<StoredEntry[]> {
    const rows = await this.#database.all<EntryRecord>(
      "select * from gyre_entry where session = $1 and seq > $2 order by seq limit $3",
      ...[session, after, limit],
    );
    return rows.map(toEntry);
  }

  async readEntries(session: string, ids: readonly number[]): Promise<StoredEntry[]> {
    const rows = await this.#database.all<EntryRecord>(
      "select * from gyre_entry where session = $1 and seq = any($2) order by seq",
      ...[session, ids],
    );
    return rows.map(toEntry);
  }

  async listEntries(session: string): Promise<EntryInfo[]> {
    const rows = await this.#database.all<{
      seq: number;
      parent: number | null;
      type: EntryType;
      bytes: number;
    }>(
      `select seq, parent, type, length(data) as bytes from gyre_entry where session = $1
        order by seq`,
      session,
    );
    return rows.map(toInfo);
  }

  async readSeqs(sessions: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.all<{ id: string; seq: number }>(
      "select id, seq + wakes as seq from gyre_session where id = any($1)",
      sessions,
    );
    return new Map(rows.map(({ id, seq }) => [id, seq]));
  }

  async register({ id, agents, pools, leaseMs }: NewWorker): Promise<void> {
    await this.#leases.run(
      `insert into gyre_worker (id, lease, host, pid, agents, pools, started_at)
        values ($1, ${NOW} + $2, $3, $4, $5, $6, ${NOW}) on conflict (id) do update set
        lease = excluded.lease, agents = excluded.agents, pools = excluded.pools`,
      ...[id, leaseMs, hostname(), process.pid, JSON.stringify(agents), JSON.stringify(pools)],
    );
  }

  async heartbeat(worker: string, leaseMs: number, live: number): Promise<boolean> {
    const renewed = await this.#leases.run(
      `update gyre_worker set lease = ${NOW} + $2, live = $3 where id = $1`,
      ...[worker, leaseMs, live],
    );
    return renewed > 0;
  }

  async unregister(worker: string): Promise<void> {
    const sessions = await this.#database.transact(async (db) => {
      await db.run("delete from gyre_worker where id = $1", worker);
      // A statement of its own: it sees what the worker claimed in the last moment.
      return db.all<{ id: string }>(
        `update gyre_session set status = 'ready', ready_at = ${NOW}, due = null
          where owner = $1 and status = 'running' returning id`,
        worker,
      );
    });
    for (const { id } of sessions) this.#notifier.notify("work", id);
  }

  async claim(wish: ClaimWish): Promise<ClaimOutcome> {
    const batch = randomUUID();
    try {
      return await this.#claim(wish, batch);
    } catch (error) {
      this.#lostClaims.set(batch, { worker: wish.worker, at: performance.now() });
      throw error;
    }
  }

  async #claim(wish: ClaimWish, batch: string): Promise<ClaimOutcome> {
    await this.#releaseLost();
    const look = await this.#database.first<{
      alive: boolean;
      capped: boolean;
      ready: boolean;
      next: number | null;
    }>(LOOK_AROUND, wish.worker);
    if (!look?.alive) return { claims: [], isAlive: false };
    const claimed = look.ready ? await this.#claimReady(wish, batch, look.capped) : [];
    return {
      claims: claimed.map((session) => toClaim(session, wish.worker)),
      isAlive: true,
      ...(look.next !== null && { nextInMs: look.next }),
    };
  }

  #claimReady(wish: ClaimWish, batch: string, isCapped: boolean): Promise<SessionRecord[]> {
    if (!isCapped) return this.#claimFree(wish, batch);
    return this.#database.transact((db) => this.#claimCapped(db, wish, batch));
  }

  /**
   * A claim whose answer was lost is given back: its worker is alive, but does not know of it. The
   * database may make it long after the connection has broken, so it is looked for a while.
   */
  async #releaseLost(): Promise<void> {
    const lost = [...this.#lostClaims];
    if (lost.length === 0) return;
    await this.#database.run(
      `update gyre_session set status = 'ready', ready_at = ${NOW}, due = null
        where owner = any($1) and status = 'running' and split_part(claim, ':', 1) = any($2)`,
      ...[lost.map(([, { worker }]) => worker), lost.map(([batch]) => batch)],
    );
    const before = performance.now() - LOST_CLAIM_MS;
    for (const [batch, { at }] of lost) if (at < before) this.#lostClaims.delete(batch);
  }

  async #claimFree(wish: ClaimWish, batch: string): Promise<SessionRecord[]> {
    const claimed: SessionRecord[] = [];
    for (const pool of wish.pools) {
      const left = wish.limit - claimed.length;
      if (left < 1) return claimed;
      claimed.push(
        ...(await this.#database.all<SessionRecord>(
          CLAIM_FREE,
          ...readyValues(pool, wish),
          ...[wish.worker, left, batch],
        )),
      );
    }
    if (claimed.length > 0 || !wish.alone) return claimed;
    return this.#database.transact((db) => this.#claimAlone(db, wish, batch, []));
  }

  /** Counts and claims under one lock, so that no tenant has more running than it may. */
  async #claimCapped(db: Session, wish: ClaimWish, batch: string): Promise<SessionRecord[]> {
    await db.run(`select pg_advisory_xact_lock(${CLAIM_LOCK})`);
    if (!(await lockWorker(db, wish.worker))) return [];
    const limits = await db.all<{ id: string; left: number }>(
      `select t.id, t.max_running - (select count(*) from gyre_session s
          where s.tenant = t.id and s.status = 'running') as left
        from gyre_tenant t where t.max_running is not null`,
    );
    const left = new Map(limits.map((limit) => [limit.id, limit.left]));
    const listFull = (): string[] => [...left].filter(([, most]) => most < 1).map(([id]) => id);
    const chosen: string[] = [];
    for (const pool of wish.pools) {
      for (;;) {
        const count = wish.limit - chosen.length;
        if (count < 1) break;
        const found = await db.all<{ id: string; tenant: string }>(
          `select id, tenant from gyre_session where ${READY} and deaths < $2
            and tenant <> all($5) and id <> all($6)
            order by priority desc, ready_at limit $7 for update skip locked`,
          ...readyValues(pool, wish),
          ...[listFull(), chosen, count],
        );
        for (const { id, tenant } of found) {
          const most = left.get(tenant);
          if (most !== undefined && most < 1) continue;
          if (most !== undefined) left.set(tenant, most - 1);
          chosen.push(id);
        }
        // Where a tenant has reached its limit meanwhile, others may follow.
        if (found.length < count) break;
      }
    }
    if (chosen.length > 0) return db.all(CLAIM_THESE, chosen, wish.worker, batch);
    return wish.alone ? this.#claimAlone(db, wish, batch, listFull()) : [];
  }

  async #claimAlone(
    db: Session,
    wish: ClaimWish,
    batch: string,
    full: readonly string[],
  ): Promise<SessionRecord[]> {
    if (!(await lockWorker(db, wish.worker))) return [];
    for (const pool of wish.pools) {
      const found = await db.first<{ id: string }>(
        `select id from gyre_session where ${READY} and deaths >= $2 and tenant <> all($5)
          order by priority desc, ready_at limit 1 for update skip locked`,
        ...[...readyValues(pool, wish), full],
      );
      if (found) return db.all(CLAIM_THESE, [found.id], wish.worker, batch);
    }
    return [];
  }

  async append(fence: Fence, change: Change): Promise<AppendOutcome> {
    const outcome = await this.#append(this.#database, fence, change);
    if (outcome === "done") this.#notifier.notify("log", fence.session);
    return outcome;
  }

  async #append(db: Session, fence: Fence, change: Change): Promise<AppendOutcome> {
    const { seq, entries, leaf, taken = [], opens, progress } = change;
    const changed = await db.run(
      APPEND,
      ...fenceValues(fence, seq),
      ...[seq + entries.length, leaf, opens?.run ?? null, opens?.version ?? null],
      entries.map(({ id }) => id),
      entries.map(({ parentId }) => parentId),
      entries.map(({ type }) => type),
      entries.map(({ data }) => data),
      entries.map(({ timestamp }) => timestamp),
      taken,
      ...[progress?.turns ?? null, progress?.usage ?? null, progress?.activeMs ?? null],
    );
    return changed > 0 ? "done" : this.#explainMiss(db, fence, change, "running");
  }

  /** Why a change met no row. With `status`: the claim is held still. */
  async #explainMiss(
    db: Session,
    { session, token, claim, worker }: Fence,
    { seq, entries }: Change,
    status?: "running",
  ): Promise<"repeated" | "fenced"> {
    const row = await db.first<SessionRecord>("select * from gyre_session where id = $1", session);
    const isHeld = row?.status === "running" && row.owner === worker;
    const isOurs = row?.token === token && row.claim === claim && (isHeld || !status);
    return isOurs && entries.length > 0 && row.seq === seq + entries.length ? "repeated" : "fenced";
  }

  async finish(fence: Fence, change: Change, finish: Finish): Promise<AppendOutcome | "woken"> {
    let woken = new Set<string>();
    const outcome = await this.#database.transact(async (db) => {
      woken = new Set();
      const done = await this.#finish(db, fence, change, finish, woken);
      return done === "done" ? done : new Rollback(done);
    });
    if (outcome instanceof Rollback) return outcome.value;
    this.#notifier.notify("log", fence.session);
    for (const session of woken) this.#notifier.notify("work", session);
    return outcome;
  }

  async #finish(
    db: Session,
    fence: Fence,
    change: Change,
    finish: Finish,
    woken: Set<string>,
  ): Promise<AppendOutcome | "woken"> {
    const { session } = fence;
    const { seen, status, end, timers = [], children = [] } = finish;
    const locked = await lockAll(db, fence, finish);
    const row = locked.find((one) => isOwn(one, fence, change.seq));
    if (!row) return this.#explainMiss(db, fence, change);
    if (seen !== undefined && row.wakes !== seen) return "woken";
    const appended = await this.#append(db, fence, change);
    if (appended !== "done") return appended;
    const run = change.opens?.run ?? row.run;
    for (const { key, data, due } of timers) {
      await db.run(
        `insert into gyre_inbox (session, run, kind, data, key, due, at)
          values ($1, $2, 'decision', $3, $4, coalesce($5, ${NOW} + $6), ${NOW})
          on conflict (session, key) do nothing`,
        ...[session, run ?? "", data, key],
        ...("at" in due ? [due.at, null] : [null, Math.ceil(due.inMs)]),
      );
    }
    await db.run(
      `update gyre_session set status = $2, owner = null,
        ready_at = ${NOW}, due = least(${NOW} + $3, (select min(due) from gyre_inbox where session = $1 and key = any($4))),
        run = case when $5 then null else run end, version = case when $5 then '' else version end,
        deaths = case when $6 then 0 else $7 end, updated_at = ${NOW} where id = $1`,
      ...[
        session,
        status,
        finish.readyInMs === undefined ? null : Math.ceil(finish.readyInMs),
        timers.map(({ key }) => key),
        end !== undefined,
      ],
      ...[change.entries.length > 0, row.deaths],
    );
    if (end || run === null) await db.run(TAKE_POOL, session, end?.run ?? "");
    if (run !== null && !end && finish.pending !== undefined) {
      await db.run("update gyre_run set pending = $2 where id = $1", run, finish.pending);
    }
    if (status !== "idle") woken.add(session);
    for (const child of children) {
      const outcome = await this.#start(db, child);
      if (outcome === "started") woken.add(child.session);
      if (outcome === "started" || outcome === "queued" || run === null) continue;
      const found = await db.first<RunRecord>("select * from gyre_run where id = $1", child.id);
      if (!isChild(child, found)) await this.#send(db, session, { run, ...refuseChild(child) });
    }
    if (end) await this.#endRun(db, end, change.seq + change.entries.length, woken);
    return "done";
  }

  async #endRun(
    db: Session,
    { run, stop, error, answer, report, abortsChildren }: RunEnd,
    seq: number,
    woken: Set<string>,
  ): Promise<void> {
    await db.run(
      `update gyre_run set stop = $2, error = $3, answer = $4, pending = null, last_seq = $5,
        ended_at = ${NOW} where id = $1`,
      // A text of Postgres has no NUL.
      ...[run, stop, error?.replaceAll("\0", "\ufffd") ?? null, answer ?? null, seq],
    );
    // Messages wait: the run may be retried.
    await db.run(
      `update gyre_inbox set taken = 0 where run = $1 and taken is null
        and kind in ('decision', 'abort')`,
      run,
    );
    const items: NewItem[] = report ? [{ kind: "decision", ...report }] : [];
    if (abortsChildren) {
      const children = await db.all<{ id: string }>(
        "select id from gyre_run where parent = $1 and ended_at is null",
        run,
      );
      const key = `abort:${run}`;
      items.push(
        ...children.map(({ id }) => ({ run: id, kind: "abort" as const, data: "{}", key })),
      );
    }
    for (const item of items) {
      const found = await db.first<{ session: string; is_open: boolean }>(
        `select session, ended_at is null and not exists (select 1 from gyre_inbox i
          where i.session = r.session and i.key = $2) as is_open from gyre_run r where id = $1`,
        ...[item.run, item.key],
      );
      if (!found?.is_open) continue;
      await this.#send(db, found.session, item);
      woken.add(found.session);
    }
  }

  async readInbox(session: string): Promise<Inbox> {
    // One statement: what comes later has another count.
    const rows = await this.#database.all<
      { wakes: number; now: number } & { [Name in keyof InboxRecord]: InboxRecord[Name] | null }
    >(
      `select s.wakes, ${NOW} as now, i.id, i.run, i.kind, i.data, i.due from gyre_session s
        left join gyre_inbox i on i.session = s.id and i.taken is null
        where s.id = $1 order by i.id`,
      session,
    );
    return {
      wakes: rows[0]?.wakes ?? 0,
      items: rows.flatMap(({ now, id, run, kind, data, due }) =>
        id === null || run === null || kind === null || data === null
          ? []
          : [toItem({ id, run, kind, data, due }, now)],
      ),
    };
  }

  async readWakes(worker: string): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.all<{ id: string; wakes: number }>(
      "select id, wakes from gyre_session where owner = $1 and status = 'running'",
      worker,
    );
    return new Map(rows.map(({ id, wakes }) => [id, wakes]));
  }

  async sweep(options: { expired: boolean; maxDeaths: number }): Promise<SweptSession[]> {
    // Whether a process on another machine lives, its lease alone says.
    if (!options.expired) return [];
    const dead = await this.#leases.first(`select 1 from gyre_worker where lease < ${NOW} limit 1`);
    if (!dead) return [];
    const swept = await this.#leases.transact((db) => sweepExpired(db, options.maxDeaths));
    for (const { session } of swept) this.#notifier.notify("work", session);
    return swept;
  }

  listen(interest: Interest, listener: (hint: Hint) => void): () => void {
    return this.#notifier.listen(interest, listener);
  }

  async close(): Promise<void> {
    // Idle connections keep no program alive, and their end is to be seen.
    const alive = setInterval(() => {}, STAY_MS);
    try {
      await this.#notifier.close();
      await Promise.all([this.#database.close(), this.#leases.close()]);
    } finally {
      clearInterval(alive);
    }
  }
}

interface WorkerRecord {
  id: string;
  host: string;
  pid: number;
  agents: string;
  pools: string;
  live: number;
  started_at: number;
  left_ms: number;
}

function fenceValues({ session, token, claim, worker }: Fence, seq: number): unknown[] {
  return [session, token, claim, worker, seq];
}

function readyValues(pool: string, { maxDeaths, agents, refused }: ClaimWish): unknown[] {
  return [pool, maxDeaths, agents, refused.map(({ agent, version }) => `${agent} ${version}`)];
}

/** Whether a run is not what its session does, or does next. Locks the session. */
async function isBehind(db: Session, session: string, run: string): Promise<boolean> {
  const row = await db.first<SessionRecord>(
    "select * from gyre_session where id = $1 for update",
    session,
  );
  if (!row || row.run === run || (row.run === null && row.status === "running")) return false;
  const own = await db.first("select 1 from gyre_run where id = $1 and parent is null", run);
  return own !== undefined;
}

/** The row of the session is the lock: what follows is seen by one at a time. */
async function lockSession(db: Session, run: NewRun): Promise<SessionRecord> {
  for (;;) {
    await db.run(
      `insert into gyre_session (id, tenant, pool, agent, status, ready_at, created_at, updated_at)
        values ($1, $2, $3, $4, 'idle', ${NOW}, ${NOW}, ${NOW}) on conflict do nothing`,
      ...[run.session, run.tenant, run.pool, run.agent],
    );
    const session = await db.first<SessionRecord>(
      "select * from gyre_session where id = $1 for update",
      run.session,
    );
    // Otherwise it was pruned in this moment.
    if (session) return session;
  }
}

async function readDigest(db: Session, run: string): Promise<string | undefined> {
  const row = await db.first<{ digest: string }>("select digest from gyre_run where id = $1", run);
  return row?.digest;
}

/** No sweep removes the worker while this transaction claims for it. */
async function lockWorker(db: Session, worker: string): Promise<boolean> {
  const found = await db.first("select 1 from gyre_worker where id = $1 for share", worker);
  return found !== undefined;
}

/**
 * Locks the sessions that an end concerns in one order, so that the end of a parent and that of
 * its child never wait for each other.
 */
async function lockAll(
  db: Session,
  { session }: Fence,
  { end, children = [] }: Finish,
): Promise<SessionRecord[]> {
  if (!end && children.length === 0) {
    return db.all("select * from gyre_session where id = $1 for update", session);
  }
  return db.all(
    `select * from gyre_session where id = any(array(
        select $1::text union select unnest($2::text[])
        union select session from gyre_run where id = $3
        union select session from gyre_run where parent = $4 and ended_at is null))
      order by id for update`,
    ...[session, children.map((child) => child.session)],
    ...[end?.report?.run ?? null, end?.abortsChildren ? end.run : null],
  );
}

function isOwn(row: SessionRecord, { session, token, claim, worker }: Fence, seq: number): boolean {
  const isHeld = row.status === "running" && row.owner === worker && row.seq === seq;
  return isHeld && row.id === session && row.token === token && row.claim === claim;
}

/** Workers first, then what they had: a statement sees what was claimed before it began. */
async function sweepExpired(db: Session, maxDeaths: number): Promise<SweptSession[]> {
  const dead = await db.all<{ id: string }>(
    `delete from gyre_worker where id in (select id from gyre_worker where lease < ${NOW}
      for update skip locked) returning id`,
  );
  // Once more than it takes to be claimed alone.
  const rows = await db.all<SessionRecord>(
    `update gyre_session set deaths = deaths + 1,
      status = case when deaths >= $2 then 'aside' else 'ready' end,
      ready_at = ${NOW}, due = null
      where owner = any($1) and status = 'running' returning *`,
    ...[dead.map(({ id }) => id), maxDeaths],
  );
  return Promise.all(
    rows.map(async ({ id, owner, run, deaths, status }) => {
      if (status === "aside") {
        await db.run("update gyre_run set error = $2 where id = $1", run, explainAside(deaths));
      }
      return { session: id, worker: owner ?? "", status: status === "aside" ? "aside" : "ready" };
    }),
  );
}

/** Postgres numbers what SQLite marks with `?`. */
function numberMarks(sql: string): string {
  let count = 0;
  return sql.replaceAll("?", () => `$${++count}`);
}

function isUniqueViolation(error: unknown): boolean {
  return (
    typeof error === "object" &&
    error !== null &&
    "code" in error &&
    error.code === UNIQUE_VIOLATION
  );
}
