import { addUsage, errorMessage } from "@gyre/ai";
import type { Agent, AgentEndEvent, AgentEvent, AgentMessage, QueueName } from "@gyre/agent";
import {
  invalidRequest,
  IdempotencyCache,
  type Connection,
  EventLog,
  type LoggedEvent,
  type Payload,
  ProtocolError,
  measureUtf8,
} from "@gyre/protocol";
import { ClientTools } from "./client-tools.ts";
import type { HostedSession, SessionChanges } from "./session-host.ts";
import { PublishedState } from "./published-state.ts";
import { WireEventWriter } from "../events/wire-event.ts";

export interface LiveSessionOptions {
  tailEvents: number;
  tailBytes: number;
  /** The limit for the messages of a snapshot; the oldest are left out. */
  snapshotBytes: number;
  onError: (error: unknown, where: string) => void;
}

/** An open session: its numbered events, its clients, and one run at a time. */
export class LiveSession {
  readonly hosted: HostedSession;
  /** Numbers of events count within an epoch. */
  readonly epoch: string = globalThis.crypto.randomUUID();
  readonly idempotencyCache: IdempotencyCache = new IdempotencyCache();
  /** The tools that clients register with it. */
  readonly clientTools: ClientTools;
  readonly #options: LiveSessionOptions;
  readonly #log: EventLog;
  readonly #watchers = new Set<Connection>();
  #writer = new WireEventWriter();
  /** Messages of the start, or whose end was published. */
  #known = new WeakSet<AgentMessage>();
  #published: PublishedState;
  #unsubscribe: () => void = () => {};
  /** Called with the first event of a requested run. */
  #onFirstEvent: ((isOver?: boolean) => void) | undefined;
  #isReserved = false;
  /** The end of a run, published when the next run can start: clients may request it at once. */
  #heldEnd: AgentEndEvent | undefined;
  /** What earlier runs for the same request have used: to clients they are one run. */
  #earlier: Pick<AgentEndEvent, "turns" | "usage"> | undefined;
  #closing: Promise<void> | undefined;

  constructor(hosted: HostedSession, options: LiveSessionOptions) {
    this.hosted = hosted;
    this.#options = options;
    this.#log = new EventLog(options.tailEvents, options.tailBytes);
    this.#published = new PublishedState(hosted.agent);
    this.clientTools = new ClientTools({
      stream: hosted.id,
      getAgent: () => this.agent,
      isBusy: () => this.isBusy,
      onChange: () => this.#publishSettings(),
    });
    this.#follow();
  }

  get id(): string {
    return this.hosted.id;
  }

  get agent(): Agent {
    return this.hosted.agent;
  }

  get isBusy(): boolean {
    return this.#isReserved || this.agent.isRunning;
  }

  get hasWatchers(): boolean {
    return this.#watchers.size > 0;
  }

  /** Whether it has no client and nothing to do, and can be opened again as it is. */
  get isIdle(): boolean {
    const isWaiting =
      this.#published.pending.length > 0 ||
      this.agent.queued("steering").length + this.agent.queued("followUp").length > 0;
    if (this.hasWatchers || this.isBusy || isWaiting) return false;
    return this.hosted.canReopen?.() ?? false;
  }

  get pendingIds(): string[] {
    return this.#published.pending.map(({ toolCall }) => toolCall.id);
  }

  /** The position of the session, for the answer to clients that create or attach to it. */
  getPosition(): Payload {
    return { session: this.id, epoch: this.epoch, seq: this.#log.last };
  }

  watch(connection: Connection): void {
    this.#watchers.add(connection);
  }

  unwatch(connection: Connection): void {
    this.#watchers.delete(connection);
  }

  /** Sends the events after `after` to a client, or a snapshot where they are not kept. */
  catchUp(connection: Connection, after: unknown, epoch: unknown): void {
    const isSame = epoch === undefined || epoch === this.epoch;
    const missed = isSame && typeof after === "number" ? this.#log.readAfter(after) : undefined;
    // Before event 1 there may be older messages, which only clients that name the epoch have.
    if (missed && (after !== 0 || epoch === this.epoch)) {
      for (const event of missed) this.#send(connection, event);
      return;
    }
    connection.send({ type: "snapshot", stream: this.id, payload: this.createSnapshot() });
  }

  /**
   * Starts a run. `ack` is called right before its first event, or with `isOver` where it ended
   * without one. Errors before that are thrown; later ones are in the events.
   */
  start(run: () => Promise<unknown>, ack: (payload: Payload) => void): Promise<void> {
    this.assertIdle();
    this.#isReserved = true;
    return new Promise((resolve, reject) => {
      const begun = (isOver = false): void => {
        this.#onFirstEvent = undefined;
        ack({ seq: this.#log.last, ...(isOver && { isOver }) });
        resolve();
      };
      this.#onFirstEvent = begun;
      const failed = (error: unknown): void => {
        const isBegun = this.#onFirstEvent !== begun;
        this.#onFirstEvent = undefined;
        if (isBegun) this.#options.onError(error, `a run of session ${this.id}`);
        else reject(toRefusal(error));
      };
      // A host may throw or reject.
      new Promise((settle) => settle(run()))
        .then(() => {
          if (this.#onFirstEvent === begun) begun(true);
          if (this.#heldEnd?.stop === "sink") failed(new SaveError(this.#heldEnd.errorMessage));
        }, failed)
        .finally(() => {
          this.#isReserved = false;
          this.#publishEnd();
          this.clientTools.removeDisconnected();
        });
    });
  }

  assertIdle(): void {
    if (!this.isBusy) return;
    throw new ProtocolError("session_busy", "A run goes on: steer it, abort it, or wait.");
  }

  async update(changes: SessionChanges): Promise<Payload> {
    if (this.hosted.update) await refuseOnError(() => this.hosted.update?.(changes));
    else applyChanges(this.agent, changes);
    this.#publishSettings();
    return { ...this.hosted.info?.(), ...this.#readSettings() };
  }

  /** Queues a message, and answers when it is saved. One that cannot be saved is not queued. */
  async enqueue(queue: QueueName, message: AgentMessage): Promise<Payload> {
    const { agent } = this;
    const id = queue === "steering" ? agent.steer(message) : agent.followUp(message);
    try {
      await this.saved();
    } catch (error) {
      agent.takeQueued(queue, id);
      throw error;
    }
    return { queued: id };
  }

  /** Settles when the queues are saved. */
  saved(): Promise<void> {
    return refuseOnError(() => this.hosted.saved?.());
  }

  /** Replaces the transcript; all clients get a snapshot. */
  async replaceMessages(messages: readonly AgentMessage[]): Promise<Payload> {
    return this.#rewrite(async () => {
      if (this.hosted.replaceMessages) await this.hosted.replaceMessages(messages);
      else this.agent.replaceMessages(messages);
    });
  }

  async reset(): Promise<Payload> {
    return this.#rewrite(async () => {
      if (this.hosted.reset) await this.hosted.reset();
      else this.agent.reset();
    });
  }

  /** The whole state of the session, for a client that begins here. */
  createSnapshot(seq: number = this.#log.last): Payload {
    const all = this.agent.state.messages.filter((message) => this.#known.has(message));
    const omitted = this.#countOmitted(all);
    const messages = all.slice(omitted);
    return {
      ...this.getPosition(),
      seq,
      ...this.hosted.info?.(),
      ...this.#readSettings(),
      messages,
      // Older messages are in the session, but do not fit into one frame.
      omitted,
      state: this.#writer.createReaderState(messages),
      queued: {
        steering: this.agent.queued("steering"),
        followUp: this.agent.queued("followUp"),
      },
      ...this.#published.payload(),
      toolDescriptions: this.#readToolDescriptions(),
    };
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Ends the session for all clients. `closed` is called before they get the end. */
  close(closed?: () => void): Promise<void> {
    this.#closing ??= this.#close(closed);
    return this.#closing;
  }

  async #close(closed?: () => void): Promise<void> {
    try {
      // Still subscribed, so that clients get the end of a run.
      this.agent.abort();
      await this.agent.waitForIdle();
      await this.hosted.close();
      closed?.();
    } finally {
      this.clientTools.close();
      this.#unsubscribe();
      this.#publishEnd();
      this.#publish("done", { reason: "closed" });
      // The stream is over: a new one of its name counts from 1.
      for (const connection of this.#watchers) connection.forget(this.id);
      this.#watchers.clear();
    }
  }

  async #rewrite(write: () => Promise<void>): Promise<Payload> {
    this.assertIdle();
    this.#isReserved = true;
    try {
      await refuseOnError(write);
    } finally {
      this.#isReserved = false;
      this.#follow();
      // The host may have created another agent.
      this.clientTools.registerWithNewAgent();
    }
    const seq = this.#log.last + 1;
    this.#publish("snapshot", this.createSnapshot(seq));
    return { seq };
  }

  /** Subscribes to the current agent. */
  #follow(): void {
    this.#unsubscribe();
    this.#writer = new WireEventWriter();
    this.#known = new WeakSet(this.agent.state.messages);
    this.#published = new PublishedState(this.agent);
    this.#unsubscribe = this.agent.subscribe((event) => this.#take(event));
  }

  #take(event: AgentEvent): void {
    if (event.type === "agent_start" && this.#isReserved && this.#heldEnd) {
      return this.#goOn(this.#heldEnd);
    }
    this.#publishEnd();
    this.#onFirstEvent?.();
    if (event.type === "agent_end") return this.#holdEnd(event);
    if (event.type === "message_end") this.#known.add(event.message);
    this.#published.apply(event, this.#log.last);
    const { type, payload } = this.#writer.write(event);
    this.#publish(type, payload);
  }

  #holdEnd(event: AgentEndEvent): void {
    this.#heldEnd = event;
    if (this.#isReserved) return;
    // A run that the host started. A listener must not wait for the agent.
    queueMicrotask(() => {
      void this.agent.waitForIdle().then(() => {
        this.#publishEnd();
        this.clientTools.removeDisconnected();
      });
    });
  }

  /** The host goes on with the same request, because a hook wants more done, say. */
  #goOn(end: AgentEndEvent): void {
    this.#heldEnd = undefined;
    this.#earlier = addRun(end, this.#earlier);
  }

  #publishEnd(): void {
    const held = this.#heldEnd;
    if (!held) return;
    const event = { ...held, ...addRun(held, this.#earlier) };
    this.#heldEnd = undefined;
    this.#earlier = undefined;
    const { type, payload: end } = this.#writer.write(event);
    const payload = { ...end, ...this.hosted.runInfo?.() };
    this.#published.endRun(event, this.#log.last + 1, payload);
    this.#publish(type, payload);
  }

  /** Publishes the current settings. */
  #publishSettings(): void {
    const toolDescriptions = this.#readToolDescriptions();
    this.#publish("session_update", {
      ...this.hosted.info?.(),
      ...this.#readSettings(),
      toolDescriptions,
    });
  }

  #publish(type: string, payload: Payload): void {
    const event = this.#log.append(type, payload);
    for (const connection of this.#watchers) this.#send(connection, event);
  }

  #send(connection: Connection, { seq, type, payload, bytes }: LoggedEvent): void {
    connection.send({ type, stream: this.id, id: `e_${seq}`, seq, payload }, bytes);
  }

  #readSettings(): Payload {
    const { model, systemPrompt, thinkingLevel, tools } = this.agent.state;
    return {
      ...(model && { model: { provider: model.provider, id: model.id } }),
      thinkingLevel,
      systemPrompt,
      tools: tools.map(({ name }) => name),
      modes: { steering: this.agent.steeringMode, followUp: this.agent.followUpMode },
    };
  }

  #readToolDescriptions(): Payload {
    return Object.fromEntries(
      this.agent.state.tools.map(({ name, description }) => [name, description]),
    );
  }

  /** How many of the oldest messages do not fit into one frame. */
  #countOmitted(messages: readonly AgentMessage[]): number {
    let left = this.#options.snapshotBytes;
    for (let at = messages.length - 1; at >= 0; at--) {
      left -= measureUtf8(JSON.stringify(messages[at]));
      if (left < 0) return at + 1;
    }
    return 0;
  }
}

/** What a run wrote could not be saved. */
class SaveError extends Error {
  override readonly name = "SaveError";
  readonly code = "write_failed";
}

function addRun(
  { turns, usage }: AgentEndEvent,
  earlier: Pick<AgentEndEvent, "turns" | "usage"> | undefined,
): Pick<AgentEndEvent, "turns" | "usage"> {
  if (!earlier) return { turns, usage };
  return { turns: earlier.turns + turns, usage: addUsage(earlier.usage, usage) };
}

/** Applies the changes that need no host. All or nothing. */
export function applyChanges(agent: Agent, changes: SessionChanges): void {
  const { model, thinkingLevel, systemPrompt, tools, modes = {} } = changes;
  if (model !== undefined) {
    throw new ProtocolError("model_not_found", `There is no model "${model}" here.`);
  }
  if (modes.permission !== undefined) throw invalidRequest("There is no permission mode here.");
  const chosen = tools?.map((name) => {
    const tool = agent.state.tools.find((each) => each.name === name);
    if (!tool) throw new ProtocolError("tool_not_found", `There is no tool "${name}" here.`);
    return tool;
  });
  if (thinkingLevel !== undefined) agent.setThinkingLevel(thinkingLevel);
  if (systemPrompt !== undefined) agent.setSystemPrompt(systemPrompt);
  if (chosen) agent.setTools(chosen);
  if (modes.steering !== undefined) agent.setSteeringMode(modes.steering);
  if (modes.followUp !== undefined) agent.setFollowUpMode(modes.followUp);
}

async function refuseOnError(run: () => Promise<void> | void | undefined): Promise<void> {
  try {
    await run();
  } catch (error) {
    throw toRefusal(error);
  }
}

/** An error of a host or an agent, as a refusal that the client can act on. */
function toRefusal(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  return invalidRequest(errorMessage(error), { cause: error });
}
