import type { FamilyRow, OpenCount, RunRow, RunRowFilter, TenantRow } from "../contract/store.ts";
import {
  type CountRecord,
  countStatement,
  inboxStatement,
  type FamilyRecord,
  listStatement,
  numberMarks,
  type RunRecord,
  SELECT_FAMILY,
  SELECT_RUN_BY_ID,
  toCount,
  toFamily,
  toRun,
} from "../sql/rows.ts";
import { type Database, NOW, type Session } from "./driver/database.ts";
import { dropFiles } from "../files/postgres-files.ts";

export async function readRun(db: Session, id: string): Promise<RunRow | undefined> {
  const [row] = await selectRuns(db, SELECT_RUN_BY_ID, [id]);
  return row;
}

export async function readFamily(db: Session, id: string): Promise<FamilyRow[]> {
  return (await db.all<FamilyRecord>(numberMarks(SELECT_FAMILY), id)).map(toFamily);
}

export function listRuns(db: Session, filter: RunRowFilter): Promise<RunRow[]> {
  const { sql, values } = listStatement(filter);
  return selectRuns(db, sql, values);
}

async function selectRuns(db: Session, sql: string, values: readonly unknown[]): Promise<RunRow[]> {
  const numbered = numberMarks(sql).replace("select r.*", `select ${NOW} as now, r.*`);
  const rows = await db.all<RunRecord & { now: number }>(numbered, ...values);
  return rows.map((row) => toRun(row, row.now));
}

export async function countOpen(db: Session): Promise<OpenCount[]> {
  return (await db.all<CountRecord>(countStatement(NOW))).map(toCount);
}

export async function count(db: Session, name: string): Promise<number> {
  const row = await db.first<{ value: string }>(
    `insert into gyre_meta values ($1, '1') on conflict (key) do update
      set value = (gyre_meta.value::bigint + 1)::text returning value`,
    `count:${name}`,
  );
  return Number(row?.value);
}

export async function readInboxMs(db: Session): Promise<number> {
  return (await db.first<{ ms: number | null }>(inboxStatement(NOW)))?.ms ?? 0;
}

export async function readReadyMs(db: Session, tenant: string): Promise<number> {
  const row = await db.first<{ ms: number | null }>(
    `select ${NOW} - min(ready_at) as ms from gyre_session
      where tenant = $1 and status = 'ready' and due is null`,
    tenant,
  );
  return row?.ms ?? 0;
}

export async function setTenant(
  db: Session,
  { id, maxRunning, maxReady }: TenantRow,
): Promise<void> {
  await db.run(
    `insert into gyre_tenant values ($1, $2, $3) on conflict (id) do update
      set max_running = excluded.max_running, max_ready = excluded.max_ready`,
    ...[id, maxRunning ?? null, maxReady ?? null],
  );
}

export async function retryRun(
  db: Session,
  { id, session }: RunRow,
  key: string | undefined,
): Promise<true | undefined> {
  const changed = await db.run(
    `update gyre_session s set status = 'ready', run = $2, deaths = 0, ready_at = ${NOW},
      due = null, wakes = wakes + 1 where id = $1 and ((status = 'aside' and run = $2) or (run is null
      and exists (select 1 from gyre_run r where id = $2 and ended_at is not null
        and first_seq is not null and not exists
          (select 1 from gyre_run o where o.session = $1 and o.first_seq > r.first_seq))))`,
    ...[session, id],
  );
  if (changed === 0) return undefined;
  const opened = await db.run(
    "update gyre_run set ended_at = null, stop = null, error = null where id = $1",
    id,
  );
  // It may have been pruned in this moment.
  if (opened === 0) return undefined;
  if (key === undefined) return true;
  // It is delivered already: only its key counts.
  const noted = await db.run(
    `insert into gyre_inbox (session, run, kind, data, key, at, taken)
      values ($1, $2, 'decision', '{}', $3, ${NOW}, 0) on conflict (session, key) do nothing`,
    ...[session, id, key],
  );
  return noted > 0 ? true : undefined;
}

export async function pruneRuns(
  database: Database,
  endedBefore: number,
  limit: number,
): Promise<number> {
  return database.transact(async (db) => {
    const runs = await db.all<{ id: string; session: string }>(
      `delete from gyre_run where id in (select r.id from gyre_run r where r.ended_at < $1
        and not exists (select 1 from gyre_run c where c.parent = r.id and c.ended_at is null)
        order by r.ended_at limit $2 for update skip locked) returning id, session`,
      ...[endedBefore, limit],
    );
    const sessions = [...new Set(runs.map(({ session }) => session))];
    const empty = await db.all<{ id: string }>(
      `select id from gyre_session s where id = any($1) and status = 'idle'
        and not exists (select 1 from gyre_header where session = s.id)
        and not exists (select 1 from gyre_run where session = s.id) for update`,
      sessions,
    );
    const ids = empty.map(({ id }) => id);
    await db.run("delete from gyre_entry where session = any($1)", ids);
    await db.run("delete from gyre_inbox where session = any($1)", ids);
    await dropFiles(db, ids);
    // A run may have been started since: its session stays.
    await db.run(
      `delete from gyre_session s where id = any($1) and status = 'idle'
        and not exists (select 1 from gyre_run where session = s.id)`,
      ids,
    );
    return runs.length;
  });
}
