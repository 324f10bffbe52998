import type { Agent, AgentMessage, QueueMode } from "@gyre/agent";
import type { ImageContent, ThinkingLevel } from "@gyre/ai";

/** What a client may ask for when it makes a session. What a host does not know it leaves out. */
export type SessionOptions = Readonly<Record<string, unknown>>;

/** What a client may change. Absent: stays as it is. */
export interface SessionChanges {
  /** A name, as the host knows its models. */
  model?: string;
  thinkingLevel?: ThinkingLevel;
  systemPrompt?: string;
  /** Names of tools, in order. */
  tools?: readonly string[];
  modes?: {
    steering?: QueueMode;
    followUp?: QueueMode;
    /** What the agent may do without being asked about, in the host's words. */
    permission?: string;
  };
}

/** What a client asks of a session. */
export interface SessionPrompt {
  text: string;
  images?: readonly ImageContent[];
}

/** One session, as a host lists it; more fields are passed on as they are. */
export interface SessionInfo {
  id: string;
  [field: string]: unknown;
}

/**
 * A session that is open. All but `agent` and `close` may be left out: the agent itself is
 * then asked. What they throw is told to the client: `ProtocolError` with its code, anything
 * else as an invalid request.
 */
export interface HostedSession {
  readonly id: string;
  readonly agent: Agent;
  /** What else a client is told of the session: folder, title. */
  readonly info?: () => Readonly<Record<string, unknown>>;
  /** Runs on a prompt to its end; settles when the next can come. */
  prompt?(prompt: SessionPrompt): Promise<unknown>;
  /** All or nothing. Without it, the model and the permission mode cannot be changed. */
  update?(changes: SessionChanges): Promise<void>;
  replaceMessages?(messages: readonly AgentMessage[]): Promise<void>;
  reset?(): Promise<void>;
  /** Ends a run, writes all down and lets go. */
  close(): Promise<void>;
}

/** Where sessions come from. */
export interface SessionHost {
  create(options: SessionOptions): Promise<HostedSession>;
  /** Opens a session that is not open; nothing where there is none of that id. */
  open(id: string): Promise<HostedSession | undefined>;
  /** Those that there are, open or not. */
  list(): Promise<readonly SessionInfo[]>;
}
