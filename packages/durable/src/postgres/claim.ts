import { randomUUID } from "node:crypto";
import type {
  ClaimOutcome,
  ClaimWish,
  LateReady,
  OnlyWish,
  ReadySession,
} from "../contract/store.ts";
import {
  claimPrefix,
  type ReadyRecord,
  type SessionRecord,
  toClaim,
  toReady,
} from "../sql/rows.ts";
import { type Database, NOW, type Session } from "./driver/database.ts";
import { removeOwner } from "./workers.ts";

/** Claims of tenants with limits are made one after the other. */
const CLAIM_LOCK = 4_715_020_212;
/** How long a statement whose connection has broken may still be made. */
const LOST_CLAIM_MS = 600_000;

const READY = `status = 'ready' and pool = $1 and due is null and agent = any($3)
  and (version = '' or agent || ' ' || version <> all($4))`;

/** What the sessions that were claimed were made with. */
const HEADER = `h.cwd, h.source, h.created_at as made_at from claimed
  left join gyre_header h on h.session = claimed.id`;

/** The worker's row is locked, so that no sweep removes it meanwhile. */
const buildClaim = (
  only: string,
): string => `with me as materialized (select id from gyre_worker where id = $5 for share),
  found as materialized (
    select id from gyre_session where ${READY} and deaths < $2 ${only} and exists (select 1 from me)
      and not exists (select 1 from gyre_tenant where max_running is not null)
    order by priority desc, ready_at limit $6 for update skip locked
  ), claimed as (
    update gyre_session s set status = 'running', owner = $5, token = s.token + 1,
      claim = $7::text || ':' || s.token, due = null, updated_at = ${NOW}
    from found where s.id = found.id returning s.*
  ), counted as (
    update gyre_run r set activations = r.activations + 1 from claimed where r.id = claimed.run
  ) select claimed.*, ${HEADER} order by priority desc`;
const CLAIM_FREE = buildClaim("");
const CLAIM_ONE = buildClaim("and id = $8");

const CLAIM_THESE = `with claimed as (
    update gyre_session set status = 'running', owner = $2, token = token + 1,
      claim = $3::text || ':' || token, due = null, updated_at = ${NOW}
    where id = any($1) returning *
  ), counted as (
    update gyre_run r set activations = r.activations + 1 from claimed where r.id = claimed.run
  ) select claimed.*, ${HEADER}`;

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

/** Gives sessions to workers of this process. */
export class Claims {
  readonly #database: Database;
  /** Claims whose answer was lost, and when: this process does not work on them. */
  readonly #lost = new Map<string, { worker: string; at: number }>();

  constructor(database: Database) {
    this.#database = database;
  }

  async claim(wish: ClaimWish): Promise<ClaimOutcome> {
    const batch = (wish.only ? claimPrefix(wish.only) : "") + randomUUID();
    try {
      return await this.#claim(wish, batch);
    } catch (error) {
      this.#lost.set(batch, { worker: wish.worker, at: performance.now() });
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
    let claimed = look.ready ? await this.#claimReady(wish, batch, look.capped) : [];
    if (claimed.length === 0 && wish.only && (await this.#takeOver(wish, wish.only))) {
      claimed = await this.#claimReady(wish, batch, look.capped);
    }
    return {
      claims: claimed.map((session) => toClaim(session, wish.worker)),
      isAlive: true,
      ...(look.next !== null && { nextInMs: look.next }),
    };
  }

  /** Takes a session from a worker that the engine takes for dead. */
  async #takeOver({ worker, maxDeaths }: ClaimWish, only: OnlyWish): Promise<boolean> {
    const which = "id = $2 and owner <> $3 and starts_with(claim, $4)";
    const values = [only.session, worker, claimPrefix(only)];
    const taken = await this.#database.transact((db) => removeOwner(db, maxDeaths, which, values));
    return taken.length > 0;
  }

  #claimReady(wish: ClaimWish, batch: string, isCapped: boolean): Promise<SessionRecord[]> {
    if (!isCapped) return claimFree(this.#database, wish, batch);
    return this.#database.transact((db) => claimCapped(db, wish, batch));
  }

  /**
   * A claim whose answer was lost is given back: its worker is alive, but does not know of it. The
   * database may make it long after the connection has broken, so it is looked for a while.
   */
  async #releaseLost(): Promise<void> {
    const lost = [...this.#lost];
    if (lost.length === 0) return;
    await this.#database.run(
      `update gyre_session set status = 'ready', ready_at = ${NOW}, due = null
        where owner = any($1) and status = 'running' and split_part(claim, ':', 1) = any($2)`,
      ...[lost.map(([, { worker }]) => worker), lost.map(([batch]) => batch)],
    );
    const before = performance.now() - LOST_CLAIM_MS;
    for (const [batch, { at }] of lost) if (at < before) this.#lost.delete(batch);
  }
}

async function claimFree(
  database: Database,
  wish: ClaimWish,
  batch: string,
): Promise<SessionRecord[]> {
  const claimed: SessionRecord[] = [];
  for (const pool of wish.pools) {
    const left = wish.limit - claimed.length;
    if (left < 1) return claimed;
    claimed.push(
      ...(await database.all<SessionRecord>(
        wish.only ? CLAIM_ONE : CLAIM_FREE,
        ...readyValues(pool, wish),
        ...[wish.worker, left, batch],
        ...onlyValues(wish),
      )),
    );
  }
  if (claimed.length > 0 || !wish.alone) return claimed;
  return database.transact((db) => claimAlone(db, wish, batch, []));
}

/** Counts and claims under one lock, so that no tenant has more running than it may. */
async function claimCapped(db: Session, wish: ClaimWish, batch: string): Promise<SessionRecord[]> {
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
          and tenant <> all($5) and id <> all($6) ${wish.only ? "and id = $8" : ""}
          order by priority desc, ready_at limit $7 for update skip locked`,
        ...readyValues(pool, wish),
        ...[listFull(), chosen, count],
        ...onlyValues(wish),
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
  return wish.alone ? claimAlone(db, wish, batch, listFull()) : [];
}

async function claimAlone(
  db: Session,
  wish: ClaimWish,
  batch: string,
  full: readonly string[],
): Promise<SessionRecord[]> {
  if (!(await lockWorker(db, wish.worker))) return [];
  for (const pool of wish.pools) {
    const found = await db.first<{ id: string }>(
      `select id from gyre_session where ${READY} and deaths >= $2 and tenant <> all($5)
        ${wish.only ? "and id = $6" : ""} order by priority desc, ready_at limit 1 for update skip locked`,
      ...[...readyValues(pool, wish), full],
      ...onlyValues(wish),
    );
    if (found) return db.all(CLAIM_THESE, [found.id], wish.worker, batch);
  }
  return [];
}

function readyValues(pool: string, { maxDeaths, agents, refused }: ClaimWish): unknown[] {
  return [pool, maxDeaths, agents, refused.map(({ agent, version }) => `${agent} ${version}`)];
}

function onlyValues({ only }: ClaimWish): string[] {
  return only ? [only.session] : [];
}

/** Which of these sessions a worker may claim, now or later; or those that wait for one too long. */
export async function listReady(
  db: Session,
  of: readonly string[] | LateReady,
): Promise<ReadySession[]> {
  const columns = `id, tenant, pool, priority, coalesce(due, ready_at) as at,
    coalesce(due, ready_at) - ${NOW} as in_ms`;
  const rows = await ("lateMs" in of
    ? db.all<ReadyRecord>(
        `select ${columns} from (
            select * from gyre_session where status = 'ready' and due is null and ready_at <= ${NOW} - $1
            union all select * from gyre_session
              where status in ('ready', 'waiting') and due <= ${NOW} - $1) late
            where id > $3 order by id limit $2`,
        ...[of.lateMs, of.limit, of.after],
      )
    : db.all<ReadyRecord>(
        `select ${columns} from gyre_session where id = any($1)
          and (status = 'ready' or (status = 'waiting' and due is not null))`,
        of,
      ));
  return rows.map(toReady);
}

/** No sweep removes the worker while this transaction claims for it. */
async function lockWorker(db: Session, worker: string): Promise<boolean> {
  const found = await db.first("select 1 from gyre_worker where id = $1 for share", worker);
  return found !== undefined;
}
