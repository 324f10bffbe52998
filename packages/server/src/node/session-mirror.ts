import {
  type AgentEndEvent,
  type AgentEvent,
  type AgentListener,
  type AgentMessage,
  EventState,
  listCalls,
  type PendingCall,
  type QueuedMessage,
  type QueueMode,
  type QueueName,
} from "@gyre/agent";
import {
  addUsage,
  type AssistantMessage,
  type ToolCall,
  type ToolResultMessage,
  type Usage,
} from "@gyre/ai";
import {
  type ClientCall,
  decodeMessages,
  readCompaction,
  readDescriptions,
  type InboxItem,
  readAnswered,
  readRequest,
  readRewrite,
  readClientCall,
  readClientCancel,
  type RunEvent,
  type SessionEntry,
} from "@gyre/durable";
import type { Payload } from "@gyre/protocol";
import type { SessionView } from "../sessions/session-agent.ts";
import { type EventNumbers, numberEntry } from "./event-numbers.ts";

type Entry = SessionEntry["entry"];
export type Settings = Extract<Entry, { type: "settings" }>["settings"];

/** A run as clients see it: from a prompt, or a decision, to its end or its next suspension. */
interface MirroredRun {
  readonly messages: AgentMessage[];
  turns: number;
  usage: Usage;
  turn: { answer?: AssistantMessage; results: ToolResultMessage[] } | undefined;
}

type ToolUpdate = Extract<AgentEvent, { type: "tool_execution_update" }>;

/** The message that streams. */
interface Partial {
  readonly activation: number;
  /** Its beginning did not arrive: nothing of it is shown before it is whole. */
  readonly isHidden: boolean;
  hasContent: boolean;
}

/** Gets calls of tools that run at clients. */
export interface ClientCallHandler {
  pass(call: ClientCall): void;
  /** The run does not wait for it any more. */
  cancel(call: ClientCall): void;
}

/** The tools that a client has registered. */
interface RegisteredTools {
  readonly client: string;
  readonly tools: SessionView["state"]["tools"];
}

export interface MirrorEvents {
  onSettings(): void;
  onReset(isRewritten?: boolean): void;
}

/**
 * The state of a session's agent, wherever that runs, with the events that an agent in this process
 * would have: from the entries of the log, and from live events between them. It depends on
 * entries alone that the state comes out right; live events only show what is on its way.
 */
export class SessionMirror implements SessionView {
  readonly numbers: EventNumbers;
  steeringMode: QueueMode = "one-at-a-time";
  followUpMode: QueueMode = "one-at-a-time";
  readonly #state = new EventState();
  readonly #settings: Settings = {};
  readonly #nodes = new Map<number, { parentId: number | null; message?: AgentMessage }>();
  readonly #ends: number[] = [];
  /** The entries of decisions, by call. */
  readonly #decisions = new Map<string, number>();
  readonly #executing = new Set<string>();
  /** Calls with a result, whose message comes next. */
  readonly #answered = new Set<string>();
  readonly #finished = new Set<string>();
  /** What waits, by the log. */
  readonly #queues: Record<QueueName, readonly QueuedMessage[]> = { steering: [], followUp: [] };
  /** What no worker has put into a queue yet. */
  #sent: readonly (QueuedMessage & { readonly queue: QueueName })[] = [];
  /** All that has ever waited. */
  readonly #queuedIds = new Set<string>();
  readonly #endedRuns = new Set<string>();
  /** Answers to requests, by their keys. */
  readonly #answers = new Map<string, Payload>();
  #listeners: readonly AgentListener[] = [];
  #clientTools: readonly RegisteredTools[] = [];
  #descriptions: Readonly<Record<string, string>> = {};
  #compaction: Extract<Entry, { type: "compaction" }> | undefined;
  /** What takes the place of the transcript is being read. */
  #isRewriting = false;
  /** Of the run, by name; false: it is over. */
  readonly #clientCalls = new Map<string, { readonly call: ClientCall; isOpen: boolean }>();
  #callHandler: ClientCallHandler | undefined;
  /** Clients whose tools go with the end of the run. */
  #goneClients: ReadonlySet<string> = new Set();
  #events: MirrorEvents | undefined;
  #run: MirroredRun | undefined;
  #lastAnswer: AssistantMessage | undefined;
  /** The entry of the last message of the model. */
  #lastAnswerSeq = 0;
  #partial: Partial | undefined;
  /** The newest worker that had the session. */
  #activation = 0;
  #live: RunEvent[] = [];
  /** The next event ends an entry. */
  #endsEntry = false;
  #runId: string | undefined;

  constructor(numbers: EventNumbers) {
    this.numbers = numbers;
  }

  get isRunning(): boolean {
    return this.#state.isStreaming;
  }

  get state(): SessionView["state"] {
    const { messages, pending, error, usage } = this.#state.view();
    const { model, thinkingLevel = "off", systemPrompt = "" } = this.#settings;
    return {
      ...{ messages, pending, error, usage, model, thinkingLevel, systemPrompt },
      tools: [...this.#listOwnTools(), ...this.#clientTools.flatMap(({ tools }) => tools)],
    };
  }

  /** The names of all tools but those of a client. */
  listToolNames(except: string): string[] {
    const others = this.#clientTools.filter(({ client }) => client !== except);
    return [...this.#listOwnTools(), ...others.flatMap(({ tools }) => tools)].map(
      ({ name }) => name,
    );
  }

  #listOwnTools(): SessionView["state"]["tools"] {
    const { tools = [] } = this.#settings;
    return tools.map((name) => ({ name, description: this.#descriptions[name] ?? "" }));
  }

  /** The tools that clients have now. Those of clients that are gone stay until the run is over. */
  setClientTools(registered: readonly RegisteredTools[]): void {
    const known = new Set(registered.map(({ client }) => client));
    const gone = this.isRunning ? this.#clientTools.filter(({ client }) => !known.has(client)) : [];
    const before = JSON.stringify(this.#clientTools);
    this.#clientTools = [...gone, ...registered];
    this.#goneClients = new Set(gone.map(({ client }) => client));
    if (JSON.stringify(this.#clientTools) !== before) this.#events?.onSettings();
  }

  /** Calls of client tools that the run waits for. */
  listClientCalls(): ClientCall[] {
    return [...this.#clientCalls.values()].flatMap(({ call, isOpen }) => (isOpen ? [call] : []));
  }

  /** A call of the current or last run. */
  findClientCall(name: string): ClientCall | undefined {
    return this.#clientCalls.get(name)?.call;
  }

  /** Passes calls of client tools on from here. */
  handleCalls(handler: ClientCallHandler): void {
    this.#callHandler = handler;
  }

  /** Shows what a client tool reports to the clients of this server. */
  showUpdate(update: Omit<ToolUpdate, "type">): void {
    const event = { type: "tool_execution_update", ...update } as const;
    this.applyLive({ seq: this.numbers.seq, activation: this.#activation, event });
  }

  /** What the agent may do without approval. */
  get mode(): string | undefined {
    return this.#settings.mode;
  }

  /** The run that is suspended, or was the last to end. */
  get runId(): string | undefined {
    return this.#runId;
  }

  /** The number of the event before the current or last run. */
  get runAfter(): number {
    return numberEntry(this.#ends.at(this.isRunning ? -1 : -2) ?? 0);
  }

  /** The number of the event before the next run. */
  get nextRunAfter(): number {
    return numberEntry(this.#ends.at(-1) ?? 0);
  }

  /** The number of the event before the run that an entry belongs to. */
  findRunAfter(seq: number): number {
    return numberEntry(this.#ends.findLast((end) => end < seq) ?? 0);
  }

  /** The number of the event before the run that decided on a call; before the next, if none has. */
  findDecision(toolCallId: string): number {
    return this.findRunAfter(this.#decisions.get(toolCallId) ?? Infinity);
  }

  queued(queue: QueueName): readonly QueuedMessage[] {
    const sent = this.#sent.filter((item) => item.queue === queue && !this.hasQueued(item.id));
    return [...this.#queues[queue], ...sent.map(({ id, message }) => ({ id, message }))];
  }

  /** Whether a message waits in a queue, or has waited. */
  hasQueued(id: string): boolean {
    return this.#queuedIds.has(id);
  }

  /** Whether a run is over, for good or until it is continued. */
  hasEnded(run: string): boolean {
    return this.#endedRuns.has(run);
  }

  /** The answer to the request of a key. */
  findAnswer(key: string): Payload | undefined {
    return this.#answers.get(key);
  }

  /** What waits in the inbox of the session. */
  setInbox(items: readonly InboxItem[]): void {
    this.#sent = items.flatMap((item) => {
      try {
        return listAdded(item);
      } catch {
        // The worker reports what it cannot read, and leaves it out.
        return [];
      }
    });
  }

  subscribe(listener: AgentListener): () => void {
    const own: AgentListener = (event) => listener(event);
    this.#listeners = [...this.#listeners, own];
    return () => {
      this.#listeners = this.#listeners.filter((each) => each !== own);
    };
  }

  /** Reports from here on what is not an event of the agent. */
  report(events: MirrorEvents): void {
    this.#events = events;
  }

  /** The number of the event that is published now. */
  takeNumber(): number {
    return this.#endsEntry ? this.numbers.takeEntry() : this.numbers.takeBetween();
  }

  /** Applies the next entry of the log. */
  apply({ seq, activation, entry, end }: SessionEntry): void {
    this.#nodes.set(seq, {
      parentId: entry.parentId,
      ...(entry.type === "message" && { message: entry.message }),
    });
    if (activation > this.#activation) this.#change(activation);
    this.#readNotes(entry);
    if (this.#isRewriting) return this.#rewrite(seq, entry);
    const events = this.#listEvents(seq, entry, end);
    const last = events.pop();
    for (const event of events) this.#emit(event);
    this.numbers.enter(seq);
    if (last) this.#emitLast(last);
    if (end) this.#ends.push(seq);
    this.#followCalls(entry, end !== undefined);
    this.#followQueues(entry);
    const answered = readAnswered(entry);
    if (answered) this.#answers.set(answered.key, answered.answer);
    if (entry.type === "settings") this.#reportSettings();
    if (entry.type === "leaf") this.#branch(entry.parentId);
    this.#drainLive();
  }

  #readNotes(entry: Entry): void {
    this.#descriptions = readDescriptions(entry) ?? this.#descriptions;
    if (entry.type === "compaction") this.#compaction = entry;
    const rewrite = readRewrite(entry);
    if (!rewrite) return;
    this.#isRewriting = true;
    if (!rewrite.isReset) return;
    this.#state.error = undefined;
    this.#state.usage = {};
  }

  /** An entry of what takes the place of the transcript: it is shown as a whole. */
  #rewrite(seq: number, entry: Entry): void {
    this.numbers.enter(seq);
    this.#followQueues(entry);
    if (entry.type === "leaf") {
      this.#state.messages = [];
      this.#state.setPending([]);
      this.#lastAnswer = undefined;
    }
    if (entry.type === "message") this.#state.messages = [...this.#state.messages, entry.message];
    const answered = readAnswered(entry);
    if (!answered) return;
    this.#answers.set(answered.key, answered.answer);
    this.#isRewriting = false;
    this.#events?.onReset(true);
  }

  #followQueues(entry: Entry): void {
    if (entry.type === "queue") {
      const known = new Map([...this.#queues.steering, ...this.#queues.followUp].map(toPair));
      for (const [id, message] of (entry.messages ?? []).map(toPair)) known.set(id, message);
      const ids = entry.ids ?? [
        ...this.#queues[entry.queue].map(({ id }) => id),
        ...(entry.messages ?? []).map(({ id }) => id),
      ];
      this.#queues[entry.queue] = ids.flatMap((id) => {
        const message = known.get(id);
        return message ? { id, message } : [];
      });
      for (const id of ids) this.#queuedIds.add(id);
    } else if (entry.type === "message" && entry.queued !== undefined) {
      const { queued } = entry;
      for (const queue of ["steering", "followUp"] as const) {
        this.#queues[queue] = this.#queues[queue].filter(({ id }) => id !== queued);
      }
    } else if (entry.type === "leaf") {
      Object.assign(this.#queues, { steering: [], followUp: [] });
    }
  }

  #followCalls(entry: Entry, isEnd: boolean): void {
    const call = readClientCall(entry);
    if (call) {
      this.#clientCalls.set(call.call, { call, isOpen: true });
      this.#callHandler?.pass(call);
      return;
    }
    const canceled = readClientCancel(entry);
    for (const known of this.#clientCalls.values()) {
      const isOver =
        isEnd ||
        known.call.call === canceled ||
        (entry.type === "result" && entry.toolCallId === known.call.toolCallId);
      if (!isOver || !known.isOpen) continue;
      known.isOpen = false;
      this.#callHandler?.cancel(known.call);
    }
    if (!isEnd || this.#goneClients.size === 0) return;
    const gone = this.#goneClients;
    this.setClientTools(this.#clientTools.filter(({ client }) => !gone.has(client)));
  }

  /** Takes a live event: it is shown in its place, or not at all. */
  applyLive(event: RunEvent): void {
    this.#live.push(event);
    this.#drainLive();
  }

  #drainLive(): void {
    for (;;) {
      const [next] = this.#live;
      if (!next || next.seq > this.numbers.seq) return;
      // The results before it are shown first: they are about to be stored.
      if (next.event.type.startsWith("message_") && this.#answered.size > 0) {
        if (next.activation >= this.#activation) return;
      }
      this.#live.shift();
      if (this.#run && next.activation >= this.#activation) this.#show(next);
    }
  }

  #show({ seq, activation, event }: RunEvent): void {
    if (activation > this.#activation) this.#change(activation);
    if (!this.numbers.hasRoom) return;
    switch (event.type) {
      case "message_start":
      case "message_update":
        if (seq >= this.#lastAnswerSeq) this.#showMessage(activation, event);
        break;
      case "tool_execution_start":
      case "tool_execution_update":
        if (this.#finished.has(event.toolCallId)) break;
        for (const each of this.#beginCall(event.toolCallId, event.toolName)) this.#emit(each);
        if (event.type === "tool_execution_update") this.#emit(event);
        break;
      case "retry":
      case "waiting":
      case "fallback":
        this.#emit(event);
        break;
      default:
        break;
    }
  }

  #showMessage(
    activation: number,
    event: Extract<AgentEvent, { type: "message_start" | "message_update" }>,
  ): void {
    if (event.message.role !== "assistant") return;
    const isFirst = event.type === "message_start" || isFirstUpdate(event);
    const isOther = event.type === "message_start" || this.#partial?.hasContent;
    // A request that failed is made again, and its message begins again.
    if (isFirst && isOther) this.#dropPartial();
    if (!this.#partial) {
      this.#partial = { activation, isHidden: !isFirst, hasContent: false };
      if (!isFirst) return;
      const start = { type: "message_start", message: event.message } as const;
      for (const each of [...this.#openTurn(), start]) this.#emit(each);
    }
    if (event.type !== "message_update" || this.#partial.isHidden) return;
    this.#partial.hasContent = true;
    this.#emit(event);
  }

  /** Another worker goes on: the message that was on its way begins again. */
  #change(activation: number): void {
    this.#activation = activation;
    this.#dropPartial();
  }

  #dropPartial(): void {
    const partial = this.#partial;
    this.#partial = undefined;
    this.#state.streamMessage = undefined;
    if (partial && !partial.isHidden) this.#events?.onReset();
  }

  #listEvents(seq: number, entry: Entry, end: SessionEntry["end"]): AgentEvent[] {
    switch (entry.type) {
      case "message":
        return [...this.#begin(), ...this.#addMessage(seq, entry.message)];
      case "start":
        return this.#begin();
      case "begin":
        return [...this.#begin(), ...this.#beginCall(entry.toolCallId, entry.toolName)];
      case "decision":
        this.#decisions.set(entry.toolCallId, seq);
        return this.#begin();
      case "result":
        return [...this.#begin(), ...this.#endCall(entry)];
      case "end":
        return end ? [...this.#begin(), ...this.#end(end)] : [];
      case "settings":
        Object.assign(this.#settings, entry.settings);
        return [];
      case "custom":
        return this.#listCompaction(entry);
      default:
        return [];
    }
  }

  #listCompaction(note: Entry): AgentEvent[] {
    const compacted = readCompaction(note);
    if (!compacted) return [];
    const { before, after, reason, from, to } = compacted;
    const { message, shortened, facts } = this.#compaction ?? {};
    const compaction = {
      ...{ from, to },
      ...(message && { message }),
      ...(shortened && { shortened }),
      ...(facts && { facts }),
    };
    // It makes room for the next answer.
    return [...this.#openTurn(), { type: "compaction", before, after, reason, compaction }];
  }

  #begin(): AgentEvent[] {
    if (this.#run) return [];
    this.#run = { messages: [], turns: 0, usage: {}, turn: undefined };
    this.#finished.clear();
    this.#clientCalls.clear();
    return [{ type: "agent_start" }];
  }

  #openTurn(): AgentEvent[] {
    const run = this.#run;
    if (!run) return [];
    const { turn } = run;
    // Calls of an earlier run are answered before the first answer of this one, in its turn.
    if (turn && !turn.answer) return [];
    run.turn = { results: [] };
    return [...this.#closeTurn(turn), { type: "turn_start" }];
  }

  #closeTurn(turn: MirroredRun["turn"]): AgentEvent[] {
    const message = turn?.answer ?? this.#lastAnswer;
    if (!turn || !message || (!turn.answer && turn.results.length === 0)) return [];
    return [{ type: "turn_end", message, toolResults: turn.results }];
  }

  #addMessage(seq: number, message: AgentMessage): AgentEvent[] {
    const run = this.#run;
    const start = { type: "message_start", message } as const;
    const end = { type: "message_end", message } as const;
    run?.messages.push(message);
    if (message.role === "toolResult") {
      this.#answered.delete(message.toolCallId);
      const opening = run?.turn ? [] : this.#openTurn();
      run?.turn?.results.push(message);
      return [...opening, start, end];
    }
    if (message.role !== "assistant") return [...this.#openTurn(), start, end];
    const isShown = this.#partial && !this.#partial.isHidden;
    this.#partial = undefined;
    const opening = isShown ? [] : [...this.#openTurn(), start];
    this.#answered.clear();
    this.#lastAnswer = message;
    this.#lastAnswerSeq = seq;
    if (run) {
      run.turns++;
      run.usage = addUsage(run.usage, message.usage);
      run.turn = { answer: message, results: [] };
    }
    return [...opening, end];
  }

  #beginCall(toolCallId: string, toolName: string): AgentEvent[] {
    if (this.#executing.has(toolCallId)) return [];
    this.#executing.add(toolCallId);
    const args = this.#findCall(toolCallId)?.arguments ?? {};
    const opening = this.#run?.turn ? [] : this.#openTurn();
    return [...opening, { type: "tool_execution_start", toolCallId, toolName, args }];
  }

  #findCall(toolCallId: string): ToolCall | undefined {
    const calls = this.#lastAnswer ? listCalls(this.#lastAnswer) : [];
    return calls.find(({ id }) => id === toolCallId);
  }

  #endCall(entry: Extract<Entry, { type: "result" }>): AgentEvent[] {
    const { toolCallId, toolName, isError, reason, outcome = isError ? "error" : "ok" } = entry;
    const events = this.#beginCall(toolCallId, toolName);
    // Results that the loop made itself have both.
    const result = { ...entry.result, ...(reason !== undefined && { outcome, reason }) };
    this.#executing.delete(toolCallId);
    // A call that a tool has made has no message of its own.
    if (this.#findCall(toolCallId)) this.#answered.add(toolCallId);
    this.#finished.add(toolCallId);
    if (this.#run && result.usage) this.#run.usage = addUsage(this.#run.usage, result.usage);
    events.push({
      type: "tool_execution_end",
      ...{ toolCallId, toolName, result, outcome, isError, durationMs: 0 },
      ...(reason !== undefined && { reason }),
    });
    return events;
  }

  #end(end: NonNullable<SessionEntry["end"]>): AgentEvent[] {
    const run = this.#run;
    if (!run) return [];
    const asked = this.#beginAsked(run, end.pending);
    this.#run = undefined;
    this.#runId = end.run;
    if (end.pending.length === 0) this.#endedRuns.add(end.run);
    this.#partial = undefined;
    this.#executing.clear();
    this.#answered.clear();
    const finalMessage = run.messages.findLast((message) => message.role === "assistant");
    const event: AgentEndEvent = {
      type: "agent_end",
      ...{ messages: run.messages, stop: end.stop, turns: countTurns(run), usage: run.usage },
      ...{ undelivered: [], pending: end.pending },
      ...(finalMessage && { finalMessage }),
      ...(end.limit && { limit: end.limit }),
      ...(end.errorMessage !== undefined && { errorMessage: end.errorMessage }),
    };
    return [...asked, ...this.#closeTurn(run.turn), event];
  }

  /** Calls that the run has left to a person: their tools have not begun. */
  #beginAsked({ turn }: MirroredRun, pending: readonly PendingCall[]): AgentEvent[] {
    const own = new Set((turn?.answer ? listCalls(turn.answer) : []).map(({ id }) => id));
    const asked = pending.filter(({ toolCall }) => own.has(toolCall.id));
    return asked.flatMap(({ toolCall: { id, name } }) => this.#beginCall(id, name));
  }

  /** The conversation goes on behind another entry. */
  #branch(leaf: number | null): void {
    const messages: AgentMessage[] = [];
    for (let id = leaf; id !== null; id = this.#nodes.get(id)?.parentId ?? null) {
      const message = this.#nodes.get(id)?.message;
      if (message) messages.push(message);
    }
    this.#state.messages = messages.reverse();
    this.#events?.onReset();
  }

  #reportSettings(): void {
    this.#endsEntry = !this.#partial;
    this.#events?.onSettings();
    this.#endsEntry = false;
  }

  /** Where a message streams, what has come of it is another thing on every server. */
  #emitLast(event: AgentEvent): void {
    this.#endsEntry = !this.#partial;
    this.#emit(event);
    this.#endsEntry = false;
  }

  #emit(event: AgentEvent): void {
    this.#state.apply(event);
    for (const listener of this.#listeners) void listener(event);
  }
}

/** A turn in which calls were answered, and no model, counts as well. */
function countTurns({ turns, turn }: MirroredRun): number {
  return turn && !turn.answer && turn.results.length > 0 ? turns + 1 : turns;
}

function toPair({ id, message }: QueuedMessage): [string, AgentMessage] {
  return [id, message];
}

/** The messages that an item of the inbox adds to a queue. */
function listAdded({ kind, key, data }: InboxItem): (QueuedMessage & { queue: QueueName })[] {
  if (kind === "steering" || kind === "followUp") {
    const messages = decodeMessages(JSON.parse(data));
    const toId = (nth: number): string => (nth === 0 ? key : `${key}/${nth}`);
    return messages.map((message, nth) => ({ queue: kind, id: toId(nth), message }));
  }
  if (kind !== "request") return [];
  const request = readRequest(JSON.parse(data));
  if (request.type !== "queue" || request.op !== "add") return [];
  const { queue, id, message } = request;
  return [{ queue, id, message }];
}

function isFirstUpdate({
  assistantMessageEvent: event,
}: Extract<AgentEvent, { type: "message_update" }>): boolean {
  return (
    event.type === "start" ||
    ("contentIndex" in event && event.contentIndex === 0 && event.type.endsWith("_start"))
  );
}
