import type { Inbox, NewItem, SendOutcome } from "../contract/store.ts";
import { type InboxRecord, type SessionRecord, toItem } from "../sql/rows.ts";
import { type Database, NOW, type Session } from "./driver/database.ts";

/** A waiting session gets ready; one that is set aside, or is not due yet, only where it is to end. */
export const WAKE: string = `update gyre_session set wakes = wakes + 1,
  status = case when status = 'waiting' or (status in ('idle', 'aside') and $2) then 'ready' else status end,
  due = case when status = 'waiting' or $2 then null else due end,
  ready_at = case when status = 'waiting' then ${NOW} else ready_at end
  where id = $1`;

/** The run may have ended, and the item may be there, since the caller looked. */
export const INSERT_ITEM: string = `insert into gyre_inbox (session, run, kind, data, key, due, at)
  select session, id, $2, $3, $4, $5::bigint, ${NOW} from gyre_run where id = $1 and ended_at is null
  on conflict (session, key) do nothing`;

/** Resolves to the session that something was sent to. */
export async function send(
  database: Database,
  item: NewItem,
): Promise<{ outcome: SendOutcome; session?: string }> {
  const found = await database.first<{ session: string }>(
    "select session from gyre_run where id = $1",
    item.run,
  );
  if (!found) return { outcome: "not found" };
  const { session } = found;
  if (await database.transact((db) => sendItem(db, session, item))) {
    return { outcome: "sent", session };
  }
  return { outcome: (await hasItem(database, item.run, item.key)) ? "known" : "ended" };
}

/** The row of the session is locked before anything is looked at. */
export async function sendItem(
  db: Session,
  session: string,
  item: NewItem,
): Promise<true | undefined> {
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

export async function hasItem(db: Session, run: string, key: string): Promise<boolean> {
  const found = await db.first(
    `select 1 from gyre_inbox where key = $1
      and session = (select session from gyre_run where id = $2)`,
    ...[key, run],
  );
  return found !== undefined;
}

export async function readInbox(db: Session, session: string, after: number): Promise<Inbox> {
  // One statement: what comes later has another count.
  const rows = await db.all<
    { wakes: number; tool_changes: number; now: number } & {
      [Name in keyof InboxRecord]: InboxRecord[Name] | null;
    }
  >(
    `select s.wakes, s.tool_changes, ${NOW} as now, i.id, i.run, i.kind, i.key, i.data, i.due from gyre_session s
      left join gyre_inbox i on i.session = s.id and i.taken is null and i.id > $2
      where s.id = $1 order by i.id`,
    ...[session, after],
  );
  return {
    wakes: rows[0]?.wakes ?? 0,
    toolChanges: rows[0]?.tool_changes ?? 0,
    items: rows.flatMap(({ now, id, run, kind, key, data, due }) =>
      id === null || run === null || kind === null || key === null || data === null
        ? []
        : [toItem({ id, run, kind, key, data, due }, now)],
    ),
  };
}

export async function readWakes(db: Session, worker: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db.all<{ id: string; wakes: number }>(
    "select id, wakes from gyre_session where owner = $1 and status = 'running'",
    worker,
  );
  return new Map(rows.map(({ id, wakes }) => [id, wakes]));
}
