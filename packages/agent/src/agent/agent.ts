import {
  addUsage,
  type AnySchema,
  type AssistantMessage,
  type InferArguments,
  isRetryable,
  type Model,
  type ModelName,
  systemClock,
  type ThinkingLevel,
  type TokenCalibration,
  type ToolSchema,
  type Usage,
  loadPart,
} from "@gyre/ai";
import { checkShape } from "#checks";
import { ContextMemory } from "../context/memory.ts";
import type { AgentEventOf, PendingCallOf } from "../contract/by-tool.ts";
import type {
  AgentContext,
  AgentEndEvent,
  AgentEvent,
  AgentLoopConfig,
  AgentMessage,
  AgentTool,
  QueueMode,
  QueueName,
  TurnChanges,
} from "../contract/types.ts";
import { drive, makeEnd } from "../loop/loop.ts";
import { SinkError } from "../run/emitter.ts";
import { Run } from "../run/run.ts";
import { isAssistant, listCalls } from "../transcript/history.ts";
import {
  type MessageInput,
  type PromptInput,
  toMessages,
  withTimestamps,
} from "../transcript/input.ts";
import { AgentRun } from "./agent-run.ts";
import { makeAgentTool } from "./agent-tool.ts";
import { type AgentEnd, withAnswer } from "./answer.ts";
import type { AgentAsTool, AgentToolOptions, PromptSchema } from "./as-tool.ts";
import type { Handoff } from "./handoff.ts";
import {
  isOpen,
  type Launch,
  launchContinue,
  type LaunchOptions,
  launchPrompt,
  listAttachments,
  prepareLaunch,
} from "./launch.ts";
import { Listeners } from "./listeners.ts";
import {
  type AgentListener,
  type AgentOptions,
  type AgentState,
  checkLevel,
  checkOptions,
  type CompactOptions,
  type ContinueOptions,
  DEFAULT_MAX_TURNS,
  type PromptOptions,
  type RunOptions,
} from "./options.ts";
import { Profile } from "./profile.ts";
import { MessageQueue, type QueuedMessage, Queues } from "./queue.ts";
import { EventState, keepIdentity } from "./state.ts";

type QueuedPromptOptions = Omit<PromptOptions, "signal">;

/**
 * The loop with a memory: state, queues, listeners, and one run at a time. A listener that throws
 * or hangs is reported, and does not harm the run.
 */
export class Agent<out Tool extends AgentTool = AgentTool> {
  readonly #options: AgentOptions;
  readonly #profile: Profile;
  readonly #queues: Queues;
  /** Made for the first of them: many agents have none. */
  #listeners: Listeners | undefined;
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
  /** Whether anything of the newest response was shown. */
  #isShown = false;
  /** Responses in a row that broke off. */
  #breaks = 0;

  constructor(options: AgentOptions<Tool> = {}) {
    // A copy without the initial messages, which would otherwise stay in memory forever.
    const {
      model: _model,
      fallbackModels: _fallbackModels,
      instructions: _instructions,
      tools: _tools,
      thinkingLevel: _thinkingLevel,
      name: _name,
      handoffs: _handoffs,
      protocol: _protocol,
      messages = [],
      pending,
      compaction,
      queued,
      interrupted,
      ...own
    } = checkOptions(options);
    this.#options = own;
    this.#profile = new Profile(options);
    const { steeringMode, followUpMode, onQueueChange } = own;
    const steering = new MessageQueue("steering", steeringMode, queued);
    const followUps = new MessageQueue("followUp", followUpMode, queued);
    this.#queues = new Queues(steering, followUps, onQueueChange);
    this.#state = new EventState(withTimestamps(messages, this.#now()));
    this.#state.compaction = compaction;
    this.#state.interrupted = interrupted;
    if (pending) this.#state.setPending(pending);
    this.#findInCharge();
  }

  get state(): AgentState<PendingCallOf<Tool>> {
    const { systemPrompt, thinkingLevel, tools, models } = this.#profile;
    this.#lastState = keepIdentity(this.#lastState, {
      ...this.#state.view(),
      systemPrompt,
      model: typeof models.model === "string" ? undefined : models.model,
      thinkingLevel,
      tools,
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
    return this.#profile.activeAgent;
  }

  // Changes during a run take effect from its next turn on. They are those of the agent that the
  // conversation is with.

  setSystemPrompt(systemPrompt: string): void {
    this.#profile.systemPrompt = systemPrompt;
  }

  /** A name is looked up before the next run starts. */
  setModel(model: Model | ModelName): void {
    this.#profile.models.model = model;
  }

  setThinkingLevel(level: ThinkingLevel): void {
    this.#profile.thinkingLevel = checkLevel(level);
  }

  setTools(tools: readonly AgentTool[]): void {
    this.#profile.tools = tools;
  }

  setSteeringMode(mode: QueueMode): void {
    this.#queues.get("steering").mode = mode;
  }

  setFollowUpMode(mode: QueueMode): void {
    this.#queues.get("followUp").mode = mode;
  }

  get steeringMode(): QueueMode {
    return this.#queues.get("steering").mode;
  }

  get followUpMode(): QueueMode {
    return this.#queues.get("followUp").mode;
  }

  replaceMessages(replacement: readonly MessageInput[]): void {
    this.#assertIdle("replace the messages");
    const messages = withTimestamps(replacement, this.#now());
    const assistant = messages.filter(isAssistant);
    const calls = new Set(assistant.flatMap(listCalls).map(({ id }) => id));
    const pending = this.#state.pending.filter(({ toolCall }) => calls.has(toolCall.id));
    this.#state.messages = messages;
    this.#state.interrupted = undefined;
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
    return this.#queues.push("steering", steering as AgentMessage);
  }

  /** Queues a message for the moment when the agent would otherwise stop. Returns its id. */
  followUp(message: string | MessageInput): string {
    const [followUp] = toMessages(message, this.#now());
    return this.#queues.push("followUp", followUp as AgentMessage);
  }

  /** The messages in a queue, in order. */
  queued(queue: QueueName): readonly QueuedMessage[] {
    return this.#queues.get(queue).list();
  }

  /** Replaces a queued message. Returns false if it is no longer queued. */
  editQueued(queue: QueueName, id: string, message: string | MessageInput): boolean {
    const [edited] = toMessages(message, this.#now());
    return this.#queues.edit(queue, id, edited as AgentMessage);
  }

  /** Removes a message from its queue and returns it; nothing if it is no longer queued. */
  takeQueued(queue: QueueName, id: string): AgentMessage | undefined {
    return this.#queues.remove(queue, id);
  }

  /** Moves a message within its queue. Returns false if it is no longer queued. */
  moveQueued(queue: QueueName, id: string, place: number): boolean {
    return this.#queues.move(queue, id, place);
  }

  clearSteeringQueue(): void {
    this.#queues.clear("steering");
  }

  clearFollowUpQueue(): void {
    this.#queues.clear("followUp");
  }

  clearAllQueues(): void {
    this.clearSteeringQueue();
    this.clearFollowUpQueue();
  }

  hasQueuedMessages(): boolean {
    return !this.#queues.isEmpty;
  }

  /** Calls `listener` with each event, in order of subscription. Returns a function that unsubscribes. */
  subscribe(listener: AgentListener<AgentEventOf<Tool>>): () => void {
    checkShape("subscribe", listener);
    this.#listeners ??= new Listeners(this.#options);
    return this.#listeners.add((event) => listener(event as AgentEventOf<Tool>));
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
    options?: ContinueOptions<Tool>,
  ): AgentRun<undefined, AgentEventOf<Tool>, PendingCallOf<Tool>>;
  continueRun<const S extends AnySchema>(
    options: ContinueOptions<Tool> & { output: S },
  ): AgentRun<InferArguments<S>, AgentEventOf<Tool>, PendingCallOf<Tool>>;
  continueRun(options: ContinueOptions & { output?: AnySchema } = {}): unknown {
    return this.#iterate(this.#continueLaunch(options));
  }

  /**
   * Continues from the transcript as it is. Calls without a result are answered first: by the
   * decisions on pending calls (R27), a recorded result, or an error (R19).
   */
  continue(options?: ContinueOptions<Tool>): Promise<AgentEnd<undefined, PendingCallOf<Tool>>>;
  continue<const S extends AnySchema>(
    options: ContinueOptions<Tool> & { output: S },
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
    const preparing = this.#profile.models.prepare();
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
    if (this.#listeners?.isCalling) {
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
    checkShape("asTool", options);
    // A sink is the journal of one run at a time.
    const { sink: _, onQueueChange: _changes, ...own } = this.#options;
    const start: AgentOptions = {
      ...own,
      ...this.#profile.toOptions(),
      messages: [...this.#state.messages],
    };
    const graces = this.#profile.tools.map(({ abortGraceMs = 0 }) => abortGraceMs);
    const grace = Math.max(own.abortGraceMs ?? 0, ...graces);
    return makeAgentTool(options, grace, async (args, context) => {
      const { runAgentTool } = await loadPart(import("./as-tool.ts"));
      return runAgentTool(new Agent(start), options, args, context);
    });
  }

  /** The agent as one that may take a conversation over: with its instructions, tools and model as they are now. */
  asHandoff(options: Pick<Handoff, "name" | "description" | "to">): Handoff {
    return this.#profile.asHandoff(options);
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
    checkShape("prompt", options);
    return launchPrompt(messages, this.#state.pending, options);
  }

  #continueLaunch(options: ContinueOptions & LaunchOptions): Launch {
    this.#assertIdle("continue");
    checkShape("continue", options);
    return launchContinue(this.#state, this.#queues, options);
  }

  #iterate(launch: Launch): AgentRun<unknown> {
    const run = new AgentRun<unknown>(launch.schema);
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

  async #launch(launch: Launch): Promise<AgentEnd<unknown>> {
    let run: Run;
    try {
      const models = this.#profile.models.prepare();
      const own = prepareLaunch(launch);
      const preparing = own ? Promise.all([own, models]) : models;
      const wasAborted = preparing && (await this.#whileStarting(preparing));
      this.#starting = undefined;
      run = this.#open(launch);
      if (wasAborted) run.cancellation.cancel("aborted");
    } catch (error) {
      this.#starting = undefined;
      for (const { source, message } of launch.injected.toReversed()) {
        if (source !== "prompt") this.#queues.get(source).putBack([message]);
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

  /** The agent counts as running. Resolves to whether it was aborted meanwhile. */
  async #whileStarting(preparing: Promise<unknown>): Promise<boolean> {
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
      systemPrompt: this.#profile.systemPrompt,
      messages,
      tools: this.#runTools(launch),
      ...(compaction && { compaction }),
      ...(this.#lastCalibration &&
        this.#lastCalibration.model === this.#profile.models.model && {
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
    const { decisions, interrupted, skipInitialSteeringPoll = false, overrides } = launch;
    const { middleware, headers, maxIterations = DEFAULT_MAX_TURNS } = this.#options;
    const profile = this.#profile;
    const { models } = profile;
    const limits = { ...this.#options.limits, ...overrides.limits };
    limits.maxTurns ??= limits.maxIterations ?? maxIterations;
    const readApplied = (): {
      model: Model;
      tools: readonly AgentTool[];
      by: string | undefined;
    } => ({
      model: models.require(),
      tools: profile.tools,
      by: profile.activeAgent,
    });
    let applied = readApplied();
    const prepareTurn: AgentLoopConfig["prepareTurn"] = async (turn) => {
      const preparing = models.prepare();
      if (preparing) await preparing;
      const changes: TurnChanges = {
        thinkingLevel: profile.thinkingLevel,
        systemPrompt: profile.systemPrompt,
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
    const own = {
      limits,
      model: models.require(),
      fallbackModels: models.fallbackModels,
      thinkingLevel: profile.thinkingLevel,
      prepareTurn,
      continueAfterError: ({ message }) => this.#continuesAfter(message),
      skipInitialSteeringPoll,
      getSteeringMessages: () => this.#queues.get("steering").drain(),
      getFollowUpMessages: () => this.#followUpsOrReminder(launch),
      hasQueuedMessages: () => this.hasQueuedMessages(),
      requeue: (queue, messages) => this.#queues.get(queue).putBack(messages),
      onSteering: (wake) => this.#queues.onSteering(wake),
    } satisfies Partial<AgentLoopConfig>;
    // As one literal that begins with a spread it takes V8 ten times as long.
    const config: AgentLoopConfig = Object.assign({}, this.#options, overrides, own);
    if (headers && overrides.headers) config.headers = { ...headers, ...overrides.headers };
    // A run without any passes its calls on more directly.
    if (middleware && overrides.middleware) {
      config.middleware = [...middleware, ...overrides.middleware];
    }
    if (models.protocol) config.protocol = models.protocol;
    if (launch.output) config.outputFormat = launch.output.format;
    if (decisions) config.decisions = decisions;
    if (interrupted) config.interrupted = interrupted;
    return config;
  }

  /** What failed before anything was shown was retried already. */
  #continuesAfter({ failure }: AssistantMessage): boolean {
    const { maxContinuations = 0 } = this.#options;
    return this.#isShown && !!failure && isRetryable(failure) && this.#breaks <= maxContinuations;
  }

  #runTools({ output, tools = this.#profile.tools }: Launch): readonly AgentTool[] {
    const all = this.#profile.withTransfers(tools);
    return output ? [...all, output.tool] : all;
  }

  #findInCharge(): void {
    this.#profile.findInCharge(this.#state.messages);
  }

  #followUpsOrReminder({ output }: Launch): AgentMessage[] | Promise<AgentMessage[]> {
    const queue = this.#queues.get("followUp");
    if (!output) return queue.drain();
    const last = this.#state.messages.findLast(isAssistant);
    return output
      .remind(last, this.#now())
      .then((reminder) => (reminder ? [reminder] : queue.drain()));
  }

  #handle(event: AgentEvent, watch: Launch["watch"]): void | Promise<void> {
    this.#state.apply(event);
    if (event.type === "message_update") this.#isShown = true;
    else if (event.type === "turn_start") this.#isShown = false;
    else if (event.type === "turn_end") {
      this.#breaks = event.message.stopReason === "error" ? this.#breaks + 1 : 0;
    } else if (event.type === "agent_start") this.#breaks = 0;
    else if (event.type === "message_end") this.#profile.follow(event.message);
    watch?.(event);
    return this.#listeners?.notify(event);
  }

  #assertIdle(what: string, hint = "Wait for it with waitForIdle()."): void {
    if (this.isRunning) throw new Error(`Cannot ${what}: the agent is running. ${hint}`);
  }

  #now(): number {
    return (this.#options.clock ?? systemClock).now();
  }
}
