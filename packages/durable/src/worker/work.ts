import {
  Agent,
  type AgentEndEvent,
  type AgentEvent,
  type AgentMessage,
  type AgentOptions,
  type AgentTool,
  type ContinueOptions,
  type Decision,
  DEFAULT_MAX_TURNS,
  type Limits,
  listCalls,
  readAnswer,
  type Middleware,
  type QueueName,
  readDecisions,
  SinkError,
} from "@gyre/agent";
import {
  addUsage,
  type AnySchema,
  errorMessage,
  isRecord,
  totalTokens,
  type Usage,
} from "@gyre/ai";
import {
  createJournal,
  type Journal,
  type Session,
  type SessionContext,
  type SessionSettings,
} from "@gyre/sessions";
import type { CreateDurableAgent, DurableAgentOptions } from "../contract/agent.ts";
import type { LiveSource } from "../live/source.ts";
import type { StoredEnd } from "../runs/read-log.ts";
import { decodeMessages } from "../contract/messages.ts";
import type { Runs } from "../runs/runs.ts";
import type { Claim, InboxItem, RunRow } from "../contract/store.ts";
import { type ClientAnswer, readClientAnswer } from "../contract/client-tools.ts";
import { toCompactionEntry, toDescriptionsEntry } from "../contract/notes.ts";
import { type RunRequest, readRequest, toAnsweredEntry } from "../contract/requests.ts";
import { AgentQueues } from "./agent-queues.ts";
import { capResult } from "./cap-result.ts";
import type { ClientTools } from "./client-tools.ts";
import type { WorkerMeter } from "./meter.ts";
import { FencedError, type RunLog } from "./run-log.ts";
import { type Budget, readShared, toBudget } from "./budget.ts";
import { DurableError, isUnavailable } from "../contract/errors.ts";
import { waitsForPerson } from "./waiting.ts";

/** A sink waits for a store that is away; the run goes on when that is back. */
const SINK_TIMEOUT_MS = 2_147_483_647;

export interface WorkParts {
  runs: Runs;
  claim: Claim;
  row: RunRow;
  /** What is left of the runs that this one works for. */
  shared: Budget;
  session: Session;
  context: SessionContext;
  options: DurableAgentOptions | CreateDurableAgent;
  log: RunLog;
  clientTools: ClientTools;
  meter: WorkerMeter;
  /** What identifies the span of the activation. */
  span: string | undefined;
  close: () => Promise<void>;
  isDraining: () => boolean;
}

/** The agent does not begin at all, as without a model: another worker would have no more luck. */
export class CannotRunError extends Error {
  constructor(cause: unknown) {
    super(errorMessage(cause), { cause });
    this.name = "CannotRunError";
  }
}

/** The agent of an activation, with what comes in and what goes out. */
export class Work {
  readonly agent: Agent;
  readonly close: () => Promise<void>;
  /** The end of the agent's run is among the entries. */
  hasWrittenEnd = false;
  /** Another activation has to answer the calls that are open. */
  needsReopening = false;
  readonly #parts: WorkParts;
  readonly #journal: Journal;
  #limits: Limits = {};
  /** What is left of the runs that this one works for. */
  #shared: Budget;
  /** The tools of clients that the agent has. */
  #clientTools: readonly AgentTool[] = [];
  readonly #live: LiveSource;
  /** The last answer, which is stored soon: live events behind it wait for that. */
  #answer = 0;
  readonly #output: AnySchema | undefined;
  /** Items of messages that answer calls: their last one is on its way into the transcript. */
  readonly #deliveries = new WeakMap<AgentMessage, number>();
  readonly #queues: AgentQueues;
  readonly #accepted = new Set<number>();
  readonly #decisions: Record<string, Decision> = {};
  #decisionItems: number[] = [];
  /** Messages that wait, as a call does. */
  #postponed: InboxItem[] = [];
  /** Messages that answer calls which wait for a person. */
  #replies: AgentMessage[] = [];
  #abortion: { reason?: string } | undefined;
  #isEnded = false;
  /** A limit was used up when the activation began. */
  #isLastTurn = false;
  /** The system prompt that the settings of the session are to have. */
  #savedPrompt: string | undefined;
  #turns: number;
  #usage: Usage;
  #activeMs: number;
  #hasAsked = false;
  #startedAt = performance.now();

  constructor(parts: WorkParts) {
    const { row, session, context, options } = parts;
    this.#parts = parts;
    this.close = parts.close;
    this.#journal = createJournal(session, context);
    this.#queues = new AgentQueues(() => this.agent, this.#journal);
    this.#live = parts.runs.live.open(parts.claim.session, parts.claim.token);
    this.#turns = row.turns;
    this.#usage = JSON.parse(row.usage);
    this.#activeMs = row.activeMs;
    this.#shared = parts.shared;
    this.#output = row.output === undefined ? undefined : JSON.parse(row.output);
    const complete = (own: DurableAgentOptions): AgentOptions => this.#complete(own);
    this.agent = typeof options === "function" ? options(complete) : new Agent(complete(options));
    if (this.#savedPrompt !== undefined) {
      void this.#saveSettings(context.settings, this.#savedPrompt);
    }
  }

  /** Adds what is the worker's. */
  #complete(options: DurableAgentOptions): AgentOptions {
    const { row, context, log, claim, isDraining } = this.#parts;
    const { maxIterations } = options;
    this.#limits = {
      ...(maxIterations !== undefined && { maxIterations }),
      ...options.limits,
      ...(row.limits !== undefined && JSON.parse(row.limits)),
    };
    this.#isLastTurn = !this.#readLeft();
    const isFirst = row.activations <= 1;
    const { systemPrompt } = context.settings;
    const { terminated } = context.interrupted ?? {};
    const { middleware = [], shouldStopAfterTurn, instructions, tools, ...rest } = options;
    const prompt = isFirst ? instructions : (systemPrompt ?? instructions);
    const beforeEffects: Middleware = {
      tool: async ({ tool, toolCall, parentId }, next) => {
        // What a call was made of is stored before it can have an effect.
        await log.flush();
        // The log has the beginning of all others.
        if (tool.idempotent && parentId === undefined) {
          const { id: toolCallId, arguments: args } = toolCall;
          this.#publish({ type: "tool_execution_start", toolCallId, toolName: tool.name, args });
        }
        return capResult(tool.name, await next());
      },
    };
    this.#savedPrompt = isFirst && !options.handoffs ? (prompt ?? "") : undefined;
    this.#clientTools = this.#listClientTools(tools ?? []);
    return {
      ...rest,
      ...((tools || this.#clientTools.length > 0) && {
        tools: [...(tools ?? []), ...this.#clientTools],
      }),
      ...(prompt !== undefined && { instructions: prompt }),
      messages: context.messages,
      pending: context.pending,
      queued: context.queued,
      onQueueChange: this.#queues.onChange,
      ...(context.compaction && { compaction: context.compaction }),
      unfinished: context.unfinished,
      // Turns and usage of the run so far are in its row; see `#readLeft`.
      ...((terminated || this.#isLastTurn) && {
        interrupted: {
          ...{ turns: this.#isLastTurn ? 1 : 0, usage: {}, durationMs: 0 },
          ...(terminated && { terminated }),
        },
      }),
      sessionId: claim.session,
      sink: (event) => this.#take(event),
      middleware: [...middleware, this.#journal.middleware, beforeEffects],
      sinkTimeoutMs: SINK_TIMEOUT_MS,
      shouldStopAfterTurn: async (turn) =>
        isDraining() || ((await shouldStopAfterTurn?.(turn)) ?? false),
    };
  }

  /** Those whose names are free. */
  #listClientTools(own: readonly AgentTool[]): AgentTool[] {
    const names = new Set(own.map(({ name }) => name));
    return this.#parts.clientTools.list().filter(({ name }) => !names.has(name));
  }

  /** The tools that clients have registered have changed. */
  updateClientTools(): void {
    const { agent } = this;
    const before = new Set(this.#clientTools);
    const own = agent.state.tools.filter((tool) => !before.has(tool));
    this.#clientTools = this.#listClientTools(own);
    agent.setTools([...own, ...this.#clientTools]);
  }

  /** Time that workers have spent on the run. */
  get activeMs(): number {
    return Math.round(this.#activeMs);
  }

  /** Takes what was sent. What cannot be read is reported, and put aside. */
  accept(items: readonly InboxItem[]): void {
    this.#postponed = [];
    for (const item of items) {
      const { id, run, kind, dueInMs } = item;
      if (run !== this.#parts.row.id || dueInMs > 0 || this.#accepted.has(id)) continue;
      let sent: Sent | undefined;
      try {
        sent = readItem(item);
      } catch (error) {
        this.#parts.runs.report(error, `inbox: ${kind}`);
        this.#parts.log.take(id);
        this.#accepted.add(id);
      }
      if (sent && this.#acceptSent(item, sent)) this.#accepted.add(id);
      else if (sent?.kind === "message") this.#postponed.push(item);
    }
  }

  /** The same for what was sent later: what waits is tried again. */
  acceptMore(items: readonly InboxItem[]): void {
    this.accept([...this.#postponed, ...items]);
  }

  /** False: it is left in the inbox. */
  #acceptSent(item: InboxItem, sent: Sent): boolean {
    const { id } = item;
    if (sent.kind === "message") return this.#acceptMessages(sent.queue, item, sent.messages);
    if (sent.kind === "request") {
      this.#acceptRequest(item, sent.request);
      return true;
    }
    if (sent.kind === "abort") {
      // It stays in the inbox until the run has ended: the next worker has to see it, too.
      this.#abortion = sent.abortion;
      this.agent.abort();
    } else if (sent.kind === "answer") {
      this.#parts.clientTools.accept(id, sent.answer);
    } else {
      Object.assign(this.#decisions, sent.decisions);
      this.#decisionItems.push(id);
    }
    return true;
  }

  /**
   * A steering message answers calls that wait for a person, as a prompt does; where one waits for
   * something else, the message waits as well, and false is returned.
   */
  #acceptMessages(kind: QueueName, item: InboxItem, messages: readonly AgentMessage[]): boolean {
    const { pending } = this.agent.state;
    const isReply = kind === "steering" && !this.agent.isRunning && pending.length > 0;
    if (isReply && !pending.every(waitsForPerson)) return false;
    if (isReply) {
      const last = messages.at(-1);
      if (last) this.#deliveries.set(last, item.id);
      this.#replies.push(...messages);
      return true;
    }
    messages.forEach((message, nth) => {
      const id = nth === 0 ? item.key : `${item.key}/${nth}`;
      this.#queues.change({ op: "add", queue: kind, id, message });
    });
    this.#note(item, () => this.#journal.saved());
    return true;
  }

  #acceptRequest(item: InboxItem, request: RunRequest): void {
    const answer = this.#act(request);
    this.#note(item, async () => {
      const { session } = this.#parts;
      const settings =
        request.type === "settings" ? session.append(request) : this.#journal.saved();
      const answered = session.append(toAnsweredEntry({ key: item.key, answer }));
      await Promise.all([settings, answered]);
    });
  }

  /** The answer. */
  #act(request: RunRequest): Readonly<Record<string, unknown>> {
    if (request.type === "queue") return { ...this.#queues.change(request) };
    const { thinkingLevel, systemPrompt, tools } = request.settings;
    const { agent } = this;
    if (thinkingLevel !== undefined) agent.setThinkingLevel(thinkingLevel);
    if (systemPrompt !== undefined) agent.setSystemPrompt(systemPrompt);
    if (tools) {
      const known = new Map(agent.state.tools.map((tool) => [tool.name, tool]));
      agent.setTools(tools.flatMap((name) => known.get(name) ?? []));
    }
    return { ...request.settings };
  }

  /** What an item has led to is in the log with the very commit that takes the item. */
  #note({ id, kind }: Pick<InboxItem, "id" | "kind">, note: () => Promise<void>): void {
    const { log, runs } = this.#parts;
    log
      .deliver(id, note)
      .then(() => log.flushSoon())
      .catch((error: unknown) => {
        // The next worker finds the item.
        if (!(error instanceof FencedError)) runs.report(error, `inbox: ${kind}`);
      });
  }

  /** Goes on as far as possible. Undefined: there was nothing to do. */
  async proceed(isDraining: () => boolean): Promise<AgentEndEvent | undefined> {
    const { agent } = this;
    const { pending } = agent.state;
    this.#isEnded = false;
    if (this.#abortion) return this.#proceedAborted();
    if (isDraining()) return undefined;
    if (pending.length > 0) {
      const decided = pending.flatMap(({ toolCall: { id } }) => {
        const decision = this.#decisions[id];
        delete this.#decisions[id];
        return decision ? [[id, decision] as const] : [];
      });
      if (decided.length > 0) return this.#proceedDecided(Object.fromEntries(decided));
      this.#parts.log.take(...this.#decisionItems.splice(0));
      if (this.#replies.length === 0) return undefined;
      const replies = [...this.#takeSteering(), ...this.#replies.splice(0)];
      return this.#ask((options) => agent.prompt(replies, options));
    }
    if (this.#isOver() && !agent.hasQueuedMessages()) return undefined;
    return this.#ask((options) => agent.continue(options));
  }

  /** What came before the run was suspended comes first. */
  #takeSteering(): AgentMessage[] {
    const { agent } = this;
    return agent.queued("steering").flatMap(({ id }) => agent.takeQueued("steering", id) ?? []);
  }

  async #proceedDecided(decisions: Readonly<Record<string, Decision>>): Promise<AgentEndEvent> {
    const { log } = this.#parts;
    for (const message of this.#replies.splice(0)) {
      this.agent.steer(message);
      const id = this.#deliveries.get(message);
      this.#deliveries.delete(message);
      // It waits in the log from here on, and no more in the inbox.
      if (id !== undefined) this.#note({ id, kind: "steering" }, () => this.#journal.saved());
    }
    // What arrives from here on is not among these decisions.
    const items = this.#decisionItems.splice(0);
    await this.#journal.decide(decisions);
    log.take(...items);
    this.#count();
    await log.flush();
    return this.#ask((options) => this.agent.continue({ ...options, decisions }));
  }

  /** Answers all calls that are open, and asks no model. */
  async #proceedAborted(): Promise<AgentEndEvent> {
    const { agent } = this;
    const reason = this.#abortion?.reason ?? "the run was aborted";
    const decisions = Object.fromEntries(
      agent.state.pending.map(({ toolCall: { id } }) => [id, { type: "deny", reason } as const]),
    );
    if (this.#isOver() && !agent.hasQueuedMessages()) return this.inferEnd();
    const signal = AbortSignal.abort();
    return this.#ask((options) => agent.continue({ ...options, decisions, signal }));
  }

  /** What runs that work for this one spend from. */
  get budget(): Budget | undefined {
    return toBudget(this.#limits);
  }

  /** Reads what is left of the runs that this one works for. */
  async #readShared(): Promise<void> {
    const { row, runs } = this.#parts;
    try {
      this.#shared = await readShared(runs.store, row, this.#usage);
    } catch (error) {
      // What was left the last time holds until the store answers: the next turn reads it again.
      if (!isUnavailable(error)) throw error;
    }
  }

  async #ask(
    run: (options: ContinueOptions & { output: AnySchema }) => Promise<AgentEndEvent>,
  ): Promise<AgentEndEvent> {
    this.#startedAt = performance.now();
    if (!this.#hasAsked && this.#mayRepeat()) this.#parts.meter.modelRepeats++;
    this.#hasAsked = true;
    await this.#readShared();
    const left = this.#readLeft();
    const limits = left ?? this.#planLastCalls();
    if (!limits) return { ...this.inferEnd(), stop: "limit" };
    const output = this.#output;
    const caller = left ? this.#toCaller() : {};
    const running = run({ limits, ...caller, ...(output && { output }) } as ContinueOptions & {
      output: AnySchema;
    });
    this.accept(this.#postponed.splice(0));
    const end = await running.catch((error: unknown) => {
      const isOfStore = error instanceof SinkError || error instanceof DurableError;
      throw isOfStore ? error : new CannotRunError(error);
    });
    this.#activeMs += performance.now() - this.#startedAt;
    this.#startedAt = performance.now();
    // The agent has counted from the last activation on.
    end.turns = this.#turns;
    end.usage = this.#usage;
    this.#isEnded = true;
    this.#count();
    return end;
  }

  /** Has the agent look at the shared limits after each turn. */
  #toCaller(): Pick<ContinueOptions, "caller"> {
    const { parent, budget } = this.#parts.row;
    if (!parent || budget === undefined) return {};
    const host = { left: () => this.#shared };
    return { caller: { id: parent.call, signal: new AbortController().signal, host } };
  }

  /** Whether a worker that died may have asked the model for the next answer already. */
  #mayRepeat(): boolean {
    const last = this.agent.state.messages.at(-1);
    return this.#parts.claim.deaths > 0 && last?.role !== "assistant" && !this.#abortion;
  }

  /**
   * Where a limit is used up, calls of the last turn are answered all the same, and no model is
   * asked: the agent counts that turn against a limit of one.
   */
  #planLastCalls(): Limits | undefined {
    if (!this.#hasOpenCalls()) return undefined;
    this.needsReopening = !this.#isLastTurn;
    return this.#isLastTurn ? { maxTurns: 1 } : undefined;
  }

  #hasOpenCalls(): boolean {
    const { messages, pending } = this.agent.state;
    if (pending.length > 0) return true;
    const at = messages.findLastIndex(({ role }) => role === "assistant");
    const last = messages[at];
    if (last?.role !== "assistant") return false;
    const results = messages.slice(at + 1);
    return (
      results.every(({ role }) => role === "toolResult") && listCalls(last).length > results.length
    );
  }

  /** Whether there is something to do that `proceed` has not done, as the worker stops. */
  isLeft(): boolean {
    const { pending } = this.agent.state;
    if (pending.length === 0) return !this.#isOver() || this.agent.hasQueuedMessages();
    return (
      this.#replies.length > 0 || pending.some(({ toolCall }) => toolCall.id in this.#decisions)
    );
  }

  /** What is left of the limits of the whole run; nothing where one is used up. */
  #readLeft(): Limits | undefined {
    const limits = this.#limits;
    const { maxTurns = limits.maxIterations } = limits;
    const left: Limits = { ...limits, maxTurns: (maxTurns ?? DEFAULT_MAX_TURNS) - this.#turns };
    delete left.maxIterations;
    const { maxDurationMs, maxCostUsd, maxTotalTokens } = limits;
    if (maxDurationMs !== undefined) left.maxDurationMs = maxDurationMs - this.#activeMs;
    if (maxCostUsd !== undefined) left.maxCostUsd = maxCostUsd - (this.#usage.cost?.total ?? 0);
    if (maxTotalTokens !== undefined)
      left.maxTotalTokens = maxTotalTokens - totalTokens(this.#usage);
    return [...Object.values(left), ...Object.values(this.#shared)].every(
      (value) => value === undefined || value > 0,
    )
      ? left
      : undefined;
  }

  /** Whether something came meanwhile that the agent can go on with. */
  hasMore(end: AgentEndEvent | undefined): boolean {
    const { agent } = this;
    const { pending } = agent.state;
    // A call may have been left to a person before the abort came: it is answered, too.
    if (this.#abortion) return end !== undefined && agent.state.pending.length > 0;
    if (!end) return false;
    if (end.stop === "suspended") {
      return (
        this.#replies.length > 0 || pending.some(({ toolCall }) => toolCall.id in this.#decisions)
      );
    }
    return end.stop === "done" && agent.hasQueuedMessages();
  }

  wasDrained(end: AgentEndEvent): boolean {
    return end.stop === "stopped" && this.#parts.isDraining();
  }

  /** How the run has ended, where a worker died after its last message. */
  inferEnd(): AgentEndEvent {
    const { messages } = this.agent.state;
    const last = messages.findLast((message) => message.role === "assistant");
    const stop = this.#abortion ? "aborted" : last?.stopReason === "error" ? "error" : "done";
    return {
      ...{
        type: "agent_end",
        messages: [...messages],
        stop,
        turns: this.#turns,
        usage: this.#usage,
      },
      ...{ undelivered: [], pending: [] },
      ...(last && { finalMessage: last }),
    };
  }

  /** The checked answer of a run with an output schema, as JSON. */
  async readAnswer(end: AgentEndEvent): Promise<string | undefined> {
    if (!this.#output || (end.stop !== "done" && end.stop !== "terminated")) return undefined;
    try {
      if (!("output" in end)) return await this.#readStoredAnswer(this.#output);
      return JSON.stringify(end.output);
    } catch (error) {
      end.errorMessage = errorMessage(error);
      return undefined;
    }
  }

  /** The answer of a run whose worker died behind it. */
  async #readStoredAnswer(parameters: AnySchema): Promise<string | undefined> {
    const last = this.agent.state.messages.findLast(({ role }) => role === "assistant");
    if (last?.role !== "assistant") return undefined;
    return JSON.stringify(await readAnswer(parameters, last));
  }

  /** Whether the model has given its answer, and nothing is left to do. One that failed before is asked again. */
  #isOver(): boolean {
    const last = this.agent.state.messages.at(-1);
    if (last?.role !== "assistant") return false;
    if (last.stopReason === "error" && !this.#hasAsked) return false;
    return last.stopReason !== "pause" && listCalls(last).length === 0;
  }

  async #saveSettings(before: SessionSettings, systemPrompt: string): Promise<void> {
    const isClients = new Set(this.#clientTools);
    const own = this.agent.state.tools.filter((tool) => !isClients.has(tool));
    const tools = own.map(({ name }) => name);
    const isSame =
      before.systemPrompt === systemPrompt &&
      JSON.stringify(before.tools) === JSON.stringify(tools);
    if (isSame) return;
    try {
      const { session } = this.#parts;
      await Promise.all([
        session.append(toDescriptionsEntry(own)),
        session.append({ type: "settings", settings: { systemPrompt, tools } }),
      ]);
    } catch {
      // The next entry fails as well, and reports it.
    }
  }

  #take(event: AgentEvent): void | Promise<void> {
    const { log } = this.#parts;
    switch (event.type) {
      case "message_end":
        return this.#takeMessage(event);
      case "tool_execution_end":
        this.#publish(event);
        if (event.result.usage) this.#usage = addUsage(this.#usage, event.result.usage);
        this.#count();
        return this.#write(event).then(() => log.flush());
      case "compaction":
        return this.#noteCompaction(event).then(() => log.flush());
      case "agent_end":
        log.describeEnd(
          toStoredEnd(this.#parts.row.id, { ...event, turns: this.#turns, usage: this.#usage }),
        );
        this.hasWrittenEnd = true;
        return this.#write(event);
      case "agent_start":
        this.hasWrittenEnd = false;
        log.resume();
        return this.#write(event);
      case "tool_execution_start":
        return this.#write(event);
      default:
        this.#publish(event);
        return undefined;
    }
  }

  async #noteCompaction(event: Extract<AgentEvent, { type: "compaction" }>): Promise<void> {
    const { before, after, reason, compaction } = event;
    const { from, to } = compaction;
    await this.#write(event);
    await this.#parts.session.append(toCompactionEntry({ before, after, reason, from, to }));
  }

  #publish(event: AgentEvent): void {
    this.#live.publish(event, Math.max(this.#answer, this.#parts.log.seq));
  }

  /** Nothing goes on any more. */
  end(): void {
    this.#parts.runs.live.close(this.#live);
  }

  async #takeMessage(event: Extract<AgentEvent, { type: "message_end" }>): Promise<void> {
    const { log, meter, runs, claim } = this.#parts;
    const { message } = event;
    if (message.role === "toolResult" && message.outcome === "interrupted") {
      meter.countInterrupted(message.toolName);
    }
    const item = this.#deliveries.get(message);
    if (item !== undefined) {
      await log.deliver(item, () => this.#write(event));
      return log.flush();
    }
    if (message.role === "assistant") {
      this.#turns++;
      this.#usage = addUsage(this.#usage, message.usage);
      this.#count();
      await this.#write(event);
      if (this.#parts.row.budget !== undefined) {
        // Others see what this one has spent before it looks at what they have.
        await log.flush();
        return this.#readShared();
      }
      this.#answer = log.last;
      this.#publish(event);
      // It is stored with what follows: the beginning of its first call, or the end.
      log.flushSoon();
      return undefined;
    }
    await this.#write(event);
    if (message.role !== "toolResult") return log.flush();
    // It could wait for what follows, but what follows is shown behind it.
    if (runs.live.isWatched(claim.session)) log.flushSoon();
    return undefined;
  }

  async #write(event: AgentEvent): Promise<void> {
    await this.#journal(event);
  }

  #count(): void {
    const running = this.#isEnded ? 0 : performance.now() - this.#startedAt;
    this.#parts.log.report({
      turns: this.#turns,
      usage: JSON.stringify(this.#usage),
      activeMs: Math.round(this.#activeMs + running),
      ...(this.#parts.span !== undefined && { span: this.#parts.span }),
    });
  }
}

/** What an item of the inbox says. */
type Sent =
  | { kind: "abort"; abortion: { reason?: string } }
  | { kind: "answer"; answer: ClientAnswer }
  | { kind: "request"; request: RunRequest }
  | { kind: "decision"; decisions: Readonly<Record<string, Decision>> }
  | { kind: "message"; queue: QueueName; messages: readonly AgentMessage[] };

/** Throws on what cannot be acted on, before any of it is. Nothing for a prompt: it is a run. */
function readItem({ kind, data }: InboxItem): Sent | undefined {
  if (kind === "prompt") return undefined;
  const value: unknown = JSON.parse(data);
  if (kind === "decision") return { kind, decisions: readDecisions(value) };
  if (kind === "answer") return { kind, answer: readClientAnswer(value) };
  if (kind === "request") return { kind, request: readRequest(value) };
  if (kind !== "abort") return { kind: "message", queue: kind, messages: decodeMessages(value) };
  if (!isRecord(value)) throw new TypeError("An abort is an object.");
  const { reason } = value;
  return { kind, abortion: typeof reason === "string" ? { reason } : {} };
}

export function toStoredEnd(run: string, end: AgentEndEvent): StoredEnd {
  const { stop, limit, errorMessage: text, turns, usage, pending } = end;
  return {
    ...{ run, stop, turns, usage, pending },
    ...(limit && { limit }),
    ...(text !== undefined && { errorMessage: text }),
  };
}
