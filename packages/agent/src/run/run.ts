import {
  addUsage,
  type AssistantMessage,
  type Clock,
  isThenable,
  type Model,
  type StreamFn,
  systemClock,
  type ThinkingLevel,
  TokenCalibration,
  type ToolCall,
  type ToolResultMessage,
  type Usage,
} from "@gyre/ai";
import { Breath } from "./event-loop-yield.ts";
import { Cancellation, type CancelReason } from "./cancellation.ts";
import { Compactor } from "../context/compactor.ts";
import type { ContextMemory } from "../context/memory.ts";
import type { Compaction } from "../contract/compaction.ts";
import { contain } from "../contract/contain.ts";
import { Emitter } from "./emitter.ts";
import { Fallbacks } from "./fallback.ts";
import { History } from "../transcript/history.ts";
import { LimitGauge, type LimitReached } from "./limits.ts";
import type { RunInfo } from "../contract/middleware.ts";
import type { Redirect } from "./redirect.ts";
import { makeToolbox, type Toolbox } from "./toolbox.ts";
import type {
  AgentContext,
  AgentEndEvent,
  AgentEvent,
  AgentLoopConfig,
  AgentMessage,
  AgentSink,
  AgentTool,
  AgentToolResult,
  PendingCall,
  QueueName,
  ToolHost,
  TurnChanges,
  TurnSummary,
} from "../contract/types.ts";

export const DEFAULT_HOOK_TIMEOUT_MS = 120_000;

const NO_TOOLS: readonly AgentTool[] = [];

/** A message on its way into the transcript, and where it came from. */
export interface Injected {
  source: "prompt" | QueueName;
  message: AgentMessage;
}

/** The run was cancelled while the loop waited for a callback. */
export class Cancelled extends Error {
  constructor() {
    super("The run was cancelled.");
    this.name = "Cancelled";
  }
}

/** Everything that one run knows and does, for the loop and its companions. */
export class Run {
  readonly config: AgentLoopConfig;
  readonly clock: Clock;
  readonly streamFn: StreamFn;
  readonly cancellation: Cancellation;
  readonly history: History;
  readonly gauge: LimitGauge;
  readonly info: RunInfo;
  readonly breath: Breath;
  redirect: Redirect | undefined;
  /** Of the model in use. */
  calibration: TokenCalibration;
  /** Messages that the sink has taken, in order. */
  readonly produced: AgentMessage[] = [];
  readonly pending: PendingCall[] = [];
  /** Taken from a queue, not yet in the transcript (R16). */
  inFlight: Injected[] = [];
  turns = 0;
  /** Calls that tools made of tools, for ids of their own. */
  nestedCalls = 0;
  usage: Usage = {};
  finalMessage: AssistantMessage | undefined;
  /** The one in use. */
  model: Model;
  readonly fallbacks: Fallbacks;
  thinkingLevel: ThinkingLevel | undefined;
  systemPrompt: string | undefined;
  toolbox: Toolbox;
  readonly #emitter: Emitter;
  readonly #startedAt: number;
  readonly #stopDeadline: () => void;
  readonly #undelivered: AgentMessage[] = [];
  readonly #earlierCompaction: Compaction | undefined;
  readonly #contextMemory: ContextMemory | undefined;
  #compactor: Compactor | undefined;
  #stopController: AbortController | undefined;

  /** Throws on a configuration that cannot work. */
  constructor(
    context: AgentContext,
    config: AgentLoopConfig,
    sink: AgentSink,
    signal?: AbortSignal,
    streamFn?: StreamFn,
    listeners?: AgentSink,
    contextMemory?: ContextMemory,
  ) {
    const { protocol } = config;
    if (!streamFn && !protocol) {
      throw new TypeError("No way to a model: give a protocol, or a streamFn.");
    }
    this.config = config;
    this.clock = config.clock ?? systemClock;
    this.#startedAt = this.clock.now();
    this.breath = new Breath(this.clock, this.#startedAt);
    this.streamFn =
      streamFn ??
      ((model, sent, options) => (protocol as { stream: StreamFn }).stream(model, sent, options));
    const limits = { ...config.limits };
    if (config.maxIterations !== undefined) limits.maxTurns ??= config.maxIterations;
    this.gauge = new LimitGauge(limits);
    this.toolbox = makeToolbox(config.tools ?? context.tools ?? NO_TOOLS);
    this.history = new History(context.messages);
    // From here on nothing throws: a run that is not made leaves no listener behind.
    this.cancellation = new Cancellation(signal);
    this.#emitter = new Emitter(
      sink,
      (wait) => this.#deadline("The sink", wait),
      () => this.cancellation.cancel("sink"),
      listeners,
    );
    const fallbacks = new Fallbacks(config.fallbackModels ?? []);
    this.fallbacks = fallbacks;
    this.info = {
      sessionId: config.sessionId,
      model: config.model,
      get fallbacks() {
        return fallbacks.events;
      },
    };
    this.model = config.model;
    this.thinkingLevel = config.thinkingLevel;
    this.systemPrompt = context.systemPrompt;
    this.#earlierCompaction = context.compaction;
    this.#contextMemory = contextMemory;
    this.calibration = context.calibration ?? new TokenCalibration();
    this.#stopDeadline =
      limits.maxDurationMs === undefined
        ? () => {}
        : this.clock.after(limits.maxDurationMs, () => this.cancellation.cancel("limit"));
  }

  get cancelled(): CancelReason | undefined {
    return this.cancellation.reason;
  }

  /** A signal that fires when the run is cancelled, for callbacks that want one. */
  get signal(): AbortSignal {
    if (!this.#stopController) {
      const controller = new AbortController();
      this.#stopController = controller;
      this.cancellation.onCancel(() => controller.abort());
    }
    return this.#stopController.signal;
  }

  /** The compaction in force. */
  get compaction(): Compaction | undefined {
    return this.#compactor?.compaction ?? this.#earlierCompaction;
  }

  /** Made at its first use: most runs neither measure nor compact their context. */
  get compactor(): Compactor {
    this.#compactor ??= new Compactor(this, this.#earlierCompaction, this.#contextMemory);
    return this.#compactor;
  }

  tool(name: string): AgentTool | undefined {
    return this.toolbox.byName.get(name);
  }

  /** From here on `model` is asked. What another counts as a token says nothing of it. */
  use(model: Model): void {
    if (model !== this.model) this.calibration = new TokenCalibration();
    this.model = model;
  }

  change(changes: TurnChanges | undefined | void): void {
    if (!changes) return;
    if (changes.model) {
      this.fallbacks.startAnew();
      this.use(changes.model);
    }
    if (changes.tools) this.toolbox = makeToolbox(changes.tools);
    if (changes.thinkingLevel) this.thinkingLevel = changes.thinkingLevel;
    if (changes.systemPrompt !== undefined) this.systemPrompt = changes.systemPrompt;
  }

  emit(event: AgentEvent): void | Promise<void> {
    return this.#emitter.emit(event);
  }

  emitUpdate(event: Extract<AgentEvent, { type: "tool_execution_update" }>): void {
    this.#emitter.emitUpdate(event);
  }

  /** Several events in a row; costs a promise only where the sink gives one. */
  emitEach(events: readonly AgentEvent[], from = 0): void | Promise<void> {
    for (let i = from; i < events.length; i++) {
      const wait = this.emit(events[i] as AgentEvent);
      if (wait) return wait.then(() => this.emitEach(events, i + 1));
    }
    return undefined;
  }

  /** A message with nothing to stream: its events, then its place in the transcript. */
  async publish(message: AgentMessage): Promise<void> {
    const emitted = this.#emitMessage(message);
    if (emitted) await emitted;
    const breath = this.breath.take();
    if (breath) await breath;
    this.produced.push(message);
    this.history.append(message);
  }

  /** A result; `inPlace` puts it behind the message that made the call. */
  async publishResult(message: ToolResultMessage, inPlace: boolean): Promise<void> {
    if (!inPlace) return this.publish(message);
    await this.#emitMessage(message);
    this.produced.push(message);
    this.history.insertResult(message);
  }

  /** An assistant message whose events were emitted. */
  accept(message: AssistantMessage): void {
    this.produced.push(message);
    this.history.append(message);
    this.finalMessage = message;
    this.usage = addUsage(this.usage, message.usage);
  }

  /** Counts what a tool spent on models of its own. */
  spend(usage: Usage): void {
    this.usage = addUsage(this.usage, usage);
    this.gauge.spend(usage);
  }

  /** What a tool may still spend (R23). */
  left(): ReturnType<NonNullable<ToolHost["left"]>> {
    const { maxDurationMs } = this.config.limits ?? {};
    return {
      ...this.gauge.left(),
      ...(maxDurationMs !== undefined && {
        maxDurationMs: this.#startedAt + maxDurationMs - this.clock.now(),
      }),
    };
  }

  /**
   * What a callback gives, within its deadline. Throws what it throws, and
   * `Cancelled` when the run is cancelled while it is waited for; `late` then gets
   * what it gives after all.
   */
  hook<T>(name: string, call: () => T | Promise<T>, late?: (value: T) => void): T | Promise<T> {
    const given = call();
    if (!isThenable(given)) return given;
    const promise = given;
    let left = false;
    promise.then(
      (value) => {
        if (left) contain(`What ${name} gave too late`, () => late?.(value));
      },
      () => {},
    );
    return new Promise<T>((resolve, reject) => {
      const ms = this.#hookTimeoutMs;
      let unlink: () => void = () => {};
      const leave = (error: Error): void => {
        left = true;
        settle();
        reject(error);
      };
      const stopTimer = this.clock.after(ms, () =>
        leave(new Error(`${name} did not settle within ${ms} ms.`)),
      );
      const settle = (): void => {
        stopTimer();
        unlink();
      };
      unlink = this.cancellation.onCancel(() => leave(new Cancelled()));
      promise.then(
        (value) => {
          settle();
          resolve(value);
        },
        (error: unknown) => {
          settle();
          reject(error);
        },
      );
    });
  }

  /** Drains a queue into `inFlight`; answers whether there was anything. */
  poll(queue: QueueName): boolean | Promise<boolean> {
    const get =
      queue === "steering" ? this.config.getSteeringMessages : this.config.getFollowUpMessages;
    if (!get || this.cancelled) return false;
    if (queue === "steering" && this.redirect) this.redirect.arrived = false;
    const handBack = (messages: readonly AgentMessage[] | undefined): void => {
      if (messages && messages.length > 0) this.config.requeue?.(queue, [...messages]);
    };
    const take = (messages: readonly AgentMessage[] = []): boolean => {
      for (const message of messages) this.inFlight.push({ source: queue, message });
      return messages.length > 0;
    };
    const name = queue === "steering" ? "getSteeringMessages" : "getFollowUpMessages";
    const given = this.hook(name, get, handBack);
    return isThenable(given) ? given.then(take) : take(given);
  }

  /**
   * Waits; answers false when the run was cancelled meanwhile, or when what `giveCut`
   * was given is called.
   */
  wait(ms: number, giveCut?: (cut: () => void) => void): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (whole: boolean): void => {
        stopTimer();
        unlink();
        resolve(whole);
      };
      let unlink: () => void = () => {};
      const stopTimer = this.clock.after(ms, () => end(true));
      unlink = this.cancellation.onCancel(() => end(false));
      giveCut?.(() => end(false));
    });
  }

  /** Gives what arrived after its call was answered to whoever wants to know. */
  reportLate(call: ToolCall, result: AgentToolResult): void {
    const { middleware = [], onLateResult } = this.config;
    contain("onLateResult threw", () => onLateResult?.(call, result));
    for (const each of middleware) {
      contain("A middleware's late threw", () => each.late?.(call, result, this.info));
    }
  }

  /** Hands back what was not delivered; answers with all that was so far. */
  returnInFlight(): AgentMessage[] {
    const undelivered = this.inFlight.filter(({ source }) => source !== "prompt");
    this.inFlight = [];
    for (const queue of ["steering", "followUp"] as const) {
      const messages = undelivered.filter((m) => m.source === queue).map((m) => m.message);
      if (messages.length > 0)
        contain("requeue threw", () => this.config.requeue?.(queue, messages));
    }
    this.#undelivered.push(...undelivered.map(({ message }) => message));
    return this.#undelivered;
  }

  limitReached(): LimitReached | undefined {
    if (this.cancelled === "limit") {
      return { limit: "maxDurationMs", value: this.config.limits?.maxDurationMs ?? 0 };
    }
    return this.gauge.reached();
  }

  summary(message: AssistantMessage, toolResults: TurnSummary["toolResults"]): TurnSummary {
    const { turns, usage } = this;
    return { message, toolResults, messages: this.history.messages, turns, usage };
  }

  /** Tells the middleware that the run starts; what this gives tells it of the end. */
  open(): (end: AgentEndEvent | undefined) => void {
    const ends = (this.config.middleware ?? []).map((middleware) =>
      contain("A middleware's run threw", () => middleware.run?.(this.info)),
    );
    return (end) => {
      for (const tell of ends) contain("A middleware's end of run threw", () => tell?.(end));
    };
  }

  close(): void {
    this.#stopDeadline();
    this.redirect?.stop();
    this.#compactor?.stop();
    this.cancellation.release();
  }

  #emitMessage(message: AgentMessage): void | Promise<void> {
    return this.emitEach([
      { type: "message_start", message },
      { type: "message_end", message },
    ]);
  }

  get #hookTimeoutMs(): number {
    return this.config.hookTimeoutMs ?? DEFAULT_HOOK_TIMEOUT_MS;
  }

  #deadline(what: string, wait: Promise<void>): Promise<void> {
    const ms = this.#hookTimeoutMs;
    return new Promise((resolve, reject) => {
      const stopTimer = this.clock.after(ms, () => {
        reject(new Error(`${what} did not settle within ${ms} ms.`));
      });
      wait.then(
        () => {
          stopTimer();
          resolve();
        },
        (error: unknown) => {
          stopTimer();
          reject(error);
        },
      );
    });
  }
}
