import type {
  AgentListener,
  AgentMessage,
  ContinueOptions,
  EventView,
  PromptOptions,
  QueuedMessage,
  QueueName,
} from "@gyre/agent";
import type { ConnectionState } from "@gyre/protocol";
import type { RemoteObserver, RemoteServer } from "@gyre/server/client";

type MaybePromise<T> = T | Promise<T>;

/** What goes with the text of a prompt. */
export type Attached = Pick<PromptOptions, "images" | "attachments">;

/** What a store needs of an agent. `Agent` and `RemoteAgent` are such agents. */
export interface StoreAgent {
  readonly state: Omit<EventView, "compaction">;
  readonly sessionId?: string | undefined;
  subscribe(listener: AgentListener): () => void;
  prompt(
    text: string,
    options: Attached & Required<Pick<PromptOptions, "whileRunning">>,
  ): Promise<unknown>;
  continue(options: Pick<ContinueOptions, "decisions">): Promise<unknown>;
  takeQueued(queue: QueueName, id: string): MaybePromise<AgentMessage | undefined>;
  queued(queue: QueueName): MaybePromise<readonly QueuedMessage[]>;
  abort(): MaybePromise<void>;
  waitForIdle(): Promise<void>;
  /** Of an agent behind a connection. */
  readonly connection?: ConnectionState;
  watch?(observer: RemoteObserver): () => void;
  close?(): Promise<void>;
}

/** A session on a server: one that there is, or a new one. */
export interface RemoteSession {
  /** How to reach the server: `connectUrl(...)` of `@gyre/protocol`, the options of a client, or a client. */
  readonly connect: RemoteServer | Extract<RemoteServer, { connect: unknown }>["connect"];
  /** The session to join. Without it one is made. */
  readonly session?: string | undefined;
  /** For a new session: what its host makes it with, such as a model or a folder. */
  readonly create?: Readonly<Record<string, unknown>> | undefined;
}

/** An agent that is opened when it is needed, and closed by the store. */
export interface AgentOpener {
  /** `session`: the one that an earlier call has opened. */
  open(session: string | undefined): Promise<StoreAgent>;
}

/** Opens a session when the store is first used; the client of sessions is loaded then. */
export function createOpener({ connect, session, create }: RemoteSession): AgentOpener {
  const wire = typeof connect === "function" ? { connect } : connect;
  return {
    async open(opened = session) {
      const { RemoteAgent } = await import("@gyre/server/client");
      return opened === undefined
        ? RemoteAgent.create(wire, { ...create })
        : RemoteAgent.attach(wire, opened);
    },
  };
}
