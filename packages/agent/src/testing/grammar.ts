import type { AssistantMessage, ToolCall, ToolResultMessage } from "@gyre/ai";
import { isToolResult, listCalls, withResult } from "../transcript/history.ts";
import type { AgentEvent, AgentMessage } from "../contract/types.ts";

/** Where in a run the last event was. */
type Place =
  | "before the run"
  | "between turns"
  | "repairing"
  | "injecting"
  | "compacting"
  | "retrying"
  | "in a message"
  | "in the answer"
  | "answering calls"
  | "after a limit"
  | "after the run";

/** How far into a turn each place is: within a turn they only go up. */
const ORDER: readonly Place[] = [
  "between turns",
  "repairing",
  "injecting",
  "compacting",
  "retrying",
  "in the answer",
  "answering calls",
];

/**
 * The event grammar of a run (R1-R4) as a machine that takes events one by one and
 * throws at the first that may not come, saying which and why. Prompts are taken to
 * be anything but assistant messages.
 */
export class Grammar {
  #place: Place = "before the run";
  /** Where to go on when the message that is open has ended. */
  #after: Place = "between turns";
  #open: AgentMessage | undefined;
  #answer: AssistantMessage | undefined;
  #calls: ToolCall[] = [];
  #nextResult = 0;
  #running = new Set<string>();
  #ended = new Set<string>();
  #results: ToolResultMessage[] = [];
  readonly #ownIds = new Set<string>();
  /** Calls that no result came for: they must be pending at the end. */
  readonly #unanswered = new Set<string>();
  readonly #messages: AgentMessage[] = [];
  #turns: number;
  readonly #isResumed: boolean;
  #count = 0;

  /** `earlier`: turns of the run that a crash cut off, and that this one goes on with. */
  constructor(earlier = 0) {
    this.#turns = earlier;
    this.#isResumed = earlier > 0;
  }

  get isOver(): boolean {
    return this.#place === "after the run";
  }

  accept(event: AgentEvent): void {
    this.#count++;
    switch (event.type) {
      case "agent_start":
        this.#expect(this.#place === "before the run", event, "a run starts once");
        this.#place = "between turns";
        break;
      case "turn_start":
        this.#expect(this.#place === "between turns", event, "turns do not overlap");
        this.#turns++;
        this.#place = "repairing";
        this.#answer = undefined;
        this.#calls = [];
        this.#nextResult = 0;
        this.#results = [];
        this.#ended.clear();
        break;
      case "message_start":
        this.#messageStart(event);
        break;
      case "message_update":
        this.#expect(this.#place === "in a message", event, "no message is open");
        this.#expect(this.#open?.role === "assistant", event, "only an answer is streamed");
        break;
      case "message_end":
        this.#messageEnd(event);
        break;
      case "tool_execution_start":
      case "tool_execution_update":
      case "tool_execution_end":
        this.#tool(event);
        break;
      case "waiting":
        if (this.#place === "in a message") {
          this.#expect(this.#open?.role === "assistant", event, "only an answer is waited for");
        } else this.#goTo("retrying", event);
        break;
      case "retry":
        this.#goTo("retrying", event);
        break;
      case "fallback":
        this.#goTo("retrying", event);
        // The next model may need a smaller context, and has retries of its own.
        this.#place = "compacting";
        break;
      case "compaction":
        // A service that would not take so much is asked again with less.
        if (this.#place === "retrying") this.#place = "compacting";
        this.#goTo("compacting", event);
        break;
      case "turn_end":
        this.#turnEnd(event);
        break;
      case "limit":
        this.#expect(this.#place === "between turns", event, "a limit is reported after a turn");
        this.#place = "after a limit";
        break;
      case "agent_end":
        this.#agentEnd(event);
        break;
      default:
        event satisfies never;
    }
  }

  #messageStart(event: Extract<AgentEvent, { type: "message_start" }>): void {
    const { message } = event;
    if (message.role === "assistant") this.#goTo("in the answer", event);
    else if (message.role === "toolResult") {
      const may = this.#place === "repairing" || this.#place === "answering calls";
      this.#expect(may, event, "a result follows its call");
      this.#expect(this.#ended.has(message.toolCallId), event, "its call has not ended");
    } else this.#goTo("injecting", event);
    this.#after = this.#place;
    this.#place = "in a message";
    this.#open = message;
  }

  #messageEnd(event: Extract<AgentEvent, { type: "message_end" }>): void {
    const { message } = event;
    this.#expect(this.#place === "in a message", event, "no message is open");
    this.#expect(this.#open?.role === message.role, event, "another message is open");
    this.#open = undefined;
    this.#messages.push(message);
    this.#place = this.#after;
    if (message.role === "assistant") {
      this.#answer = message;
      this.#results = [];
      this.#calls = listCalls(message);
      for (const { id } of this.#calls) {
        this.#expect(!this.#ownIds.has(id), event, `the call id ${id} was used before`);
        this.#ownIds.add(id);
      }
      this.#place = "answering calls";
    } else if (message.role === "toolResult") this.#result(event, message);
  }

  #result(event: AgentEvent, message: ToolResultMessage): void {
    const { toolCallId } = message;
    this.#expect(this.#ended.delete(toolCallId), event, "its call has a result already");
    this.#results.push(message);
    this.#unanswered.delete(toolCallId);
    if (!this.#answer) return;
    const rank = this.#calls.findIndex(({ id }) => id === toolCallId);
    this.#expect(rank >= 0, event, "the answer has no such call");
    this.#expect(rank >= this.#nextResult, event, "results come in call order");
    this.#nextResult = rank + 1;
  }

  #tool(event: Extract<AgentEvent, { toolCallId: string }>): void {
    const { toolCallId: id } = event;
    const may = this.#place === "repairing" || this.#place === "answering calls";
    this.#expect(may, event, "tools run after an answer, or before anything else of a turn");
    if (event.type === "tool_execution_start") {
      this.#expect(!this.#running.has(id) && !this.#ended.has(id), event, "it has started already");
      const known = !this.#answer || this.#calls.some((call) => call.id === id);
      this.#expect(known, event, "the answer has no such call");
      this.#running.add(id);
      return;
    }
    this.#expect(this.#running.has(id), event, "it is not running");
    if (event.type === "tool_execution_update") return;
    this.#running.delete(id);
    this.#ended.add(id);
  }

  #turnEnd(event: Extract<AgentEvent, { type: "turn_end" }>): void {
    const answered = this.#place === "answering calls";
    // A turn that only found that people have not decided yet has no answer of its own.
    const waits = this.#place === "repairing" || this.#place === "injecting";
    this.#expect(answered || waits, event, "the turn has no answer");
    if (waits && this.#isResumed) this.#turns--;
    if (answered) {
      this.#expect(event.message === this.#answer, event, "its message is not the turn's answer");
      const same = hasSame(event.toolResults, this.#results);
      this.#expect(same, event, "its results are not those of the turn");
    }
    this.#expect(this.#ended.size === 0, event, "a call has ended and has no result");
    for (const id of this.#running) this.#unanswered.add(id);
    const got = new Set(this.#results.map(({ toolCallId }) => toolCallId));
    for (const { id } of this.#calls) if (!got.has(id)) this.#unanswered.add(id);
    this.#running.clear();
    this.#place = "between turns";
  }

  #agentEnd(event: Extract<AgentEvent, { type: "agent_end" }>): void {
    const may = this.#place === "between turns" || this.#place === "after a limit";
    this.#expect(may && this.#turns > 0, event, "a turn is open, or there was none");
    const agrees = (this.#place === "after a limit") === (event.stop === "limit");
    this.#expect(agrees, event, "a limit is reported, and reported once");
    this.#expect(event.turns === this.#turns, event, `there were ${this.#turns} turns`);
    const same = hasSame(event.messages, this.#messages);
    this.#expect(same, event, "its messages are not those of this run's message_end events");
    const pending = new Set(event.pending.map(({ toolCall }) => toolCall.id));
    for (const id of this.#unanswered) {
      this.#expect(pending.has(id), event, `the call ${id} has neither a result nor a wait`);
    }
    this.#place = "after the run";
  }

  #goTo(place: Place, event: AgentEvent): void {
    const from = ORDER.indexOf(this.#place);
    const inTurn = from > 0 && from <= ORDER.indexOf(place);
    this.#expect(inTurn && this.#place !== "answering calls", event, "it is out of order");
    const again = place === "in the answer" && this.#place === place;
    this.#expect(!again, event, "a turn has one answer");
    // A call that was resumed may be waiting for a person; the end shows it.
    const left = this.#ended.size + (place === "injecting" ? 0 : this.#running.size);
    this.#expect(left === 0, event, "calls were left unanswered");
    this.#place = place;
  }

  #expect(holds: boolean, event: AgentEvent, why: string): void {
    if (holds) return;
    throw new Error(`Event ${this.#count} (${event.type}) may not come ${this.#place}: ${why}.`);
  }
}

function hasSame<T>(list: readonly T[], other: readonly T[]): boolean {
  return list.length === other.length && list.every((item, index) => item === other[index]);
}

/** Throws where events are not one whole run. */
export function checkGrammar(events: readonly AgentEvent[], earlier?: number): void {
  const grammar = new Grammar(earlier);
  for (const event of events) grammar.accept(event);
  if (!grammar.isOver) throw new Error("The run has no agent_end.");
}

/** What a transcript is after a run: new results in their places, all else at the end. */
export function transcriptAfter(
  before: readonly AgentMessage[],
  produced: readonly AgentMessage[],
): AgentMessage[] {
  let messages = [...before];
  for (const message of produced) {
    if (isToolResult(message)) messages = withResult(messages, message);
    else messages.push(message);
  }
  return messages;
}

/** Throws where a call has not exactly one result, in call order, next to its siblings (R8). */
export function checkPairs(
  messages: readonly AgentMessage[],
  pending: ReadonlySet<string> = new Set(),
): void {
  let index = 0;
  while (index < messages.length) {
    const message = messages[index++];
    if (message?.role === "toolResult") {
      throw new Error(`Message ${index - 1}: no call before it asked for "${message.toolCallId}".`);
    }
    if (message?.role !== "assistant") continue;
    for (const { id } of listCalls(message)) {
      if (pending.has(id)) continue;
      const answer = messages[index];
      if (answer?.role !== "toolResult" || answer.toolCallId !== id) {
        throw new Error(`Message ${index}: the result of call "${id}" should stand here.`);
      }
      index++;
    }
  }
}
