import {
  type AgentEndEvent,
  type AgentEvent,
  type AgentMessage,
  type Decision,
  isLlmMessage,
  type QueueName,
} from "@gyre/agent";
import {
  type AssistantContent,
  hashFile,
  isLarge,
  storeContent,
  toBase64,
  type UserContent,
  type UserMessage,
} from "@gyre/ai";
import {
  type Connection,
  type IdempotencyCache,
  type Identity,
  type LoggedEvent,
  measureUtf8,
  type Payload,
  ProtocolError,
} from "@gyre/protocol";
import { WireEventWriter } from "../events/wire-event.ts";
import { PublishedState } from "./published-state.ts";
import type { SessionView } from "./session-agent.ts";
import type { OpenedSession, SessionChanges, SessionPrompt, SessionState } from "./session-host.ts";
import type { QueueEdit, ToolSpec } from "./session-payloads.ts";
import { listWaiting, SessionStatus } from "./session-status.ts";

/** Of a file, in one answer: it fits into a frame as base64. */
export const MAX_FILE_PART_BYTES: number = 8 * 1024 * 1024;

export interface LiveSessionOptions {
  tailEvents: number;
  tailBytes: number;
  /** The limit for the messages of a snapshot; the oldest are left out. */
  snapshotBytes: number;
  onError: (error: unknown, where: string) => void;
}

/** Answers a request before what is sent next. */
export type Acknowledge = (payload: Payload) => void;

/** The tools that a client registers. */
export interface ToolRegistration {
  readonly tools: readonly ToolSpec[];
  /** Identifies the client over its connections. */
  readonly clientName: string | undefined;
  /**
   * The calls of earlier connections that the client answers on this one. Absent: it has forgotten
   * them, as those of a session of this process have failed.
   */
  readonly calls: readonly string[] | undefined;
}

/** The tools that clients register with a session. */
export interface SessionTools {
  /** Replaces the tools of a client. */
  register(
    connection: Connection,
    registration: ToolRegistration,
  ): Payload | void | Promise<Payload | void>;
  /** `tool_update` and `tool_result`. */
  settleCall(connection: Connection, type: string, payload: Payload): void | Promise<void>;
  /** A connection is gone. */
  disconnect(connection: Connection): void;
  /** Fails all calls and forgets all clients. */
  close(): void;
}

/** Numbers events, and keeps the newest for clients that resume. */
export interface SessionLog {
  /** The number of the newest event. */
  readonly last: number;
  append(type: string, payload: Payload): LoggedEvent & { readonly from?: number };
  /** The events after `seq`; undefined where some are forgotten, or `seq` is none of theirs. */
  readAfter(seq: number): readonly (LoggedEvent & { readonly from?: number })[] | undefined;
}

/** An open session: its numbered events, its clients, and one run at a time. */
export abstract class LiveSession {
  abstract readonly hosted: OpenedSession;
  /** Numbers of events count within an epoch. */
  abstract readonly epoch: string;
  abstract readonly clientTools: SessionTools;
  abstract readonly isBusy: boolean;
  /** Keeps answers to requests. Absent: the host knows requests again. */
  abstract readonly idempotencyCache: IdempotencyCache | undefined;
  protected readonly options: LiveSessionOptions;
  protected readonly log: SessionLog;
  protected published: PublishedState;
  protected writer: WireEventWriter = new WireEventWriter();
  readonly #watchers = new Set<Connection>();
  #status: SessionStatus | undefined;
  #unwatchHost: () => void = () => {};
  /** Messages of the start, or whose end was published. */
  #known = new WeakSet<AgentMessage>();
  #unsubscribe: () => void = () => {};
  #closing: Promise<void> | undefined;

  constructor(view: SessionView, log: SessionLog, options: LiveSessionOptions) {
    this.options = options;
    this.log = log;
    this.published = new PublishedState(view);
  }

  // Requests. `key` is the id of the frame.

  /** `ack` is called right before the first event, where it is not called it is the result. */
  abstract prompt(
    prompt: SessionPrompt,
    key: string,
    ack: Acknowledge,
    identity?: Identity,
  ): Promise<Payload | void>;
  abstract continue(key: string, ack: Acknowledge): Promise<Payload | void>;
  /** Which calls may be decided on; undefined: `approve` finds out. */
  abstract readonly pendingIds: readonly string[] | undefined;
  abstract approve(
    decisions: Readonly<Record<string, Decision>>,
    key: string,
    ack: Acknowledge,
    identity?: Identity,
  ): Promise<Payload | void>;
  abstract enqueue(queue: QueueName, message: UserMessage, key: string): Promise<Payload>;
  abstract editQueue(edit: QueueEdit, key: string): Promise<Payload>;
  abstract abort(key: string): Promise<Payload | void> | void;
  abstract update(changes: SessionChanges, key: string): Promise<Payload>;
  /** Replaces the transcript; all clients get a snapshot. */
  abstract replaceMessages(messages: readonly AgentMessage[], key: string): Promise<Payload>;
  abstract reset(key: string): Promise<Payload>;

  /** Puts the large files of a prompt into the store of the session. */
  async storePrompt(prompt: SessionPrompt): Promise<SessionPrompt> {
    const { files } = this.hosted;
    const { images = [], attachments = [] } = prompt;
    const all = [...attachments, ...images];
    if (!files || !all.some(isLarge)) return prompt;
    const { images: _, ...rest } = prompt;
    return { ...rest, attachments: await storeContent(all, files) };
  }

  /** The same for messages. */
  storeMessages<M extends AgentMessage>(messages: readonly M[]): Promise<M[]> {
    const { files } = this.hosted;
    return Promise.all(
      messages.map(async (message) => {
        if (!files || !isLlmMessage(message) || typeof message.content === "string") return message;
        const blocks: readonly (UserContent | AssistantContent)[] = message.content;
        if (!blocks.some(isLarge)) return message;
        return { ...message, content: await storeContent(blocks, files) };
      }),
    );
  }

  /** A part of the contents of a file, from `offset` on. Throws `ProtocolError`: `file_not_found`. */
  async readFile(sha256: string, offset: number): Promise<Payload> {
    const bytes = await this.readWholeFile(sha256);
    const part = bytes.subarray(offset, offset + MAX_FILE_PART_BYTES);
    return { data: toBase64(part), offset, size: bytes.length };
  }

  /** Stores contents that a message will refer to. Throws `ProtocolError`. */
  async writeFile(sha256: string, bytes: Uint8Array): Promise<void> {
    const { files } = this.hosted;
    if (!files) {
      throw new ProtocolError("not_implemented", `Session "${this.id}" has no store for files.`);
    }
    const actual = await hashFile(bytes);
    if (actual !== sha256) {
      throw new ProtocolError(
        "invalid_request",
        `The file has the SHA-256 ${actual}, not ${sha256}: send it again.`,
      );
    }
    await files.write(sha256, bytes);
  }

  async readWholeFile(sha256: string): Promise<Uint8Array> {
    const bytes = await this.hosted.files?.read(sha256);
    if (bytes && (await hashFile(bytes)) === sha256) return bytes;
    const what = bytes ? "is damaged" : "is not here";
    throw new ProtocolError(
      "file_not_found",
      `The file with the SHA-256 ${sha256} ${what}, in session "${this.id}".`,
    );
  }

  /** Has the host answer a request of its own. Throws what the client gets. */
  async askHost(name: string, payload: Payload): Promise<Payload> {
    if (!this.hosted.request) {
      throw new ProtocolError("not_implemented", `"${name}" is not served for this session.`);
    }
    const before = JSON.stringify(this.readSettings());
    const answer = await this.hosted.request(name, payload);
    if (answer.isRewritten) this.publishRewritten();
    else if (JSON.stringify(this.readSettings()) !== before) this.publishSettings();
    else this.refreshStatus();
    return answer.payload;
  }

  /** The transcript is another one: clients begin again with a snapshot. */
  protected abstract publishRewritten(): number;

  /** What is shown of the agent. */
  protected abstract readonly view: SessionView;
  /** Publishes an event of the agent. */
  protected abstract take(event: AgentEvent): void;
  /** Ends what goes on in it. Clients still follow. `isAsked`: a client has asked for it. */
  protected abstract end(isAsked: boolean): Promise<void>;

  get id(): string {
    return this.hosted.id;
  }

  get hasWatchers(): boolean {
    return this.#watchers.size > 0;
  }

  /** For lists. */
  get sessionState(): SessionState {
    if (this.hosted.isWaiting?.()) return "waiting";
    if (this.isBusy) return "running";
    return this.published.pending.length > 0 ? "waiting" : "idle";
  }

  /** Whether it has no client and nothing to do, and can be opened again as it is. */
  get isIdle(): boolean {
    const { view } = this;
    const isWaiting =
      this.published.pending.length > 0 ||
      view.queued("steering").length + view.queued("followUp").length > 0;
    if (this.hasWatchers || this.isBusy || isWaiting) return false;
    return this.hosted.canReopen?.() ?? false;
  }

  /** The position of the session, for the answer to clients that create or attach to it. */
  getPosition(): Payload {
    return { session: this.id, epoch: this.epoch, seq: this.log.last };
  }

  watch(connection: Connection): void {
    this.#watchers.add(connection);
  }

  unwatch(connection: Connection): void {
    this.#watchers.delete(connection);
    this.#status?.unwatch(connection);
  }

  /** Sends `session_status` to a client from now on. */
  watchStatus(connection: Connection): void {
    this.#status ??= this.#createStatus();
    this.#status.watch(connection);
  }

  /** Clients may have another status now. */
  protected refreshStatus(): void {
    this.#status?.refresh();
  }

  #createStatus(): SessionStatus {
    const { onError } = this.options;
    const status = new SessionStatus({
      stream: this.id,
      read: () => ({ waiting: listWaiting(this.view), ...this.hosted.status?.() }),
      onError,
    });
    this.#unwatchHost = this.hosted.onStatusChange?.(() => status.refresh()) ?? this.#unwatchHost;
    return status;
  }

  /** Settles when a client that attaches gets what was there before it came. */
  async synchronize(): Promise<void> {}

  /** Sends the events after `after` to a client, or a snapshot where they are not kept. */
  catchUp(connection: Connection, after: unknown, epoch: unknown): void {
    const isSame = epoch === undefined || epoch === this.epoch;
    const missed = isSame && typeof after === "number" ? this.log.readAfter(after) : undefined;
    // Before event 1 there may be older messages, which only clients that name the epoch have.
    if (missed && (after !== 0 || epoch === this.epoch)) {
      for (const event of missed) this.#send(connection, event);
      return;
    }
    connection.send({ type: "snapshot", stream: this.id, payload: this.createSnapshot() });
  }

  /** The whole state of the session, for a client that begins here. */
  createSnapshot(seq: number = this.log.last): Payload {
    const { view } = this;
    const all = view.state.messages.filter((message) => this.#known.has(message));
    const omitted = this.#countOmitted(all);
    const messages = all.slice(omitted);
    return {
      ...this.getPosition(),
      seq,
      ...this.hosted.info?.(),
      ...this.readSettings(),
      messages,
      // Older messages are in the session, but do not fit into one frame.
      omitted,
      state: this.writer.createReaderState(messages),
      queued: {
        steering: view.queued("steering"),
        followUp: view.queued("followUp"),
      },
      ...this.published.payload(),
      toolDescriptions: this.#readToolDescriptions(),
    };
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Ends the session for all clients, one of which has asked for it where `closed` is given: it is called before they get the end. */
  close(closed?: () => void): Promise<void> {
    this.#closing ??= this.#close(closed);
    return this.#closing;
  }

  async #close(closed?: () => void): Promise<void> {
    try {
      // Still subscribed, so that clients get the end of a run.
      await this.end(closed !== undefined);
      await this.hosted.close();
      closed?.();
    } finally {
      this.clientTools.close();
      this.#unsubscribe();
      this.#unwatchHost();
      this.leave(closed !== undefined);
      // The stream is over: a new one of its name counts from 1.
      for (const connection of this.#watchers) connection.forget(this.id);
      this.#watchers.clear();
    }
  }

  /** Publishes that no more events come. */
  protected leave(_isAsked: boolean): void {
    this.publish("done", { reason: "closed" });
  }

  /** Subscribes to the current agent. */
  protected follow(): void {
    this.#unsubscribe();
    this.writer = new WireEventWriter();
    this.forgetKnown();
    this.published = new PublishedState(this.view);
    this.#unsubscribe = this.view.subscribe((event) => this.take(event));
  }

  /** The messages that there are now are those that clients know. */
  protected forgetKnown(): void {
    this.#known = new WeakSet(this.view.state.messages);
  }

  /** Publishes an event that is not the end of a run. */
  protected publishEvent(event: AgentEvent, last: number = this.log.last): void {
    if (event.type === "message_end") this.#known.add(event.message);
    this.published.apply(event, last);
    const { type, payload } = this.writer.write(event);
    this.publish(type, payload);
    // Pieces change nothing but what they are pieces of.
    if (type !== "message_update" && type !== "tool_execution_update") this.refreshStatus();
  }

  protected publishRunEnd(event: AgentEndEvent): void {
    const { type, payload: end } = this.writer.write(event);
    const payload = { ...end, ...this.hosted.runInfo?.() };
    const { seq } = this.publish(type, payload);
    this.published.endRun(event, seq, payload);
    this.refreshStatus();
  }

  /** Publishes the current settings. */
  protected publishSettings(): void {
    const toolDescriptions = this.#readToolDescriptions();
    this.publish("session_update", {
      ...this.hosted.info?.(),
      ...this.readSettings(),
      toolDescriptions,
    });
    this.refreshStatus();
  }

  protected publish(type: string, payload: Payload): { seq: number } {
    const event = this.log.append(type, payload);
    for (const connection of this.#watchers) this.#send(connection, event);
    return event;
  }

  #send(connection: Connection, event: LoggedEvent & { readonly from?: number }): void {
    const { seq, from, type, payload, bytes } = event;
    const spans = from !== undefined && { from };
    connection.send({ type, stream: this.id, id: `e_${seq}`, seq, ...spans, payload }, bytes);
  }

  protected readSettings(): Payload {
    const { model, systemPrompt, thinkingLevel, tools } = this.view.state;
    return {
      ...(model && { model: { provider: model.provider, id: model.id } }),
      thinkingLevel,
      systemPrompt,
      tools: tools.map(({ name }) => name),
      modes: { steering: this.view.steeringMode, followUp: this.view.followUpMode },
    };
  }

  #readToolDescriptions(): Payload {
    return Object.fromEntries(
      this.view.state.tools.map(({ name, description }) => [name, description]),
    );
  }

  /** How many of the oldest messages do not fit into one frame. */
  #countOmitted(messages: readonly AgentMessage[]): number {
    let left = this.options.snapshotBytes;
    for (let at = messages.length - 1; at >= 0; at--) {
      left -= measureUtf8(JSON.stringify(messages[at]));
      if (left < 0) return at + 1;
    }
    return 0;
  }
}
