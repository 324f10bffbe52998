import type {
  AgentEvent,
  AgentMessage,
  AgentStop,
  Decision,
  Limits,
  PendingCall,
  PromptInput,
} from "@gyre/agent";
import type { JsonSchema, Usage } from "@gyre/ai";
import type { Engine } from "./engine.ts";
import type { RunStatus, WorkerRow } from "./store.ts";

export type { RunStatus } from "./store.ts";

/** How runs are opened. */
export interface StoreOptions {
  /** Makes and updates the tables where that is needed. Default true. */
  migrate?: boolean;
  /**
   * For a file. `full`, the default: a commit outlives a power failure. `normal`: the newest may be
   * lost with the power, never with the process.
   */
  synchronous?: "full" | "normal";
  /** For Postgres: the schema of the tables. Default: that of the connection. */
  schema?: string;
  /** For Postgres behind a pooler: a direct address for notifications. */
  listenUrl?: string;
  /** For Postgres: connections at most. */
  pool?: number;
  /**
   * Decides when and where a session is worked on: `dbosEngine()`, `restateEngine()`. Default: the
   * store. Runs and workers of one store have the same one.
   */
  engine?: Engine;
  /** Receives errors that no caller waits for. Default: a process warning. */
  onError?: (error: unknown, where: string) => void;
}

/** How a run is started. */
export interface StartOptions {
  /** The name of an agent that workers know. */
  agent: string;
  /** Default: a fresh one. The same id again is the same run: nothing is done twice. */
  id?: string;
  /** The conversation that it goes on with. Default: a new one. While that has an open run, this one waits. */
  session?: string;
  /** Rejects with `busy` where the session has an open run. */
  ifIdle?: boolean;
  /** Whom it is for: limits are by tenant. */
  tenant?: string;
  /** What a worker has to have: only workers of this pool work on it. Default: that of its session, "" of a new one. */
  pool?: string;
  /** Higher first. Default 0. */
  priority?: number;
  /** Not before. */
  at?: Date;
  /** They hold for the whole run, over all workers. */
  limits?: Limits;
  /** The answer is checked against it: see `RunResult.output`. */
  output?: JsonSchema;
  meta?: Readonly<Record<string, string>>;
  /** The trace that it belongs to. */
  traceparent?: string;
}

/** When runs of a schedule are started, and what they are. */
export interface ScheduleOptions extends Omit<StartOptions, "id" | "at" | "traceparent"> {
  /** Its runs are called `ID/TIME`, with the time that they were due. */
  id: string;
  /** Minute, hour, day of the month, month, weekday: "0 8 * * 1-5". Either this or `everyMs`. */
  cron?: string;
  /** The zone of `cron`, such as "Europe/Berlin". Default "UTC". */
  timeZone?: string;
  /** The time from one run to the next, at least 1,000. */
  everyMs?: number;
}

/** A schedule, as it is now. */
export interface ScheduleInfo {
  id: string;
  agent: string;
  cron?: string;
  timeZone?: string;
  everyMs?: number;
  isPaused: boolean;
  /** When it is due next. */
  nextAt: Date;
  /** When its last run was due, and its id. */
  lastAt?: Date;
  lastRun?: string;
  /** Why no run was started the last time. */
  error?: string;
}

/** A part of a list of schedules. */
export interface SchedulePage {
  schedules: ScheduleInfo[];
  /** Absent: there are no more. */
  next?: string;
}

/** Sent twice under one key, it is done once. Default: a fresh one. */
export interface Keyed {
  key?: string;
}

/** What a call waits for: a person's decision, a run that works for it, or a time. */
export interface WaitingCall extends PendingCall {
  waitsFor: "decision" | "child" | "timer";
}

/** One run of a list. */
export interface RunSummary {
  id: string;
  session: string;
  agent: string;
  tenant: string;
  pool: string;
  status: RunStatus;
  /** Why it ended. */
  stop?: AgentStop;
  /** What went wrong. */
  error?: string;
  turns: number;
  usage: Usage;
  startedAt: Date;
  endedAt?: Date;
  /** Why no worker will claim it as things are, and what to do; in a list only with `stuck`. */
  stuck?: string;
}

/** What a run is at one moment. */
export interface RunInfo extends RunSummary {
  /** The version of the agent that it began with; "" before a worker has claimed it. */
  version: string;
  pending: readonly WaitingCall[];
  /** How often a worker has claimed it. */
  activations: number;
  /** Workers that died with it since it last came further. */
  deaths: number;
  /** The worker that has it. */
  worker?: string;
  parent?: { run: string; call: string };
  meta: Readonly<Record<string, string>>;
}

/** One worker's work on a run, as the log shows it. */
export interface ActivationInfo {
  /** The number of the session's activation, as in `RunEvent`. */
  readonly activation: number;
  /** Its first and last entry. */
  readonly from: Date;
  readonly to: Date;
  readonly entries: number;
  /** How it ended. Absent: it goes on, or its worker died. */
  readonly stop?: AgentStop;
}

/** How a session file is written. */
export interface ExportOptions {
  /** The folder that the session is of. Default: that of the process. */
  cwd?: string;
  /** Called now and then with the entries that are written. */
  onProgress?: (entries: number) => void;
}

export interface RunFilter {
  status?: RunStatus | readonly RunStatus[];
  agent?: string;
  tenant?: string;
  session?: string;
  /** Those that work for this run. */
  parent?: string;
  since?: Date;
  /** Only those that no worker will claim as things are. */
  stuck?: boolean;
  /** Default 100. */
  limit?: number;
  /** `next` of the page before. */
  after?: string;
}

/** A part of a list. */
export interface RunPage {
  runs: RunSummary[];
  /** Absent: there are no more. */
  next?: string;
}

/** How a run has ended. */
export interface RunResult {
  readonly id: string;
  readonly stop: AgentStop;
  /** The text of the last answer. Throws `RunFailedError` where the run failed. */
  readonly text: string;
  /** The checked answer of a run with an output schema. Throws without one. */
  readonly output: unknown;
  readonly error?: string;
  /** Of this run alone. */
  readonly messages: readonly AgentMessage[];
  readonly turns: number;
  readonly usage: Usage;
}

/**
 * Something that happened in a run. `seq` counts entries of the log: an event with a `seq` of its
 * own is stored. Live events, such as the deltas of a response, have the `seq` of the last entry
 * before them and are not stored.
 */
export interface RunEvent {
  readonly seq: number;
  /** Counts the workers that had the session. */
  readonly activation: number;
  readonly event: AgentEvent;
}

export interface WatchOptions {
  /** Only what follows this number. Default: from the beginning of the run. */
  after?: number;
  /** Live events as well, where they can be had. Default true. */
  deltas?: boolean;
  /** Ends the iteration. */
  signal?: AbortSignal;
}

/** A run, wherever it is worked on. Its methods need no worker in this process. */
export interface Run {
  readonly id: string;
  /** Rejects with `not_found`. */
  info(): Promise<RunInfo>;
  /** Starts another run in the same session, after this one. */
  prompt(input: PromptInput, options?: Keyed): Promise<Run>;
  /** Interrupts the run with a message. Rejects with `ended` where it is over. */
  steer(input: PromptInput, options?: Keyed): Promise<void>;
  /** Adds a message for the moment when the run would otherwise end. */
  followUp(input: PromptInput, options?: Keyed): Promise<void>;
  /** Answers calls that wait, by call id. Rejects with `not_pending` on a call that does not. */
  decide(decisions: Readonly<Record<string, Decision>>, options?: Keyed): Promise<void>;
  /** Ends the run soon, wherever it is; runs that work for it as well. */
  abort(options?: Keyed & { reason?: string }): Promise<void>;
  /** Goes on with a run that has failed or was set aside. */
  retry(): Promise<void>;
  /** The messages of the run so far. */
  messages(): Promise<AgentMessage[]>;
  /** The workers' parts of it, in order. One that wrote nothing is not among them. */
  activations(): Promise<ActivationInfo[]>;
  /**
   * Writes the session of the run, as it is now, to a new session file, which `@gyre/sessions`
   * opens. Resolves to the number of entries. Rejects with `SessionError`: `exists`, `write_failed`.
   */
  export(path: string, options?: ExportOptions): Promise<number>;
  /** The events of the run, from any process, up to its end. */
  watch(options?: WatchOptions): AsyncIterable<RunEvent>;
  /** Waits for the end of the run; whether its workers die meanwhile does not show. */
  result(options?: { signal?: AbortSignal }): Promise<RunResult>;
}

/** A worker, as the store knows it. */
export interface WorkerInfo extends Omit<WorkerRow, "startedAt" | "leaseMs"> {
  startedAt: Date;
  /** How much is left of its lease, in milliseconds. */
  leaseMs: number;
}

/**
 * What a worker did, for a log: no line has anything of what was said. `claim`: it works on a
 * session; `takeover`, where another worker died with it. `park`: it has left the session, which waits
 * for something, or is ready for another worker. `fenced`: another worker had it. `sweep`: workers
 * were found dead; `aside`: one of their runs has ended too many of them.
 */
export type WorkerLogLine =
  | {
      event: "claim" | "takeover";
      session: string;
      /** Absent: the run begins, or another one follows. */
      run?: string;
      agent: string;
      /** The number of the session's activation. */
      activation: number;
      /** Workers that died with it since it last came further. */
      deaths: number;
    }
  | { event: "park"; session: string; activation: number; status: "waiting" | "ready" }
  | { event: "end"; session: string; run: string; stop: AgentStop; turns: number; activeMs: number }
  | { event: "fenced"; session: string; activation: number }
  | { event: "sweep"; workers: number; sessions: number }
  | { event: "aside"; session: string; worker: string }
  | { event: "outage"; state: "begun" }
  | { event: "outage"; state: "over"; durationMs: number };

/** Which runs are deleted. */
export interface Retention {
  /** Runs that ended longer ago than this. */
  olderThanMs: number;
  /** Called after each transaction with the number of deleted runs so far. */
  onProgress?: (deleted: number) => void;
  /** Ends it between two transactions. */
  signal?: AbortSignal;
}

/** Something that was looked at, and what to do about it. */
export interface StoreCheck {
  readonly name: string;
  readonly status: "ok" | "warning" | "problem";
  /** One line for people, without a password. */
  readonly message: string;
}

/** What a tenant may have at once. */
export interface TenantLimits {
  /** Runs that are worked on. */
  maxRunning?: number;
  /** Runs that wait for a worker: more are rejected with `rate_limited`. */
  maxReady?: number;
}
