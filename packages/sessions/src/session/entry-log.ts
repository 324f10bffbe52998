import { type Clock, type FileStore, isRecord, systemClock } from "@gyre/ai";
import { ENTRY_TYPES, type Fields } from "../format/body.ts";
import type { SessionHeader } from "../format/entry.ts";
import type { EntryRow } from "../format/row.ts";
import { type EntryInfo, type Session, SessionError } from "../format/types.ts";
import { EntryIndex } from "./entry-index.ts";
import type { EntryReader, SessionLog } from "./log.ts";
import { LogSession } from "./log-session.ts";

/** Entries that are read at once. */
const READ_AT_ONCE = 1_000;
const CUSTOM = ENTRY_TYPES.indexOf("custom");

/** What a store does for one open session. All else is the same for every store. */
export interface EntryLog {
  /**
   * Stores entries behind the others, all of them or none: they are stored when the promise
   * settles. One call at a time. Rejects with `SessionError`: `lock_lost` where another writer has
   * taken the session over, else `write_failed`.
   */
  append(rows: readonly EntryRow[]): Promise<void>;
  /** The entries with these ids, which go up, in the same order. */
  read(ids: readonly number[]): Promise<readonly EntryRow[]>;
  /** Releases the session for other writers. Called once, after all appends. */
  close?(): Promise<void>;
}

/** What a session is opened from. */
export interface EntryLogOptions {
  header: SessionHeader;
  /** All entries, by ascending ids; `bytes` is the length of the data. */
  entries: Iterable<EntryInfo>;
  log: EntryLog;
  readOnly?: boolean;
  clock?: Clock;
  /** Where the contents of large files go. Absent: into the entries. */
  files?: FileStore;
}

/** An open session of a store of one's own. */
export interface EntryLogSession extends Session {
  /**
   * Gives the entries of a branch, by default that of the leaf, to `take`, numbered from 1: what
   * the store puts into a fork.
   */
  copyBranch(take: (row: EntryRow) => void | Promise<void>, id?: number | null): Promise<void>;
}

/**
 * Opens a session over the entries that a store keeps: it numbers entries, follows branches and
 * reads the context, so that a store has to append, read and lock.
 */
export function openEntryLog(options: EntryLogOptions): EntryLogSession {
  const { header, entries, log, readOnly = false, clock = systemClock, files } = options;
  const index = new EntryIndex();
  for (const { id, parentId, type, bytes } of entries) {
    index.add(id, parentId ?? 0, toTypeNumber(type), 0, bytes, 0);
  }
  return new LogSession({ header, log: new RowLog(header.id, index, log), readOnly, clock, files });
}

/** A type that this version does not know is `custom`. */
function toTypeNumber(type: EntryInfo["type"]): number {
  const number = ENTRY_TYPES.indexOf(type);
  return number < 0 ? CUSTOM : number;
}

class RowLog implements SessionLog {
  readonly index: EntryIndex;
  readonly reader: EntryReader;
  readonly #id: string;
  readonly #log: EntryLog;

  constructor(id: string, index: EntryIndex, log: EntryLog) {
    this.#id = id;
    this.index = index;
    this.#log = log;
    this.reader = {
      one: async (at) => {
        const [row] = await log.read([index.idAt(at)]);
        return this.#fields(row, at);
      },
      each: async (places, take) => {
        for (let from = 0; from < places.length; from += READ_AT_ONCE) {
          const group = places.slice(from, from + READ_AT_ONCE);
          const rows = await log.read(group.map((at) => index.idAt(at)));
          for (const [i, at] of group.entries()) await take(this.#fields(rows[i], at), at);
        }
      },
    };
  }

  async prepareWrite(): Promise<void> {}

  assertFits(): void {}

  async write(rows: readonly EntryRow[]): Promise<void> {
    await this.#log.append(rows);
    for (const { id, parentId, type, data } of rows) {
      this.index.add(id, parentId ?? 0, toTypeNumber(type), 0, data.length, 0);
    }
  }

  async close(): Promise<void> {
    await this.#log.close?.();
  }

  error(code: SessionError["code"], what: string, cause?: unknown): SessionError {
    const message = `The session ${this.#id} ${what}.`;
    return new SessionError(code, message, cause === undefined ? {} : { cause });
  }

  /** Only damage to a file leaves a message without its result. */
  reportLost(): void {}

  #fields(row: EntryRow | undefined, at: number): Fields {
    const id = this.index.idAt(at);
    if (row?.id !== id) throw this.error("unreadable", `has no entry ${id} any more`);
    const fields = this.#parse(row);
    if (!isRecord(fields)) throw this.error("unreadable", `has an entry ${id} that is no object`);
    return { ...fields, type: row.type, timestamp: row.timestamp };
  }

  #parse({ id, data }: EntryRow): unknown {
    try {
      return JSON.parse(data);
    } catch (error) {
      throw this.error("unreadable", `has an entry ${id} that is no JSON`, error);
    }
  }
}
