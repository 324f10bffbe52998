import type { AgentMessage, Decision, QueueMode, QueueName } from "@gyre/agent";
import type { FileStore, ImageContent, ThinkingLevel, UserContent, UserMessage } from "@gyre/ai";
import type { Identity, Payload } from "@gyre/protocol";
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
  /** Further content after the text: files, say. */
  attachments?: readonly UserContent[];
}

/** One session of a list; further fields are sent as they are. */
export interface SessionInfo {
  id: string;
  [field: string]: unknown;
}

/** What a host answers to a request of its own. */
export interface HostAnswer {
  payload: Payload;
  /** The transcript is another one: all clients get a snapshot. */
  isRewritten?: boolean;
}

/** What every open session has. */
export interface OpenedSession {
  readonly id: string;
  /**
   * Where the contents of its large files are: what clients send goes there before anything refers to it, and
   * clients read it from there. Absent: they stay in the messages.
   */
  readonly files?: FileStore | undefined;
  /** Further facts about the session for clients: folder, title. */
  readonly info?: () => Readonly<Record<string, unknown>>;
  /** Further facts about the run that ends, for `agent_end`. Called once for each. */
  runInfo?(): Readonly<Record<string, unknown>>;
  /**
   * What clients that ask for it show beside the conversation: background jobs, a list of steps. Called often, where
   * there are such clients.
   */
  status?(): Readonly<Record<string, unknown>>;
  /** Calls the listener when `status` may be another one by something else than the events of the agent. */
  onStatusChange?(listener: () => void): () => void;
  /**
   * Answers a request of the host's own, `session_request`. It may take as long as it needs. Throws `ProtocolError`
   * `not_implemented` for a name that it does not know.
   */
  request?(name: string, payload: Payload): Promise<HostAnswer>;
  /** Stores what lists show of it. Without it, its host is asked. */
  amend?(changes: SessionAmendment): Promise<void>;
  /** Whether it waits for the answer of a person otherwise than by pending calls. Default: no. */
  isWaiting?(): boolean;
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
  /** Runs on a prompt to its end; settles when the next run can start. `identity`: who asks. */
  prompt?(prompt: SessionPrompt, identity?: Identity): Promise<unknown>;
  /** All or nothing. Without it, the model and the permission mode cannot be changed. */
  update?(changes: SessionChanges): Promise<void>;
  /**
   * Saves a person's answers to pending calls. The run that acts on them starts after it. `identity`:
   * who has answered.
   */
  decide?(decisions: Readonly<Record<string, Decision>>, identity?: Identity): Promise<void>;
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
  prompt(prompt: SessionPrompt, key: string, identity?: Identity): Promise<Payload>;
  continue(key: string): Promise<Payload>;
  decide(
    decisions: Readonly<Record<string, Decision>>,
    key: string,
    identity?: Identity,
  ): Promise<Payload>;
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

/** Which part of the list of sessions is asked for. */
export interface SessionPageRequest {
  limit: number;
  /** `next` of the part before. */
  after?: string;
  /** Words that all stand in the title or the first prompt. */
  query?: string;
  /** The folder of the sessions, in place of the one that the host lists. */
  cwd?: string;
  /** Sessions of all folders that the host serves; without `cwd`. */
  allFolders?: boolean;
  /** True: those that were put away alone; false: the others. */
  archived?: boolean;
  /** By the last write or by creation, the newest first. Default: the host's own order, which does not change between two parts. */
  order?: "created" | "updated";
}

/**
 * What a client asks for. `live`: those come first that wait for an answer, then those that run, then the other ones that
 * are open; a host is asked for the rest by the last write.
 */
export interface SessionListRequest extends Omit<SessionPageRequest, "order"> {
  order?: NonNullable<SessionPageRequest["order"]> | "live";
}

/** What a session does: a `waiting` one needs the answer of a person before it goes on. */
export type SessionState = "idle" | "running" | "waiting";

/** What is looked for in the messages of sessions. */
export interface SessionSearchRequest extends Pick<
  SessionPageRequest,
  "limit" | "after" | "cwd" | "archived"
> {
  text: string;
}

/** A session that has the text in a message. */
export interface SessionMatch {
  session: SessionInfo;
  /** The first message that has it, as an entry of the session. */
  entry: number;
  role: string;
  /** What stands around it, on one line. */
  excerpt: string;
}

/** A part of a search. */
export interface SessionSearchPage {
  matches: readonly SessionMatch[];
  /** For the request of the next part. Absent: all was looked through. */
  next?: string;
}

/** What lists show of a session. Absent fields stay as they are. */
export interface SessionAmendment {
  title?: string;
  archived?: boolean;
}

/** A part of the list of sessions. */
export interface SessionPage {
  sessions: readonly SessionInfo[];
  /** For the request of the next part. Absent: there are no more. */
  next?: string;
}

/**
 * Creates, opens and lists sessions. `identity` is who asks, where the server knows: a host with
 * several users gives each what is theirs, and throws `ProtocolError` for the rest.
 */
export interface SessionHost {
  /** It knows requests again by their keys, for all servers. Default: no. */
  readonly isShared?: boolean;
  /** `key` identifies the request: sent again to another server, it has the same. */
  create(
    options: SessionOptions,
    key: string,
    identity?: Identity,
  ): Promise<HostedSession | SharedSession>;
  /** Opens a session that is not open; undefined where there is none of that id. */
  open(id: string, identity?: Identity): Promise<HostedSession | SharedSession | undefined>;
  /** All sessions, open or not. */
  list(identity?: Identity): Promise<readonly SessionInfo[]>;
  /**
   * A part of the list, for hosts with so many that all of them are too many. Without it, the server
   * filters and cuts what `list` returns.
   */
  listPage?(page: SessionPageRequest, identity?: Identity): Promise<SessionPage>;
  /** Whether a client may see a session of a list of all folders. Default: yes. */
  isServed?(session: SessionInfo): boolean;
  /**
   * What lists say of one session; undefined where there is none of that id. Without it, the order `live` has what
   * `info` of the open session says.
   */
  describe?(id: string): Promise<SessionInfo | undefined>;
  /**
   * Stores what lists show of a session that is not open here, or that cannot do that itself. False:
   * there is none of that id. Without it, sessions that are not open cannot be renamed or put away.
   */
  amend?(id: string, changes: SessionAmendment, identity?: Identity): Promise<boolean>;
  /**
   * Looks for a text in messages of stored sessions. The work for a part has an end: it may have no match, and a
   * `next`. Without it, texts cannot be looked for.
   */
  search?(request: SessionSearchRequest, identity?: Identity): Promise<SessionSearchPage>;
  /**
   * Makes a session of the entries of another one, up to `at`, by default all of its branch, and gives
   * its id; undefined where there is no such session. `key` as for `create`.
   */
  fork?(
    id: string,
    options: { at?: number },
    key: string,
    identity?: Identity,
  ): Promise<string | undefined>;
}
