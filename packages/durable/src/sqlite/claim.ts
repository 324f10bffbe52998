import { randomUUID } from "node:crypto";
import type { Claim, ClaimWish, LateReady, OnlyWish, ReadySession } from "../contract/store.ts";
import {
  claimPrefix,
  type HeaderRecord,
  type ReadyRecord,
  type SessionRecord,
  toClaim,
  toReady,
} from "../sql/rows.ts";
import type { Statements } from "./driver/connection.ts";
import { readLeft } from "./tenants.ts";
import { removeOwner } from "./workers.ts";

export function isRegistered(db: Statements, worker: string): boolean {
  return db.first("select 1 from gyre_worker where id = ?", worker) !== undefined;
}

/** In how many milliseconds a session can be claimed; 0: perhaps now. */
export function readNext(db: Statements): number | undefined {
  const ready = "select 1 from gyre_session where status = 'ready' and due is null limit 1";
  if (db.first(ready)) return 0;
  const next = db.first<{ due: number }>(
    `select due from gyre_session where status in ('ready', 'waiting') and due is not null
      order by due limit 1`,
  );
  return next && Math.max(0, next.due - Date.now());
}

export function claimReady(db: Statements, wish: ClaimWish): Claim[] {
  const now = Date.now();
  db.run(
    `update gyre_session set status = 'ready', due = null, ready_at = due
      where status in ('ready', 'waiting') and due <= ?`,
    now,
  );
  if (wish.only) takeOver(db, wish, wish.only);
  const claims: Claim[] = [];
  const left = readLeft(db);
  for (const pool of wish.pools) {
    for (;;) {
      const count = wish.limit - claims.length;
      if (count < 1) return claims;
      const found = findReady(db, wish, pool, "deaths < ?", left, count);
      for (const session of found) {
        const most = left.get(session.tenant);
        if (most !== undefined && most < 1) continue;
        if (most !== undefined) left.set(session.tenant, most - 1);
        claims.push(takeSession(db, session, wish, now));
      }
      // Where a tenant has reached its limit meanwhile, others may follow.
      if (left.size === 0 || found.length < count) break;
    }
  }
  if (claims.length > 0 || !wish.alone) return claims;
  for (const pool of wish.pools) {
    const [session] = findReady(db, wish, pool, "deaths >= ?", left, 1);
    if (session) return [takeSession(db, session, wish, now)];
  }
  return claims;
}

/** Takes a session from a worker that the engine takes for dead. */
function takeOver(db: Statements, { worker, maxDeaths }: ClaimWish, only: OnlyWish): void {
  const sessions = db.all<SessionRecord>(
    "select * from gyre_session where id = ? and status = 'running' and owner <> ?",
    ...[only.session, worker],
  );
  const prefix = claimPrefix(only);
  const taken = sessions.filter(({ claim }) => claim?.startsWith(prefix));
  removeOwner(db, taken, maxDeaths, "gone");
}

/** Which of these sessions a worker may claim, now or later; or those that wait for one too long. */
export function listReady(db: Statements, of: readonly string[] | LateReady): ReadySession[] {
  const now = Date.now();
  const columns = `id, tenant, pool, priority, coalesce(due, ready_at) as at,
    coalesce(due, ready_at) - ${now} as in_ms`;
  const rows =
    "lateMs" in of
      ? db.all<ReadyRecord>(
          `select ${columns} from (
              select * from gyre_session where status = 'ready' and due is null and ready_at <= ?
              union all select * from gyre_session where status in ('ready', 'waiting') and due <= ?)
            where id > ? order by id limit ?`,
          ...[now - of.lateMs, now - of.lateMs, of.after, of.limit],
        )
      : db.all<ReadyRecord>(
          `select ${columns} from gyre_session where id in (select value from json_each(?))
            and (status = 'ready' or (status = 'waiting' and due is not null))`,
          JSON.stringify(of),
        );
  return rows.map(toReady);
}

function findReady(
  db: Statements,
  { agents, refused, maxDeaths, only }: ClaimWish,
  pool: string,
  deaths: string,
  left: ReadonlyMap<string, number>,
  limit: number,
): SessionRecord[] {
  const full = [...left].filter(([, most]) => most < 1).map(([id]) => id);
  return db.all<SessionRecord>(
    `select * from gyre_session where status = 'ready' and pool = ? and due is null and ${deaths}
      and agent in (select value from json_each(?))
      and (version = '' or agent || ' ' || version not in (select value from json_each(?)))
      and tenant not in (select value from json_each(?)) ${only ? "and id = ?" : ""}
      order by priority desc, ready_at limit ?`,
    pool,
    maxDeaths,
    JSON.stringify(agents),
    JSON.stringify(refused.map(({ agent, version }) => `${agent} ${version}`)),
    JSON.stringify(full),
    ...(only ? [only.session] : []),
    limit,
  );
}

function takeSession(
  db: Statements,
  session: SessionRecord,
  { worker, only }: ClaimWish,
  now: number,
): Claim {
  const claim = (only ? claimPrefix(only) : "") + randomUUID();
  const token = session.token + 1;
  db.run(
    `update gyre_session set status = 'running', owner = ?, token = ?, claim = ?, due = null,
      updated_at = ? where id = ?`,
    ...[worker, token, claim, now, session.id],
  );
  if (session.run !== null) {
    db.run("update gyre_run set activations = activations + 1 where id = ?", session.run);
  }
  const header = db.first<HeaderRecord>(
    "select cwd, source, created_at as made_at from gyre_header where session = ?",
    session.id,
  );
  return toClaim({ ...session, ...header, token, claim }, worker);
}
