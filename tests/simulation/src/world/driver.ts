import {
  Agent,
  type AgentEndEvent,
  type AgentEvent,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentOptions,
  agentLoop,
  agentLoopContinue,
  type PendingCall,
  type QueueMode,
  type QueueName,
  runAgentLoop,
} from "@gyre/agent";
import type { Model, ThinkingLevel } from "@gyre/ai";
import type { Gatekeeper } from "./gatekeeper.ts";
import type { SimModel } from "./model.ts";
import { type RunRecord, joinText, type Watch } from "./run-record.ts";
import { FALLBACK_MODELS, MODELS, type Surroundings } from "./surroundings.ts";
import type { SimTool, Toolbox } from "./tools.ts";
import type { World } from "./world.ts";

/** The parts that a driver puts together. */
export interface Parts {
  world: World;
  watch: Watch;
  model: SimModel;
  toolbox: Toolbox;
  gatekeeper: Gatekeeper;
  surroundings: Surroundings;
  /** What the journal holds: the messages, and the results of calls by id. */
  journal: Journal;
}

export interface Journal {
  readonly messages: readonly AgentMessage[];
  result(callId: string): Recorded | undefined;
  readonly pending: readonly PendingCall[];
}

type Recorded = ReturnType<NonNullable<AgentLoopConfig["unfinished"]>>;

/** What a user does with an agent, whichever way the loop is reached. */
export interface Driver {
  readonly running: boolean;
  /** What the next request must be made with, unless a hook says otherwise. */
  readonly model: Model;
  /** How often the model was set. */
  readonly modelChanges: number;
  readonly tools: readonly SimTool[];
  prompt(messages: readonly AgentMessage[]): void;
  /** Answers why not, where there is nothing to go on from. */
  continue(decisions: RunRecord["decisions"]): void;
  abort(): void;
  push(queue: QueueName, message: AgentMessage): void;
  queued(queue: QueueName): readonly string[];
  take(queue: QueueName, place: number): void;
  edit(queue: QueueName, place: number, message: AgentMessage): void;
  move(queue: QueueName, place: number, to: number): void;
  mode(queue: QueueName): QueueMode;
  setMode(queue: QueueName, mode: QueueMode): void;
  setModel(model: Model): void;
  setTools(tools: readonly SimTool[]): void;
  setThinkingLevel(level: ThinkingLevel): void;
  pending(): readonly PendingCall[];
  transcript(): readonly AgentMessage[];
  /** What is left of a run that is over, if anything is. */
  leftovers(): string | undefined;
  /** Starts again after a crash, from the journal. */
  revive(): void;
}

export function makeDriver(parts: Parts): Driver {
  return parts.world.plan.entry === "agent" ? new AgentDriver(parts) : new LoopDriver(parts);
}

function commonConfig(parts: Parts): Omit<AgentLoopConfig, "model"> {
  const { world, watch, model, gatekeeper, surroundings } = parts;
  const random = world.random("loop");
  const { epoch } = world;
  const middleware = gatekeeper.middleware();
  const fallbackModels = world.plan.fallbacks.flatMap((id) =>
    FALLBACK_MODELS.filter((other) => other.id === id),
  );
  return {
    ...world.plan.config,
    ...(fallbackModels.length > 0 && { fallbackModels }),
    ...surroundings.hooks(),
    protocol: {
      stream: (asked, context, options) =>
        // The dead do not ask.
        world.lives(epoch) ? model.stream(asked, context, options) : new Promise(() => {}),
    },
    ...(middleware.length > 0 && { middleware }),
    clock: world.agentClock(),
    random: () => random.next(),
    generateId: () => `own${world.count("ids")}`,
    onLateResult: (call) => {
      watch.lateResult(call.id);
      if (random.chance(0.1)) throw new Error("onLateResult throws");
    },
    ...(world.plan.recorded && { unfinished: (id) => parts.journal.result(id) }),
  };
}

function newRun(
  world: World,
  kind: RunRecord["kind"],
  prompts: readonly AgentMessage[],
  decisions: RunRecord["decisions"],
  tools: readonly SimTool[],
): RunRecord {
  return {
    number: world.count("runs"),
    epoch: world.epoch,
    kind,
    prompts,
    decisions,
    tools: tools.map(({ name }) => name),
    startedAt: world.now,
    events: [],
    waitsAtAbort: 0,
    over: false,
  };
}

function decideAll(pending: readonly PendingCall[], type: "deny" | "wait"): RunRecord["decisions"] {
  return Object.fromEntries(pending.map(({ toolCall }) => [toolCall.id, { type }]));
}

/** Through `Agent`: its queues, its state, its listeners. */
class AgentDriver implements Driver {
  readonly #parts: Parts;
  modelChanges = 0;
  #agent: Agent;
  #run: RunRecord | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#agent = this.#make();
  }

  #make(): Agent {
    const { world, surroundings, toolbox, journal } = this.#parts;
    const [model] = MODELS;
    const { plan } = world;
    const options: AgentOptions = {
      ...commonConfig(this.#parts),
      tools: toolbox.tools,
      messages: journal.messages,
      pending: journal.pending,
      ...(model && { model }),
      steeringMode: plan.steeringMode,
      followUpMode: plan.followUpMode,
      ...(plan.listenerTimeoutMs !== undefined && { listenerTimeoutMs: plan.listenerTimeoutMs }),
      ...(plan.sink !== "none" && { sink: surroundings.sink(() => (this.#run = undefined)) }),
      onError: (error) => world.note(() => `reported: ${String(error)}`),
    };
    const agent = new Agent(options);
    if (plan.sink === "none") agent.subscribe(surroundings.observer());
    for (const listener of surroundings.listeners()) agent.subscribe(listener);
    return agent;
  }

  revive(): void {
    this.#agent = this.#make();
  }

  get running(): boolean {
    return this.#agent.isRunning;
  }

  get model(): Model {
    return this.#agent.state.model as Model;
  }

  get tools(): readonly SimTool[] {
    return this.#agent.state.tools as readonly SimTool[];
  }

  prompt(messages: readonly AgentMessage[]): void {
    if (this.running) return this.#expectRefusal(this.#agent.prompt(messages), "prompt()");
    const run = this.#begin("prompt", messages, decideAll(this.#agent.state.pending, "deny"));
    if (this.#parts.world.random("driver").chance(0.25)) this.#promptAsStream(run, messages);
    else this.#follow(run, this.#agent.prompt(messages));
  }

  continue(decisions: RunRecord["decisions"]): void {
    if (this.running) return this.#expectRefusal(this.#agent.continue(), "continue()");
    if (this.#cannotContinue()) {
      return this.#expectRefusal(this.#agent.continue({ decisions }), "continue()");
    }
    const waiting = decideAll(this.#agent.state.pending, "wait");
    const run = this.#begin("continue", [], { ...waiting, ...decisions });
    this.#follow(run, this.#agent.continue({ decisions }));
  }

  /** R19, in our own words. */
  #cannotContinue(): boolean {
    const { messages } = this.#agent.state;
    if (messages.length === 0) return true;
    if (this.queued("steering").length > 0 || this.queued("followUp").length > 0) return false;
    return !canGoOnFrom(messages);
  }

  #begin(
    kind: RunRecord["kind"],
    prompts: readonly AgentMessage[],
    decisions: RunRecord["decisions"],
  ): RunRecord {
    const run = newRun(this.#parts.world, kind, prompts, decisions, this.tools);
    this.#run = run;
    this.#parts.watch.begun(run);
    return run;
  }

  #follow(run: RunRecord, promise: Promise<AgentEndEvent | undefined>): void {
    promise.then(
      (end) => this.#over(run, end, undefined),
      (error: unknown) => this.#over(run, undefined, error),
    );
  }

  #over(run: RunRecord, end: AgentEndEvent | undefined, error: unknown): void {
    if (!this.#parts.world.lives(run.epoch)) return;
    this.#parts.world.check(
      !this.running,
      "R20",
      () => "the agent is not idle when prompt() settles",
    );
    this.#run = undefined;
    this.#parts.watch.finished(run, end, error);
  }

  /** `agent.run()`, read at the reader's pace: what it lags behind is joined. */
  #promptAsStream(run: RunRecord, messages: readonly AgentMessage[]): void {
    const { world } = this.#parts;
    const agent = this.#agent;
    const stream = agent.run(messages);
    // The result is there with agent_end; the agent is idle when its listeners are done.
    const settle = async (): Promise<AgentEndEvent> => {
      try {
        return await stream.result();
      } finally {
        await agent.waitForIdle();
      }
    };
    this.#follow(run, settle());
    const leaveAfter = world.random("driver").pick([5, 1_000_000]);
    void readSlowly(world, stream, leaveAfter).then((read) => {
      if (run.sinkFailedOn || !world.lives(run.epoch)) return;
      if (read.length < leaveAfter) compareRead(world, run.events, read);
    });
  }

  #expectRefusal(promise: Promise<unknown>, what: string): void {
    const { world } = this.#parts;
    promise.then(
      () => world.fail("R20", `${what} was let in where it has to be refused`),
      () => {},
    );
  }

  abort(): void {
    noteAbort(this.#parts.world, this.#run);
    this.#agent.abort();
  }

  push(queue: QueueName, message: AgentMessage): void {
    if (queue === "steering") this.#agent.steer(message);
    else this.#agent.followUp(message);
  }

  queued(queue: QueueName): readonly string[] {
    return this.#agent.queued(queue).map(({ message }) => joinText(message));
  }

  take(queue: QueueName, place: number): void {
    const id = this.#agent.queued(queue)[place]?.id;
    if (id !== undefined) this.#agent.takeQueued(queue, id);
  }

  edit(queue: QueueName, place: number, message: AgentMessage): void {
    const id = this.#agent.queued(queue)[place]?.id;
    if (id !== undefined) this.#agent.editQueued(queue, id, message);
  }

  move(queue: QueueName, place: number, to: number): void {
    const id = this.#agent.queued(queue)[place]?.id;
    if (id !== undefined) this.#agent.moveQueued(queue, id, to);
  }

  mode(queue: QueueName): QueueMode {
    return queue === "steering" ? this.#agent.steeringMode : this.#agent.followUpMode;
  }

  setMode(queue: QueueName, mode: QueueMode): void {
    if (queue === "steering") this.#agent.setSteeringMode(mode);
    else this.#agent.setFollowUpMode(mode);
  }

  setModel(model: Model): void {
    this.modelChanges++;
    this.#agent.setModel(model);
  }

  setTools(tools: readonly SimTool[]): void {
    this.#agent.setTools(tools);
  }

  setThinkingLevel(level: ThinkingLevel): void {
    this.#agent.setThinkingLevel(level);
  }

  pending(): readonly PendingCall[] {
    return this.#agent.state.pending;
  }

  transcript(): readonly AgentMessage[] {
    return this.#agent.state.messages;
  }

  leftovers(): string | undefined {
    const { streamMessage, isStreaming, pendingToolCalls, pending } = this.#agent.state;
    if (streamMessage) return "state.streamMessage is set although no run goes on";
    if (isStreaming) return "state.isStreaming is true although no run goes on";
    if (pendingToolCalls.size !== pending.length) {
      return `state.pendingToolCalls holds ${pendingToolCalls.size} calls, ${pending.length} wait for a person`;
    }
    return undefined;
  }
}

/** A queue such as a program of one's own may keep. */
interface OwnQueue {
  mode: QueueMode;
  items: AgentMessage[];
}

/** Through the stateless entry points, with queues and a signal of our own. */
class LoopDriver implements Driver {
  readonly #parts: Parts;
  model: Model = MODELS[0] as Model;
  /** Never while a run goes on. */
  readonly modelChanges: number = 0;
  tools: readonly SimTool[];
  #queues: Record<QueueName, OwnQueue>;
  #run: RunRecord | undefined;
  #pending: readonly PendingCall[] = [];
  #controller: CountedController | undefined;
  #wakes = new Set<() => void>();
  #thinkingLevel: ThinkingLevel = "off";

  constructor(parts: Parts) {
    this.#parts = parts;
    this.tools = parts.toolbox.tools;
    this.#queues = this.#newQueues();
  }

  #newQueues(): Record<QueueName, OwnQueue> {
    const { steeringMode, followUpMode } = this.#parts.world.plan;
    return {
      steering: { mode: steeringMode, items: [] },
      followUp: { mode: followUpMode, items: [] },
    };
  }

  revive(): void {
    this.#queues = this.#newQueues();
    this.#run = undefined;
    this.#pending = this.#parts.journal.pending;
    this.#controller = undefined;
    this.#wakes = new Set();
  }

  get running(): boolean {
    return this.#run !== undefined;
  }

  prompt(messages: readonly AgentMessage[]): void {
    if (this.running) return;
    this.#launch("prompt", messages, decideAll(this.#pending, "deny"));
  }

  continue(decisions: RunRecord["decisions"]): void {
    if (this.running) return;
    const all = { ...decideAll(this.#pending, "wait"), ...decisions };
    if (canGoOnFrom(this.transcript())) return this.#launch("continue", [], all);
    try {
      agentLoopContinue({ messages: this.transcript() }, this.#config(all));
      this.#parts.world.fail("R19", "a context that cannot be continued was let in");
    } catch (error) {
      const text = String(error);
      this.#parts.world.check(text.includes("Cannot continue"), "R19", () => text);
    }
  }

  #config(decisions: RunRecord["decisions"]): AgentLoopConfig {
    return {
      ...commonConfig(this.#parts),
      model: this.model,
      thinkingLevel: this.#thinkingLevel,
      decisions,
      getSteeringMessages: () => this.#poll("steering"),
      getFollowUpMessages: () => this.#poll("followUp"),
      hasQueuedMessages: () =>
        this.#queues.steering.items.length + this.#queues.followUp.items.length > 0,
      requeue: (queue, messages) => {
        this.#queues[queue].items.unshift(...messages);
      },
      onSteering: (wake) => {
        this.#wakes.add(wake);
        return () => this.#wakes.delete(wake);
      },
    };
  }

  #launch(
    kind: RunRecord["kind"],
    prompts: readonly AgentMessage[],
    decisions: RunRecord["decisions"],
  ): void {
    const { world, watch, surroundings } = this.#parts;
    const run = newRun(world, kind, prompts, decisions, this.tools);
    const before = [...this.transcript()];
    const context = { messages: Object.freeze([...before]), tools: this.tools };
    this.#run = run;
    this.#pending = [];
    const controller = new CountedController();
    this.#controller = controller;
    watch.begun(run);
    const config = this.#config(decisions);
    if (world.plan.entry === "loop") {
      const sink = surroundings.sink(() => {});
      runAgentLoop(prompts, context, config, sink, controller.signal).then(
        () => this.#over(run, undefined),
        (error: unknown) => this.#over(run, error),
      );
      return;
    }
    const stream =
      kind === "prompt"
        ? agentLoop(prompts, context, config, controller.signal)
        : agentLoopContinue(context, config, controller.signal);
    void readSlowly(world, stream, Infinity, (event) => watch.taken(event)).then(async (read) => {
      const result = await stream.result();
      const end = read.at(-1);
      const isSame = end?.type === "agent_end" && end.messages === result;
      world.check(isSame, "R5", () => "result() is not what agent_end said");
      this.#over(run, undefined);
    });
  }

  #over(run: RunRecord, error: unknown): void {
    if (!this.#parts.world.lives(run.epoch)) return;
    this.#run = undefined;
    if (run.end) this.#pending = run.end.pending;
    this.#parts.watch.finished(run, run.end, error);
  }

  /** What a queue callback gives; it may throw, be slow, or never settle. */
  #poll(queue: QueueName): AgentMessage[] | Promise<AgentMessage[]> {
    const { world, watch } = this.#parts;
    const random = world.random("queues");
    const { epoch } = world;
    const give = (): AgentMessage[] => {
      if (!world.lives(epoch)) return [];
      const { items, mode } = this.#queues[queue];
      const messages = items.splice(0, mode === "all" ? items.length : 1);
      watch.drained(queue, messages.length);
      return messages;
    };
    watch.polled(queue);
    if (world.calm || !random.chance(world.plan.queueFaults)) return give();
    const fault = random.weighted({ throws: 1, slow: 3, hangs: 0.5 });
    world.note(() => `the poll of ${queue}: ${fault}`);
    const isThrown = fault === "throws";
    watch.hookFailed(
      isThrown ? "the queue fails" : "did not settle",
      isThrown ? "throws" : "waits",
    );
    if (fault === "slow") return world.sleep(random.between(1, 600)).then(give);
    if (fault === "throws") throw new Error("the queue fails");
    return new Promise(() => {});
  }

  abort(): void {
    noteAbort(this.#parts.world, this.#run);
    if (this.#run) this.#controller?.abort();
  }

  push(queue: QueueName, message: AgentMessage): void {
    this.#queues[queue].items.push(message);
    if (queue === "steering") for (const wake of this.#wakes) wake();
  }

  queued(queue: QueueName): readonly string[] {
    return this.#queues[queue].items.map(joinText);
  }

  take(queue: QueueName, place: number): void {
    this.#queues[queue].items.splice(place, 1);
  }

  edit(queue: QueueName, place: number, message: AgentMessage): void {
    if (place < this.#queues[queue].items.length) this.#queues[queue].items[place] = message;
  }

  move(queue: QueueName, place: number, to: number): void {
    const { items } = this.#queues[queue];
    const [moved] = items.splice(place, 1);
    if (moved) items.splice(to, 0, moved);
  }

  mode(queue: QueueName): QueueMode {
    return this.#queues[queue].mode;
  }

  setMode(queue: QueueName, mode: QueueMode): void {
    this.#queues[queue].mode = mode;
  }

  // What a run was given holds for all of it, so that these wait for the next.

  setModel(model: Model): void {
    if (!this.running) this.model = model;
  }

  setTools(tools: readonly SimTool[]): void {
    if (!this.running) this.tools = tools;
  }

  setThinkingLevel(level: ThinkingLevel): void {
    if (!this.running) this.#thinkingLevel = level;
  }

  pending(): readonly PendingCall[] {
    return this.#pending;
  }

  transcript(): readonly AgentMessage[] {
    return this.#parts.journal.messages;
  }

  leftovers(): string | undefined {
    const listening = this.#controller?.listening ?? 0;
    if (listening > 0) return `${listening} listeners are left on the caller's signal`;
    return this.#wakes.size > 0 ? "onSteering was not undone" : undefined;
  }
}

/** Counts who listens to its signal. */
class CountedController extends AbortController {
  #listening = 0;

  constructor() {
    super();
    const { signal } = this;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      this.#listening++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      this.#listening--;
      remove(...args);
    };
  }

  /** Listeners that were not taken back; one that has fired is gone. */
  get listening(): number {
    return this.signal.aborted ? 0 : this.#listening;
  }
}

function noteAbort(world: World, run: RunRecord | undefined): void {
  if (!run || run.abortedAt !== undefined || run.sinkFailedOn) return;
  run.abortedAt = world.now;
  run.waitsAtAbort = world.waits.total;
}

/** Whether a transcript ends with something to answer (R19). */
export function canGoOnFrom(messages: readonly AgentMessage[]): boolean {
  for (const message of messages.toReversed()) {
    if (message.role !== "assistant") return true;
    if (message.stopReason === "pause") return true;
    if (message.content.some((block) => block.type === "toolCall")) return true;
    if (!["error", "aborted", "redirected"].includes(message.stopReason)) return false;
  }
  return false;
}

/** Reads a stream with pauses of its own; what was read, copied where it may change. */
async function readSlowly(
  world: World,
  stream: AsyncIterable<AgentEvent>,
  most: number,
  onEvent: (event: AgentEvent) => void = () => {},
): Promise<AgentEvent[]> {
  const random = world.random("reader");
  const pauses = random.chance(0.5);
  const { epoch } = world;
  const events: AgentEvent[] = [];
  try {
    for await (const event of stream) {
      if (!world.lives(epoch)) break;
      events.push(event);
      onEvent(event);
      if (events.length >= most) break;
      if (pauses && !world.calm && random.chance(0.1)) await world.sleep(random.between(1, 150));
    }
  } catch (error) {
    world.note(() => `the reader of the run stops: ${String(error)}`);
  }
  return events;
}

/** What a slow reader of `agent.run()` got is what there was: deltas joined, nothing lost. */
function compareRead(
  world: World,
  taken: readonly AgentEvent[],
  read: readonly AgentEvent[],
): void {
  const outline = (events: readonly AgentEvent[]): string[] => {
    const parts: string[] = [];
    let joining = "";
    for (const event of events) {
      // Of a call's progress, a reader who lags gets the newest.
      if (event.type === "tool_execution_update") continue;
      if (event.type !== "message_update" || !("delta" in event.assistantMessageEvent)) {
        parts.push(event.type === "message_update" ? event.assistantMessageEvent.type : event.type);
        joining = "";
        continue;
      }
      const { type, contentIndex, delta } = event.assistantMessageEvent;
      const block = `${type} ${contentIndex}`;
      if (joining === block) parts[parts.length - 1] += delta;
      else parts.push(`${block} ${delta}`);
      joining = block;
    }
    return parts;
  };
  const seen = outline(read);
  const expected = outline(taken);
  const place = expected.findIndex((part, index) => part !== seen[index]);
  if (place < 0 && expected.length === seen.length) return;
  const [due, got] = [expected[place], seen[place]];
  world.fail(
    "streams",
    `a reader of run() got ${got ?? "nothing"} in place of ${due ?? "nothing"}`,
  );
}
