import {
  type AnySchema,
  EventStream,
  type ImageContent,
  type InferArguments,
  isThenable,
  type Model,
  type StreamFn,
  systemClock,
  textOf,
  type ThinkingLevel,
  type TokenCalibration,
  type UserContent,
} from "@gyre/ai";
import { ContextMemory } from "./context/memory.ts";
import {
  emptyEventState,
  type EventState,
  isAssistant,
  isToolResult,
  reduceAgentState,
  withPendingCalls,
} from "./agent-state.ts";
import type { Compaction } from "./contract/compaction.ts";
import { contain, warn } from "./contract/contain.ts";
import { SinkError } from "./run/emitter.ts";
import { callsOf } from "./transcript/history.ts";
import { type PromptInput, toMessages } from "./transcript/input.ts";
import { toPrompts, assertContinuable, drive, makeEnd, joinUpdates } from "./loop/loop.ts";
import { TypedOutput } from "./output.ts";
import { MessageQueue, type QueuedMessage } from "./queue.ts";
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
  PendingCall,
  QueueMode,
  QueueName,
  TurnChanges,
} from "./contract/types.ts";

/** A listener that has not settled by then is left behind. */
export const DEFAULT_LISTENER_TIMEOUT_MS = 30_000;

/** What an agent is right now. Lists are live: copy what you keep. */
export interface AgentState extends Omit<EventState, "messages"> {
  readonly systemPrompt: string;
  readonly model: Model | undefined;
  readonly thinkingLevel: ThinkingLevel;
  readonly tools: readonly AgentTool[];
  readonly messages: readonly AgentMessage[];
}

/** What an agent has from the start. */
export type InitialState = Partial<
  Pick<AgentState, "systemPrompt" | "thinkingLevel" | "tools" | "messages" | "pending">
> & { model?: Model; compaction?: Compaction };

type OwnedByAgent =
  | "model"
  | "tools"
  | "thinkingLevel"
  | "getSteeringMessages"
  | "getFollowUpMessages"
  | "hasQueuedMessages"
  | "requeue"
  | "onSteering"
  | "skipInitialSteeringPoll"
  | "decisions";

/** How an agent runs: the settings of the loop, but for those that the agent takes care of. */
export interface AgentOptions extends Omit<AgentLoopConfig, OwnedByAgent> {
  initialState?: InitialState;
  streamFn?: StreamFn;
  steeringMode?: QueueMode;
  followUpMode?: QueueMode;
  /** Takes each event before state and listeners do (R25); a journal, say. */
  sink?: AgentSink;
  /** Default 30,000. */
  listenerTimeoutMs?: number;
  /** Trouble that is not the run's: a listener that threw. Default: a process warning. */
  onError?: (error: unknown, where: string) => void;
}

/**
 * Called with each event. A throw is reported and passed over; a promise is waited for,
 * up to `listenerTimeoutMs`.
 */
export type AgentListener = (event: AgentEvent) => void | Promise<void>;

/** What goes along with a prompt. */
export interface PromptOptions {
  images?: readonly ImageContent[];
  /** Further content after the text: files, say, with their `source`. */
  attachments?: readonly UserContent[];
  /** What to do with the prompt while a run goes on, instead of throwing. */
  whileRunning?: "steer" | "followUp";
  /**
   * Stops the run that the prompt starts, as `abort()` does (R21); one that has fired, before
   * the model is asked. Not with `whileRunning`: a prompt that is queued has no run of its own.
   */
  signal?: AbortSignal;
}

export interface ContinueOptions {
  /** A person's answers to pending calls, by call id. The rest stays pending. */
  decisions?: Readonly<Record<string, Decision>>;
  /** Stops the run, as `abort()` does (R21); one that has fired, before the model is asked. */
  signal?: AbortSignal;
}

/** What goes along with a prompt that is never queued. */
export type RunOptions = Omit<PromptOptions, "whileRunning">;

export interface CompactOptions {
  /** What a summary is to keep above all. */
  keep?: string;
  signal?: AbortSignal;
}

/** A run to iterate. Leaving the loop detaches it; the run goes on. */
export class AgentRun<T = undefined> extends EventStream<AgentEvent, AgentEndEvent> {
  readonly #output: (end: AgentEndEvent) => T | Promise<T>;

  constructor(output: (end: AgentEndEvent) => T | Promise<T>) {
    super(
      (event) => event.type === "agent_end",
      (event) => event as AgentEndEvent,
      joinUpdates,
    );
    this.#output = output;
  }

  /** The validated answer, when the run was given an `output` schema. */
  async output(): Promise<T> {
    return this.#output(await this.result());
  }
}

interface Launch {
  injected: Injected[];
  decisions?: Readonly<Record<string, Decision>>;
  skipInitialSteeringPoll?: boolean;
  output?: TypedOutput<AnySchema>;
  watch?: (event: AgentEvent) => void;
  signal?: AbortSignal;
}

const NO_LISTENERS: readonly AgentListener[] = [];

/**
 * The loop with a memory: state, queues, listeners, and one run at a time. The run
 * survives what its surroundings do: a listener that throws or hangs is reported
 * and passed over.
 */
export class Agent {
  readonly #options: AgentOptions;
  readonly #steering: MessageQueue;
  readonly #followUps: MessageQueue;
  /** Replaced, never changed, so that an event goes to those who were there when it came. */
  #listeners: readonly AgentListener[] = NO_LISTENERS;
  /** There while a run wants to be woken. */
  #wakes: Set<() => void> | undefined;
  #systemPrompt: string;
  #model: Model | undefined;
  #thinkingLevel: ThinkingLevel;
  #tools: readonly AgentTool[];
  /** What the events have made of the agent so far. */
  #state: EventState & { readonly messages: AgentMessage[] };
  /** How the service of a model counts, as far as its runs have told. */
  #counted: { model: Model; calibration: TokenCalibration } | undefined;
  /** What earlier runs have computed of the messages; only where the context is compacted. */
  #contextMemory: ContextMemory | undefined;
  #active: { controller: AbortController; idle: Promise<void> } | undefined;
  #calling = 0;

  constructor(options: AgentOptions = {}) {
    // Our own copy, and without the first messages: they are not to be kept for good.
    const { initialState = {}, ...own } = options;
    this.#options = own;
    this.#systemPrompt = initialState.systemPrompt ?? "";
    this.#model = initialState.model;
    this.#thinkingLevel = initialState.thinkingLevel ?? "off";
    this.#tools = initialState.tools ?? [];
    const empty = {
      ...emptyEventState(),
      messages: [...(initialState.messages ?? [])],
      compaction: initialState.compaction,
    };
    this.#state = initialState.pending ? withPendingCalls(empty, initialState.pending) : empty;
    this.#steering = new MessageQueue("steering", options.steeringMode ?? "one-at-a-time");
    this.#followUps = new MessageQueue("followUp", options.followUpMode ?? "one-at-a-time");
  }

  get state(): AgentState {
    return {
      systemPrompt: this.#systemPrompt,
      model: this.#model,
      thinkingLevel: this.#thinkingLevel,
      tools: this.#tools,
      ...this.#state,
      isStreaming: this.isRunning,
    };
  }

  get isRunning(): boolean {
    return this.#active !== undefined;
  }

  get sessionId(): string | undefined {
    return this.#options.sessionId;
  }

  set sessionId(id: string | undefined) {
    if (id === undefined) delete this.#options.sessionId;
    else this.#options.sessionId = id;
  }

  // Changes made while a run goes on hold from its next turn.

  setSystemPrompt(systemPrompt: string): void {
    this.#systemPrompt = systemPrompt;
  }

  setModel(model: Model): void {
    this.#model = model;
  }

  setThinkingLevel(level: ThinkingLevel): void {
    this.#thinkingLevel = level;
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

  replaceMessages(messages: readonly AgentMessage[]): void {
    this.#assertIdle("replace the messages");
    const calls = new Set(messages.flatMap(callIds));
    const pending = this.#state.pending.filter(({ toolCall }) => calls.has(toolCall.id));
    this.#setMessages([...messages], pending);
  }

  appendMessage(message: AgentMessage): void {
    this.#assertIdle("append a message");
    this.#state.messages.push(message);
  }

  clearMessages(): void {
    this.#assertIdle("clear the messages");
    this.#setMessages([], []);
  }

  /** Queues a message that interrupts the run (R15). The answer names it while it waits. */
  steer(message: string | AgentMessage): string {
    const [steering] = toMessages(message, this.#now());
    const id = this.#steering.push(steering as AgentMessage);
    for (const wake of [...(this.#wakes ?? [])]) wake();
    return id;
  }

  /** Queues a message for when the agent would otherwise stop. */
  followUp(message: string | AgentMessage): string {
    const [followUp] = toMessages(message, this.#now());
    return this.#followUps.push(followUp as AgentMessage);
  }

  /** What waits, in order. */
  queued(queue: QueueName): readonly QueuedMessage[] {
    return this.#queue(queue).list();
  }

  /** Changes a message that waits; answers whether it still did. */
  editQueued(queue: QueueName, id: string, message: string | AgentMessage): boolean {
    const [edited] = toMessages(message, this.#now());
    return this.#queue(queue).edit(id, edited as AgentMessage);
  }

  /** Takes a message back; nothing if it is not waiting any more. */
  takeQueued(queue: QueueName, id: string): AgentMessage | undefined {
    return this.#queue(queue).remove(id);
  }

  /** Moves a message to a place in its queue; answers whether it still waited. */
  moveQueued(queue: QueueName, id: string, place: number): boolean {
    return this.#queue(queue).move(id, place);
  }

  clearSteeringQueue(): void {
    this.#steering.clear();
  }

  clearFollowUpQueue(): void {
    this.#followUps.clear();
  }

  clearAllQueues(): void {
    this.clearSteeringQueue();
    this.clearFollowUpQueue();
  }

  hasQueuedMessages(): boolean {
    return this.#steering.length > 0 || this.#followUps.length > 0;
  }

  /** Calls `listener` with each event, in order of subscription; the answer undoes it. */
  subscribe(listener: AgentListener): () => void {
    const entry: AgentListener = (event) => listener(event);
    this.#listeners = [...this.#listeners, entry];
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== entry);
    };
  }

  /**
   * Runs on a prompt, and settles when the agent is idle again. Rejects while a run
   * goes on, unless told to queue: then it settles at once, with nothing.
   */
  prompt(input: PromptInput, options?: RunOptions): Promise<AgentEndEvent>;
  prompt(
    input: PromptInput,
    options: Omit<PromptOptions, "signal">,
  ): Promise<AgentEndEvent | undefined>;
  async prompt(
    input: PromptInput,
    options: PromptOptions = {},
  ): Promise<AgentEndEvent | undefined> {
    if (options.signal && options.whileRunning) {
      throw new Error(
        "A prompt can have a signal or whileRunning, not both: once queued, it has no run of its own to stop. takeQueued() takes it back.",
      );
    }
    const messages = toMessages(input, this.#now(), attachmentsOf(options));
    if (this.isRunning && options.whileRunning) {
      for (const message of messages) {
        if (options.whileRunning === "steer") this.steer(message);
        else this.followUp(message);
      }
      return undefined;
    }
    this.#assertIdle(
      "start a prompt",
      "Use steer() or followUp(), or wait for it with waitForIdle().",
    );
    return this.#launch(this.#promptLaunch(messages, options.signal));
  }

  /** The same as something to iterate; with `output`, its answer is typed and validated. */
  run(input: PromptInput, options?: RunOptions): AgentRun;
  run<S extends AnySchema>(
    input: PromptInput,
    options: RunOptions & { output: S },
  ): AgentRun<InferArguments<S>>;
  run(input: PromptInput, options: RunOptions & { output?: AnySchema } = {}): AgentRun<unknown> {
    const messages = toMessages(input, this.#now(), attachmentsOf(options));
    this.#assertIdle(
      "start a run",
      "Use steer() or followUp(), or wait for it with waitForIdle().",
    );
    return this.#iterate(this.#promptLaunch(messages, options.signal), options.output);
  }

  /** `continue()` as something to iterate; with `output`, its answer is typed and validated. */
  continueRun(options?: ContinueOptions): AgentRun;
  continueRun<S extends AnySchema>(
    options: ContinueOptions & { output: S },
  ): AgentRun<InferArguments<S>>;
  continueRun(options: ContinueOptions & { output?: AnySchema } = {}): AgentRun<unknown> {
    return this.#iterate(this.#continueLaunch(options), options.output);
  }

  /** Goes on from the transcript as it is, with answers to pending calls first (R19, R27). */
  async continue(options: ContinueOptions = {}): Promise<AgentEndEvent> {
    return this.#launch(this.#continueLaunch(options));
  }

  /**
   * Makes the context smaller now, whatever its size: all but the first request and the last
   * turns gives way to a summary and facts, as at its limit (R24). Tokens before and after;
   * nothing where nothing is to be gained. Counts as a run meanwhile. Rejects when it is
   * aborted, and where `beforeCompaction` puts it off: all stays as it was then.
   */
  async compact({ keep, signal }: CompactOptions = {}): Promise<
    { before: number; after: number } | undefined
  > {
    this.#assertIdle("compact");
    signal?.throwIfAborted();
    const controller = new AbortController();
    const run = this.#open({ injected: [] }, controller.signal);
    try {
      return await this.#during(run, controller, signal, () => run.compactor.compactNow(keep));
    } finally {
      run.close();
    }
  }

  /** Stops the run (R21). It ends soon, with what it has; await `waitForIdle()` for that. */
  abort(): void {
    this.#active?.controller.abort();
  }

  /** Settles when no run goes on and the listeners of the last one are done. */
  waitForIdle(): Promise<void> {
    this.#assertOutsideListener("waitForIdle()");
    return this.#active?.idle ?? Promise.resolve();
  }

  /** Forgets messages, queues and trouble; keeps model, tools and prompt. */
  reset(): void {
    this.#assertIdle("reset");
    this.clearMessages();
    this.clearAllQueues();
    this.#state = { ...this.#state, error: undefined, usage: {} };
  }

  #promptLaunch(messages: AgentMessage[], signal: AbortSignal | undefined): Launch {
    const reason = "the user went on without deciding";
    const denied = this.#state.pending.map(
      ({ toolCall }) => [toolCall.id, { type: "deny", reason }] as const,
    );
    return {
      injected: toPrompts(messages),
      decisions: Object.fromEntries(denied),
      ...(signal && { signal }),
    };
  }

  #continueLaunch(options: ContinueOptions): Launch {
    this.#assertIdle("continue", "Wait for it with waitForIdle().");
    const stop = options.signal && { signal: options.signal };
    const decisions: Record<string, Decision> = { ...options.decisions };
    for (const { toolCall, reason } of this.#state.pending) {
      decisions[toolCall.id] ??= { type: "wait", reason };
    }
    try {
      assertContinuable(this.#state.messages);
    } catch (error) {
      if (this.#state.messages.length === 0) throw error;
      const injected = this.#drainForContinue();
      if (injected.length === 0) throw error;
      return { injected, decisions, skipInitialSteeringPoll: true, ...stop };
    }
    return { injected: [], decisions, ...stop };
  }

  #iterate(launch: Launch, schema: AnySchema | undefined): AgentRun<unknown> {
    const output = schema && new TypedOutput(schema);
    const run = new AgentRun<unknown>((end) => output?.take(end));
    let end: AgentEvent | undefined;
    const watch = (event: AgentEvent): void => {
      if (event.type === "agent_end") end = event;
      else run.push(event);
    };
    // The end is told when the agent is idle, so that the next run can follow at once.
    this.#launch({ ...launch, ...(output && { output }), watch }).then(
      (settled) => run.push(end ?? settled),
      (error: unknown) => (end ? run.push(end) : run.fail(error)),
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

  async #launch(launch: Launch): Promise<AgentEndEvent> {
    const controller = new AbortController();
    let run: Run;
    try {
      run = this.#open(launch, controller.signal);
    } catch (error) {
      this.#takeBack(launch.injected);
      throw error;
    }
    const waiting = this.#state.pending;
    this.#state = { ...this.#state, error: undefined, pending: [] };
    return this.#during(run, controller, launch.signal, async () => {
      try {
        return await drive(run, launch.injected);
      } catch (error) {
        if (error instanceof SinkError) {
          this.#state = { ...this.#state, error: error.message };
          const end = makeEnd(run, "sink");
          end.pending = [...waiting.filter((call) => isOpen(call, end)), ...end.pending];
          await this.#handle(end, launch.watch);
        }
        throw error;
      }
    });
  }

  /** A run on what the agent is now. Throws on a configuration that cannot work. */
  #open(launch: Launch, signal: AbortSignal): Run {
    const { messages, compaction } = this.#state;
    const context: AgentContext = {
      systemPrompt: this.#systemPrompt,
      messages,
      tools: this.#runTools(launch),
      ...(compaction && { compaction }),
      ...(this.#counted &&
        this.#counted.model === this.#model && { calibration: this.#counted.calibration }),
    };
    const { sink = () => {}, streamFn } = this.#options;
    if (this.#options.context) this.#contextMemory ??= new ContextMemory();
    return new Run({
      context,
      config: this.#config(launch),
      sink,
      signal,
      streamFn,
      listeners: (event) => this.#handle(event, launch.watch),
      contextMemory: this.#contextMemory,
    });
  }

  /** Works on a run, while no other can start. A caller's signal is let go of at its end. */
  async #during<T>(
    run: Run,
    controller: AbortController,
    signal: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    let becomeIdle: () => void = () => {};
    this.#active = { controller, idle: new Promise((resolve) => (becomeIdle = resolve)) };
    const stop = (): void => controller.abort();
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop);
    try {
      return await work();
    } finally {
      signal?.removeEventListener("abort", stop);
      this.#active = undefined;
      this.#counted = { model: run.model, calibration: run.calibration };
      becomeIdle();
    }
  }

  #config(launch: Launch): AgentLoopConfig {
    const { decisions, skipInitialSteeringPoll = false } = launch;
    let applied = { model: this.#requireModel(), tools: this.#tools };
    const prepareTurn: AgentLoopConfig["prepareTurn"] = async (turn) => {
      const changes: TurnChanges = {
        thinkingLevel: this.#thinkingLevel,
        systemPrompt: this.#systemPrompt,
      };
      if (this.#requireModel() !== applied.model) changes.model = this.#requireModel();
      if (this.#tools !== applied.tools) changes.tools = this.#runTools(launch);
      applied = { model: this.#requireModel(), tools: this.#tools };
      return { ...changes, ...(await this.#options.prepareTurn?.(turn)) };
    };
    return {
      ...this.#options,
      model: this.#requireModel(),
      thinkingLevel: this.#thinkingLevel,
      prepareTurn,
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

  #runTools({ output }: Launch): readonly AgentTool[] {
    return output ? [...this.#tools, output.tool] : this.#tools;
  }

  #followUpsOrReminder({ output }: Launch): AgentMessage[] | Promise<AgentMessage[]> {
    if (!output) return this.#followUps.drain();
    const last = this.#state.messages.at(-1);
    const text = last && isAssistant(last) ? textOf(last) : "";
    return output
      .reminder(text, this.#now())
      .then((reminder) => (reminder ? [reminder] : this.#followUps.drain()));
  }

  #takeBack(injected: readonly Injected[]): void {
    for (const { source, message } of injected.toReversed()) {
      if (source !== "prompt") this.#queue(source).putBack([message]);
    }
  }

  #handle(event: AgentEvent, watch: Launch["watch"]): void | Promise<void> {
    this.#state = reduceAgentState(this.#state, event);
    watch?.(event);
    return this.#notify(event);
  }

  /** Calls the listeners in order, and waits for those that answer with a promise. */
  #notify(event: AgentEvent): void | Promise<void> {
    const listeners = this.#listeners;
    for (let index = 0; index < listeners.length; index++) {
      const given = this.#call(listeners[index] as AgentListener, event);
      if (given) return this.#notifyRest(event, given, listeners.slice(index + 1));
    }
    return undefined;
  }

  async #notifyRest(
    event: AgentEvent,
    first: Promise<void>,
    rest: readonly AgentListener[],
  ): Promise<void> {
    await this.#settleListener(first, event);
    for (const listener of rest) {
      const given = this.#call(listener, event);
      if (given) await this.#settleListener(given, event);
    }
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
    const where = `listener of "${event.type}"`;
    const ms = this.#options.listenerTimeoutMs ?? DEFAULT_LISTENER_TIMEOUT_MS;
    return new Promise((resolve) => {
      const stopTimer = this.#clock.after(ms, () => {
        this.#report(new Error(`It had not settled after ${ms} ms, and was left behind.`), where);
        resolve();
      });
      given.then(
        () => {
          stopTimer();
          resolve();
        },
        (error: unknown) => {
          stopTimer();
          this.#report(error, where);
          resolve();
        },
      );
    });
  }

  #report(error: unknown, where: string): void {
    const { onError } = this.#options;
    if (!onError) return warn(where, error);
    contain(`onError, told of ${where}, threw`, () => onError(error, where));
  }

  #setMessages(messages: AgentMessage[], pending: readonly PendingCall[]): void {
    const state = { ...this.#state, messages, compaction: undefined };
    this.#state = withPendingCalls(state, pending);
  }

  #queue(queue: QueueName): MessageQueue {
    return queue === "steering" ? this.#steering : this.#followUps;
  }

  #assertIdle(what: string, hint = "Wait for it with waitForIdle()."): void {
    if (this.isRunning) throw new Error(`Cannot ${what}: the agent is running. ${hint}`);
  }

  #assertOutsideListener(what: string): void {
    if (this.#calling > 0) {
      throw new Error(
        `${what} inside a listener would wait for itself: the run waits for the listener.`,
      );
    }
  }

  #requireModel(): Model {
    if (this.#model) return this.#model;
    throw new Error("The agent has no model: give initialState.model, or call setModel().");
  }

  get #clock(): NonNullable<AgentOptions["clock"]> {
    return this.#options.clock ?? systemClock;
  }

  #now(): number {
    return this.#clock.now();
  }
}

function callIds(message: AgentMessage): string[] {
  return isAssistant(message) ? callsOf(message).map(({ id }) => id) : [];
}

/** Whether a call that waited for a person still does, after what a run has made. */
function isOpen({ toolCall: { id } }: PendingCall, { messages, pending }: AgentEndEvent): boolean {
  const isAnswered = messages.some((message) => isToolResult(message) && message.toolCallId === id);
  return !isAnswered && !pending.some(({ toolCall }) => toolCall.id === id);
}

function attachmentsOf({ images = [], attachments = [] }: PromptOptions): UserContent[] {
  return [...attachments, ...images];
}
