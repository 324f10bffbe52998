import type { EntryInfo, EntryType } from "@gyre/sessions";
import type { StoredEntry } from "../contract/store.ts";
import { type EntryRecord, toEntry, toInfo } from "../sql/rows.ts";
import type { Session } from "./driver/database.ts";

export async function readEntriesAfter(
  db: Session,
  session: string,
  after: number,
  limit: number,
): Promise<StoredEntry[]> {
  const rows = await db.all<EntryRecord>(
    "select * from gyre_entry where session = $1 and seq > $2 order by seq limit $3",
    ...[session, after, limit],
  );
  return rows.map(toEntry);
}

export async function readEntries(
  db: Session,
  session: string,
  ids: readonly number[],
): Promise<StoredEntry[]> {
  const rows = await db.all<EntryRecord>(
    "select * from gyre_entry where session = $1 and seq = any($2) order by seq",
    ...[session, ids],
  );
  return rows.map(toEntry);
}

export async function listEntries(db: Session, session: string): Promise<EntryInfo[]> {
  const rows = await db.all<{
    seq: number;
    parent: number | null;
    type: EntryType;
    bytes: number;
  }>(
    `select seq, parent, type, length(data) as bytes from gyre_entry where session = $1
      order by seq`,
    session,
  );
  return rows.map(toInfo);
}

export async function readSeqs(
  db: Session,
  sessions: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await db.all<{ id: string; seq: number }>(
    "select id, seq + wakes as seq from gyre_session where id = any($1)",
    sessions,
  );
  return new Map(rows.map(({ id, seq }) => [id, seq]));
}
