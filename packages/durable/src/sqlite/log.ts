import type { EntryInfo, EntryType } from "@gyre/sessions";
import type { StoredEntry } from "../contract/store.ts";
import { type EntryRecord, toEntry, toInfo } from "../sql/rows.ts";
import type { Statements } from "./driver/connection.ts";

export const INSERT_ENTRY =
  "insert into gyre_entry (session, seq, parent, type, data, token, at) values (?, ?, ?, ?, ?, ?, ?)";

export function readEntriesAfter(
  db: Statements,
  session: string,
  after: number,
  limit: number,
): StoredEntry[] {
  const rows = db.all<EntryRecord>(
    "select * from gyre_entry where session = ? and seq > ? order by seq limit ?",
    ...[session, after, limit],
  );
  return rows.map(toEntry);
}

export function readEntries(
  db: Statements,
  session: string,
  ids: readonly number[],
): StoredEntry[] {
  const rows = db.all<EntryRecord>(
    `select * from gyre_entry where session = ? and seq in (select value from json_each(?))
      order by seq`,
    ...[session, JSON.stringify(ids)],
  );
  return rows.map(toEntry);
}

export function listEntries(db: Statements, session: string): EntryInfo[] {
  const rows = db.all<{ seq: number; parent: number | null; type: EntryType; bytes: number }>(
    `select seq, parent, type, length(data) as bytes from gyre_entry where session = ?
      order by seq`,
    session,
  );
  return rows.map(toInfo);
}

export function readSeqs(db: Statements, sessions: readonly string[]): ReadonlyMap<string, number> {
  const rows = db.all<{ id: string; seq: number }>(
    "select id, seq + wakes as seq from gyre_session where id in (select value from json_each(?))",
    JSON.stringify(sessions),
  );
  return new Map(rows.map(({ id, seq }) => [id, seq]));
}
