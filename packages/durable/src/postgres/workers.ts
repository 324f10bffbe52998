import { hostname } from "node:os";
import type { NewWorker, SweptSession, WorkerRow } from "../contract/store.ts";
import { explainAside, type SessionRecord } from "../sql/rows.ts";
import { type Database, NOW, type Session } from "./driver/database.ts";

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

/** Of a worker whose event loop hangs: `live` is as it was. */
export const RENEW_LEASE: string = `update gyre_worker set lease = ${NOW} + $2 where id = $1`;

export async function listWorkers(db: Session): Promise<WorkerRow[]> {
  const rows = await db.all<WorkerRecord>(
    `select *, lease - ${NOW} as left_ms from gyre_worker order by started_at, id`,
  );
  return rows.map((row) => ({
    ...{ id: row.id, host: row.host, pid: row.pid, live: row.live },
    ...{ startedAt: row.started_at, leaseMs: row.left_ms },
    agents: JSON.parse(row.agents),
    pools: JSON.parse(row.pools),
  }));
}

export async function registerWorker(
  db: Session,
  { id, agents, pools, leaseMs }: NewWorker,
): Promise<void> {
  await db.run(
    `insert into gyre_worker (id, lease, host, pid, agents, pools, started_at)
      values ($1, ${NOW} + $2, $3, $4, $5, $6, ${NOW}) on conflict (id) do update set
      lease = excluded.lease, agents = excluded.agents, pools = excluded.pools`,
    ...[id, leaseMs, hostname(), process.pid, JSON.stringify(agents), JSON.stringify(pools)],
  );
}

export async function renewLease(
  db: Session,
  worker: string,
  leaseMs: number,
  live: number,
): Promise<boolean> {
  const renewed = await db.run(
    `update gyre_worker set lease = ${NOW} + $2, live = $3 where id = $1`,
    ...[worker, leaseMs, live],
  );
  return renewed > 0;
}

/** Resolves to the sessions that the worker had claimed. */
export async function unregisterWorker(database: Database, worker: string): Promise<string[]> {
  const sessions = await database.transact(async (db) => {
    await db.run("delete from gyre_worker where id = $1", worker);
    // A statement of its own: it sees what the worker claimed in the last moment.
    return db.all<{ id: string }>(
      `update gyre_session set status = 'ready', ready_at = ${NOW}, due = null
        where owner = $1 and status = 'running' returning id`,
      worker,
    );
  });
  return sessions.map(({ id }) => id);
}

/** Workers that have something, and are not there: a hand, or a loss of data, has removed them. */
const FROM_UNKNOWN = `from gyre_session s where status = 'running'
  and not exists (select 1 from gyre_worker w where w.id = s.owner)`;

export async function sweepWorkers(database: Database, maxDeaths: number): Promise<SweptSession[]> {
  const dead = await database.first(
    `select 1 from gyre_worker where lease < ${NOW} union all select 1 ${FROM_UNKNOWN} limit 1`,
  );
  return dead ? database.transact((db) => sweepExpired(db, maxDeaths)) : [];
}

/** A program had it, and nothing waits for it. */
const IS_AT_REST = `s.run is null and not exists (
  select 1 from gyre_inbox i where i.session = s.id and i.taken is null and i.kind = 'prompt')`;

/** Workers first, then what they had: a statement sees what was claimed before it began. */
async function sweepExpired(db: Session, maxDeaths: number): Promise<SweptSession[]> {
  await db.run(
    `delete from gyre_worker where id in (select id from gyre_worker where lease < ${NOW}
      for update skip locked)`,
  );
  // By name: one that another worker claims in this moment is not theirs.
  const owners = await db.all<{ owner: string | null }>(`select distinct owner ${FROM_UNKNOWN}`);
  const names = owners.map(({ owner }) => owner);
  return removeOwner(db, maxDeaths, "(owner = any($2) or owner is null)", [names]);
}

/** Makes sessions ready whose worker is dead: those of a condition with values from `$2` on. */
export async function removeOwner(
  db: Session,
  maxDeaths: number,
  which: string,
  values: readonly unknown[],
): Promise<SweptSession[]> {
  // Once more than it takes to be claimed alone.
  const rows = await db.all<SessionRecord>(
    `update gyre_session s set
      deaths = case when ${IS_AT_REST} then deaths else deaths + 1 end,
      status = case when ${IS_AT_REST} then 'idle' when deaths >= $1 then 'aside' else 'ready' end,
      ready_at = ${NOW}, due = null
      where ${which} and status = 'running' returning *`,
    ...[maxDeaths, ...values],
  );
  const swept = rows.filter(({ status }) => status !== "idle");
  // One after the other: they share a connection.
  for (const { run, deaths, status } of swept) {
    if (status !== "aside") continue;
    await db.run("update gyre_run set error = $2 where id = $1", run, explainAside(deaths));
  }
  return swept.map(({ id, owner, status }) => ({
    ...{ session: id, worker: owner ?? "", why: "expired" },
    status: status === "aside" ? "aside" : "ready",
  }));
}
