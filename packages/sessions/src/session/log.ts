import type { Fields } from "../format/body.ts";
import type { EntryRow } from "../format/row.ts";
import type { SessionError } from "../format/types.ts";
import type { EntryIndex } from "./entry-index.ts";

/** Reads the fields of entries, by their places in the index. */
export interface EntryReader {
  one(at: number): Promise<Fields>;
  /** Many of them, by their places in ascending order; each is given to `take`. */
  each(
    places: readonly number[],
    take: (fields: Fields, at: number) => void | Promise<void>,
  ): Promise<void>;
}

/** What is behind an open session. */
export interface SessionLog {
  /** All entries that are written. `write` adds to it. */
  readonly index: EntryIndex;
  readonly reader: EntryReader;
  /** Awaited before a group of entries is taken: what is appended meanwhile joins it. */
  prepareWrite(): Promise<void>;
  /** Throws where an entry can never be written. */
  assertFits(row: EntryRow): void;
  /** Writes all of them or none, and notes them in the index. */
  write(rows: readonly EntryRow[]): Promise<void>;
  close(): Promise<void>;
  /** An error about this session: `what` follows its name. */
  error(code: SessionError["code"], what: string, cause?: unknown): SessionError;
  /** Gets an entry that can no longer be assembled. */
  reportLost(at: number, message: string): void;
}
