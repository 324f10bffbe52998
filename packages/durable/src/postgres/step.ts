import type { AppendOutcome, Change, Fence, Finish, NewItem, RunEnd } from "../contract/store.ts";
import { isChild, refuseChild, type RunRecord, type SessionRecord } from "../sql/rows.ts";
import { type Database, NOW, Rollback, type Session } from "./driver/database.ts";
import { sendItem } from "./inbox.ts";
import { startRun } from "./start.ts";

const OWN =
  "id = $1 and token = $2 and claim = $3 and owner = $4 and status = 'running' and seq = $5";

/** The next run of a session says which workers may have it, and how soon. */
const TAKE_PLACE = `update gyre_session s set pool = next.pool, priority = next.priority from (
    select r.pool, r.priority from gyre_inbox i join gyre_run r on r.id = i.run
    where i.session = $1 and i.taken is null and i.kind = 'prompt' and i.run <> $2
    order by i.due is not null and i.due > ${NOW}, i.id limit 1) next where s.id = $1`;

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
      active_ms = coalesce($18, r.active_ms), span = coalesce($19, r.span),
      pending = case when $16::bigint is null then r.pending end
    from own where r.id = own.run and ($8::text is not null or $16::bigint is not null)
  ) select id from own`;

export async function appendChange(
  db: Session,
  fence: Fence,
  change: Change,
): Promise<AppendOutcome> {
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
    progress?.span ?? null,
  );
  return changed > 0 ? "done" : explainMiss(db, fence, change, "running");
}

/** Why a change met no row. With `status`: the claim is held still. */
async function explainMiss(
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

/** Resolves to the sessions that got ready, too. */
export async function finish(
  database: Database,
  fence: Fence,
  change: Change,
  how: Finish,
): Promise<{ outcome: AppendOutcome | "woken"; woken: ReadonlySet<string> }> {
  let woken = new Set<string>();
  const outcome = await database.transact(async (db) => {
    woken = new Set();
    const done = await finishClaim(db, fence, change, how, woken);
    return done === "done" ? done : new Rollback(done);
  });
  return outcome instanceof Rollback
    ? { outcome: outcome.value, woken: new Set() }
    : { outcome, woken };
}

async function finishClaim(
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
  if (!row) return explainMiss(db, fence, change);
  if (seen !== undefined && row.wakes !== seen) return "woken";
  const appended = await appendChange(db, fence, change);
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
  if (end || run === null) await db.run(TAKE_PLACE, session, end?.run ?? "");
  if (run !== null && !end && finish.pending !== undefined) {
    await db.run("update gyre_run set pending = $2 where id = $1", run, finish.pending);
  }
  if (status !== "idle") woken.add(session);
  for (const child of children) {
    const outcome = await startRun(db, child);
    if (outcome === "started") woken.add(child.session);
    if (outcome === "started" || outcome === "queued" || run === null) continue;
    const found = await db.first<RunRecord>("select * from gyre_run where id = $1", child.id);
    if (!isChild(child, found)) await sendItem(db, session, { run, ...refuseChild(child) });
  }
  if (end) await endRun(db, end, change.seq + change.entries.length, woken);
  return "done";
}

async function endRun(
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
      and kind in ('decision', 'abort', 'answer')`,
    run,
  );
  const items: NewItem[] = report ? [{ kind: "decision", ...report }] : [];
  if (abortsChildren) {
    const children = await db.all<{ id: string }>(
      "select id from gyre_run where parent = $1 and ended_at is null",
      run,
    );
    const key = `abort:${run}`;
    items.push(...children.map(({ id }) => ({ run: id, kind: "abort" as const, data: "{}", key })));
  }
  for (const item of items) {
    const found = await db.first<{ session: string; is_open: boolean }>(
      `select session, ended_at is null and not exists (select 1 from gyre_inbox i
        where i.session = r.session and i.key = $2) as is_open from gyre_run r where id = $1`,
      ...[item.run, item.key],
    );
    if (!found?.is_open) continue;
    await sendItem(db, found.session, item);
    woken.add(found.session);
  }
}

function fenceValues({ session, token, claim, worker }: Fence, seq: number): unknown[] {
  return [session, token, claim, worker, seq];
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
