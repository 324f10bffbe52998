import type { EntryInfo, EntryRow } from "@gyre/sessions";
import type { Bus } from "./bus.ts";
import type { ToolClientTable } from "./client-tools.ts";
import type { ScheduleStore } from "./schedules.ts";
import type { StoreCheck } from "./types.ts";

/**
 * What keeps runs: SQLite or Postgres. The worker and the side that asks are the same over both.
 *
 * Each method is one transaction. What it writes is stored when the promise settles. A store that
 * does not answer rejects with `DurableError`, code `unavailable`; the caller may call again, with
 * the same arguments, also where the transaction had been made and only its answer was lost.
 * JSON is kept as text, to the byte. Times are milliseconds since 1970 by the clock of the store,
 * never by that of a worker; where the time of a worker would count, there is a duration.
 */
export interface Store extends ScheduleStore {
  readonly name: "sqlite" | "postgres";
  /** Statements that were run so far, for measurements. */
  readonly statements: number;
  /** Hints that were sent to other processes so far. */
  readonly notifications: number;

  // The side that asks.

  /** Adds a run. The session is made where there is none of this id. */
  start(run: NewRun): Promise<StartOutcome>;
  /**
   * Puts something into the inbox of a run's session and wakes the session. An abort of a run that
   * no worker has begun, and that is not the next thing its session does, ends it here.
   */
  send(item: NewItem): Promise<SendOutcome>;
  /** Whether something was sent to a run under this key. */
  hasItem(run: string, key: string): Promise<boolean>;
  /**
   * Makes a run that failed or was set aside open again, and its session ready. Not one that was
   * never begun, nor one that another run of the session has followed. `known`: it was asked for
   * under this key before.
   */
  retry(run: string, key?: string): Promise<"ready" | "open" | "known" | "not found">;
  readRun(id: string): Promise<RunRow | undefined>;
  /**
   * A run, the runs that it works for, and all that work for the first of those, without runs whose
   * end has been delivered: what those have spent is counted in the run that they worked for.
   */
  readFamily(run: string): Promise<FamilyRow[]>;
  /** The newest first, by the time that they were started. */
  listRuns(filter: RunRowFilter): Promise<RunRow[]>;
  listWorkers(): Promise<WorkerRow[]>;
  /** Runs that have not ended, by status, agent and tenant. Looks at each of them. */
  countOpen(): Promise<OpenCount[]>;
  /** How long the oldest thing that was sent, and is due, has waited to be delivered, in milliseconds. */
  readInboxMs(): Promise<number>;
  /** The next number of a counter, from 1: no two callers get the same. */
  count(name: string): Promise<number>;
  /** How long the oldest ready session of a tenant has waited for a worker, in milliseconds. */
  readReadyMs(tenant: string): Promise<number>;
  /** Sets the limits of a tenant. */
  setTenant(tenant: TenantRow): Promise<void>;
  /**
   * Deletes runs that ended before `endedBefore`, at most `limit`, none that has an open child, and
   * sessions that have no run left. Resolves to the number of deleted runs.
   */
  prune(endedBefore: number, limit: number): Promise<number>;

  /** Sessions that programs make, open and write to themselves. */
  readonly sessions: SessionTable;

  /** The tools that clients of servers have registered. */
  readonly toolClients: ToolClientTable;

  // The log of a session.

  /** The entries behind `after`, in order, at most `limit`. */
  readEntriesAfter(session: string, after: number, limit: number): Promise<StoredEntry[]>;
  /** The entries of these ids, which go up. */
  readEntries(session: string, ids: readonly number[]): Promise<StoredEntry[]>;
  /** All entries without their content, in order. */
  listEntries(session: string): Promise<EntryInfo[]>;

  /** A number for each of these sessions that grows with its log and with its inbox. */
  readSeqs(sessions: readonly string[]): Promise<ReadonlyMap<string, number>>;

  // The side that works.

  /** Adds a worker, alive for `leaseMs`; one that is there gets what has changed. */
  register(worker: NewWorker): Promise<void>;
  /** Renews a worker's lease. False: it was swept, and has to register under another id. */
  heartbeat(worker: string, leaseMs: number, live: number): Promise<boolean>;
  /**
   * Keeps the lease of a worker whose event loop hangs, until it has hung for `stallMs`. Absent: the
   * store sees by itself whether the process of a worker runs.
   */
  keepLease?(wish: LeaseWish): Promise<LeaseKeeper>;
  /** Removes a worker. What it had claimed is ready for others at once. */
  unregister(worker: string): Promise<void>;
  /** Gives ready sessions to a worker that is alive. */
  claim(wish: ClaimWish): Promise<ClaimOutcome>;
  /**
   * Adds entries to the log of a claimed session, and resets its deaths. `fenced`: the claim is
   * lost, and nothing was written. `repeated`: the same change was made before, and its answer was
   * lost.
   */
  append(fence: Fence, change: Change): Promise<AppendOutcome>;
  /**
   * The same, and releases the claim. `woken`: something was sent since `seen`, and nothing was
   * written. The count is compared in the row, so that what is sent in this moment is never lost.
   */
  finish(fence: Fence, change: Change, finish: Finish): Promise<AppendOutcome | "woken">;
  /**
   * What waits for a session, in order, and how often it was woken. `after`: only what was sent
   * after this item. Items of a session have numbers in the order in which they can be seen.
   */
  readInbox(session: string, after?: number): Promise<Inbox>;
  /** How often each session that a worker has claimed was woken. */
  readWakes(worker: string): Promise<ReadonlyMap<string, number>>;
  /**
   * Removes workers that are dead and makes their sessions ready. Those whose process is gone
   * count as dead; those whose lease is over only with `expired`, as a caller may say that was
   * alive for a whole lease itself.
   */
  sweep(options: { expired: boolean; maxDeaths: number }): Promise<SweptSession[]>;

  /** Looks at what can be wrong with the store itself. */
  check(): Promise<StoreCheck[]>;

  // For an engine in the place of the store's own order of work.

  /**
   * Calls the listener after each commit of this process that may have made a session ready; without
   * one where it is not known which.
   */
  onReady(listener: (session: string | undefined) => void): () => void;
  /** Which of these sessions a worker may claim, now or later; or those that wait for one too long. */
  listReady(of: readonly string[] | LateReady): Promise<ReadySession[]>;

  // Hints.

  /**
   * Calls the listener soon after something has changed, in this process or another. Hints may be
   * lost, and come without a reason; callers look again now and then.
   */
  listen(interest: Interest, listener: (hint: Hint) => void): () => void;

  /** Carries live events between processes. */
  readonly bus: Bus;

  /** Releases connections and files. Later calls reject with code `closed`. */
  close(): Promise<void>;
}

/** `work`: a session is ready, or something was sent. `log`: a log has grown. */
export type Interest = "work" | "log";

/** Something has changed. Without `session`: it is not known where. */
export interface Hint {
  readonly session?: string;
}

/** A run that is started. */
export interface NewRun {
  readonly id: string;
  readonly session: string;
  readonly agent: string;
  readonly tenant: string;
  /** Default: that of the session, "" of a new one. */
  readonly pool?: string;
  /** Higher first. */
  readonly priority: number;
  /** Where the session has an open run, nothing is started. */
  readonly ifIdle?: boolean;
  /** Identifies what was asked: another one under the same id is another run. */
  readonly digest: string;
  /** The messages of the prompt: each the JSON of a `message` entry. */
  readonly prompt: readonly string[];
  /** Not before. */
  readonly at?: number;
  /** JSON. */
  readonly limits?: string;
  readonly output?: string;
  readonly meta?: string;
  readonly traceparent?: string;
  /** JSON: limits of the run that this one works for, which both spend from. */
  readonly budget?: string;
  /** The call that the run works for. */
  readonly parent?: { readonly run: string; readonly call: string };
}

/**
 * `started`: its prompt is in the log and its session is ready. `queued`: it waits for the open
 * run of its session. `known`: the run was there. `other`: the id has another digest. `agent`: the
 * session belongs to another agent. `tenant`: to another tenant. `pool`: it is bound to another pool.
 * `busy`: with `ifIdle`, the session has an open run. `full`: the tenant has as many ready as it may.
 */
export type StartOutcome =
  | "started"
  | "queued"
  | "known"
  | "other"
  | "agent"
  | "tenant"
  | "pool"
  | "busy"
  | "full";

/**
 * `answer`: a client has answered a call of one of its tools. `request`: something that the worker
 * answers in the log, see `RunRequest`.
 */
export type ItemKind =
  | "prompt"
  | "steering"
  | "followUp"
  | "decision"
  | "abort"
  | "answer"
  | "request";

/** Something that others want of a run. */
export interface NewItem {
  readonly run: string;
  readonly kind: Exclude<ItemKind, "prompt">;
  /** JSON. */
  readonly data: string;
  /** Sent again under the same key it is not added again. */
  readonly key: string;
}

export type SendOutcome = "sent" | "known" | "ended" | "not found";

export interface InboxItem {
  readonly id: number;
  readonly key: string;
  readonly run: string;
  readonly kind: ItemKind;
  readonly data: string;
  /** In how many milliseconds it is due. 0 or less: now. */
  readonly dueInMs: number;
}

export interface Inbox {
  readonly wakes: number;
  /** How often the tools that clients have registered were changed. */
  readonly toolChanges: number;
  readonly items: readonly InboxItem[];
}

/** An entry of the log, and the activation that wrote it. */
export interface StoredEntry extends EntryRow {
  readonly token: number;
}

/** What proves that a worker may write: all of it, as tokens may repeat after a loss of data. */
export interface Fence {
  readonly session: string;
  readonly worker: string;
  /** Counts the activations of the session. */
  readonly token: number;
  /** Unique. */
  readonly claim: string;
}

/** A session that a worker has claimed. */
export interface Claim extends Fence {
  readonly tenant: string;
  readonly agent: string;
  /** The version of the agent that the open run began with; "" where it has none. */
  readonly version: string;
  /** The last entry. */
  readonly seq: number;
  /** The entry that the next one follows; null: none. */
  readonly leaf: number | null;
  /** Workers that died with it since it last came further. */
  readonly deaths: number;
  /** The open run. Absent: the next one waits in the inbox. */
  readonly run?: string;
  /** Of a session that a program has made. */
  readonly header?: StoredHeader;
}

/** What a session was made with. */
export interface StoredHeader {
  readonly cwd: string;
  readonly createdAt: number;
  /** JSON: what it was made from. */
  readonly source?: string;
}

/** A session that is made. */
export interface NewStoredSession extends StoredHeader {
  readonly id: string;
  readonly tenant: string;
  /** It stays with workers of this pool. */
  readonly pool: string;
  /** What it begins with, numbered from 1. */
  readonly entries: readonly EntryRow[];
  readonly leaf: number | null;
  /** The hashes of contents that it shares with another session, as far as that has them. */
  readonly files?: { readonly from: string; readonly hashes: readonly string[] };
}

/** A session of a list. */
export interface StoredSession extends StoredHeader {
  readonly id: string;
  readonly pool: string;
  readonly updatedAt: number;
  readonly bytes: number;
  /** The data of the newest title. */
  readonly title?: string;
  /** The beginning of the data of the first message of a user. */
  readonly prompt?: string;
  /** It was put away, and no message followed. */
  readonly isArchived: boolean;
}

/** What the order of a list goes by. */
export type SessionPlace = Pick<StoredSession, "id" | "createdAt" | "updatedAt">;

export interface SessionFilter {
  readonly tenant: string;
  readonly cwd?: string;
  readonly isArchived?: boolean;
  /** By the last write, the newest first; else by the time that they were made. */
  readonly order: "updated" | "created";
  /** Behind this session of an earlier answer. */
  readonly after?: SessionPlace;
  readonly limit: number;
  /** Without sizes, and with less of prompts: for many that are looked through. */
  readonly isBrief?: boolean;
}

/** What has a session: a worker, for a run where one is open. */
export interface SessionHolder {
  /** Absent: a run is open, and no worker has it now. */
  readonly worker?: string;
  readonly run?: string;
}

/**
 * Sessions that programs make, open and write to themselves. A program that writes is a worker
 * without agents: its claim is the lock, and `append` and `finish` are the same.
 */
export interface SessionTable {
  /** False: the id is taken. */
  create(session: NewStoredSession): Promise<boolean>;
  /** Claims a session that has no open run. `gone`: the worker was swept. */
  hold(worker: string, session: string): Promise<Claim | SessionHolder | "gone" | "not found">;
  /** Also one that a run has made. */
  read(tenant: string, id: string): Promise<StoredSession | undefined>;
  /** Those that programs have made. */
  list(filter: SessionFilter): Promise<StoredSession[]>;
  /** The ids with this beginning, in order. */
  listIds(tenant: string, prefix: string, limit: number): Promise<string[]>;
  /** Deletes a session that nothing has, with its runs, and contents of files that no other has. */
  remove(id: string): Promise<"removed" | "held" | "not found">;
  /**
   * Stores the contents of a file that a session refers to, by their SHA-256 in hexadecimal. Sessions share
   * contents that are the same, which are deleted with the last of them. Nothing where there is no such session.
   */
  writeFile(session: string, sha256: string, bytes: Uint8Array): Promise<void>;
  /** The contents of a file, for a session that has it. */
  readFile(session: string, sha256: string): Promise<Uint8Array | undefined>;
}

export interface ClaimWish {
  readonly worker: string;
  readonly agents: readonly string[];
  /** Runs of these versions are left to other workers. */
  readonly refused: readonly { readonly agent: string; readonly version: string }[];
  readonly pools: readonly string[];
  readonly limit: number;
  /** A session with as many deaths is claimed `alone`. */
  readonly maxDeaths: number;
  /** The worker has no other session, and takes one that has many deaths, if there is no other. */
  readonly alone: boolean;
  /** This one alone. */
  readonly only?: OnlyWish;
}

/** What an engine has chosen. */
export interface OnlyWish {
  readonly session: string;
  /**
   * The activation by the engine. Where another worker has claimed the session for the same one, the
   * engine takes that worker for dead: it is claimed all the same, and counts as a death.
   */
  readonly activation: string;
}

/** Sessions that could have been claimed as long ago as this, by their ids. */
export interface LateReady {
  readonly lateMs: number;
  readonly limit: number;
  /** Those whose id comes after this one. */
  readonly after: string;
}

/** A session that a worker may claim. */
export interface ReadySession {
  readonly session: string;
  readonly tenant: string;
  readonly pool: string;
  readonly priority: number;
  /** From when on, by the clock of the store. */
  readonly at: number;
  /** In how many milliseconds that is; below 0: since then. */
  readonly inMs: number;
}

export interface ClaimOutcome {
  readonly claims: readonly Claim[];
  /** False: the worker was swept. */
  readonly isAlive: boolean;
  /** With no claims: in how many milliseconds the next session gets ready, where one has a time. */
  readonly nextInMs?: number;
}

/** How far a run has come, over all its activations. */
export interface RunProgress {
  readonly turns: number;
  /** JSON of a `Usage`. */
  readonly usage: string;
  /** Time that workers have spent on it; waiting does not count. */
  readonly activeMs: number;
  /** The span of the activation that wrote last, in the form of a `traceparent`. */
  readonly span?: string;
}

/** What one commit adds. */
export interface Change {
  /** The last entry before it: the log must end there. */
  readonly seq: number;
  /** Numbered from `seq + 1`. */
  readonly entries: readonly EntryRow[];
  readonly leaf: number | null;
  /** Items of the inbox that are delivered by it. */
  readonly taken?: readonly number[];
  /** The run that begins with it: its prompt is among the entries. */
  readonly opens?: { readonly run: string; readonly version: string };
  /** Of the open run. */
  readonly progress?: RunProgress;
}

/** How a claim ends. */
export interface Finish {
  /** The wakes of the newest inbox that was read. Absent: not compared, the session stays ready. */
  readonly seen?: number;
  /** `ready`: there is more to do. `waiting`: for what the inbox brings. `idle`: no run is open. */
  readonly status: "ready" | "waiting" | "idle";
  /** With `waiting`: ready after this time at the latest. With `ready`: not before. */
  readonly readyInMs?: number;
  /** Calls that wait, as JSON: see `RunRow.pending`. */
  readonly pending?: string;
  /** The open run has ended. */
  readonly end?: RunEnd;
  /** Runs that calls of this one wait for. One that is there already is left as it is. */
  readonly children?: readonly NewRun[];
  /** Items for this session's own inbox that are due later. */
  readonly timers?: readonly Timer[];
}

/** How a run has ended. */
export interface RunEnd {
  readonly run: string;
  readonly stop: string;
  readonly error?: string;
  /** JSON: the answer of a run with an output schema. */
  readonly answer?: string;
  /** For the inbox of the run that waits for it, if that is open: JSON of decisions. */
  readonly report?: { readonly run: string; readonly key: string; readonly data: string };
  /** Open runs that work for it are aborted. */
  readonly abortsChildren: boolean;
}

/** A decision that arrives later. */
export interface Timer {
  readonly key: string;
  readonly data: string;
  /** From now on, or a time of the store's clock. */
  readonly due: { readonly inMs: number } | { readonly at: number };
}

export type AppendOutcome = "done" | "repeated" | "fenced";

/**
 * `queued`: waits for the run before it in its session. `ready`: for a worker. `waiting`: for a
 * decision, a child or a timer. `aside`: it has ended its workers too often. `ended`: see `stop`.
 */
export type RunStatus = "queued" | "ready" | "running" | "waiting" | "aside" | "ended";

export interface RunRow {
  readonly id: string;
  readonly session: string;
  readonly agent: string;
  readonly version: string;
  readonly tenant: string;
  readonly pool: string;
  readonly status: RunStatus;
  /** The first entry of the run. Absent while it is queued. */
  readonly firstSeq?: number;
  /** The last entry of the run, once it has ended. */
  readonly lastSeq?: number;
  /** JSON: calls that wait. */
  readonly pending?: string;
  readonly limits?: string;
  readonly output?: string;
  readonly meta?: string;
  readonly traceparent?: string;
  /** See `RunProgress.span`. */
  readonly span?: string;
  readonly parent?: { readonly run: string; readonly call: string };
  readonly stop?: string;
  readonly error?: string;
  readonly answer?: string;
  readonly turns: number;
  readonly usage: string;
  readonly activeMs: number;
  readonly activations: number;
  readonly deaths: number;
  readonly worker?: string;
  readonly priority: number;
  readonly budget?: string;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** When its session gets ready, where that is later than now. */
  readonly readyAt?: number;
}

/** What a run has spent by itself, and what it shares with the run that it works for. */
export interface FamilyRow {
  readonly id: string;
  readonly parent?: string;
  readonly usage: string;
  readonly budget?: string;
}

/** How many runs of an agent, for a tenant, have a status. */
export interface OpenCount {
  readonly status: RunStatus;
  readonly agent: string;
  readonly tenant: string;
  readonly count: number;
  /** How long the oldest of those that are ready now has waited for a worker. */
  readonly readyMs?: number;
}

export interface RunRowFilter {
  readonly statuses?: readonly RunStatus[];
  readonly agent?: string;
  readonly tenant?: string;
  readonly session?: string;
  readonly parent?: string;
  readonly startedSince?: number;
  /** Behind this run of an earlier answer. */
  readonly after?: { readonly startedAt: number; readonly id: string };
  readonly limit: number;
}

/** An agent of a worker. */
export interface AgentVersion {
  readonly name: string;
  readonly version: string;
  /** Versions of runs that it met and leaves to others. */
  readonly refuses?: readonly string[];
}

export interface NewWorker {
  readonly id: string;
  readonly agents: readonly AgentVersion[];
  readonly pools: readonly string[];
  readonly leaseMs: number;
  /** How long it may give no sign of life while its process runs. */
  readonly stallMs?: number;
}

export interface LeaseWish {
  readonly worker: string;
  readonly leaseMs: number;
  /** Between two heartbeats of the worker. */
  readonly beatMs: number;
  readonly stallMs: number;
  readonly onError: (error: unknown, where: string) => void;
}

/** Renews the lease of a worker that does not do so itself. */
export interface LeaseKeeper {
  /** The event loop of the worker turns. */
  mark(): void;
  /** The worker has another id. */
  rename(worker: string): void;
  close(): Promise<void>;
}

export interface WorkerRow {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly agents: readonly AgentVersion[];
  readonly pools: readonly string[];
  /** Sessions that it works on. */
  readonly live: number;
  readonly startedAt: number;
  /** How much is left of its lease, in milliseconds. */
  readonly leaseMs: number;
}

export interface TenantRow {
  readonly id: string;
  /** Runs that work at once. Absent: any number. */
  readonly maxRunning?: number;
  /** Runs that wait for a worker. */
  readonly maxReady?: number;
}

export interface SweptSession {
  readonly session: string;
  readonly worker: string;
  /** `aside`: it had ended more workers than it may. */
  readonly status: "ready" | "aside";
  /** How its worker is known to be dead: its process is gone, or its lease is over. */
  readonly why: "gone" | "expired";
}
