import type { AgentMessage, Decision, QueueMode, QueueName } from "@gyre/agent";
import type { ImageContent, ThinkingLevel, UserMessage } from "@gyre/ai";
import type { Payload } from "@gyre/protocol";
import type { SessionTools } from "./live-session.ts";
import type { SessionAgent, SessionView } from "./session-agent.ts";
import type { QueueEdit } from "./session-payloads.ts";

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

/** What every open session has. */
export interface OpenedSession {
  readonly id: string;
  /** Further facts about the session for clients: folder, title. */
  readonly info?: () => Readonly<Record<string, unknown>>;
  /** Further facts about the run that ends, for `agent_end`. Called once for each. */
  runInfo?(): Readonly<Record<string, unknown>>;
  /** Whether `listPage` of its host has it. Default: yes. */
  readonly isListed?: boolean;
  /**
   * Whether it may be closed while it is idle: `open` then gives the same session, and nothing of
   * it goes on. Default: no.
   */
  canReopen?(): boolean;
  /** Ends a run, saves everything and releases the session. */
  close(): Promise<void>;
}

/**
 * An open session whose agent runs in this process. All but `id`, `agent` and `close` may be left
 * out: the server then calls the agent itself. The client gets the errors that they throw:
 * `ProtocolError` with its code, any other as an invalid request.
 */
export interface HostedSession extends OpenedSession {
  readonly agent: SessionAgent;
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
}

/**
 * An open session that other servers may have open as well: its runs execute here or elsewhere, and
 * what is stored of it is the same for all. `close` leaves a run as it is.
 */
export interface SharedSession extends OpenedSession {
  /** Follows the run. */
  readonly view: SessionView;
  readonly inbox: SessionInbox;
  readonly tools: SessionTools;
  readonly numbers: SharedNumbers;
  /** Begins to follow, and calls `events` from here on. Settles when it is up to date. */
  follow(events: SharedSessionEvents): Promise<void>;
  /** Settles when all that was stored before the call is published. */
  synchronize(): Promise<void>;
}

/** The numbers of events: they mean the same on all servers. */
export interface SharedNumbers {
  /** The same on all servers. */
  readonly epoch: string;
  /** What the numbers of the events before the first one end with. */
  readonly first: number;
  /** The number of the event before the current or last run, which identifies the run. */
  readonly runAfter: number;
  /** The number of the event that is published now: above that of the last one. */
  take(): number;
}

/** What a shared session reports beside the events of its view. */
export interface SharedSessionEvents {
  /** Settings have changed. */
  onSettings(): void;
  /**
   * What was published does not lead to the state: clients begin again with a snapshot.
   * `isRewritten`: the whole transcript is another one.
   */
  onReset(isRewritten?: boolean): void;
}

/**
 * What clients ask of a shared session. A request is done once for its `key`, whichever server gets
 * it; repeated, it gets the first answer.
 */
export interface SessionInbox {
  prompt(prompt: SessionPrompt, key: string): Promise<Payload>;
  continue(key: string): Promise<Payload>;
  decide(decisions: Readonly<Record<string, Decision>>, key: string): Promise<Payload>;
  enqueue(queue: QueueName, message: UserMessage, key: string): Promise<Payload>;
  editQueue(edit: QueueEdit, key: string): Promise<Payload>;
  abort(key: string): Promise<Payload>;
  update(changes: SessionChanges, key: string): Promise<Payload>;
  replaceMessages(messages: readonly AgentMessage[], key: string): Promise<Payload>;
  /** Forgets messages and queues. */
  reset(key: string): Promise<Payload>;
}

/**
 * A host cannot be asked now: its database does not answer, say. The server closes the connection
 * of the client, which asks again on the next one, here or at another server.
 */
export class HostUnavailableError extends Error {
  override readonly name = "HostUnavailableError";
}

/** A part of the list of sessions. */
export interface SessionPage {
  sessions: readonly SessionInfo[];
  /** For the request of the next part. Absent: there are no more. */
  next?: string;
}

/** Creates, opens and lists sessions. */
export interface SessionHost {
  /** It knows requests again by their keys, for all servers. Default: no. */
  readonly isShared?: boolean;
  /** `key` identifies the request: sent again to another server, it has the same. */
  create(options: SessionOptions, key: string): Promise<HostedSession | SharedSession>;
  /** Opens a session that is not open; undefined where there is none of that id. */
  open(id: string): Promise<HostedSession | SharedSession | undefined>;
  /** All sessions, open or not. */
  list(): Promise<readonly SessionInfo[]>;
  /**
   * A part of the list, for hosts with so many that all of them are too many; in an order that does
   * not change between two parts. `after` is `next` of the part before. Without it, the server cuts
   * what `list` returns.
   */
  listPage?(page: { limit: number; after?: string }): Promise<SessionPage>;
}
