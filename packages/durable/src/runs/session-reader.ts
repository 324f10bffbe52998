import type { Entry } from "@gyre/sessions";
import type { Store } from "../contract/store.ts";
import { EntryDecoder, readEnd, readRows, type StoredEnd } from "./read-log.ts";

/** An entry of the log of a session. */
export interface SessionEntry {
  readonly seq: number;
  /** The activation that wrote it. */
  readonly activation: number;
  readonly entry: Entry;
  /** Of the end of a run, or of its suspension. */
  readonly end?: StoredEnd;
}

/** Reads the log of a session, from the beginning on, in any process. */
export class SessionReader {
  readonly session: string;
  readonly #store: Store;
  readonly #decoder: EntryDecoder;
  #seq = 0;

  constructor(store: Store, session: string) {
    this.session = session;
    this.#store = store;
    this.#decoder = new EntryDecoder(store, session);
  }

  /** The entries that were stored since the last call. One call at a time. */
  async read(): Promise<SessionEntry[]> {
    const entries: SessionEntry[] = [];
    let seq = this.#seq;
    for await (const row of readRows(this.#store, this.session, seq)) {
      const entry = await this.#decoder.decode(row);
      const end = readEnd(row);
      entries.push({ seq: row.id, activation: row.token, entry, ...(end && { end }) });
      seq = row.id;
    }
    this.#seq = seq;
    return entries;
  }
}
