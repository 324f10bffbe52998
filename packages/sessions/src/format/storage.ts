import type { SessionListOptions, SessionPageOptions } from "./page.ts";
import type {
  NewSession,
  OpenOptions,
  Session,
  SessionPage,
  SessionSearchOptions,
  SessionSearchPage,
  SessionSummary,
} from "./types.ts";

/** How a session is forked. */
export interface ForkOptions {
  cwd?: string;
  entry?: number | null;
  newId?: string;
}

/**
 * Where sessions are kept. `SessionStore` keeps them in files, `MemorySessions` in memory; a
 * program that has a database implements it there, and checks that with the tests of
 * `@gyre/sessions/testing`. What cannot be done rejects with `SessionError`.
 */
export interface SessionStorage {
  /** Makes a session and opens it to be written. Rejects with `exists` where the id is taken. */
  create(header: NewSession): Promise<Session>;
  /**
   * Opens a session by its id, or by the beginning of one. To write, it takes the lock: a session
   * has one writer at a time, and rejects with `locked` while there is another. Any number may
   * read. Rejects with `not_found` and `ambiguous` too.
   */
  open(id: string, options?: Pick<OpenOptions, "readOnly">): Promise<Session>;
  /**
   * What `open` takes for the session with exactly this id; undefined where there is none. For ids
   * that come from outside, and must not be the beginning of another, or the path of a file.
   */
  locate(id: string): Promise<string | undefined>;
  /** The session that an id, or the beginning of one, means. Rejects with `not_found` or `ambiguous`. */
  find(idOrPrefix: string): Promise<SessionSummary>;
  /** The sessions of one folder or of all, those that were last written to first. */
  list(options?: SessionListOptions & { limit?: number }): Promise<SessionSummary[]>;
  /**
   * A part of the sessions of a folder or of all, the newest first by the time that they were made:
   * that order does not change between two pages. With the order `updated` a session that is
   * written to between two pages goes to the front: no session is on two pages, and that one may be
   * on none. A page may have fewer sessions than `limit`, or none, and be followed by another.
   */
  listPage(options: SessionPageOptions): Promise<SessionPage>;
  /**
   * A new session with one branch of another one, open to be written: up to `entry`, by default
   * up to its leaf; null: without any entry of it. What waits in queues is not copied. `newId`: the
   * id of the new session; rejects with `exists` where that is taken.
   */
  fork(id: string, options?: ForkOptions): Promise<Session>;
  /**
   * Looks for a text in messages, the newest session first. The work for a page has an end: it may
   * have no match, and be followed by another. Absent: texts cannot be looked for here.
   */
  search?(options: SessionSearchOptions): Promise<SessionSearchPage>;
  /** Deletes a session. Rejects with `locked` while it is open to be written, and with `not_found`. */
  remove(id: string): Promise<void>;
  /** Loads what the first `locate` needs, before a client waits for it. */
  prepare?(): Promise<void>;
}
