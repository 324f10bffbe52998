import type { Database, Session } from "../postgres/driver/database.ts";

/** Stores contents, once for all sessions that have them. */
export async function writeFile(
  database: Database,
  session: string,
  sha256: string,
  bytes: Uint8Array,
): Promise<void> {
  await database.transact(async (db) => {
    // It is not removed meanwhile.
    const there = await db.first("select 1 from gyre_session where id = $1 for share", session);
    if (!there) return undefined;
    // What is there is locked, so that it is not deleted with the last of the others.
    const known = await db.first("select 1 from gyre_file where sha256 = $1 for share", sha256);
    if (!known) {
      await db.run(
        `insert into gyre_file (sha256, data) values ($1, $2)
          on conflict (sha256) do update set sha256 = excluded.sha256`,
        ...[sha256, Buffer.from(bytes)],
      );
    }
    await db.run(
      "insert into gyre_session_file (session, sha256) values ($1, $2) on conflict do nothing",
      ...[session, sha256],
    );
    return true;
  });
}

export async function readFile(
  database: Database,
  session: string,
  sha256: string,
): Promise<Uint8Array | undefined> {
  const row = await database.first<{ data: Uint8Array }>(
    `select f.data from gyre_file f join gyre_session_file s on s.sha256 = f.sha256
      where s.session = $1 and f.sha256 = $2`,
    ...[session, sha256],
  );
  return row?.data;
}

/** Takes the contents from sessions, and deletes those that no other has. */
export async function dropFiles(db: Session, sessions: readonly string[]): Promise<void> {
  const files = await db.all<{ sha256: string }>(
    "delete from gyre_session_file where session = any($1) returning sha256",
    sessions,
  );
  if (files.length === 0) return;
  const hashes = [...new Set(files.map(({ sha256 }) => sha256))];
  // A transaction that stores the same contents now is waited for, and the next statement sees it.
  await db.all("select 1 from gyre_file where sha256 = any($1) order by sha256 for update", hashes);
  await db.run(
    `delete from gyre_file f where f.sha256 = any($1)
      and not exists (select 1 from gyre_session_file s where s.sha256 = f.sha256)`,
    hashes,
  );
}
