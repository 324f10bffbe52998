import type { NewStoredSession } from "../contract/store.ts";
import type { Statements } from "../sqlite/driver/connection.ts";

/** Stores contents, once for all sessions that have them. */
export function writeFile(
  db: Statements,
  session: string,
  sha256: string,
  bytes: Uint8Array,
): void {
  if (!db.first("select 1 from gyre_session where id = ?", session)) return;
  if (!db.first("select 1 from gyre_file where sha256 = ?", sha256)) {
    db.run("insert into gyre_file (sha256, data) values (?, ?)", sha256, Buffer.from(bytes));
  }
  db.run(
    "insert into gyre_session_file (session, sha256) values (?, ?) on conflict do nothing",
    ...[session, sha256],
  );
}

export function readFile(db: Statements, session: string, sha256: string): Uint8Array | undefined {
  // One driver gives a buffer without a length.
  const row = db.first<{ data: ArrayBuffer | Uint8Array }>(
    `select f.data from gyre_file f join gyre_session_file s on s.sha256 = f.sha256
      where s.session = ? and f.sha256 = ?`,
    ...[session, sha256],
  );
  return row && new Uint8Array(row.data);
}

/** Gives a session contents that another has. */
export function shareFiles(
  db: Statements,
  session: string,
  { from, hashes }: NonNullable<NewStoredSession["files"]>,
): void {
  for (const sha256 of hashes) {
    db.run(
      `insert into gyre_session_file (session, sha256)
        select ?, sha256 from gyre_session_file where session = ? and sha256 = ?`,
      ...[session, from, sha256],
    );
  }
}

/** Takes the contents from a session, and deletes those that no other has. */
export function dropFiles(db: Statements, session: string): void {
  const files = db.all<{ sha256: string }>(
    "select sha256 from gyre_session_file where session = ?",
    session,
  );
  if (files.length === 0) return;
  db.run("delete from gyre_session_file where session = ?", session);
  for (const { sha256 } of files) {
    db.run(
      `delete from gyre_file where sha256 = ?
        and not exists (select 1 from gyre_session_file s where s.sha256 = gyre_file.sha256)`,
      sha256,
    );
  }
}
