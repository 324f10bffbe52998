import {
  type AgentEvent,
  type AgentStop,
  type AgentTool,
  type Decision,
  type DecisionOf,
  type PendingCall,
  type PendingCallOf,
  type QueueName,
  readToolOutput,
} from "@gyre/agent";
import { errorMessage, isRecord, systemClock, textOf, type Usage } from "@gyre/ai";
import type { ConnectionState, Payload } from "@gyre/protocol";
import { keepEqual } from "./keep-equal.ts";
import { MessageViews } from "./message-views.ts";
import { Outbox, type QueuedPrompt, type Sent } from "./outbox.ts";
import type { OpenCall } from "./parts.ts";
import { type Attached, createOpener, type RemoteSession, type StoreAgent } from "./source.ts";
import { SnapshotFeed, type StoreOptions } from "./snapshot-feed.ts";
import type { ToolApproval, ViewMessage } from "./view-message.ts";

/** Why nothing arrives right now: the request is made again, another model is asked, or the model is silent. */
export type RunNotice = Extract<AgentEvent, { type: "retry" | "fallback" | "waiting" }>;

/** What a page shows of an agent at one moment. It does not change; parts that have not changed keep their objects. */
export interface AgentSnapshot<Tool extends AgentTool = AgentTool> {
  /** `waiting`: calls wait for a person's answer. `failed`: see `error`. */
  readonly status: "idle" | "running" | "waiting" | "failed";
  /** Of a local agent always `connected`. */
  readonly connection: "connecting" | "connected" | "reconnecting" | "closed";
  readonly messages: readonly ViewMessage<Tool>[];
  /** Messages that wait for the agent, in the order in which they are delivered. */
  readonly queue: readonly QueuedPrompt[];
  /** Calls that wait for an answer of the user. */
  readonly approvals: readonly PendingCallOf<Tool>[];
  /** What went wrong: in the last run, with the connection, or with what was asked of the store. */
  readonly error: string | undefined;
  /** Why a run that goes on shows nothing new; until something arrives. */
  readonly notice: RunNotice | undefined;
  /** Tokens and cost of all runs. */
  readonly usage: Usage;
  /** Of a session on a server, once there is one. */
  readonly session: string | undefined;
}

/** What goes with a prompt: files, and what to do with it while a run goes on. */
export interface StorePromptOptions extends Attached {
  /** Default `followUp`: it waits until the run would otherwise end. `steer` interrupts the run. */
  readonly whileRunning?: "steer" | "followUp";
}

/** What an agent is taken from: an agent of this process, a remote one, or a session that the store opens. */
export type AgentSource = StoreAgent | RemoteSession;

type Approval<Tool extends AgentTool> = Omit<
  Extract<DecisionOf<Tool>, { type: "approve" }>,
  "type" | "fingerprint"
>;

const NOTHING: Pick<
  StoreAgent["state"],
  "messages" | "streamMessage" | "pending" | "pendingToolCalls" | "isStreaming" | "error" | "usage"
> = {
  messages: [],
  streamMessage: undefined,
  pending: [],
  pendingToolCalls: new Set(),
  isStreaming: false,
  error: undefined,
  usage: {},
};

/** How long a message may be in neither a queue nor the transcript before it counts as gone. */
const PASSING_MS = 500;

/**
 * An agent as a page sees it: a snapshot that is replaced when something has changed, once a frame at most. It does
 * nothing until it is subscribed to or asked for something; a session that it has opened is left when the last
 * listener is gone. Its methods do not reject: what fails is in the snapshot. They need no `this`.
 */
export class AgentStore<Tool extends AgentTool = AgentTool> {
  readonly #feed: SnapshotFeed<AgentSnapshot<Tool>>;
  readonly #opener: ReturnType<typeof createOpener> | undefined;
  readonly #views = new MessageViews();
  readonly #outbox = new Outbox((passing) => this.#afterWait(() => this.#outbox.forget(passing)));
  readonly #progress = new Map<string, unknown>();
  readonly #decisions = new Map<string, Decision>();
  #approvals = new Map<string, ToolApproval>();
  #agent: StoreAgent | undefined;
  #opening: Promise<StoreAgent> | undefined;
  #stop: (() => void) | undefined;
  #isClosed = false;
  #hadListeners = false;
  /** Requests that were made while there was no listener: the session stays open for them. */
  #uses = 0;
  /** The state of an agent that was left, until it is opened again. */
  #lastState: typeof NOTHING = NOTHING;
  #isDeciding = false;
  #isDelivering = false;
  #lastStop: AgentStop | undefined;
  #session: string | undefined;
  #connection: AgentSnapshot["connection"];
  #error: string | undefined;
  #notice: RunNotice | undefined;
  /** As the server has reported it. */
  #waiting: readonly QueuedPrompt[] = [];

  constructor(source: AgentSource, options: StoreOptions = {}) {
    if ("connect" in source) {
      this.#opener = createOpener(source);
      this.#session = source.session;
      this.#connection = "connecting";
    } else {
      this.#agent = source;
      this.#session = source.sessionId;
      this.#connection = source.connection ? nameConnection(source.connection) : "connected";
    }
    this.#feed = new SnapshotFeed<AgentSnapshot<Tool>>({
      ...options,
      build: (before) => this.#build(before),
      onUnused: () => this.#releaseUnused(),
    });
  }

  /** The newest snapshot: the same object until listeners are called with another. */
  readonly getSnapshot: () => AgentSnapshot<Tool> = () => this.#feed.snapshot;

  /**
   * Calls `listener` at once, and with each snapshot that follows: what `svelte/store`, `from` of Solid and
   * `useSyncExternalStore` want. The returned function ends that.
   */
  readonly subscribe: (listener: (snapshot: AgentSnapshot<Tool>) => void) => () => void = (
    listener,
  ) => {
    const unsubscribe = this.#feed.subscribe(listener);
    this.#hadListeners = true;
    this.#start();
    return unsubscribe;
  };

  /**
   * Sends a prompt, or queues it while a run goes on. It is shown at once as `pending`; where it cannot be delivered it
   * stays as `failed`, with its text. Settles when its run has ended, or when it is queued. A prompt without a text and
   * files is not sent.
   */
  readonly prompt: (text: string, options?: StorePromptOptions) => Promise<void> = async (
    text,
    { whileRunning = "followUp", ...attached } = {},
  ) => {
    const { images = [], attachments = [] } = attached;
    if (text === "" && images.length + attachments.length === 0) return;
    this.#error = undefined;
    this.#update();
    const queue: QueueName = whileRunning === "steer" ? "steering" : "followUp";
    const entry = this.#outbox.add(text, attached, this.#state.isStreaming ? queue : undefined);
    await this.#send(entry, whileRunning);
  };

  /** A prompt that interrupts the run that goes on. */
  readonly steer: (text: string, attached?: Attached) => Promise<void> = (text, attached) =>
    this.prompt(text, { ...attached, whileRunning: "steer" });

  /** A prompt that waits until the run would otherwise end. */
  readonly followUp: (text: string, attached?: Attached) => Promise<void> = (text, attached) =>
    this.prompt(text, { ...attached, whileRunning: "followUp" });

  /** Sends a prompt that was not delivered again, by the id of its message. Without one: goes on after a run that failed. */
  readonly retry: (messageId?: string) => Promise<void> = async (messageId) => {
    this.#error = undefined;
    if (messageId === undefined) return this.#ask((agent) => agent.continue({}));
    const failed = this.#outbox.findFailed(messageId);
    if (!failed) return;
    this.#outbox.remove(failed);
    await this.prompt(failed.text, failed.attached);
  };

  /**
   * Takes a message back that waits in a queue, or that was not delivered, and gives its text, for the input field.
   * Nothing where it is not there any more, or is being sent.
   */
  readonly takeBack: (id: string) => Promise<string | undefined> = async (id) => {
    const failed = this.#outbox.findFailed(id);
    if (failed) {
      this.#outbox.remove(failed);
      this.#feed.refresh();
      return failed.text;
    }
    const item = this.#feed.snapshot.queue.find((one) => one.id === id);
    if (item?.state !== "queued") return undefined;
    const { queue } = item;
    let text: string | undefined;
    await this.#ask(async (agent) => {
      const message = await agent.takeQueued(queue, id);
      if (!message || message.role !== "user") return;
      text = textOf(message);
      this.#outbox.takeBack(id);
      this.#waiting = this.#waiting.filter((item) => item.id !== id);
    });
    return text;
  };

  /** Allows a call. The answers are sent when all calls that wait have one. `args` replace the arguments of the call. */
  readonly approve: (callId: string, approval?: Approval<Tool>) => Promise<void> = (
    callId,
    approval = {},
  ) => this.#decide(callId, { type: "approve", ...approval });

  /** Refuses a call. The model reads the reason. */
  readonly deny: (callId: string, reason?: string) => Promise<void> = (callId, reason) =>
    this.#decide(callId, { type: "deny", ...(reason !== undefined && { reason }) });

  /** Ends the run. What has arrived of an answer stays. */
  readonly abort: () => Promise<void> = () => this.#ask((agent) => agent.abort());

  /** Leaves a session that the store has opened, and stops following the agent for good. */
  readonly close: () => Promise<void> = async () => {
    this.#isClosed = true;
    await this.#release();
    this.#connection = "closed";
    this.#feed.refresh();
  };

  get #state(): typeof NOTHING {
    return this.#agent?.state ?? this.#lastState;
  }

  #start(): void {
    if (this.#isClosed || this.#stop) return;
    if (this.#agent) this.#follow(this.#agent);
    // The failure is in the snapshot.
    else void this.#open().catch(() => {});
  }

  /** The agent, opened where that is needed. Rejects where that fails. */
  #open(): Promise<StoreAgent> {
    if (this.#isClosed) return Promise.reject(new Error("The store was closed."));
    if (this.#agent) {
      if (!this.#stop) this.#follow(this.#agent);
      return Promise.resolve(this.#agent);
    }
    this.#opening ??= this.#openSession();
    return this.#opening;
  }

  async #openSession(): Promise<StoreAgent> {
    try {
      const agent = await this.#opener?.open(this.#session);
      if (!agent) throw new Error("The store has no agent.");
      if (this.#isClosed) {
        await agent.close?.();
        throw new Error("The store was closed.");
      }
      this.#agent = agent;
      this.#session = agent.sessionId;
      this.#follow(agent);
      // Every listener may be gone by now.
      this.#releaseUnused();
      return agent;
    } catch (error) {
      this.#connection = "closed";
      this.#fail(error);
      throw error;
    } finally {
      this.#opening = undefined;
    }
  }

  #follow(agent: StoreAgent): void {
    const unsubscribe = agent.subscribe((event) => this.#take(event));
    const unwatch = agent.watch?.({
      onConnection: (state) => {
        this.#connection = nameConnection(state, this.#connection);
        this.#feed.refresh();
      },
      onSnapshot: () => this.#feed.refresh(),
      onSettings: () => this.#feed.refresh(),
      onStatus: (status) => this.#takeStatus(status),
      onClosed: (error) => {
        this.#connection = "closed";
        if (!this.#isClosed) this.#fail(error);
      },
    });
    if (agent.connection) this.#connection = nameConnection(agent.connection, this.#connection);
    this.#stop = () => {
      unsubscribe();
      unwatch?.();
    };
    this.#feed.refresh();
  }

  #releaseUnused(): void {
    const isUsed = this.#feed.hasListeners || this.#uses > 0;
    // A program without listeners closes the store by itself.
    if (isUsed || this.#isClosed || !this.#hadListeners) return;
    void this.#release();
  }

  async #release(): Promise<void> {
    this.#stop?.();
    this.#stop = undefined;
    this.#feed.stop();
    if (!this.#opener || !this.#agent) return;
    const agent = this.#agent;
    this.#lastState = agent.state;
    this.#agent = undefined;
    this.#connection = "connecting";
    try {
      await agent.close?.();
    } catch (error) {
      this.#feed.report(error);
    }
  }

  #take(event: AgentEvent): void {
    switch (event.type) {
      case "message_update": {
        // What has left a queue is delivered before the model is asked again.
        this.#outbox.forget();
        this.#notice = undefined;
        const { assistantMessageEvent: update } = event;
        if ("contentIndex" in update) this.#views.touch(update.contentIndex);
        break;
      }
      case "tool_execution_update":
        this.#progress.set(event.toolCallId, readToolOutput(event.partialResult));
        break;
      case "tool_execution_end":
        this.#progress.delete(event.toolCallId);
        break;
      case "retry":
      case "fallback":
      case "waiting":
        this.#notice = event;
        break;
      case "agent_start":
        this.#error = this.#lastStop = this.#notice = undefined;
        break;
      case "agent_end":
        this.#lastStop = event.stop;
        this.#notice = undefined;
        this.#progress.clear();
        queueMicrotask(() => this.#refreshWhenIdle());
        break;
      default:
        break;
    }
    this.#feed.refresh();
  }

  /** The agent is idle some moments after the end of its run. */
  #refreshWhenIdle(): void {
    const refresh = (): void => this.#feed.refresh();
    this.#agent?.waitForIdle().then(refresh, refresh);
  }

  #takeStatus({ waiting }: Payload): void {
    const items = Array.isArray(waiting) ? waiting.filter(isRecord) : [];
    this.#waiting = items.flatMap(({ queue, id, role, text }): QueuedPrompt[] => {
      if (queue !== "steering" && queue !== "followUp") return [];
      if (typeof id !== "string" || typeof text !== "string" || role !== "user") return [];
      return [{ id, queue, text, state: "queued" }];
    });
    this.#feed.refresh();
  }

  async #send(entry: Sent, whileRunning: "steer" | "followUp"): Promise<void> {
    this.#feed.refresh();
    const release = this.#hold();
    try {
      const agent = await this.#open();
      const end = await agent.prompt(entry.text, { ...entry.attached, whileRunning });
      // What it stands for in the transcript is taken: a prompt behind it stands for another.
      this.#update();
      // What is queued is shown until the list of the queue has it, or the transcript.
      if (end === undefined) this.#afterWait(() => this.#outbox.remove(entry));
      else this.#outbox.remove(entry);
      if (end === undefined && !agent.watch) void this.#deliverLate();
    } catch (error) {
      this.#update();
      // What is in the transcript by now was delivered, whatever came afterwards.
      if (this.#outbox.has(entry) || isRefused(error)) {
        this.#outbox.fail(entry, errorMessage(error));
      } else if (this.#stop) this.#error = errorMessage(error);
    }
    release();
    this.#feed.refresh();
  }

  /**
   * A message that is queued after a run has looked into the queues for the last time would wait for the next
   * prompt: a run is started for it when the agent is idle.
   */
  async #deliverLate(): Promise<void> {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    await this.#ask(async (agent) => {
      await agent.waitForIdle();
      this.#isDelivering = false;
      if (this.#lastStop === "done" && listAll(agent).length > 0) await agent.continue({});
    });
    this.#isDelivering = false;
  }

  /** Keeps the session open for a request of a page that no longer shows it. */
  #hold(): () => void {
    if (this.#feed.hasListeners) return () => {};
    this.#uses++;
    return () => {
      this.#uses--;
      this.#releaseUnused();
    };
  }

  async #decide(id: string, decision: Decision): Promise<void> {
    const { pending } = this.#state;
    const isKnown = this.#decisions.has(id) || this.#isDeciding;
    if (!pending.some(({ toolCall }) => toolCall.id === id)) {
      // A second click on the answer comes too late.
      if (!isKnown) this.#fail(new Error(`No call "${id}" waits for an answer.`));
      return;
    }
    if (this.#isDeciding) return;
    this.#decisions.set(id, decision);
    this.#feed.refresh();
    if (!pending.every(({ toolCall }) => this.#decisions.has(toolCall.id))) return;
    const decisions = Object.fromEntries(
      pending.map(({ toolCall, fingerprint }) => {
        const answer = this.#decisions.get(toolCall.id) ?? { type: "wait" };
        const isExact = answer.type === "approve" && fingerprint !== undefined;
        return [toolCall.id, isExact ? { fingerprint, ...answer } : answer];
      }),
    );
    this.#isDeciding = true;
    await this.#ask((agent) => agent.continue({ decisions }));
    this.#isDeciding = false;
    this.#decisions.clear();
    this.#feed.refresh();
  }

  /** Asks the agent for something; what fails is in the snapshot. */
  async #ask(ask: (agent: StoreAgent) => unknown): Promise<void> {
    const release = this.#hold();
    try {
      await ask(await this.#open());
      this.#feed.refresh();
    } catch (error) {
      this.#fail(error);
    }
    release();
  }

  #fail(error: unknown): void {
    this.#error = errorMessage(error);
    this.#feed.refresh();
  }

  /** Shows the state of the agent as it is now. */
  #update(): void {
    const state = this.#state;
    const asked = new Map(state.pending.map((call) => [call.toolCall.id, call]));
    const approvals = new Map<string, ToolApproval>();
    this.#views.update(state, (id): OpenCall => {
      const call = asked.get(id);
      if (!call) {
        const isRunning = state.isStreaming && state.pendingToolCalls.has(id);
        return { isRunning, progress: this.#progress.get(id) };
      }
      const approval = keepEqual(this.#approvals.get(id), this.#describe(call));
      approvals.set(id, approval);
      return { isRunning: false, approval };
    });
    this.#approvals = approvals;
    const { userCount, settled } = this.#views;
    const agent = this.#agent;
    this.#outbox.settle({
      waiting: agent && !agent.watch ? listAll(agent) : this.#waiting,
      userCount,
      readTexts: () => settled.filter(({ role }) => role === "user").map(readText),
    });
  }

  /** Does something unless it has become needless within `PASSING_MS`. */
  #afterWait(run: () => void): void {
    systemClock.after(PASSING_MS, () => {
      run();
      this.#feed.refresh();
    });
  }

  #describe({ toolCall, ...question }: PendingCall): ToolApproval {
    const decision = this.#decisions.get(toolCall.id);
    return { ...question, ...(decision && { approved: decision.type !== "deny" }) };
  }

  #build(last: AgentSnapshot<Tool> | undefined): AgentSnapshot<Tool> {
    this.#update();
    // The tools of the agent are what the caller says they are: calls of other tools have other names.
    const before: AgentSnapshot | undefined = last;
    const { pending, usage } = this.#state;
    const now: AgentSnapshot = {
      status: this.#readStatus(),
      connection: this.#connection,
      messages: this.#listMessages(before?.messages),
      queue: keepItems(before?.queue, this.#outbox.queued),
      approvals: keepEqual(
        before?.approvals,
        pending.filter(({ toolCall }) => !this.#decisions.has(toolCall.id)),
      ),
      error: this.#readError(),
      notice: this.#notice,
      usage,
      session: this.#session,
    };
    return keepEqual(before, now);
  }

  #readStatus(): AgentSnapshot["status"] {
    const { isStreaming, pending } = this.#state;
    if (isStreaming || this.#outbox.isSending || this.#isDeciding) return "running";
    if (pending.length > 0) return "waiting";
    return this.#readError() === undefined ? "idle" : "failed";
  }

  #readError(): string | undefined {
    if (this.#error !== undefined) return this.#error;
    // A user who stops a run knows that it has stopped.
    return this.#isAborted() ? undefined : this.#state.error;
  }

  #isAborted(): boolean {
    if (this.#lastStop !== undefined) return this.#lastStop === "aborted";
    return this.#views.settled.at(-1)?.state === "aborted";
  }

  #listMessages(before: readonly ViewMessage[] | undefined): readonly ViewMessage[] {
    const { settled, streamed } = this.#views;
    const sent = this.#outbox.show(settled.length + (streamed ? 1 : 0));
    if (!streamed && sent.length === 0) return settled;
    return keepEqual(before, [...settled, ...(streamed ? [streamed] : []), ...sent]);
  }
}

/** A store of an agent, a remote agent, or a session on a server. */
export function createAgentStore<Tool extends AgentTool = AgentTool>(
  source: AgentSource,
  options: StoreOptions = {},
): AgentStore<Tool> {
  return new AgentStore<Tool>(source, options);
}

/** What waits in the queues of a local agent. */
function listAll(agent: StoreAgent): QueuedPrompt[] {
  return (["steering", "followUp"] as const).flatMap((queue) => listLocal(agent, queue));
}

function listLocal(agent: StoreAgent, queue: QueueName): QueuedPrompt[] {
  const queued = agent.queued(queue);
  if (queued instanceof Promise) return [];
  return queued.flatMap(({ id, message }): QueuedPrompt[] =>
    message.role === "user" ? [{ id, queue, text: textOf(message), state: "queued" }] : [],
  );
}

function keepItems(
  before: readonly QueuedPrompt[] | undefined,
  now: readonly QueuedPrompt[],
): readonly QueuedPrompt[] {
  return keepEqual(
    before,
    now.map((item, index) => keepEqual(before?.[index], item)),
  );
}

function nameConnection(
  state: ConnectionState,
  before: AgentSnapshot["connection"] = "connecting",
): AgentSnapshot["connection"] {
  if (state.type === "ready") return "connected";
  if (state.type === "closed") return "closed";
  return before === "connecting" ? "connecting" : "reconnecting";
}

/** Whether a server says that it did not take a prompt. */
function isRefused(error: unknown): boolean {
  return isRecord(error) && error["code"] === "session_busy";
}

function readText({ parts }: ViewMessage): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
