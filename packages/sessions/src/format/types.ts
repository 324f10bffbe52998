import type {
  AgentMessage,
  Compaction,
  InterruptedRun,
  PendingCall,
  QueuedMessages,
  UnfinishedCall,
} from "@gyre/agent";
import type { Clock, FileStore } from "@gyre/ai";
import type { Entry, EntryBody, EntryType, SessionHeader, SessionSettings } from "./entry.ts";

/** How a session is opened. */
export interface OpenOptions {
  /** Takes no lock, repairs nothing, and cannot append. */
  readOnly?: boolean;
  /** Default: that of the store. */
  clock?: Clock;
  /** For people: what to do about a lock that was left behind. Default: to delete its file. */
  unlockHint?: string;
  /** For people: how to continue in a copy where another process has it open. */
  forkHint?: string;
}

/** The header of a new session. */
export interface NewSession {
  cwd: string;
  /** Default: a fresh one. */
  id?: string;
  from?: SessionHeader["from"];
  /** When it was begun, in milliseconds since 1970. Default: now. */
  createdAt?: number;
  /** It is begun where no person is at it. */
  headless?: true;
}

/** How a context is read. */
export interface ContextOptions {
  files?: "stored";
}

/** Something in a file that could not be used. Everything else of the file could. */
export interface SessionProblem {
  kind: "torn" | "damaged" | "fenced" | "orphan" | "header";
  /** Counted from 1. */
  line: number;
  /** Where it begins in the file, and how long it is, in bytes. */
  offset: number;
  bytes: number;
  /** For people. */
  message: string;
}

/** The facts about an entry that the index holds. */
export interface EntryInfo {
  id: number;
  parentId: number | null;
  type: EntryType;
  bytes: number;
}

/** What an agent needs to continue. */
export interface SessionContext {
  /** The messages of one branch, results next to their calls; those that a compaction stands for are left out. */
  messages: AgentMessage[];
  /** The entry of each message; of one that stands for others, that of the compaction. */
  entries: number[];
  /** For a new `Agent`. What it leaves out is left out of `messages` already, which does not hurt. */
  compaction?: Compaction;
  settings: SessionSettings;
  title?: string;
  /** Calls that wait for a person; for a new `Agent`. */
  pending: PendingCall[];
  /** The run that was cut off, if the last one was; for a new `Agent`. */
  interrupted?: InterruptedRun;
  /** What waits in the agent's queues; for a new `Agent`. */
  queued: QueuedMessages;
  /** What became of a call whose message is missing; for the agent's option of this name. */
  readonly unfinished: (toolCallId: string) => UnfinishedCall | undefined;
}

/**
 * An open session, whatever keeps it. Appends are made in the order of the calls, by this writer
 * alone, and are stored when the promise settles; appends that wait may be stored together.
 */
export interface Session {
  readonly header: SessionHeader;
  readonly readOnly: boolean;
  /** The file that it is in. Absent where it is not in one. */
  readonly path?: string;
  /** Where the contents of its large files are. Absent: in the entries. */
  readonly files?: FileStore;
  /** Damage that was found when it was opened. Absent: the store reports none. */
  readonly problems?: readonly SessionProblem[];
  /** The entry that the next one is appended to. */
  readonly leaf: number | null;
  /** Of all entries, in the order in which they were written: a list that is made when it is asked for. */
  readonly entries: readonly EntryInfo[];
  /** The ids of the entries of some types, in the same order. */
  findIds(...types: readonly EntryType[]): number[];
  /**
   * Writes an entry after the leaf, which it becomes; what is about a call or a queue stays
   * beside the branch.
   * Rejects with `SessionError`: `lock_lost`, permanently, or `write_failed` (a full disk, say);
   * the session then ends as it did before, and a later append may succeed.
   */
  append(body: EntryBody): Promise<Entry>;
  /** One entry, whole. */
  read(id: number): Promise<Entry>;
  /** The ids from the root to an entry, by default the leaf. */
  findBranch(id?: number | null): number[];
  /** Moves the leaf, in the store too: the next entry follows `id`. */
  branch(id: number | null): Promise<void>;
  /**
   * Reads what an agent needs to continue from an entry, by default the leaf. Messages have the contents
   * of their files; with `files: "stored"` those that are in `files` stay there, for a client of
   * `withStoredFiles`.
   */
  context(id?: number | null, options?: ContextOptions): Promise<SessionContext>;
  /** Releases the session and its lock after all appends are written. */
  close(): Promise<void>;
}

/** An open session file. Appends are on the disk when the promise settles; those that wait share one sync. */
export interface SessionFile extends Session {
  readonly path: string;
  readonly problems: readonly SessionProblem[];
  /** A new file with one branch of this one, up to `id`, by default the leaf. */
  fork(
    path: string,
    options?: { id?: number | null; newId?: string; cwd?: string },
  ): Promise<SessionFile>;
}

/** One session of a list. A type, not an interface: so it is one of `SessionHost` too, which has further fields. */
export type SessionSummary = {
  id: string;
  /** The file that it is in. Absent where it is not in one. */
  path?: string;
  cwd: string;
  createdAt: number;
  updatedAt: number;
  bytes: number;
  title?: string;
  /** The first thing that the user asked, cut short. */
  firstPrompt?: string;
  /** It was put away, and nothing was said in it since. */
  archived?: true;
  /** It was begun where no person is at it: `gyre -p`. */
  headless?: true;
};

/** The same of a file, by its first and last lines. */
export type SessionFileSummary = SessionSummary & { path: string };

/** A part of a list. */
export interface SessionPage<S extends SessionSummary = SessionSummary> {
  sessions: S[];
  /** Absent: there are no more. */
  next?: string;
}

/** What is looked for in the messages of sessions. */
export interface SessionSearchOptions {
  /** In any case. */
  text: string;
  cwd?: string;
  archived?: boolean;
  /** Matches of a page. */
  limit: number;
  /** `next` of the page before, of the same search. */
  after?: string;
  signal?: AbortSignal;
}

/** A session that has the text in a message. */
export interface SessionMatch {
  session: SessionSummary;
  /** The first message that has it. */
  entry: number;
  role: string;
  /** What stands around it, on one line. */
  excerpt: string;
}

/** A part of a search. */
export interface SessionSearchPage {
  matches: SessionMatch[];
  /** Sessions that cannot be read. */
  unreadable: string[];
  /** Absent: all was looked through. */
  next?: string;
}

/**
 * What is wrong with a session, for programs. `locked`: another process has it open. `lock_lost`:
 * another process has taken it over. `newer_version`: a newer program wrote it.
 */
export type SessionErrorCode =
  | "locked"
  | "lock_lost"
  | "write_failed"
  | "not_a_session"
  | "newer_version"
  | "exists"
  | "not_found"
  | "ambiguous"
  | "unreadable";

/** What is wrong, with which file, and what to do. */
export class SessionError extends Error {
  readonly code: SessionErrorCode;
  readonly path: string | undefined;
  constructor(
    code: SessionErrorCode,
    message: string,
    options: ErrorOptions & { path?: string } = {},
  ) {
    super(message, options);
    this.name = "SessionError";
    this.code = code;
    this.path = options.path;
  }
}
