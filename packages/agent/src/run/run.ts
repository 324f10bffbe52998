import {
  addUsage,
  type AssistantMessage,
  type Clock,
  isThenable,
  type Message,
  type Model,
  type StreamFn,
  systemClock,
  type ThinkingLevel,
  TokenCalibration,
  type ToolCall,
  type ToolResultMessage,
  type Usage,
} from "@gyre/ai";
import type { Compactor } from "../context/compactor.ts";
import type { ContextHost } from "../context/host.ts";
import { loadContextParts } from "../context/load.ts";
import type { ContextMemory } from "../context/memory.ts";
import type { Compaction } from "../contract/compaction.ts";
import { contain } from "../contract/contain.ts";
import type { RunInfo, WithheldCall } from "../contract/middleware.ts";
import type {
  AgentContext,
  AgentEndEvent,
  AgentEvent,
  AgentLoopConfig,
  AgentMessage,
  AgentSink,
  AgentTool,
  AgentToolResult,
  Limits,
  PendingCall,
  QueueName,
  TurnChanges,
} from "../contract/types.ts";
import { History } from "../transcript/history.ts";
import type { FileFilter } from "../transcript/file-filter.ts";
import { Cancellation, type CancelReason } from "./cancellation.ts";
import { Emitter, type ProgressEvent } from "./emitter.ts";
import { EventLoopYield } from "./event-loop-yield.ts";
import { Fallbacks } from "./fallbacks.ts";
import { Hooks } from "./hooks.ts";
import { Inbox } from "./inbox.ts";
import { assertLeft, type Left, LimitGauge, type LimitReached, tightenLimits } from "./limits.ts";
import { Redirect } from "./redirect.ts";
import { makeToolbox, reportUnchecked, type Toolbox } from "./toolbox.ts";

/** What a run is made of. */
export interface RunSetup {
  context: AgentContext;
  config: AgentLoopConfig;
  sink: AgentSink;
  signal?: AbortSignal | undefined;
  streamFn?: StreamFn | undefined;
  /** Called with each event after the sink. */
  listeners?: AgentSink | undefined;
  /** What earlier runs over the same transcript have computed. */
  contextMemory?: ContextMemory | undefined;
}

/**
 * One run: its configuration, its transcript, its way to sink and listeners, and what ends it.
 * What happens in a run is the loop's; what waits for the transcript is in `inbox`.
 */
export class Run implements ContextHost {
  readonly config: AgentLoopConfig;
  readonly clock: Clock;
  readonly streamFn: StreamFn;
  readonly info: RunInfo;
  readonly cancellation: Cancellation;
  readonly hooks: Hooks;
  readonly eventLoop: EventLoopYield;
  readonly history: History;
  readonly inbox: Inbox;
  readonly gauge: LimitGauge;
  readonly fallbacks: Fallbacks;
  /** Absent as long as no request was too large. */
  files: FileFilter | undefined;
  /** The messages of the last request, with all their files. */
  sent: readonly Message[] = [];
  /** The model in use. */
  model: Model;
  /** How the service of the model in use counts tokens. */
  calibration: TokenCalibration;
  thinkingLevel: ThinkingLevel | undefined;
  systemPrompt: string | undefined;
  toolbox: Toolbox;
  /** Messages that the sink has taken, in order. */
  readonly produced: AgentMessage[] = [];
  /** Calls that wait for a person. */
  readonly pending: PendingCall[] = [];
  /** Turns that have begun. */
  turns = 0;
  usage: Usage = {};
  /** Its first turn has begun. */
  hasBegun = false;
  /** What is used from here on is not in its last event. */
  hasEnded = false;
  finalMessage: AssistantMessage | undefined;
  readonly #emitter: Emitter;
  readonly #startedAt: number;
  readonly #limits: Limits;
  readonly #stopDeadline: () => void;
  readonly #earlierCompaction: Compaction | undefined;
  readonly #contextMemory: ContextMemory | undefined;
  #compactor: Compactor | undefined;
  #redirect: Redirect | undefined;
  #stopController: AbortController | undefined;
  #nestedCalls = 0;
  #keyPrefix: string | undefined;

  /** Throws on a configuration that cannot work. */
  constructor({ context, config, sink, signal, streamFn, listeners, contextMemory }: RunSetup) {
    const { protocol } = config;
    const stream: StreamFn | undefined =
      streamFn ?? (protocol && ((...request) => protocol.stream(...request)));
    if (!stream) throw new TypeError("No way to a model: give a protocol, or a streamFn.");
    this.config = config;
    this.clock = config.clock ?? systemClock;
    const now = this.clock.now();
    const { interrupted } = config;
    this.#startedAt = now - (interrupted?.durationMs ?? 0);
    this.eventLoop = new EventLoopYield(this.clock, now);
    if (interrupted) {
      this.turns = interrupted.turns;
      this.usage = interrupted.usage;
    }
    this.streamFn = stream;
    const { caller } = config;
    const outer = this.#outerLeft();
    assertLeft(outer);
    const limits = tightenLimits(config.limits ?? {}, outer);
    if (config.maxIterations !== undefined) limits.maxTurns ??= config.maxIterations;
    this.#limits = limits;
    this.gauge = new LimitGauge(limits, interrupted);
    this.toolbox = makeToolbox(config.tools ?? context.tools ?? []);
    this.history = new History(context.messages);
    // From here on nothing throws: a run that is not made leaves no listener behind.
    this.cancellation = new Cancellation(signal, caller?.signal);
    this.hooks = new Hooks(this.clock, this.cancellation, config.hookTimeoutMs);
    this.inbox = new Inbox(config, this.hooks);
    this.#emitter = new Emitter(
      sink,
      (taken) => this.hooks.withDeadline("The sink", taken, config.sinkTimeoutMs),
      () => this.cancellation.cancel("sink"),
      listeners,
    );
    this.fallbacks = new Fallbacks(config.fallbackModels, config.fallbackOn);
    const { sessionId, model } = config;
    this.info = { sessionId, model, fallbacks: this.fallbacks.events };
    this.model = model;
    this.calibration = context.calibration ?? new TokenCalibration();
    this.thinkingLevel = config.thinkingLevel;
    this.systemPrompt = context.systemPrompt;
    this.#earlierCompaction = context.compaction;
    this.#contextMemory = contextMemory;
    const { maxDurationMs = Infinity } = limits;
    const leftMs = this.#startedAt + maxDurationMs - now;
    const stop = (): void => this.cancellation.cancel("limit");
    this.#stopDeadline = leftMs === Infinity ? () => {} : this.clock.after(leftMs, stop);
    if (leftMs <= 0) stop();
  }

  get canceled(): CancelReason | undefined {
    return this.cancellation.reason;
  }

  /** A signal that fires when the run is canceled, for callbacks that want one. */
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

  get compactor(): Compactor | undefined {
    return this.#compactor;
  }

  /** Made at its first use: most runs neither measure nor compact their context. */
  getCompactor(): Compactor | Promise<Compactor> {
    if (this.#compactor) return this.#compactor;
    const parts = loadContextParts();
    const make = ({ Compactor }: Awaited<typeof parts>): Compactor =>
      (this.#compactor ??= new Compactor(this, this.#earlierCompaction, this.#contextMemory));
    return isThenable(parts) ? parts.then(make) : make(parts);
  }

  /** Made for the first response. Throws what `onSteering` throws. */
  get redirect(): Redirect {
    this.#redirect ??= new Redirect(this.config, this.hooks);
    return this.#redirect;
  }

  findTool(name: string): AgentTool | undefined {
    const tool = this.toolbox.byName.get(name);
    if (tool) reportUnchecked(tool);
    return tool;
  }

  /** From here on `model` is asked. How another model counts tokens says nothing about it. */
  useModel(model: Model): void {
    if (model !== this.model) this.calibration = new TokenCalibration();
    this.model = model;
  }

  applyChanges(changes: TurnChanges | undefined | void): void {
    if (!changes) return;
    if (changes.model) {
      this.fallbacks.reset();
      this.useModel(changes.model);
    }
    if (changes.tools) this.toolbox = makeToolbox(changes.tools);
    if (changes.thinkingLevel) this.thinkingLevel = changes.thinkingLevel;
    if (changes.systemPrompt !== undefined) this.systemPrompt = changes.systemPrompt;
  }

  emit(event: AgentEvent): void | Promise<void> {
    return this.#emitter.emit(event);
  }

  emitProgress(event: ProgressEvent): void {
    this.#emitter.emitProgress(event);
  }

  /** Several events in a row; costs a promise only where the sink gives one. */
  emitEach(events: readonly AgentEvent[], from = 0): void | Promise<void> {
    for (let i = from; i < events.length; i++) {
      const taken = this.emit(events[i] as AgentEvent);
      if (taken) return taken.then(() => this.emitEach(events, i + 1));
    }
    return undefined;
  }

  /** Emits the events of a message that is not streamed. */
  emitMessage(message: AgentMessage): void | Promise<void> {
    return this.emitEach([
      { type: "message_start", message },
      { type: "message_end", message },
    ]);
  }

  /** Emits the events of a message that is not streamed, then adds it to the transcript. */
  async publish(message: AgentMessage): Promise<void> {
    const emitted = this.emitMessage(message);
    if (emitted) await emitted;
    const yielded = this.eventLoop.afterEvent();
    if (yielded) await yielded;
    this.produced.push(message);
    this.history.append(message);
  }

  /** The same for a result; `inPlace` puts it behind the message that made the call. */
  async publishResult(message: ToolResultMessage, inPlace: boolean): Promise<void> {
    if (!inPlace) return this.publish(message);
    await this.emitMessage(message);
    this.produced.push(message);
    this.history.insertResult(message);
  }

  /** Adds an answer whose events were emitted to the transcript. */
  addAnswer(message: AssistantMessage): void {
    this.produced.push(message);
    this.history.append(message);
    this.finalMessage = message;
    this.usage = addUsage(this.usage, message.usage);
    this.config.caller?.host.spend?.(message.usage);
  }

  /** Counts what a tool spent on models of its own. */
  addToolUsage(usage: Usage): void {
    this.usage = addUsage(this.usage, usage);
    this.gauge.addUsage(usage);
    this.config.caller?.host.spend?.(usage);
  }

  /** What a tool may still spend (R23). */
  left(): Left {
    const { maxDurationMs } = this.#limits;
    const own: Left = {
      ...this.gauge.left(),
      ...(maxDurationMs !== undefined && {
        maxDurationMs: this.#startedAt + maxDurationMs - this.clock.now(),
      }),
    };
    return tightenLimits(own, this.#outerLeft());
  }

  /** What is left of the run that this one works for. */
  #outerLeft(): Left {
    return this.config.caller?.host.left?.() ?? {};
  }

  /** See `key` of `ToolHost`. */
  computeKey(id: string): string {
    const { caller, sessionId } = this.config;
    this.#keyPrefix ??= caller?.host.key ?? sessionId ?? globalThis.crypto.randomUUID();
    return `${this.#keyPrefix}:${id}`;
  }

  /** An id for a call that a tool makes of a tool. */
  nextNestedId(call: ToolCall): string {
    return `${call.id}/${++this.#nestedCalls}`;
  }

  /** Takes what a queue gives into the inbox; whether there was anything. */
  poll(queue: QueueName): boolean | Promise<boolean> {
    if (this.canceled) return false;
    const { getSteeringMessages } = this.config;
    if (queue === "steering" && getSteeringMessages && this.#redirect) {
      this.#redirect.arrived = false;
    }
    return this.inbox.poll(queue);
  }

  /** Reports a result that came after its call was answered without it. */
  reportLate(call: ToolCall, result: AgentToolResult): void {
    const { middleware = [], onLateResult } = this.config;
    contain("onLateResult threw", () => onLateResult?.(call, result));
    for (const each of middleware) {
      contain("A middleware's late threw", () => each.late?.(call, result, this.info));
    }
  }

  /** Notifies the middleware of a call that its `tool` layers do not see. */
  reportWithheld(call: Omit<WithheldCall, "run">): void {
    for (const each of this.config.middleware ?? []) {
      contain("A middleware's withheld threw", () => each.withheld?.({ ...call, run: this.info }));
    }
  }

  reportFirstContent(): void {
    for (const each of this.config.middleware ?? []) {
      contain("A middleware's firstContent threw", () => each.firstContent?.(this.info));
    }
  }

  limitReached(): LimitReached | undefined {
    if (this.canceled === "limit") {
      return { limit: "maxDurationMs", value: this.#limits.maxDurationMs ?? 0 };
    }
    return this.gauge.reached(this.#outerLeft());
  }

  /** Notifies the middleware of the start of the run; the result notifies it of the end. */
  open(): (end: AgentEndEvent | undefined) => void {
    const ends = (this.config.middleware ?? []).map((middleware) =>
      contain("A middleware's run threw", () => middleware.run?.(this.info)),
    );
    return (end) => {
      for (const notify of ends) contain("A middleware's end of run threw", () => notify?.(end));
    };
  }

  /** Stops timers and listeners. */
  close(): void {
    this.#stopDeadline();
    this.#redirect?.stop();
    this.#compactor?.stop();
    this.cancellation.release();
  }
}
