import type { FamilyRow, OpenCount, RunRow, RunRowFilter } from "../contract/store.ts";
import {
  type CountRecord,
  countStatement,
  inboxStatement,
  type FamilyRecord,
  listStatement,
  type RunRecord,
  SELECT_FAMILY,
  SELECT_RUN_BY_ID,
  toCount,
  toFamily,
  toRun,
} from "../sql/rows.ts";
import type { Statements } from "./driver/connection.ts";
import { dropFiles } from "../files/sqlite-files.ts";
import { hasItem } from "./inbox.ts";
import { isBound } from "./start.ts";

export function readRun(db: Statements, id: string): RunRow | undefined {
  const record = db.first<RunRecord>(SELECT_RUN_BY_ID, id);
  return record && toRun(record, Date.now());
}

export function readFamily(db: Statements, id: string): FamilyRow[] {
  return db.all<FamilyRecord>(SELECT_FAMILY, id).map(toFamily);
}

export function listRuns(db: Statements, filter: RunRowFilter): RunRow[] {
  const { sql, values } = listStatement(filter);
  return db.all<RunRecord>(sql, ...values).map((record) => toRun(record, Date.now()));
}

export function countOpen(db: Statements): OpenCount[] {
  return db.all<CountRecord>(countStatement("?"), Date.now()).map(toCount);
}

export function readInboxMs(db: Statements): number {
  const now = Date.now();
  return db.first<{ ms: number | null }>(inboxStatement("?"), now, now)?.ms ?? 0;
}

export function retryRun(
  db: Statements,
  id: string,
  key: string | undefined,
): { outcome: "ready" | "open" | "known" | "not found"; session?: string } {
  const found = db.first<RunRecord>(SELECT_RUN_BY_ID, id);
  if (!found) return { outcome: "not found" };
  if (key !== undefined && hasItem(db, id, key)) return { outcome: "known" };
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
  if (key !== undefined) {
    // It is delivered already: only its key counts.
    db.run(
      `insert into gyre_inbox (session, run, kind, data, key, at, taken)
        values (?, ?, 'decision', '{}', ?, ?, 0)`,
      ...[session, id, key, now],
    );
  }
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

export function pruneRuns(db: Statements, endedBefore: number, limit: number): number {
  const runs = db.all<{ id: string; session: string }>(
    `select r.id, r.session from gyre_run r where r.ended_at < ? and not exists
      (select 1 from gyre_run c where c.parent = r.id and c.ended_at is null) limit ?`,
    ...[endedBefore, limit],
  );
  for (const { id } of runs) db.run("delete from gyre_run where id = ?", id);
  for (const session of new Set(runs.map((run) => run.session))) {
    if (isBound(db, session)) continue;
    // A program may have it open.
    if (!db.first("select 1 from gyre_session where id = ? and status = 'idle'", session)) continue;
    if (db.first("select 1 from gyre_run where session = ? limit 1", session)) continue;
    db.run("delete from gyre_entry where session = ?", session);
    db.run("delete from gyre_inbox where session = ?", session);
    dropFiles(db, session);
    db.run("delete from gyre_session where id = ?", session);
  }
  return runs.length;
}
