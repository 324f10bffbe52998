import { randomUUID } from "node:crypto";
import type { Claim, ClaimWish } from "../contract/store.ts";
import { type HeaderRecord, type SessionRecord, toClaim } from "../sql/rows.ts";
import type { Statements } from "./connection.ts";
import { readLeft } from "./tenants.ts";

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
        claims.push(takeSession(db, session, wish.worker, now));
      }
      // Where a tenant has reached its limit meanwhile, others may follow.
      if (left.size === 0 || found.length < count) break;
    }
  }
  if (claims.length > 0 || !wish.alone) return claims;
  for (const pool of wish.pools) {
    const [session] = findReady(db, wish, pool, "deaths >= ?", left, 1);
    if (session) return [takeSession(db, session, wish.worker, now)];
  }
  return claims;
}

function findReady(
  db: Statements,
  { agents, refused, maxDeaths }: ClaimWish,
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

function takeSession(db: Statements, session: SessionRecord, worker: string, now: number): Claim {
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
  const header = db.first<HeaderRecord>(
    "select cwd, source, created_at as made_at from gyre_header where session = ?",
    session.id,
  );
  return toClaim({ ...session, ...header, token, claim }, worker);
}
