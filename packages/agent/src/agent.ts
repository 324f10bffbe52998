import {
  addUsage,
  type AnySchema,
  type AssistantMessage,
  EventStream,
  type ImageContent,
  type InferArguments,
  isRetryable,
  isThenable,
  type Model,
  type ModelName,
  type ProtocolClient,
  type StreamFn,
  systemClock,
  textOf,
  THINKING_LEVELS,
  type ThinkingLevel,
  type TokenCalibration,
  type ToolSchema,
  type Usage,
  type UserContent,
} from "@gyre/ai";
import { type AgentEnd, assertSucceeded, withAnswer } from "./answer.ts";
import { ContextMemory } from "./context/memory.ts";
import { EventState, type EventView, keepIdentity } from "./agent-state.ts";
import type { AgentAsTool, AgentToolOptions, PromptSchema } from "./as-tool.ts";
import { type Handoff, Handoffs } from "./handoff.ts";
import type { AgentEventOf, PendingCallOf } from "./contract/by-tool.ts";
import type { Compaction } from "./contract/compaction.ts";
import { contain, warn } from "./contract/contain.ts";
import { SinkError } from "./run/emitter.ts";
import { settleWithin } from "./run/hooks.ts";
import { isAssistant, isToolResult, listCalls } from "./transcript/history.ts";
import {
  type MessageInput,
  type PromptInput,
  toMessages,
  withTimestamps,
} from "./transcript/input.ts";
import { toPrompts, assertContinuable, drive, makeEnd, joinUpdates } from "./loop/loop.ts";
import { TypedOutput } from "./output.ts";
import {
  MessageQueue,
  type QueueChange,
  type QueuedMessage,
  type QueuedMessages,
} from "./queue.ts";
import type { Injected } from "./run/inbox.ts";
import { Run } from "./run/run.ts";
import type {
  AgentContext,
  AgentEndEvent,
  AgentEvent,
  AgentLoopConfig,
  AgentMessage,
  AgentSink,
  AgentTool,
  Decision,
  Limits,
  PendingCall,
  QueueMode,
  QueueName,
  TurnChanges,
} from "./contract/types.ts";

/** The run no longer waits for a listener that has not settled by then. */
export const DEFAULT_LISTENER_TIMEOUT_MS = 30_000;

/**
 * What an agent is at one moment. It does not change: `agent.state` is another object once
 * something has changed, and the same one until then. Of its parts only `streamMessage` grows in
 * place; `streamVersion` changes with it.
 */
export interface AgentState<Pending = PendingCall> extends Omit<EventView, "pending"> {
  /** Calls that a suspended run left for a person to decide. */
  readonly pending: readonly Pending[];
  readonly systemPrompt: string;
  /** Nothing until a model that was given by its name has been looked up. */
  readonly model: Model | undefined;
  readonly thinkingLevel: ThinkingLevel;
  readonly tools: readonly AgentTool[];
}

/** The turns of a run of an `Agent` that has no other limit (R23). */
export const DEFAULT_MAX_TURNS = 100;

type OwnedByAgent =
  | "model"
  | "fallbackModels"
  | "tools"
  | "thinkingLevel"
  | "getSteeringMessages"
  | "getFollowUpMessages"
  | "hasQueuedMessages"
  | "requeue"
  | "onSteering"
  | "skipInitialSteeringPoll"
  | "continueAfterError"
  | "decisions";

/**
 * How an agent runs: the configuration of the loop, except for the parts that the agent manages,
 * and what it starts with.
 */
export interface AgentOptions<Tool extends AgentTool = AgentTool> extends Omit<
  AgentLoopConfig,
  OwnedByAgent
> {
  /** A model, or its name, such as "anthropic/claude-sonnet-4-5", which is looked up under Node. */
  model?: Model | ModelName;
  /** Models or their names; see `fallbackModels` of `AgentLoopConfig`. */
  fallbackModels?: readonly (Model | ModelName)[];
  /** The system prompt. */
  instructions?: string;
  tools?: readonly Tool[];
  /** What others call it where conversations are transferred. Default "main". */
  name?: string;
  /** Agents that may take the conversation over, and transfer it on. */
  handoffs?: readonly Handoff[];
  /** The transcript so far. */
  messages?: readonly MessageInput[];
  /** Default `off`. */
  thinkingLevel?: ThinkingLevel;
  /** Calls of the transcript that wait for a person. */
  pending?: readonly PendingCall[];
  /** What an earlier agent sent in place of a part of the messages. */
  compaction?: Compaction;
  /** Messages that wait in the queues already. */
  queued?: QueuedMessages;
  /** Default under Node: a client of every service, with keys and addresses from this machine. */
  protocol?: ProtocolClient;
  streamFn?: StreamFn;
  /** `maxTurns` is 100 unless given; `Infinity` is no limit. */
  limits?: Limits;
  steeringMode?: QueueMode;
  followUpMode?: QueueMode;
  /** Receives each event before state and listeners do, and is awaited: a journal, for example (R25). */
  sink?: AgentSink;
  /**
   * How many responses in a row may break off after content was shown, and are followed by another
   * turn of the same run (R22). What had arrived is kept, its calls are not run. Default 0: the
   * run ends with the error.
   */
  maxContinuations?: number;
  /** Called at once when the application has changed a queue, so that a journal can keep it. */
  onQueueChange?: (change: QueueChange) => void;
  /** Default 30,000. */
  listenerTimeoutMs?: number;
  /** Receives errors that do not end the run, such as one of a listener. Default: a process warning. */
  onError?: (error: unknown, where: string) => void;
}

/**
 * Called with each event. The agent reports what a listener throws and goes on; it waits for a
 * promise up to `listenerTimeoutMs`.
 */
export type AgentListener<Event = AgentEvent> = (event: Event) => void | Promise<void>;

/**
 * What one run has of its own. `tools` replace those of the agent, `middleware` comes inside of
 * the agent's, and of `limits` and `headers` each entry replaces the agent's of that name.
 */
export type RunOverrides = Pick<
  AgentOptions,
  | "temperature"
  | "maxTokens"
  | "headers"
  | "limits"
  | "toolChoice"
  | "middleware"
  | "tools"
  | "caller"
>;

/** Options of a prompt. */
export interface PromptOptions extends RunOverrides {
  images?: readonly ImageContent[];
  /** Further content after the text, such as files with their `source`. */
  attachments?: readonly UserContent[];
  /** What to do with the prompt while a run goes on, instead of throwing. */
  whileRunning?: "steer" | "followUp";
  /**
   * Aborts the run that the prompt starts, as `abort()` does: it ends soon and keeps what arrived
   * (R21). A signal that has fired already ends the run before the model is asked. Not with
   * `whileRunning`: a queued prompt has no run of its own.
   */
  signal?: AbortSignal;
}

export interface ContinueOptions extends RunOverrides {
  /** A person's answers to pending calls, by call id. The rest stays pending. */
  decisions?: Readonly<Record<string, Decision>>;
  /** Aborts the run, as `abort()` does: it ends soon and keeps what arrived (R21). */
  signal?: AbortSignal;
}

type QueuedPromptOptions = Omit<PromptOptions, "signal">;

/** Options of a prompt that is never queued. */
export type RunOptions = Omit<PromptOptions, "whileRunning">;

export interface CompactOptions {
  /** What the summary should keep above all. */
  keep?: string;
  signal?: AbortSignal;
}

/** The events of a run, to iterate. Leaving the `for await` detaches the iterator; the run goes on. */
export class AgentRun<T = undefined, Event = AgentEvent, Pending = PendingCall> extends EventStream<
  Event,
  AgentEndEvent<Pending>
> {
  constructor() {
    super(
      (event) => (event as AgentEvent).type === "agent_end",
      (event) => event as AgentEndEvent<Pending>,
      (last, next) => joinUpdates(last as AgentEvent, next as AgentEvent) as Event | undefined,
    );
  }

  /** How the run ended, with its answer. */
  override result(): Promise<AgentEnd<T, Pending>> {
    return super.result() as Promise<AgentEnd<T, Pending>>;
  }

  /** The validated answer, when the run was given an `output` schema. */
  async output(): Promise<T> {
    return (await this.result()).output;
  }

  /**
   * The text of all answers, as it arrives. Throws `RunFailedError` at the end of a run that
   * ended with an error.
   */
  get textStream(): AsyncIterable<string> {
    return readText(this as AsyncIterable<unknown> as AsyncIterable<AgentEvent>);
  }
}

async function* readText(events: AsyncIterable<AgentEvent>): AsyncGenerator<string, void, void> {
  for await (const event of events) {
    if (event.type === "agent_end") assertSucceeded(event);
    if (event.type !== "message_update") continue;
    const { assistantMessageEvent: update } = event;
    if (update.type === "text_delta") yield update.delta;
  }
}

interface Launch {
  injected: Injected[];
  decisions?: Readonly<Record<string, Decision>>;
  skipInitialSteeringPoll?: boolean;
  output?: TypedOutput<AnySchema> | undefined;
  watch?: (event: AgentEvent) => void;
  signal?: AbortSignal | undefined;
  tools?: readonly AgentTool[] | undefined;
  overrides: Omit<RunOverrides, "tools">;
}

const OVERRIDES: readonly (keyof Launch["overrides"])[] = [
  "temperature",
  "maxTokens",
  "headers",
  "limits",
  "toolChoice",
  "middleware",
  "caller",
];

const NO_LISTENERS: readonly AgentListener[] = [];

/**
 * The loop with a memory: state, queues, listeners, and one run at a time. A listener that throws
 * or hangs is reported, and does not harm the run.
 */
export class Agent<out Tool extends AgentTool = AgentTool> {
  readonly #options: AgentOptions;
  readonly #steering: MessageQueue;
  readonly #followUps: MessageQueue;
  /** Replaced, never changed: an event goes to the listeners that were subscribed when it came. */
  #listeners: readonly AgentListener[] = NO_LISTENERS;
  /** Present while a run waits for a steering message. */
  #wakes: Set<() => void> | undefined;
  #systemPrompt: string;
  #model: Model | string | undefined;
  #fallbackModels: readonly (Model | string)[];
  #thinkingLevel: ThinkingLevel;
  #tools: readonly AgentTool[];
  readonly #handoffs: Handoffs | undefined;
  /** What the events have made of the agent so far. */
  readonly #state: EventState;
  #lastState: AgentState | undefined;
  /** How the service of a model counts tokens, as learned from the last run. */
  #lastCalibration: { model: Model; calibration: TokenCalibration } | undefined;
  /** What earlier runs have computed of the messages; only where the context is compacted. */
  #contextMemory: ContextMemory | undefined;
  #active: { run: Run; idle: Promise<void> } | undefined;
  /** Present while model and client are looked up for a run. */
  #starting: { isAborted: boolean; idle: Promise<unknown> } | undefined;
  #calling = 0;
  /** Whether anything of the newest response was shown. */
  #isShown = false;
  /** Responses in a row that broke off. */
  #breaks = 0;

  constructor(options: AgentOptions<Tool> = {}) {
    // A copy without the initial messages, which would otherwise stay in memory forever.
    const {
      model,
      fallbackModels = [],
      instructions = "",
      tools = [],
      messages = [],
      thinkingLevel = "off",
      name = "main",
      handoffs,
      pending,
      compaction,
      queued,
      ...own
    } = checkOptions(options);
    this.#options = own;
    this.#systemPrompt = instructions;
    this.#model = model;
    this.#fallbackModels = fallbackModels;
    this.#thinkingLevel = thinkingLevel;
    this.#tools = tools;
    this.#state = new EventState(withTimestamps(messages, this.#now()));
    this.#state.compaction = compaction;
    if (pending) this.#state.setPending(pending);
    this.#handoffs = handoffs && new Handoffs({ name }, handoffs);
    this.#findInCharge();
    this.#steering = new MessageQueue("steering", options.steeringMode, queued);
    this.#followUps = new MessageQueue("followUp", options.followUpMode, queued);
  }

  get state(): AgentState<PendingCallOf<Tool>> {
    this.#lastState = keepIdentity(this.#lastState, {
      ...this.#state.view(),
      systemPrompt: this.#systemPrompt,
      model: typeof this.#model === "string" ? undefined : this.#model,
      thinkingLevel: this.#thinkingLevel,
      tools: this.#tools,
      isStreaming: this.isRunning,
    });
    return this.#lastState as AgentState<PendingCallOf<Tool>>;
  }

  get isRunning(): boolean {
    return (this.#active ?? this.#starting) !== undefined;
  }

  get sessionId(): string | undefined {
    return this.#options.sessionId;
  }

  set sessionId(id: string | undefined) {
    if (id === undefined) delete this.#options.sessionId;
    else this.#options.sessionId = id;
  }

  /** The name of the agent that the conversation is with, where it has `handoffs`. */
  get activeAgent(): string | undefined {
    return this.#handoffs?.active.name;
  }

  // Changes during a run take effect from its next turn on. They are those of the agent that the
  // conversation is with.

  setSystemPrompt(systemPrompt: string): void {
    this.#systemPrompt = systemPrompt;
  }

  /** A name is looked up before the next run starts. */
  setModel(model: Model | ModelName): void {
    this.#model = model;
  }

  setThinkingLevel(level: ThinkingLevel): void {
    this.#thinkingLevel = checkLevel(level);
  }

  setTools(tools: readonly AgentTool[]): void {
    this.#tools = tools;
  }

  setSteeringMode(mode: QueueMode): void {
    this.#steering.mode = mode;
  }

  setFollowUpMode(mode: QueueMode): void {
    this.#followUps.mode = mode;
  }

  get steeringMode(): QueueMode {
    return this.#steering.mode;
  }

  get followUpMode(): QueueMode {
    return this.#followUps.mode;
  }

  replaceMessages(replacement: readonly MessageInput[]): void {
    this.#assertIdle("replace the messages");
    const messages = withTimestamps(replacement, this.#now());
    const assistant = messages.filter(isAssistant);
    const calls = new Set(assistant.flatMap(listCalls).map(({ id }) => id));
    const pending = this.#state.pending.filter(({ toolCall }) => calls.has(toolCall.id));
    this.#state.messages = messages;
    this.#state.compaction = undefined;
    this.#state.setPending(pending);
    this.#findInCharge();
  }

  appendMessage(message: MessageInput): void {
    this.#assertIdle("append a message");
    this.#state.messages.push(...withTimestamps([message], this.#now()));
    this.#findInCharge();
  }

  clearMessages(): void {
    this.#assertIdle("clear the messages");
    this.replaceMessages([]);
  }

  /**
   * Queues a message that interrupts the run: calls that have not started are skipped (R15).
   * Returns the id of the message in the queue.
   */
  steer(message: string | MessageInput): string {
    const [steering] = toMessages(message, this.#now());
    const id = this.#changed("steering", this.#steering.push(steering as AgentMessage));
    for (const wake of [...(this.#wakes ?? [])]) wake();
    return id;
  }

  /** Queues a message for the moment when the agent would otherwise stop. Returns its id. */
  followUp(message: string | MessageInput): string {
    const [followUp] = toMessages(message, this.#now());
    return this.#changed("followUp", this.#followUps.push(followUp as AgentMessage));
  }

  /** The messages in a queue, in order. */
  queued(queue: QueueName): readonly QueuedMessage[] {
    return this.#queue(queue).list();
  }

  /** Replaces a queued message. Returns false if it is no longer queued. */
  editQueued(queue: QueueName, id: string, message: string | MessageInput): boolean {
    const [edited] = toMessages(message, this.#now());
    return this.#changed(queue, this.#queue(queue).edit(id, edited as AgentMessage));
  }

  /** Removes a message from its queue and returns it; nothing if it is no longer queued. */
  takeQueued(queue: QueueName, id: string): AgentMessage | undefined {
    return this.#changed(queue, this.#queue(queue).remove(id), [id]);
  }

  /** Moves a message within its queue. Returns false if it is no longer queued. */
  moveQueued(queue: QueueName, id: string, place: number): boolean {
    return this.#changed(queue, this.#queue(queue).move(id, place));
  }

  clearSteeringQueue(): void {
    this.#clear("steering");
  }

  clearFollowUpQueue(): void {
    this.#clear("followUp");
  }

  clearAllQueues(): void {
    this.clearSteeringQueue();
    this.clearFollowUpQueue();
  }

  hasQueuedMessages(): boolean {
    return this.#steering.length > 0 || this.#followUps.length > 0;
  }

  /** Calls `listener` with each event, in order of subscription. Returns a function that unsubscribes. */
  subscribe(listener: AgentListener<AgentEventOf<Tool>>): () => void {
    const entry: AgentListener = (event) => listener(event as AgentEventOf<Tool>);
    this.#listeners = [...this.#listeners, entry];
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== entry);
    };
  }

  /**
   * Runs on a prompt, and settles when the agent is idle again. With `output`, the answer is
   * typed and validated. Rejects during a run, unless `whileRunning` says to queue the prompt:
   * then it resolves at once, to nothing.
   */
  prompt(
    input: PromptInput,
    options?: RunOptions,
  ): Promise<AgentEnd<undefined, PendingCallOf<Tool>>>;
  prompt<const S extends AnySchema>(
    input: PromptInput,
    options: RunOptions & { output: S },
  ): Promise<AgentEnd<InferArguments<S>, PendingCallOf<Tool>>>;
  prompt(
    input: PromptInput,
    options: QueuedPromptOptions,
  ): Promise<AgentEnd<undefined, PendingCallOf<Tool>> | undefined>;
  async prompt(
    input: PromptInput,
    options: PromptOptions & { output?: AnySchema } = {},
  ): Promise<unknown> {
    if (options.signal && options.whileRunning) {
      throw new Error(
        "A prompt can have a signal or whileRunning, not both: once queued, it has no run of its own to stop. takeQueued() takes it back.",
      );
    }
    const messages = toMessages(input, this.#now(), listAttachments(options));
    if (this.isRunning && options.whileRunning) {
      for (const message of messages) {
        if (options.whileRunning === "steer") this.steer(message);
        else this.followUp(message);
      }
      return undefined;
    }
    return this.#launch(this.#promptLaunch("a prompt", messages, options));
  }

  /** `prompt()` as an iterable; with `output`, the answer is typed and validated. */
  run(
    input: PromptInput,
    options?: RunOptions,
  ): AgentRun<undefined, AgentEventOf<Tool>, PendingCallOf<Tool>>;
  run<const S extends AnySchema>(
    input: PromptInput,
    options: RunOptions & { output: S },
  ): AgentRun<InferArguments<S>, AgentEventOf<Tool>, PendingCallOf<Tool>>;
  run(input: PromptInput, options: RunOptions & { output?: AnySchema } = {}): unknown {
    const messages = toMessages(input, this.#now(), listAttachments(options));
    return this.#iterate(this.#promptLaunch("a run", messages, options));
  }

  /** `continue()` as an iterable; with `output`, the answer is typed and validated. */
  continueRun(
    options?: ContinueOptions,
  ): AgentRun<undefined, AgentEventOf<Tool>, PendingCallOf<Tool>>;
  continueRun<const S extends AnySchema>(
    options: ContinueOptions & { output: S },
  ): AgentRun<InferArguments<S>, AgentEventOf<Tool>, PendingCallOf<Tool>>;
  continueRun(options: ContinueOptions & { output?: AnySchema } = {}): unknown {
    return this.#iterate(this.#continueLaunch(options));
  }

  /**
   * Continues from the transcript as it is. Calls without a result are answered first: by the
   * decisions on pending calls (R27), a recorded result, or an error (R19).
   */
  continue(options?: ContinueOptions): Promise<AgentEnd<undefined, PendingCallOf<Tool>>>;
  continue<const S extends AnySchema>(
    options: ContinueOptions & { output: S },
  ): Promise<AgentEnd<InferArguments<S>, PendingCallOf<Tool>>>;
  async continue(options: ContinueOptions & { output?: AnySchema } = {}): Promise<unknown> {
    return this.#launch(this.#continueLaunch(options));
  }

  /**
   * Compacts the context now, whatever its size: a summary and facts take the place of everything
   * but the first request and the last turns (R24). Resolves to the tokens before and after, or
   * to nothing where nothing is to be gained. The agent counts as running meanwhile. Rejects when
   * it is aborted, or when `beforeCompaction` postpones it; nothing changes then.
   */
  async compact({ keep, signal }: CompactOptions = {}): Promise<
    { before: number; after: number } | undefined
  > {
    this.#assertIdle("compact");
    signal?.throwIfAborted();
    const preparing = this.#prepare();
    if (preparing) await preparing;
    this.#assertIdle("compact");
    const run = this.#open({ injected: [], signal, overrides: {} });
    // No event reports its usage.
    run.hasEnded = true;
    try {
      return await this.#whileActive(run, async () => (await run.getCompactor()).compactNow(keep));
    } finally {
      run.close();
    }
  }

  /** Aborts the run: it ends soon and keeps what arrived (R21). Await `waitForIdle()` for its end. */
  abort(): void {
    if (this.#starting) this.#starting.isAborted = true;
    this.#active?.run.cancellation.cancel("aborted");
  }

  /** Settles when no run goes on and the listeners of the last one are done. */
  waitForIdle(): Promise<void> {
    if (this.#calling > 0) {
      throw new Error(
        "waitForIdle() inside a listener would wait for itself: the run waits for the listener.",
      );
    }
    const { idle } = this.#active ?? this.#starting ?? {};
    return Promise.resolve(idle).then(() => {});
  }

  /**
   * Counts what the application has spent on models beside the answers, on summaries say: into
   * `state.usage`, and where a run goes on, into its usage and its limits (R23). Answers whether
   * one did.
   */
  countUsage(usage: Usage): boolean {
    const run = this.#active?.run;
    if (!run || run.hasEnded) {
      this.#state.usage = addUsage(this.#state.usage, usage);
      return false;
    }
    run.addToolUsage(usage);
    return true;
  }

  /**
   * The agent as a tool of another. Each call is a run of its own on a copy of the agent as it is
   * now, its messages included; calls that run together do not meet. The run shares what is left of
   * the caller's limits with all others, counts into the caller's usage once, and is aborted with
   * the call. A call of its own that waits for a person fails the run: give `needsApproval` here.
   */
  asTool<
    const Name extends string,
    const S extends ToolSchema = PromptSchema,
    O extends AnySchema = never,
  >(options: AgentToolOptions<Name, S, O>): AgentAsTool<Name, S, O>;
  asTool(options: AgentToolOptions): AgentTool {
    // A sink is the journal of one run at a time.
    const { sink: _, onQueueChange: _changes, ...own } = this.#options;
    if (this.#handoffs) this.#keep(this.#handoffs);
    const start: AgentOptions = {
      ...own,
      ...(this.#handoffs
        ? { ...this.#handoffs.first, handoffs: this.#handoffs.others }
        : this.asHandoff({ name: "main" })),
      fallbackModels: this.#fallbackModels,
      messages: [...this.#state.messages],
    };
    const { name, description, needsApproval } = options;
    const graces = this.#tools.map(({ abortGraceMs = 0 }) => abortGraceMs);
    return {
      name,
      description,
      parameters: options.input ?? PROMPT_SCHEMA,
      ...(needsApproval && { needsApproval }),
      concurrent: options.concurrent ?? true,
      timeoutMs: options.timeoutMs ?? AGENT_TOOL_TIMEOUT_MS,
      // Its own calls have to be ended before it can answer an abort.
      abortGraceMs: Math.max(own.abortGraceMs ?? 0, ...graces) + AGENT_TOOL_GRACE_MS,
      presentation: { kind: "think", delegates: true },
      execute: async (args, context) => {
        const { runAgentTool } = await import("./as-tool.ts");
        return runAgentTool(new Agent(start), options, args, context);
      },
    };
  }

  /** The agent as one that may take a conversation over: with its instructions, tools and model as they are now. */
  asHandoff(options: Pick<Handoff, "name" | "description" | "to">): Handoff {
    return {
      ...options,
      instructions: this.#systemPrompt,
      tools: this.#tools,
      ...(this.#model && { model: this.#model }),
      thinkingLevel: this.#thinkingLevel,
    };
  }

  /** Forgets messages, queues, usage and the last error; keeps model, tools and system prompt. */
  reset(): void {
    this.#assertIdle("reset");
    this.clearMessages();
    this.clearAllQueues();
    this.#state.error = undefined;
    this.#state.usage = {};
  }

  #promptLaunch(what: string, messages: AgentMessage[], options: LaunchOptions): Launch {
    const hint = "Use steer() or followUp(), or wait for it with waitForIdle().";
    this.#assertIdle(`start ${what}`, hint);
    const reason = "the user went on without deciding";
    const decisions: Record<string, Decision> = {};
    for (const { toolCall } of this.#state.pending)
      decisions[toolCall.id] = { type: "deny", reason };
    return { injected: toPrompts(messages), decisions, ...readOptions(options) };
  }

  #continueLaunch(options: ContinueOptions & LaunchOptions): Launch {
    this.#assertIdle("continue");
    const decisions: Record<string, Decision> = { ...options.decisions };
    this.#assertOpen(Object.keys(decisions));
    for (const { toolCall, ...question } of this.#state.pending) {
      decisions[toolCall.id] ??= { type: "wait", ...question };
      const decision = decisions[toolCall.id];
      const { fingerprint } = question;
      // What is approved is what was asked about, also where another process had asked.
      if (decision?.type === "approve" && fingerprint !== undefined) {
        decisions[toolCall.id] = { fingerprint, ...decision };
      }
    }
    const own = readOptions(options);
    try {
      assertContinuable(this.#state.messages);
    } catch (error) {
      if (this.#state.messages.length === 0) throw error;
      const injected = this.#drainForContinue();
      if (injected.length === 0) throw error;
      return { injected, decisions, skipInitialSteeringPoll: true, ...own };
    }
    return { injected: [], decisions, ...own };
  }

  /** A decision on a call that does not wait would be lost without a word. */
  #assertOpen(ids: readonly string[]): void {
    if (ids.length === 0) return;
    const { messages, pending } = this.#state;
    const answered = new Set(messages.filter(isToolResult).map(({ toolCallId }) => toolCallId));
    const calls = messages.filter(isAssistant).flatMap(listCalls);
    const open = calls.map(({ id }) => id).filter((id) => !answered.has(id));
    for (const id of ids) {
      // What a journal says to be waiting may have its result meanwhile.
      if (open.includes(id) || pending.some(({ toolCall }) => toolCall.id === id)) continue;
      throw new Error(
        `No call "${id}" waits for a decision. Open calls: ${open.join(", ") || "none"}.`,
      );
    }
  }

  #iterate(launch: Launch): AgentRun<unknown> {
    const run = new AgentRun<unknown>();
    let end: AgentEndEvent | undefined;
    const watch = (event: AgentEvent): void => {
      if (event.type === "agent_end") end = event;
      else run.push(event);
    };
    // The end is pushed when the agent is idle, so that the next run can follow at once.
    this.#launch({ ...launch, watch }).then(
      (settled) => run.push(settled),
      (error: unknown) => (end ? run.push(withAnswer(end)) : run.fail(error)),
    );
    return run;
  }

  #drainForContinue(): Injected[] {
    for (const source of ["steering", "followUp"] as const) {
      const messages = this.#queue(source).drain();
      if (messages.length > 0) return messages.map((message) => ({ source, message }));
    }
    return [];
  }

  async #launch(launch: Launch): Promise<AgentEnd<unknown>> {
    let run: Run;
    try {
      const preparing = this.#prepare();
      const wasAborted = preparing && (await this.#whileStarting(preparing));
      this.#starting = undefined;
      run = this.#open(launch);
      if (wasAborted) run.cancellation.cancel("aborted");
    } catch (error) {
      this.#starting = undefined;
      for (const { source, message } of launch.injected.toReversed()) {
        if (source !== "prompt") this.#queue(source).putBack([message]);
      }
      throw error;
    }
    const waiting = this.#state.pending;
    this.#state.error = undefined;
    this.#state.pending = [];
    const end = await this.#whileActive(run, async () => {
      try {
        return await drive(run, launch.injected);
      } catch (error) {
        if (error instanceof SinkError) {
          this.#state.error = error.message;
          const end = { ...makeEnd(run, "sink"), errorMessage: error.message };
          end.pending = [...waiting.filter((call) => isOpen(call, end)), ...end.pending];
          await this.#handle(end, launch.watch);
        }
        throw error;
      }
    });
    return withAnswer(end, launch.output && (await launch.output.take(end)));
  }

  /**
   * Looks up the models that were given by their names, and the client that was not given.
   * Nothing to wait for where all are there.
   */
  #prepare(): Promise<void> | undefined {
    const model = this.#model;
    const { protocol, streamFn } = this.#options;
    const isNamed = [model, ...this.#fallbackModels].some((one) => typeof one === "string");
    if (!model || ((protocol ?? streamFn) && !isNamed)) return undefined;
    return import("#model-access").then(async ({ access }) => {
      this.#fallbackModels = await Promise.all(
        this.#fallbackModels.map(async (one) => (isModel(one) ? one : access.findModel(one))),
      );
      if (typeof model === "string") {
        const found = await access.findModel(model);
        if (this.#model === model) this.#model = found;
      }
      if (!protocol && !streamFn) this.#options.protocol = await access.createClient();
    });
  }

  /** The agent counts as running. Resolves to whether it was aborted meanwhile. */
  async #whileStarting(preparing: Promise<void>): Promise<boolean> {
    const idle = preparing.catch(() => {}).then(() => this.#active?.idle);
    const starting = { isAborted: false, idle };
    this.#starting = starting;
    await preparing;
    return starting.isAborted;
  }

  /** Makes a run from the current state. Throws on a configuration that cannot work. */
  #open(launch: Launch): Run {
    const { messages, compaction } = this.#state;
    const context: AgentContext = {
      systemPrompt: this.#systemPrompt,
      messages,
      tools: this.#runTools(launch),
      ...(compaction && { compaction }),
      ...(this.#lastCalibration &&
        this.#lastCalibration.model === this.#model && {
          calibration: this.#lastCalibration.calibration,
        }),
    };
    const { sink = () => {}, streamFn, context: compacting } = this.#options;
    if (compacting) this.#contextMemory ??= new ContextMemory(compacting);
    return new Run({
      context,
      config: this.#config(launch),
      sink,
      signal: launch.signal,
      streamFn,
      listeners: (event) => this.#handle(event, launch.watch),
      contextMemory: this.#contextMemory,
    });
  }

  /** Works on a run while no other can start. */
  async #whileActive<T>(run: Run, work: () => Promise<T>): Promise<T> {
    let becomeIdle: () => void = () => {};
    this.#active = { run, idle: new Promise((resolve) => (becomeIdle = resolve)) };
    try {
      return await work();
    } finally {
      this.#active = undefined;
      this.#lastCalibration = { model: run.model, calibration: run.calibration };
      becomeIdle();
    }
  }

  #config(launch: Launch): AgentLoopConfig {
    const { decisions, skipInitialSteeringPoll = false, overrides } = launch;
    const { middleware, headers, maxIterations = DEFAULT_MAX_TURNS } = this.#options;
    const limits = { ...this.#options.limits, ...overrides.limits };
    limits.maxTurns ??= limits.maxIterations ?? maxIterations;
    const readApplied = (): {
      model: Model;
      tools: readonly AgentTool[];
      by: string | undefined;
    } => ({
      model: this.#requireModel(),
      tools: this.#tools,
      by: this.activeAgent,
    });
    let applied = readApplied();
    const prepareTurn: AgentLoopConfig["prepareTurn"] = async (turn) => {
      const preparing = this.#prepare();
      if (preparing) await preparing;
      const changes: TurnChanges = {
        thinkingLevel: this.#thinkingLevel,
        systemPrompt: this.#systemPrompt,
      };
      const now = readApplied();
      if (now.model !== applied.model) changes.model = now.model;
      // Tools that a prompt came with were for the agent that it was given to.
      if (now.by !== applied.by) launch.tools = undefined;
      if (now.tools !== applied.tools || now.by !== applied.by) {
        changes.tools = this.#runTools(launch);
      }
      applied = now;
      return { ...changes, ...(await this.#options.prepareTurn?.(turn)) };
    };
    return {
      ...this.#options,
      ...overrides,
      limits,
      ...(headers && overrides.headers && { headers: { ...headers, ...overrides.headers } }),
      // A run without any passes its calls on more directly.
      ...(middleware &&
        overrides.middleware && { middleware: [...middleware, ...overrides.middleware] }),
      model: this.#requireModel(),
      fallbackModels: this.#fallbackModels.filter(isModel),
      thinkingLevel: this.#thinkingLevel,
      prepareTurn,
      continueAfterError: ({ message }) => this.#continuesAfter(message),
      skipInitialSteeringPoll,
      getSteeringMessages: () => this.#steering.drain(),
      getFollowUpMessages: () => this.#followUpsOrReminder(launch),
      hasQueuedMessages: () => this.hasQueuedMessages(),
      requeue: (queue, messages) => this.#queue(queue).putBack(messages),
      onSteering: (wake) => {
        const wakes = (this.#wakes ??= new Set());
        wakes.add(wake);
        return () => {
          wakes.delete(wake);
          if (wakes.size === 0) this.#wakes = undefined;
        };
      },
      ...(decisions && { decisions }),
    };
  }

  /** What failed before anything was shown was retried already. */
  #continuesAfter({ failure }: AssistantMessage): boolean {
    const { maxContinuations = 0 } = this.#options;
    return this.#isShown && !!failure && isRetryable(failure) && this.#breaks <= maxContinuations;
  }

  #runTools({ output, tools = this.#tools }: Launch): readonly AgentTool[] {
    const all = this.#handoffs ? [...tools, ...this.#handoffs.listTools()] : tools;
    return output ? [...all, output.tool] : all;
  }

  /** Reads from the transcript which agent the conversation is with. */
  #findInCharge(): void {
    if (this.#handoffs) this.#putInCharge(this.#handoffs.find(this.#state.messages));
  }

  /** Remembers what the agent in charge is now, for when the conversation is transferred back. */
  #keep({ active, first }: Handoffs): void {
    const now = this.asHandoff(active);
    if (active !== first) {
      if (!active.model && now.model === first.model) delete now.model;
      if (!active.thinkingLevel && now.thinkingLevel === first.thinkingLevel) {
        delete now.thinkingLevel;
      }
    }
    Object.assign(active, now);
  }

  /** What the agent is from here on. */
  #putInCharge(next: Handoff): void {
    const handoffs = this.#handoffs;
    if (!handoffs || next === handoffs.active) return;
    const { first } = handoffs;
    this.#keep(handoffs);
    handoffs.active = next;
    this.#systemPrompt = next.instructions ?? "";
    this.#tools = next.tools ?? [];
    this.#model = next.model ?? first.model;
    this.#thinkingLevel = next.thinkingLevel ?? first.thinkingLevel ?? "off";
  }

  #followUpsOrReminder({ output }: Launch): AgentMessage[] | Promise<AgentMessage[]> {
    if (!output) return this.#followUps.drain();
    const last = this.#state.messages.at(-1);
    const text = last && isAssistant(last) ? textOf(last) : "";
    return output
      .remind(text, this.#now())
      .then((reminder) => (reminder ? [reminder] : this.#followUps.drain()));
  }

  #handle(event: AgentEvent, watch: Launch["watch"]): void | Promise<void> {
    this.#state.apply(event);
    if (event.type === "message_update") this.#isShown = true;
    else if (event.type === "turn_start") this.#isShown = false;
    else if (event.type === "turn_end") {
      this.#breaks = event.message.stopReason === "error" ? this.#breaks + 1 : 0;
    } else if (event.type === "agent_start") this.#breaks = 0;
    else if (event.type === "message_end") {
      const next = this.#handoffs?.read(event.message);
      if (next) this.#putInCharge(next);
    }
    watch?.(event);
    return this.#notify(event);
  }

  /** Calls the listeners in order, and waits for those that answer with a promise. */
  #notify(event: AgentEvent, listeners = this.#listeners, from = 0): void | Promise<void> {
    for (let index = from; index < listeners.length; index++) {
      const given = this.#call(listeners[index] as AgentListener, event);
      if (given) {
        return this.#settleListener(given, event).then(() =>
          this.#notify(event, listeners, index + 1),
        );
      }
    }
    return undefined;
  }

  #call(listener: AgentListener, event: AgentEvent): Promise<void> | undefined {
    this.#calling++;
    try {
      const given = listener(event);
      return isThenable(given) ? given : undefined;
    } catch (error) {
      this.#report(error, `listener of "${event.type}"`);
      return undefined;
    } finally {
      this.#calling--;
    }
  }

  #settleListener(given: Promise<void>, event: AgentEvent): Promise<void> {
    const ms = this.#options.listenerTimeoutMs ?? DEFAULT_LISTENER_TIMEOUT_MS;
    const late = `It had not settled after ${ms} ms; the run goes on without it.`;
    return settleWithin(this.#clock, ms, given, late, (error) =>
      this.#report(error, `listener of "${event.type}"`),
    );
  }

  #report(error: unknown, where: string): void {
    const { onError } = this.#options;
    if (!onError) return warn(where, error);
    contain(`onError threw on an error of ${where}`, () => onError(error, where));
  }

  /** Reports a change of a queue, if there was one. */
  #changed<T>(queue: QueueName, change: T, removed: readonly string[] = []): T {
    if (change) this.#options.onQueueChange?.({ queue, messages: this.queued(queue), removed });
    return change;
  }

  #clear(queue: QueueName): void {
    const removed = this.queued(queue).map(({ id }) => id);
    this.#queue(queue).clear();
    this.#changed(queue, removed.length > 0, removed);
  }

  #queue(queue: QueueName): MessageQueue {
    return queue === "steering" ? this.#steering : this.#followUps;
  }

  #assertIdle(what: string, hint = "Wait for it with waitForIdle()."): void {
    if (this.isRunning) throw new Error(`Cannot ${what}: the agent is running. ${hint}`);
  }

  #requireModel(): Model {
    if (typeof this.#model === "object") return this.#model;
    throw new Error("The agent has no model: give it one as `model`, or call setModel().");
  }

  get #clock(): NonNullable<AgentOptions["clock"]> {
    return this.#options.clock ?? systemClock;
  }

  #now(): number {
    return this.#clock.now();
  }
}

const AGENT_TOOL_TIMEOUT_MS = 3_600_000;
const AGENT_TOOL_GRACE_MS = 500;
const PROMPT_SCHEMA: PromptSchema = {
  type: "object",
  properties: {
    prompt: {
      type: "string",
      description: "The task in full. The agent sees nothing else of this conversation.",
    },
  },
  required: ["prompt"],
};

/** Whether a call that waited for a person before the run still does after it. */
function isOpen({ toolCall: { id } }: PendingCall, { messages, pending }: AgentEndEvent): boolean {
  const isAnswered = messages.some((message) => isToolResult(message) && message.toolCallId === id);
  return !isAnswered && !pending.some(({ toolCall }) => toolCall.id === id);
}

/** What programs of other libraries, and of before, write in its place. */
const MISPLACED: Readonly<Record<string, string>> = {
  initialState: "its parts beside it: model, instructions, tools, messages, thinkingLevel",
  systemPrompt: "instructions",
  system: "instructions",
  maxTurns: "limits: { maxTurns }",
  maxSteps: "limits: { maxTurns }",
};

function checkOptions(options: AgentOptions): AgentOptions {
  for (const name in MISPLACED) {
    if (name in options) {
      throw new TypeError(`An agent has no option "${name}": write ${MISPLACED[name]}.`);
    }
  }
  const { protocol, thinkingLevel } = options;
  if (protocol && typeof protocol.stream !== "function") {
    const what = typeof protocol === "function" ? "is a function" : "has no method `stream`";
    throw new TypeError(`The \`protocol\` ${what}: give a client, such as createModelClient().`);
  }
  if (thinkingLevel) checkLevel(thinkingLevel);
  return options;
}

function isModel(model: Model | string): model is Model {
  return typeof model !== "string";
}

function checkLevel(level: ThinkingLevel): ThinkingLevel {
  if (THINKING_LEVELS.includes(level)) return level;
  const levels = THINKING_LEVELS.join(", ").replace(/, (\w+)$/, " or $1");
  throw new TypeError(`There is no thinking level ${JSON.stringify(level)}: write ${levels}.`);
}

type LaunchOptions = RunOverrides & { signal?: AbortSignal; output?: AnySchema };

/** What of the options of a prompt is for its run. */
function readOptions(
  options: LaunchOptions,
): Pick<Launch, "signal" | "output" | "tools" | "overrides"> {
  const { signal, output, tools } = options;
  const overrides: Record<string, unknown> = {};
  for (const name of OVERRIDES) if (options[name] !== undefined) overrides[name] = options[name];
  return { signal, output: output && new TypedOutput(output), tools, overrides };
}

function listAttachments({ images = [], attachments = [] }: PromptOptions): UserContent[] {
  return [...attachments, ...images];
}
