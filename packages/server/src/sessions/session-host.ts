import type { Agent, AgentMessage, Decision, QueueMode } from "@gyre/agent";
import type { ImageContent, ThinkingLevel } from "@gyre/ai";

/** Options of a new session. Hosts ignore those that they do not know. */
export type SessionOptions = Readonly<Record<string, unknown>>;

/** Changes of the settings of a session. Absent fields stay as they are. */
export interface SessionChanges {
  /** The name of a model at the host. */
  model?: string;
  thinkingLevel?: ThinkingLevel;
  systemPrompt?: string;
  /** Names of tools, in order. */
  tools?: readonly string[];
  modes?: {
    steering?: QueueMode;
    followUp?: QueueMode;
    /** What the agent may do without approval, by a name of the host. */
    permission?: string;
  };
}

/** A prompt of a client. */
export interface SessionPrompt {
  text: string;
  images?: readonly ImageContent[];
}

/** One session of a list; further fields are sent as they are. */
export interface SessionInfo {
  id: string;
  [field: string]: unknown;
}

/**
 * An open session. All but `id`, `agent` and `close` may be left out: the server then calls the
 * agent itself. The client gets the errors that they throw: `ProtocolError` with its code, any other
 * as an invalid request.
 */
export interface HostedSession {
  readonly id: string;
  readonly agent: Agent;
  /** Further facts about the session for clients: folder, title. */
  readonly info?: () => Readonly<Record<string, unknown>>;
  /** Further facts about the run that ends, for `agent_end`. Called once for each. */
  runInfo?(): Readonly<Record<string, unknown>>;
  /** Whether `listPage` of its host has it. Default: yes. */
  readonly isListed?: boolean;
  /** Runs on a prompt to its end; settles when the next run can start. */
  prompt?(prompt: SessionPrompt): Promise<unknown>;
  /** All or nothing. Without it, the model and the permission mode cannot be changed. */
  update?(changes: SessionChanges): Promise<void>;
  /** Saves a person's answers to pending calls. The run that acts on them starts after it. */
  decide?(decisions: Readonly<Record<string, Decision>>): Promise<void>;
  /**
   * Settles when the changes of the agent's queues so far are saved: a client gets its `ack` after
   * that. Rejects where that failed.
   */
  saved?(): Promise<void>;
  replaceMessages?(messages: readonly AgentMessage[]): Promise<void>;
  reset?(): Promise<void>;
  /**
   * Whether it may be closed while it is idle: `open` then gives the same session, and nothing of
   * it goes on. Default: no.
   */
  canReopen?(): boolean;
  /** Ends a run, saves everything and releases the session. */
  close(): Promise<void>;
}

/** A part of the list of sessions. */
export interface SessionPage {
  sessions: readonly SessionInfo[];
  /** For the request of the next part. Absent: there are no more. */
  next?: string;
}

/** Creates, opens and lists sessions. */
export interface SessionHost {
  create(options: SessionOptions): Promise<HostedSession>;
  /** Opens a session that is not open; undefined where there is none of that id. */
  open(id: string): Promise<HostedSession | undefined>;
  /** All sessions, open or not. */
  list(): Promise<readonly SessionInfo[]>;
  /**
   * A part of the list, for hosts with so many that all of them are too many; in an order that does
   * not change between two parts. `after` is `next` of the part before. Without it, the server cuts
   * what `list` returns.
   */
  listPage?(page: { limit: number; after?: string }): Promise<SessionPage>;
}
