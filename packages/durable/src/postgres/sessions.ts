import { randomUUID } from "node:crypto";
import type {
  Claim,
  NewStoredSession,
  SessionFilter,
  SessionHolder,
  SessionTable,
  StoredSession,
} from "../contract/store.ts";
import { numberMarks, type SessionRecord, toClaim } from "../sql/rows.ts";
import {
  limitPrefix,
  LIST_IDS,
  listSessions,
  SELECT_SESSION,
  type StoredSessionRecord,
  toStoredSession,
} from "../sql/sessions.ts";
import { type Database, NOW, Rollback, type Session } from "./driver/database.ts";
import { dropFiles, readFile, writeFile } from "../files/postgres-files.ts";

/** Made all or not at all, in one round trip. Shared files are not deleted with the other session meanwhile. */
const CREATE = `with session as (
    insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, ready_at, created_at, updated_at)
    values ($1, $2, $3, '', 'idle', $4::bigint, $5::bigint, ${NOW}, ${NOW}, ${NOW})
    on conflict do nothing returning id
  ), header as (
    insert into gyre_header (session, cwd, source, created_at)
    select id, $6, $7, $8::bigint from session
  ), entries as (
    insert into gyre_entry (session, seq, parent, type, data, token, at)
    select session.id, e.seq, e.parent, e.type, e.data, 0, e.at from session,
      unnest($9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::bigint[])
        as e(seq, parent, type, data, at)
  ), shared as (
    select f.sha256 from gyre_file f join gyre_session_file s on s.sha256 = f.sha256
    where s.session = $14 and f.sha256 = any($15::text[]) for share of f
  ), files as (
    insert into gyre_session_file (session, sha256)
    select session.id, shared.sha256 from session, shared
  ) select id from session`;

const READ = numberMarks(SELECT_SESSION);
const IDS = numberMarks(LIST_IDS);

/** Sessions of programs in a Postgres. */
export class PostgresSessions implements SessionTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async create(session: NewStoredSession): Promise<boolean> {
    const { id, tenant, pool, entries, leaf, cwd, source, createdAt, files } = session;
    const added = await this.#database.run(
      CREATE,
      ...[id, tenant, pool, entries.length, leaf, cwd, source ?? null, createdAt],
      entries.map((row) => row.id),
      entries.map(({ parentId }) => parentId),
      entries.map(({ type }) => type),
      entries.map(({ data }) => data),
      entries.map(({ timestamp }) => timestamp),
      ...[files?.from ?? "", [...(files?.hashes ?? [])]],
    );
    return added > 0;
  }

  async hold(
    worker: string,
    session: string,
  ): Promise<Claim | SessionHolder | "gone" | "not found"> {
    const outcome = await this.#database.transact(async (db) => {
      // No sweep removes the worker meanwhile.
      const alive = await db.first("select 1 from gyre_worker where id = $1 for share", worker);
      if (!alive) return new Rollback("gone" as const);
      const row = await lock(db, session);
      if (!row) return new Rollback("not found" as const);
      if (!(await isFree(db, row))) return new Rollback(describeHolder(row));
      const held = { ...row, token: row.token + 1, claim: randomUUID() };
      await db.run(
        `update gyre_session set status = 'running', owner = $2, token = $3, claim = $4, due = null
          where id = $1`,
        ...[session, worker, held.token, held.claim],
      );
      return toClaim(held, worker);
    });
    return outcome instanceof Rollback ? outcome.value : outcome;
  }

  async read(tenant: string, id: string): Promise<StoredSession | undefined> {
    const record = await this.#database.first<StoredSessionRecord>(READ, id, tenant);
    return record && toStoredSession(record);
  }

  async list(filter: SessionFilter): Promise<StoredSession[]> {
    const { sql, values } = listSessions(filter);
    const rows = await this.#database.all<StoredSessionRecord>(numberMarks(sql), ...values);
    return rows.map(toStoredSession);
  }

  async listIds(tenant: string, prefix: string, limit: number): Promise<string[]> {
    const rows = await this.#database.all<{ id: string }>(
      IDS,
      ...[prefix, limitPrefix(prefix), tenant, limit],
    );
    return rows.map(({ id }) => id);
  }

  async remove(id: string): Promise<"removed" | "held" | "not found"> {
    const outcome = await this.#database.transact(async (db) => {
      const row = await lock(db, id);
      if (!row) return new Rollback("not found" as const);
      if (!(await isFree(db, row))) return new Rollback("held" as const);
      await db.run("delete from gyre_entry where session = $1", id);
      await db.run("delete from gyre_inbox where session = $1", id);
      await db.run("delete from gyre_run where session = $1", id);
      await db.run("delete from gyre_header where session = $1", id);
      await dropFiles(db, [id]);
      await db.run("delete from gyre_session where id = $1", id);
      return "removed" as const;
    });
    return outcome instanceof Rollback ? outcome.value : outcome;
  }

  writeFile(session: string, sha256: string, bytes: Uint8Array): Promise<void> {
    return writeFile(this.#database, session, sha256, bytes);
  }

  readFile(session: string, sha256: string): Promise<Uint8Array | undefined> {
    return readFile(this.#database, session, sha256);
  }
}

function lock(db: Session, id: string): Promise<SessionRecord | undefined> {
  return db.first<SessionRecord>(
    `select s.*, h.cwd, h.source, h.created_at as made_at from gyre_session s
      left join gyre_header h on h.session = s.id where s.id = $1 for update of s`,
    id,
  );
}

/** A session whose program has died is ready, and has nothing to do. */
async function isFree(db: Session, { id, status, run }: SessionRecord): Promise<boolean> {
  if (run !== null || status === "running") return false;
  const waiting = await db.first(
    "select 1 from gyre_inbox where session = $1 and taken is null and kind = 'prompt'",
    id,
  );
  return waiting === undefined;
}

function describeHolder({ owner, run, status }: SessionRecord): SessionHolder {
  return {
    ...(owner !== null && status === "running" && { worker: owner }),
    ...(run !== null && { run }),
  };
}
