import type { Inbox, NewItem, SendOutcome } from "../contract/store.ts";
import { type InboxRecord, toItem } from "../sql/rows.ts";
import type { Statements } from "./driver/connection.ts";

export const INSERT_ITEM = `insert into gyre_inbox (session, run, kind, data, key, due, at)
  values (?, ?, ?, ?, ?, ?, ?) on conflict (session, key) do nothing`;
/** A waiting session gets ready; one that is set aside, or is not due yet, only where it is to end. */
export const WAKE = `update gyre_session set wakes = wakes + 1,
  status = case when status = 'waiting' or (status in ('idle', 'aside') and ?) then 'ready' else status end,
  due = case when status = 'waiting' or ? then null else due end,
  ready_at = case when status = 'waiting' then ? else ready_at end where id = ?`;

export function sendItem(
  db: Statements,
  { run, kind, data, key }: NewItem,
): { outcome: SendOutcome; session?: string } {
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

export function hasItem(db: Statements, run: string, key: string): boolean {
  const found = db.first(
    `select 1 from gyre_inbox where key = ? and session = (select session from gyre_run where id = ?)`,
    ...[key, run],
  );
  return found !== undefined;
}

export function readInbox(db: Statements, session: string, after: number): Inbox {
  // In this order: what comes between the two is seen, and seen again.
  const row = db.first<{ wakes: number; tool_changes: number }>(
    "select wakes, tool_changes from gyre_session where id = ?",
    session,
  );
  const items = db.all<InboxRecord>(
    "select * from gyre_inbox where session = ? and taken is null and id > ? order by id",
    ...[session, after],
  );
  return {
    ...{ wakes: row?.wakes ?? 0, toolChanges: row?.tool_changes ?? 0 },
    items: items.map((item) => toItem(item, Date.now())),
  };
}

export function readWakes(db: Statements, worker: string): ReadonlyMap<string, number> {
  const rows = db.all<{ id: string; wakes: number }>(
    "select id, wakes from gyre_session where owner = ? and status = 'running'",
    worker,
  );
  return new Map(rows.map(({ id, wakes }) => [id, wakes]));
}

/** Whether a run waits for a session. */
export function hasPrompt(db: Statements, session: string): boolean {
  const prompt = db.first(
    "select 1 from gyre_inbox where session = ? and taken is null and kind = 'prompt'",
    session,
  );
  return prompt !== undefined;
}
