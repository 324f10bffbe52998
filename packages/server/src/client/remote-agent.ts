import {
  type AgentEnd,
  type AgentListener,
  type AgentMessage,
  AgentRun,
  type AgentTool,
  type ContinueOptions,
  type PromptOptions,
  type QueuedMessage,
  type QueueMode,
  type QueueName,
  type RunOverrides,
} from "@gyre/agent";
import {
  type FileContent,
  fromBase64,
  isRecord,
  readStoredFile,
  type ThinkingLevel,
} from "@gyre/ai";
import {
  type ConnectionState,
  type Payload,
  ProtocolError,
  WireClient,
  type WireClientOptions,
  type WireClientApi,
} from "@gyre/protocol";
import type {
  SessionChanges,
  SessionInfo,
  SessionMatch,
  SessionOptions,
  SessionListRequest,
  SessionSearchPage,
  SessionSearchRequest,
} from "../sessions/session-host.ts";
import { RegisteredTools } from "./client-tools.ts";
import type { RemoteState } from "./remote-state.ts";
import {
  type FollowerObserver,
  type FollowerOptions,
  SessionFollower,
} from "./session-follower.ts";
import { type NewFile, uploadFile, type UploadServer } from "./upload-file.ts";

/** The server: a client that is connected to it, or the options of a new one. */
export type RemoteServer = WireClientApi | WireClientOptions;

/** Options of a remote agent. */
export type RemoteAgentOptions = FollowerOptions;

/** What `watch` reports of a remote agent: what is no event. */
export interface RemoteObserver extends FollowerObserver {
  /** The connection to the server is there, broke, or is being made again. */
  onConnection?: (state: ConnectionState) => void;
}

type ImageOptions = Pick<PromptOptions, "images" | "attachments">;

/**
 * Options of a prompt. There is no `signal`: a session has many clients, and an abort that arrives
 * late would end the run of another client. Use `abort()`.
 */
export type RemotePromptOptions = Omit<PromptOptions, "signal" | keyof RunOverrides>;

/** As for a prompt: without a `signal`. */
export type RemoteContinueOptions = Pick<ContinueOptions, "decisions">;

/** Which part of the list of sessions is asked for. */
export interface RemotePageOptions extends Omit<SessionListRequest, "after"> {
  /** `next` of the page before. */
  cursor?: string;
}

async function requestOnce(wire: RemoteServer, type: string, payload: Payload): Promise<Payload> {
  const { client, isOwn } = openClient(wire);
  try {
    return await client.request(type, payload);
  } finally {
    if (isOwn) await client.close();
  }
}

async function requestList(
  wire: RemoteServer,
  page: Partial<RemotePageOptions>,
): Promise<{ sessions: SessionInfo[]; next?: string }> {
  const { sessions, next } = await requestOnce(wire, "session_list", { ...page });
  return {
    sessions: Array.isArray(sessions) ? sessions.filter(isInfo) : [],
    ...(typeof next === "string" && { next }),
  };
}

/**
 * An agent whose session a server hosts: it has the methods of `Agent`, and those that ask the
 * server return promises. `state` and the events follow the session over connections that come and
 * go; every event arrives once and in order, except for those that a snapshot stands for. Requests
 * without a connection wait for one. The session goes on when the client leaves.
 */
export class RemoteAgent {
  readonly sessionId: string;
  readonly #client: WireClientApi;
  readonly #isOwnClient: boolean;
  readonly #session: SessionFollower;
  readonly #tools: RegisteredTools;

  private constructor(wire: OpenClient, sessionId: string, options: RemoteAgentOptions) {
    this.sessionId = sessionId;
    this.#client = wire.client;
    this.#isOwnClient = wire.isOwn;
    const tools: RegisteredTools = new RegisteredTools(
      (type, payload) => this.#session.ask(type, payload),
      (error, where) => this.#session.report(error, where),
    );
    this.#tools = tools;
    this.#session = new SessionFollower(
      wire.client,
      sessionId,
      {
        onResume: () => tools.reconnect(),
        onOwnFrame: (type, payload) => tools.take(type, payload),
      },
      options,
    );
  }

  /** Creates a session. The host of the server defines the options: model, tools, folder. */
  static create(
    wire: RemoteServer,
    session: SessionOptions = {},
    options: RemoteAgentOptions = {},
  ): Promise<RemoteAgent> {
    return withClient(wire, async (opened) => {
      const snapshot = await opened.client.request("session_create", session);
      const agent = new RemoteAgent(opened, String(snapshot["session"]), options);
      await agent.#session.start(snapshot);
      return agent;
    });
  }

  /** Joins a session, or opens one that is not open. */
  static attach(
    wire: RemoteServer,
    sessionId: string,
    options: RemoteAgentOptions = {},
  ): Promise<RemoteAgent> {
    return withClient(wire, async (opened) => {
      const agent = new RemoteAgent(opened, sessionId, options);
      await agent.#session.start();
      return agent;
    });
  }

  /** The sessions that there are, open or not. Where they may be many, use `listPage`. */
  static async list(wire: RemoteServer): Promise<SessionInfo[]> {
    return (await requestList(wire, {})).sessions;
  }

  /**
   * At most `limit` of the sessions, up to 1,000, and `next`, the `cursor` for those that follow,
   * unless there are no more: those with some words in their title or first prompt, of a folder, put
   * away or not, of all folders, by creation, by the last write, or those first that wait for an answer or run. A server that
   * knows no pages gives all of them.
   */
  static listPage(
    wire: RemoteServer,
    page: RemotePageOptions,
  ): Promise<{ sessions: SessionInfo[]; next?: string }> {
    return requestList(wire, page);
  }

  /**
   * Looks for a text in the messages of sessions, the newest session first: at most `limit` sessions, with the first
   * message that has it, and `next`, the `cursor` to go on with, unless all was looked through. A page may have none.
   */
  static async search(
    wire: RemoteServer,
    request: Omit<SessionSearchRequest, "after"> & { cursor?: string },
  ): Promise<SessionSearchPage> {
    const { matches, next } = await requestOnce(wire, "session_search", { ...request });
    return {
      matches: Array.isArray(matches) ? matches.filter(isMatch) : [],
      ...(typeof next === "string" && { next }),
    };
  }

  /** Gives a session a title, whether it is open or not. */
  static async rename(wire: RemoteServer, sessionId: string, title: string): Promise<void> {
    await requestOnce(wire, "session_rename", { session: sessionId, title });
  }

  /** Puts a session away, or takes it back: lists can leave it out. A message takes it back as well. */
  static async archive(wire: RemoteServer, sessionId: string, archived = true): Promise<void> {
    await requestOnce(wire, "session_archive", { session: sessionId, archived });
  }

  /**
   * Makes a session with the branch of another one, up to the entry `at`, by default up to its end, and
   * gives its id. It is not open yet: attach to it.
   */
  static async fork(
    wire: RemoteServer,
    sessionId: string,
    options: { at?: number } = {},
  ): Promise<string> {
    const { session } = await requestOnce(wire, "session_fork", { session: sessionId, ...options });
    return String(session);
  }

  /** The state that follows from the events so far. */
  get state(): RemoteState {
    return this.#session.state;
  }

  get isRunning(): boolean {
    return this.state.isStreaming;
  }

  get steeringMode(): QueueMode {
    return this.state.steeringMode;
  }

  get followUpMode(): QueueMode {
    return this.state.followUpMode;
  }

  /** Calls `listener` with each event; its errors are reported. The returned function removes it. */
  subscribe(listener: AgentListener): () => void {
    return this.#session.subscribe(listener);
  }

  /** The connection to the server right now. */
  get connection(): ConnectionState {
    return this.#client.state;
  }

  /** Calls the functions of `observer` from now on; their errors are reported. The returned function ends that. */
  watch(observer: RemoteObserver): () => void {
    const { onConnection } = observer;
    const stop = this.#session.watch(observer);
    const stopConnection = onConnection && this.#client.watch(onConnection);
    return () => {
      stop();
      stopConnection?.();
    };
  }

  /**
   * Runs on a prompt, and settles with the end of that run, however often the connection breaks
   * meanwhile. Rejects while a run goes on, unless `whileRunning` asks to queue the prompt: then it
   * settles when the prompt is queued, with undefined.
   */
  prompt(text: string, options?: ImageOptions): Promise<AgentEnd>;
  prompt(text: string, options: RemotePromptOptions): Promise<AgentEnd | undefined>;
  async prompt(text: string, options: RemotePromptOptions = {}): Promise<AgentEnd | undefined> {
    const { whileRunning } = options;
    try {
      return await this.#session.run("prompt", toPromptPayload(text, options));
    } catch (error) {
      const isBusy = error instanceof ProtocolError && error.code === "session_busy";
      if (!isBusy || !whileRunning) throw error;
      if (whileRunning === "steer") await this.steer(text, options);
      else await this.followUp(text, options);
      return undefined;
    }
  }

  /**
   * `prompt()` as an iterable: the events of its run, `textStream`, `result()`. Events that a
   * snapshot stands for after a broken connection are not among them; the end always is.
   */
  run(text: string, options: ImageOptions = {}): AgentRun {
    const run = new AgentRun();
    let hasStarted = false;
    const unsubscribe = this.subscribe((event) => {
      // What comes before is of a run that another client started.
      hasStarted ||= event.type === "agent_start";
      if (hasStarted && event.type !== "agent_end") run.push(event);
    });
    this.prompt(text, options)
      .then(
        (end) => run.push(end),
        (error: unknown) => run.fail(error),
      )
      .finally(unsubscribe);
    return run;
  }

  /** Continues from the transcript as it is, with answers to pending calls first. */
  continue({ decisions }: RemoteContinueOptions = {}): Promise<AgentEnd> {
    return decisions ? this.approve(decisions) : this.#session.run("continue", {});
  }

  /** Decides on pending calls, and continues. Calls without a decision stay pending. */
  approve(decisions: NonNullable<ContinueOptions["decisions"]>): Promise<AgentEnd> {
    return this.#session.run("approve", { decisions });
  }

  /** Queues a message that interrupts the run. Settles with its id in the queue. */
  async steer(text: string, options: ImageOptions = {}): Promise<string> {
    const { queued } = await this.#session.askInEpoch("steer", toPromptPayload(text, options));
    return String(queued);
  }

  /** Queues a message for when the agent would otherwise stop. */
  async followUp(text: string, options: ImageOptions = {}): Promise<string> {
    const { queued } = await this.#session.askInEpoch("follow_up", toPromptPayload(text, options));
    return String(queued);
  }

  /** The queued messages, in order. */
  async queued(queue: QueueName): Promise<readonly QueuedMessage[]> {
    const { queued } = await this.#edit(queue, { op: "list" });
    return Array.isArray(queued) ? queued.filter(isQueued) : [];
  }

  /** Changes a queued message; false if it is no longer queued. */
  async editQueued(
    queue: QueueName,
    id: string,
    text: string,
    options: ImageOptions = {},
  ): Promise<boolean> {
    const edit = { op: "edit", id, ...toPromptPayload(text, options) };
    return (await this.#edit(queue, edit))["isDone"] === true;
  }

  /** Removes a queued message; undefined if it is no longer queued. */
  async takeQueued(queue: QueueName, id: string): Promise<AgentMessage | undefined> {
    const { message } = await this.#edit(queue, { op: "remove", id });
    return isMessage(message) ? message : undefined;
  }

  /** Moves a queued message to a place in its queue; false if it is no longer queued. */
  async moveQueued(queue: QueueName, id: string, place: number): Promise<boolean> {
    return (await this.#edit(queue, { op: "move", id, place }))["isDone"] === true;
  }

  async clearSteeringQueue(): Promise<void> {
    await this.#edit("steering", { op: "clear" });
  }

  async clearFollowUpQueue(): Promise<void> {
    await this.#edit("followUp", { op: "clear" });
  }

  async clearAllQueues(): Promise<void> {
    await Promise.all([this.clearSteeringQueue(), this.clearFollowUpQueue()]);
  }

  async hasQueuedMessages(): Promise<boolean> {
    const queues = await Promise.all([this.queued("steering"), this.queued("followUp")]);
    return queues.some((queue) => queue.length > 0);
  }

  /** Aborts the run, which ends soon after; `waitForIdle()` waits for that. */
  async abort(): Promise<void> {
    await this.#session.ask("abort");
  }

  /** Settles when no run goes on and none was requested. */
  waitForIdle(): Promise<void> {
    return this.#session.waitForIdle();
  }

  /** By the name that the server knows the model by. */
  setModel(model: string): Promise<void> {
    return this.#update({ model });
  }

  setThinkingLevel(thinkingLevel: ThinkingLevel): Promise<void> {
    return this.#update({ thinkingLevel });
  }

  setSystemPrompt(systemPrompt: string): Promise<void> {
    return this.#update({ systemPrompt });
  }

  /** Some of those that the session has, by name. */
  setTools(tools: readonly string[]): Promise<void> {
    return this.#update({ tools });
  }

  setSteeringMode(steering: QueueMode): Promise<void> {
    return this.#update({ modes: { steering } });
  }

  setFollowUpMode(followUp: QueueMode): Promise<void> {
    return this.#update({ modes: { followUp } });
  }

  /** What the agent may do without approval, by a name of the host. */
  setPermissionMode(permission: string): Promise<void> {
    return this.#update({ modes: { permission } });
  }

  async replaceMessages(messages: readonly AgentMessage[]): Promise<void> {
    await this.#session.ask("messages_replace", { messages });
  }

  clearMessages(): Promise<void> {
    return this.replaceMessages([]);
  }

  /** Forgets messages, queues and the error; keeps model, tools and system prompt. */
  async reset(): Promise<void> {
    await this.#session.ask("reset");
  }

  /**
   * The contents of a file that the server stores, as a block with `source.type` "stored" names it. Rejects with
   * `ProtocolError`, code `file_not_found`, and with `StoredFileError` where other contents came.
   */
  readFile(source: { sha256: string; size: number }): Promise<Uint8Array> {
    return readStoredFile(source, {
      read: (sha256) => this.#readParts(sha256),
      write: () => Promise.reject(new Error("Files are written with prompts.")),
    });
  }

  /**
   * Stores a file that is too large for a frame, up to 64 MiB, over HTTP, and gives the block that a prompt takes as
   * an attachment. Rejects with `ProtocolError`: `too_large`, `unauthorized`, `session_not_found`, and `not_implemented`
   * where the host has no store. What is not of the server itself is `unavailable`.
   */
  uploadFile(file: NewFile, server: UploadServer): Promise<FileContent> {
    return uploadFile(this.sessionId, file, server);
  }

  async #readParts(sha256: string): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for (let offset = 0; ;) {
      const request = { session: this.sessionId, sha256, offset };
      const { data, size } = await this.#client.request("session_file", request);
      const part = typeof data === "string" ? fromBase64(data) : new Uint8Array();
      parts.push(part);
      offset += part.length;
      if (part.length === 0 || typeof size !== "number" || offset >= size) break;
    }
    const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  /**
   * Registers client tools with the session, in place of those before: the agent calls them like
   * its own, and they run in this process. Rejects where a name is taken. A call that runs when the
   * connection breaks fails, and its signal fires when the client notices; where several servers
   * share the session, it goes on, and its result counts if the client is back in time.
   */
  registerTools(tools: readonly AgentTool[]): Promise<void> {
    return this.#tools.register(tools);
  }

  /**
   * A request that the host of the sessions answers in its own way, however long that takes. Rejects with
   * `not_implemented` where it does not know the name.
   */
  request(name: string, payload: Payload = {}, signal?: AbortSignal): Promise<Payload> {
    const request = { session: this.sessionId, name, ...payload };
    return this.#client.request("session_request", request, {
      timeoutMs: Infinity,
      ...(signal && { signal }),
    });
  }

  /** Leaves the session and removes its client tools. The session goes on. */
  async close(): Promise<void> {
    // On a shared connection, or where others serve the session as well, the tools would stay.
    const wouldStay = !this.#isOwnClient || this.#tools.staysRegistered;
    if (wouldStay && this.#client.state.type === "ready") await this.#tools.leave();
    await this.#leave();
  }

  /** Ends the session for all clients, and leaves it. */
  async closeSession(): Promise<void> {
    await this.#session.ask("session_close");
    await this.#leave();
  }

  async #leave(): Promise<void> {
    this.#session.stop(new Error("The remote agent was closed."));
    this.#tools.cancelAll();
    if (this.#isOwnClient) await this.#client.close();
  }

  #edit(queue: QueueName, edit: Payload): Promise<Payload> {
    return this.#session.ask("queue_edit", { queue, ...edit });
  }

  async #update(changes: SessionChanges): Promise<void> {
    await this.#session.ask("session_update", { ...changes });
  }
}

interface OpenClient {
  client: WireClientApi;
  /** Created here, and closed here. */
  isOwn: boolean;
}

function openClient(wire: RemoteServer): OpenClient {
  return isClient(wire)
    ? { client: wire, isOwn: false }
    : { client: new WireClient(wire), isOwn: true };
}

function isClient(wire: RemoteServer): wire is WireClientApi {
  return isRecord(wire) && "request" in wire;
}

async function withClient<T>(
  wire: RemoteServer,
  use: (opened: OpenClient) => Promise<T>,
): Promise<T> {
  const opened = openClient(wire);
  try {
    return await use(opened);
  } catch (error) {
    if (opened.isOwn) await opened.client.close();
    throw error;
  }
}

function toPromptPayload(text: string, { images, attachments }: ImageOptions): Payload {
  return { text, ...(images && { images }), ...(attachments && { attachments }) };
}

function isInfo(value: unknown): value is SessionInfo {
  return isRecord(value) && typeof value["id"] === "string";
}

function isMatch(value: unknown): value is SessionMatch {
  return isRecord(value) && isInfo(value["session"]) && typeof value["excerpt"] === "string";
}

function isMessage(value: unknown): value is AgentMessage {
  return isRecord(value) && typeof value["role"] === "string";
}

function isQueued(value: unknown): value is QueuedMessage {
  return isRecord(value) && typeof value["id"] === "string" && isMessage(value["message"]);
}
