import {
  type AgentEvent,
  type AgentMessage,
  type AgentToolResult,
  type Decision,
  type InterruptedRun,
  listCalls,
  type Middleware,
  type PendingCall,
  type QueueChange,
  type QueuedMessage,
  type QueueName,
  readDecisions,
} from "@gyre/agent";
import type { Entry, EntryBody } from "./format/entry.ts";
import { isSame } from "./format/same.ts";
import { Transcript } from "./format/transcript.ts";
import type { Session, SessionContext } from "./format/types.ts";

/** What is left in a queue of up to so many is written with each message that is delivered. */
const MAX_LISTED = 16;

type CompactionEvent = Extract<AgentEvent, { type: "compaction" }>;
type CompactionEntry = Extract<Entry, { type: "compaction" }>;
type ToolEndEvent = Extract<AgentEvent, { type: "tool_execution_end" }>;

/**
 * Writes what an agent does into a session. It is the agent's sink (R25): messages, results
 * of calls and compactions are on the disk before a listener gets them, and so are the calls that a
 * suspended run leaves pending. It also writes when a run starts and ends.
 */
export interface Journal {
  (event: AgentEvent): void | Promise<void>;
  /**
   * For the end of the agent's list, behind all that asks: writes that a call begins before its
   * tool runs. With it, a call that did not begin before a crash is known not to have begun.
   */
  readonly middleware: Middleware;
  /** For the agent's option of this name. `saved()` says when it is on the disk. */
  readonly onQueueChange: (change: QueueChange) => void;
  /** Writes that a person is about to be asked about a call: for middleware that waits itself. */
  ask(toolCallId: string, question: Omit<PendingCall, "toolCall">): Promise<void>;
  /**
   * Writes a person's answers to what was asked, before they are acted on. Rejects on what is no
   * decision, and on one about a call that is not open; nothing is written then.
   */
  decide(decisions: Readonly<Record<string, Decision>>): Promise<void>;
  /** Settles when the changes of the queues so far are on the disk. Rejects where that failed. */
  saved(): Promise<void>;
}

/**
 * A journal for one agent whose messages come from its runs alone: after `replaceMessages` and the
 * like, branch and create a new one. `context` is what the agent began with; without it, that of
 * the session.
 */
export function createJournal(session: Session, context?: SessionContext): Journal {
  let notes: Promise<JournalWriter> | undefined;
  let saving: Promise<void> | undefined;
  let recordsBegins = false;
  let isStarting = false;
  const start = async (): Promise<JournalWriter> =>
    new JournalWriter(session, context ?? (await session.context()));
  const write = (act: (writer: JournalWriter) => Promise<void>): Promise<void> => {
    notes ??= start();
    return notes.then(act);
  };
  const sink = (event: AgentEvent): void | Promise<void> => {
    if (event.type === "agent_start") isStarting = true;
    if (!isWritten(event)) return undefined;
    const isFirst = isStarting;
    isStarting = false;
    return write((writer) => writer.write(event, isFirst, recordsBegins));
  };
  return Object.assign(sink, {
    middleware: {
      run: () => void (recordsBegins = true),
      async tool({ toolCall, tool, parentId }, next) {
        // A tool that runs again after a crash needs none, nor does one that a tool calls.
        if (!tool.idempotent && parentId === undefined) {
          await write((writer) => writer.begin(toolCall.id, tool.name));
        }
        return next();
      },
    } satisfies Middleware,
    onQueueChange(change: QueueChange) {
      saving = write((writer) => writer.queue(change));
      // `saved` reports it.
      saving.catch(() => {});
    },
    ask: (id: string, question: Omit<PendingCall, "toolCall">) =>
      write((writer) => writer.ask(id, question)),
    decide: (decisions: Readonly<Record<string, Decision>>) =>
      write((writer) => writer.decide(decisions)),
    async saved() {
      await saving;
      await notes?.then((writer) => writer.flush());
    },
  });
}

type WrittenEvent = Extract<
  AgentEvent,
  {
    type:
      | "message_end"
      | "tool_execution_start"
      | "tool_execution_end"
      | "compaction"
      | "agent_end";
  }
>;

function isWritten(event: AgentEvent): event is WrittenEvent {
  switch (event.type) {
    case "message_end":
    case "tool_execution_start":
    case "tool_execution_end":
    case "compaction":
    case "agent_end":
      return true;
    default:
      return false;
  }
}

/** The message that was added at the end of a queue, where nothing else has changed. */
function findAdded(
  before: readonly QueuedMessage[],
  messages: readonly QueuedMessage[],
): QueuedMessage | undefined {
  const added = messages.at(-1);
  // What a run has taken is before the others, and not among the messages.
  const taken = before.length - (messages.length - 1);
  if (!added || taken < 0) return undefined;
  const isSame = messages.every((item, nth) => {
    const old = before[taken + nth];
    return item === added ? old === undefined : old?.id === item.id && old.message === item.message;
  });
  return isSame && !before.some(({ id }) => id === added.id) ? added : undefined;
}

class JournalWriter {
  readonly #session: Session;
  readonly #context: SessionContext;
  /** What the agent's own list of messages is, with the entries. */
  readonly #transcript: Transcript;
  /** The questions that the file has no answer to, by call id. */
  readonly #questions = new Map<string, Omit<PendingCall, "toolCall">>();
  readonly #begun = new Set<string>();
  /** Calls that middleware has asked about: those of other agents, too. */
  readonly #asked = new Set<string>();
  /** What waits, as the file has it. */
  readonly #queues: Record<QueueName, QueuedMessage[]>;
  /** Queues whose order has changed since. */
  readonly #unordered = new Set<QueueName>();
  /** The run that was cut off, until another has started. */
  #interrupted: InterruptedRun | undefined;
  /** The run has no answer yet: a prompt may come. */
  #mayPrompt = false;

  constructor(session: Session, context: SessionContext) {
    this.#session = session;
    this.#context = context;
    this.#interrupted = context.interrupted;
    this.#transcript = new Transcript(context.messages, context.entries);
    for (const { toolCall, ...question } of context.pending) {
      this.#questions.set(toolCall.id, question);
    }
    const { steering, followUp } = context.queued;
    this.#queues = { steering: [...steering], followUp: [...followUp] };
  }

  /** `isFirst`: of its run. What is written is written together. */
  async write(event: WrittenEvent, isFirst: boolean, recordsBegins: boolean): Promise<void> {
    if (isFirst) this.#mayPrompt = true;
    const isPrompt =
      this.#mayPrompt && event.type === "message_end" && this.#isPrompt(event.message);
    const { durationMs } = (isPrompt ? undefined : this.#interrupted) ?? {};
    const start: EntryBody = { type: "start", ...(durationMs !== undefined && { durationMs }) };
    const before = isFirst && !isPrompt ? this.#session.append(start) : undefined;
    const writing = this.#write(event, recordsBegins);
    const after = isPrompt ? this.#session.append(start) : undefined;
    if (isPrompt || (event.type === "message_end" && event.message.role === "assistant")) {
      this.#mayPrompt = false;
    }
    await Promise.all([before, writing, after]);
  }

  #isPrompt(message: AgentMessage): boolean {
    if (message.role === "assistant" || message.role === "toolResult") return false;
    const { steering, followUp } = this.#queues;
    return ![...steering, ...followUp].some((item) => item.message === message);
  }

  async #write(event: WrittenEvent, recordsBegins: boolean): Promise<void> {
    switch (event.type) {
      case "message_end":
        return this.#message(event.message, recordsBegins);
      case "tool_execution_start":
        // Where nothing says when the tool runs, a question counts as answered from here on.
        if (recordsBegins || !this.#questions.has(event.toolCallId)) return undefined;
        return this.begin(event.toolCallId, event.toolName);
      case "tool_execution_end":
        return this.#result(event);
      case "compaction":
        await this.#session.append(await this.#compaction(event));
        return undefined;
      case "agent_end":
        this.#interrupted = undefined;
        await Promise.all([
          this.#suspend(event.pending),
          this.#session.append({ type: "end", stop: event.stop }),
        ]);
        return undefined;
      default:
        return event satisfies never;
    }
  }

  async begin(toolCallId: string, toolName: string): Promise<void> {
    if (this.#begun.has(toolCallId)) return;
    this.#begun.add(toolCallId);
    this.#questions.delete(toolCallId);
    await this.#session.append({ type: "begin", toolCallId, toolName });
  }

  /** A call that has begun may be one that asks for others, as an agent of its own does. */
  async ask(toolCallId: string, question: Omit<PendingCall, "toolCall">): Promise<void> {
    this.#asked.add(toolCallId);
    if (this.#begun.has(toolCallId) || !this.#transcript.unanswered().has(toolCallId)) return;
    await this.#wait(toolCallId, question);
  }

  async #wait(toolCallId: string, question: Omit<PendingCall, "toolCall">): Promise<void> {
    if (isSame(this.#questions.get(toolCallId), question)) return;
    this.#questions.set(toolCallId, question);
    this.#begun.delete(toolCallId);
    await this.#session.append({ type: "pending", toolCallId, ...question });
  }

  async decide(decisions: Readonly<Record<string, Decision>>): Promise<void> {
    this.#assertOpen(Object.keys(readDecisions(decisions)));
    const writes = Object.entries(decisions).map(async ([toolCallId, decision]) => {
      const question = this.#questions.get(toolCallId);
      if (decision.type === "wait" || !question) return;
      this.#questions.delete(toolCallId);
      const { fingerprint } = question;
      const isExact = decision.type === "approve" && fingerprint !== undefined;
      await this.#session.append({
        type: "decision",
        toolCallId,
        // What is approved is what was asked about.
        decision: isExact ? { fingerprint, ...decision } : decision,
      });
    });
    await Promise.all(writes);
  }

  /** A call may be decided on again, and middleware may get an answer after its call has ended. */
  #assertOpen(ids: readonly string[]): void {
    const open = this.#transcript.unanswered();
    for (const id of ids) {
      if (open.has(id) || this.#asked.has(id)) continue;
      const list = [...open.keys()].join(", ") || "none";
      throw new Error(`No call "${id}" waits for a decision. Open calls: ${list}.`);
    }
  }

  /** What a run has taken is not among the messages, and waits in the file until it is delivered. */
  async queue({ queue, messages, removed }: QueueChange): Promise<void> {
    const before = this.#queues[queue];
    const added = removed.length === 0 ? findAdded(before, messages) : undefined;
    if (added && !this.#unordered.has(queue)) return this.#add(queue, added);
    const known = new Map(before.map(({ id, message }) => [id, message]));
    const gone = new Set([...removed, ...messages.map(({ id }) => id)]);
    const after = [...before.filter(({ id }) => !gone.has(id)), ...messages];
    const changed = messages.filter(({ id, message }) => known.get(id) !== message);
    this.#queues[queue] = after;
    // What was removed may be sent as a prompt: it is written together with what is written next.
    this.#unordered.add(queue);
    if (changed.length === 0) return;
    try {
      await this.flush({ queue, messages: changed });
    } catch (error) {
      // The next change writes what this one could not.
      const lost = new Set(changed);
      this.#queues[queue] = this.#queues[queue].filter((item) => !lost.has(item));
      throw error;
    }
  }

  /** Writes what is added at the end, without what waits before it. */
  async #add(queue: QueueName, added: QueuedMessage): Promise<void> {
    this.#queues[queue].push(added);
    try {
      await this.#session.append({ type: "queue", queue, messages: [added] });
    } catch (error) {
      // The next change writes it.
      this.#queues[queue] = this.#queues[queue].filter((item) => item !== added);
      this.#unordered.add(queue);
      throw error;
    }
  }

  /** Writes the order of the queues where it has changed. */
  async flush(added?: Pick<QueueChange, "queue" | "messages">): Promise<void> {
    const writes = [...this.#unordered].map((queue) => {
      const ids = this.#queues[queue].map(({ id }) => id);
      const messages = added?.queue === queue && { messages: added.messages };
      return this.#session.append({ type: "queue", queue, ids, ...messages });
    });
    this.#unordered.clear();
    await Promise.all(writes);
  }

  async #message(message: AgentMessage, recordsBegins: boolean): Promise<void> {
    const begins = recordsBegins && message.role === "assistant" && listCalls(message).length > 0;
    // Answers and results never wait in a queue; messages of an application may.
    const isSent = message.role !== "assistant" && message.role !== "toolResult";
    const queued = isSent ? this.#deliver(message) : undefined;
    // In one write. The message alone says that it does not wait any more; the order of what is
    // left saves readers the search.
    const ordering = queued === undefined ? this.flush() : undefined;
    const writing = this.#session.append({
      type: "message",
      message,
      ...(begins && { begins }),
      ...(queued !== undefined && { queued }),
    });
    const [{ id }] = await Promise.all([writing, ordering ?? this.flush()]);
    this.#transcript.add(message, id);
  }

  /** Takes a message out of its queue; the id that it had there. */
  #deliver(message: AgentMessage): string | undefined {
    for (const queue of ["steering", "followUp"] as const) {
      const item = this.#queues[queue].find((each) => each.message === message);
      if (!item) continue;
      const left = this.#queues[queue].filter((each) => each !== item);
      this.#queues[queue] = left;
      // Of a long queue each delivery would write all that is left.
      if (left.length <= MAX_LISTED) this.#unordered.add(queue);
      return item.id;
    }
    return undefined;
  }

  async #result(event: ToolEndEvent): Promise<void> {
    this.#questions.delete(event.toolCallId);
    if (this.#isRecorded(event)) return;
    const { toolCallId, toolName, isError, outcome, reason } = event;
    // Once: they are fields of the entry.
    const { outcome: _outcome, reason: _reason, ...result } = event.result;
    await this.#session.append({
      type: "result",
      toolCallId,
      toolName,
      result,
      isError,
      outcome,
      ...(reason !== undefined && { reason }),
    });
  }

  async #suspend(pending: readonly PendingCall[]): Promise<void> {
    await Promise.all(
      pending.map(({ toolCall, ...question }) => this.#wait(toolCall.id, question)),
    );
  }

  /** Whether this is a result that was found in the file and is used now (R19). */
  #isRecorded({ toolCallId, result }: ToolEndEvent): boolean {
    const recorded = this.#context.unfinished(toolCallId);
    if (typeof recorded !== "object" || !("content" in recorded)) return false;
    return isSame(shown(recorded), shown(result));
  }

  async #compaction({ compaction }: CompactionEvent): Promise<EntryBody> {
    const { from, to, message, shortened, facts } = compaction;
    const more = { ...(shortened && { shortened }), ...(facts && { facts }) };
    if (!message) return { type: "compaction", first: 0, until: 0, ...more };
    const { entries } = this.#transcript;
    const earlier = await this.#earlier(entries[from]);
    // Where there is nothing to stand for, it stands behind all there is.
    const first = earlier?.first ?? entries[from] ?? (this.#session.leaf ?? 0) + 1;
    const until = entries[to] ?? null;
    const body = { type: "compaction", first, until, message, ...more } as const;
    const isBetween = (id: number): boolean => id >= first && (until === null || id < until);
    const isSimple = entries.every((id, index) => {
      if (earlier && index === from) return !earlier.entries;
      return isBetween(id) === (index >= from && index < to);
    });
    if (isSimple) return body;
    const kept = new Set(entries.toSpliced(from, to - from));
    const messages = new Set(this.#session.findIds("message"));
    const left = this.#session.findBranch().filter((id) => messages.has(id) && !kept.has(id));
    return { ...body, entries: left };
  }

  /** The compaction that made a message, if one did: what it stands for is taken over. */
  async #earlier(id: number | undefined): Promise<CompactionEntry | undefined> {
    const entry = id === undefined ? undefined : await this.#session.read(id);
    return entry?.type === "compaction" ? entry : undefined;
  }
}

/** The parts of a result that the model and people see. */
function shown({ content, details, isError = false }: AgentToolResult): unknown {
  return { content, details, isError };
}
