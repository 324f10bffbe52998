import type { NewRun, StartOutcome } from "../contract/store.ts";
import type { SessionRecord } from "../sql/rows.ts";
import { type Database, NOW, Rollback, type Session } from "./driver/database.ts";
import { INSERT_ITEM, WAKE } from "./inbox.ts";

const UNIQUE_VIOLATION = "23505";

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
      traceparent, limits, output, meta, priority, budget, started_at)
    select $8, id, $9, $4, $2, $3, 1, $10, $11, $12, $13, $14, $15, $7, $17, ${NOW} from session
  ), entries as (
    insert into gyre_entry (session, seq, parent, type, data, token, at)
    select session.id, at.n, nullif(at.n - 1, 0), 'message', at.data, 0, ${NOW}
    from session, unnest($16::text[]) with ordinality as at(data, n)
  ) select id from session`;

const INSERT_RUN = `insert into gyre_run (id, session, digest, agent, tenant, pool, first_seq, parent,
    parent_call, traceparent, limits, output, meta, priority, budget, started_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, ${NOW})`;

/** Starts a run, in one statement where its session is a new one. */
export async function start(database: Database, run: NewRun): Promise<StartOutcome> {
  return (await startFresh(database, run)) ? "started" : startBeside(database, run);
}

async function startFresh(database: Database, run: NewRun): Promise<boolean> {
  try {
    const started = await database.run(
      START_FRESH,
      ...[run.session, run.tenant, run.pool ?? "", run.agent],
      ...[run.prompt.length, run.at ?? null],
      ...[run.priority, run.id, run.digest, run.parent?.run ?? null, run.parent?.call ?? null],
      ...[run.traceparent ?? null, run.limits ?? null, run.output ?? null, run.meta ?? null],
      ...[run.prompt, run.budget ?? null],
    );
    return started > 0;
  } catch (error) {
    // Another process starts the same run in this moment.
    if (isUniqueViolation(error)) return false;
    throw error;
  }
}

async function startBeside(
  database: Database,
  run: NewRun,
  isAgain = false,
): Promise<StartOutcome> {
  try {
    const started = await database.transact(async (db) => {
      const outcome = await startRun(db, run);
      return outcome === "started" || outcome === "queued" ? outcome : new Rollback(outcome);
    });
    return started instanceof Rollback ? started.value : started;
  } catch (error) {
    // The same run was started in another session in this moment.
    if (isAgain || !isUniqueViolation(error)) throw error;
    return startBeside(database, run, true);
  }
}

export async function startRun(db: Session, run: NewRun): Promise<StartOutcome> {
  const known = await readDigest(db, run.id);
  if (known !== undefined) return known === run.digest ? "known" : "other";
  const session = await lockSession(db, run);
  const rival = await readDigest(db, run.id);
  if (rival !== undefined) return rival === run.digest ? "known" : "other";
  // A run waits for its child, which so is never refused.
  if (!run.parent && (await isFull(db, run.tenant))) return "full";
  // One that a program has made belongs to the first agent that is asked in it.
  if (session.agent !== run.agent && session.agent !== "") return "agent";
  if (session.tenant !== run.tenant) return "tenant";
  const { pool = session.pool } = run;
  if (pool !== session.pool && (await isBound(db, run.session))) return "pool";
  const isOpen = session.status === "idle";
  if (!isOpen && run.ifIdle) return "busy";
  await db.run(
    INSERT_RUN,
    ...[run.id, run.session, run.digest, run.agent, run.tenant, pool],
    ...[isOpen ? session.seq + 1 : null, run.parent?.run ?? null, run.parent?.call ?? null],
    ...[run.traceparent ?? null, run.limits ?? null, run.output ?? null, run.meta ?? null],
    ...[run.priority, run.budget ?? null],
  );
  if (!isOpen) {
    const data = JSON.stringify(run.prompt);
    await db.run(INSERT_ITEM, run.id, "prompt", data, `prompt:${run.id}`, run.at ?? null);
    await db.run(WAKE, run.session, false);
    await db.run(
      "update gyre_session set agent = $2 where id = $1 and agent = ''",
      ...[run.session, run.agent],
    );
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
    `update gyre_session set status = 'ready', run = $2, version = '', agent = $8, seq = $3,
      leaf = $4, pool = $5, priority = $6, ready_at = ${NOW}, due = $7,
      deaths = 0, wakes = wakes + 1, updated_at = ${NOW} where id = $1`,
    ...[run.session, run.id, last, last > seq ? last : leaf],
    ...[pool, run.priority, run.at ?? null, run.agent],
  );
  return "started";
}

async function isFull(db: Session, tenant: string): Promise<boolean> {
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

/** The row of the session is the lock: what follows is seen by one at a time. */
async function lockSession(db: Session, run: NewRun): Promise<SessionRecord> {
  for (;;) {
    await db.run(
      `insert into gyre_session (id, tenant, pool, agent, status, ready_at, created_at, updated_at)
        values ($1, $2, $3, $4, 'idle', ${NOW}, ${NOW}, ${NOW}) on conflict do nothing`,
      ...[run.session, run.tenant, run.pool ?? "", run.agent],
    );
    const session = await db.first<SessionRecord>(
      "select * from gyre_session where id = $1 for update",
      run.session,
    );
    // Otherwise it was pruned in this moment.
    if (session) return session;
  }
}

/** Whether a session stays with its pool: a program has made it. */
async function isBound(db: Session, session: string): Promise<boolean> {
  return (await db.first("select 1 from gyre_header where session = $1", session)) !== undefined;
}

async function readDigest(db: Session, run: string): Promise<string | undefined> {
  const row = await db.first<{ digest: string }>("select digest from gyre_run where id = $1", run);
  return row?.digest;
}

function isUniqueViolation(error: unknown): boolean {
  return (
    typeof error === "object" &&
    error !== null &&
    "code" in error &&
    error.code === UNIQUE_VIOLATION
  );
}
