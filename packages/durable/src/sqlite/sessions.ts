import { randomUUID } from "node:crypto";
import type {
  Claim,
  NewStoredSession,
  SessionFilter,
  SessionHolder,
  SessionTable,
  StoredSession,
} from "../contract/store.ts";
import { entryValues, type HeaderRecord, type SessionRecord, toClaim } from "../sql/rows.ts";
import {
  limitPrefix,
  type ListIndex,
  LIST_IDS,
  listSessions,
  SELECT_SESSION,
  type StoredSessionRecord,
  toStoredSession,
} from "../sql/sessions.ts";
import { isRegistered } from "./claim.ts";
import type { Connection, Statements } from "./driver/connection.ts";
import { dropFiles, readFile, shareFiles, writeFile } from "../files/sqlite-files.ts";
import { hasPrompt } from "./inbox.ts";
import { INSERT_ENTRY } from "./log.ts";

/** Tables of version 9 keep when a session was last written to. */
export const LIST_INDEX: ListIndex = {
  writtenAt: "s.written_at",
  headers: "gyre_header h indexed by gyre_header_listed",
};

/** Sessions of programs in a SQLite file. */
export class SqliteSessions implements SessionTable {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  create(session: NewStoredSession): Promise<boolean> {
    return this.#connection.write((db) => {
      const { id, tenant, pool, entries, leaf, cwd, source, createdAt, files } = session;
      const now = Date.now();
      const added = db.run(
        `insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, ready_at, created_at,
          updated_at) values (?, ?, ?, '', 'idle', ?, ?, ?, ?, ?) on conflict do nothing`,
        ...[id, tenant, pool, entries.length, leaf, now, now, now],
      );
      if (added === 0) return false;
      db.run(
        "insert into gyre_header (session, cwd, source, created_at) values (?, ?, ?, ?)",
        ...[id, cwd, source ?? null, createdAt],
      );
      for (const row of entries) {
        db.run(INSERT_ENTRY, ...entryValues(id, 0, row));
      }
      if (files) shareFiles(db, id, files);
      return true;
    });
  }

  hold(worker: string, session: string): Promise<Claim | SessionHolder | "gone" | "not found"> {
    return this.#connection.write((db) => {
      if (!isRegistered(db, worker)) return "gone";
      const row = readRecord(db, session);
      if (!row) return "not found";
      if (!isFree(db, row)) {
        const { owner, run, status } = row;
        return {
          ...(owner !== null && status === "running" && { worker: owner }),
          ...(run !== null && { run }),
        };
      }
      const held = { ...row, token: row.token + 1, claim: randomUUID() };
      db.run(
        `update gyre_session set status = 'running', owner = ?, token = ?, claim = ?, due = null
          where id = ?`,
        ...[worker, held.token, held.claim, session],
      );
      return toClaim(held, worker);
    });
  }

  read(tenant: string, id: string): Promise<StoredSession | undefined> {
    return this.#connection.read((db) => {
      const record = db.first<StoredSessionRecord>(SELECT_SESSION, id, tenant);
      return record && toStoredSession(record);
    });
  }

  list(filter: SessionFilter): Promise<StoredSession[]> {
    const { sql, values } = listSessions(filter, LIST_INDEX);
    return this.#connection.read((db) =>
      db.all<StoredSessionRecord>(sql, ...values).map(toStoredSession),
    );
  }

  listIds(tenant: string, prefix: string, limit: number): Promise<string[]> {
    return this.#connection.read((db) =>
      db
        .all<{ id: string }>(LIST_IDS, prefix, limitPrefix(prefix), tenant, limit)
        .map(({ id }) => id),
    );
  }

  remove(id: string): Promise<"removed" | "held" | "not found"> {
    return this.#connection.write((db) => {
      const row = readRecord(db, id);
      if (!row) return "not found";
      if (!isFree(db, row)) return "held";
      for (const table of ["gyre_entry", "gyre_inbox", "gyre_run", "gyre_header"]) {
        db.run(`delete from ${table} where session = ?`, id);
      }
      dropFiles(db, id);
      db.run("delete from gyre_session where id = ?", id);
      return "removed";
    });
  }

  writeFile(session: string, sha256: string, bytes: Uint8Array): Promise<void> {
    return this.#connection.write((db) => writeFile(db, session, sha256, bytes));
  }

  readFile(session: string, sha256: string): Promise<Uint8Array | undefined> {
    return this.#connection.read((db) => readFile(db, session, sha256));
  }
}

function readRecord(db: Statements, id: string): (SessionRecord & HeaderRecord) | undefined {
  return db.first(
    `select s.*, h.cwd, h.source, h.created_at as made_at from gyre_session s
      left join gyre_header h on h.session = s.id where s.id = ?`,
    id,
  );
}

/** A session whose program has died is ready, and has nothing to do. */
function isFree(db: Statements, { id, status, run }: SessionRecord): boolean {
  return run === null && status !== "running" && !hasPrompt(db, id);
}
