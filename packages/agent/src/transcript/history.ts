import {
  type AssistantMessage,
  hasContent,
  type Message,
  type ToolCall,
  type ToolResultMessage,
  type TranscriptProblem,
  TranscriptValidator,
} from "@gyre/ai";
import type { AgentMessage } from "../contract/types.ts";
import { markSources } from "./sources.ts";

/** What goes to the model, and what is wrong with it. */
export interface Outgoing {
  /** Grows with the run; valid until the next request. */
  messages: readonly Message[];
  problems: readonly TranscriptProblem[];
}

/** An assistant message whose calls are not all answered. */
export interface Unanswered {
  message: AssistantMessage;
  calls: ToolCall[];
}

/** Below this many messages, computing the outbox again is cheaper than remembering it. */
const REMEMBER_FROM_MESSAGES = 64;

/**
 * What is sent, built one message at a time. Custom roles and messages without
 * content are left out, and results that answer no call: a damaged file may have lost the call
 * (R19). An incomplete message without calls is held back: it is sent once a user
 * message follows it, and never where a later response took its place, so that no request ends
 * with half an answer.
 */
class Outbox {
  readonly sent: Message[];
  readonly validator: TranscriptValidator;
  #held: AssistantMessage | undefined;

  constructor(
    sent: Message[] = [],
    held?: AssistantMessage,
    validator: TranscriptValidator = new TranscriptValidator(),
  ) {
    this.sent = sent;
    this.#held = held;
    this.validator = validator;
  }

  append(message: AgentMessage): void {
    if (!isLlmMessage(message)) return;
    if (message.role === "toolResult") {
      if (!this.validator.awaits(message.toolCallId)) return;
    } else if (!hasContent(message)) return;
    if (isBrokenOffText(message)) {
      // Of several incomplete ones in a row, each started over.
      this.#held = message;
      return;
    }
    if (this.#held) {
      if (message.role === "user") this.#send(this.#held);
      this.#held = undefined;
    }
    this.#send(message);
  }

  /** A copy that continues on its own. Only for an outbox without problems. */
  fork(): Outbox {
    return new Outbox(this.sent.slice(), this.#held, this.validator.fork());
  }

  #send(message: Message): void {
    this.sent.push(markSources(message));
    this.validator.append(message);
  }
}

/** An outbox for a list that mostly grows: only new messages are processed. */
class RememberedOutbox {
  #seen: AgentMessage[] = [];
  #outbox = new Outbox();

  update(messages: readonly AgentMessage[]): Outbox {
    if (!startsWith(messages, this.#seen)) {
      this.#seen = [];
      this.#outbox = new Outbox();
    }
    for (let i = this.#seen.length; i < messages.length; i++) {
      const message = messages[i] as AgentMessage;
      this.#seen.push(message);
      this.#outbox.append(message);
    }
    return this.#outbox;
  }
}

/**
 * By the caller's list: the entry points of the loop are functions, and have no other object that
 * lasts from run to run. It makes a run on a long list that was seen before cheap.
 */
const outboxes = new WeakMap<readonly AgentMessage[], RememberedOutbox>();

/**
 * The transcript of one run: a copy of the caller's list that grows. Appending and asking what to
 * send cost the same however long it is; messages that earlier runs over the same list have
 * processed are not processed again.
 */
export class History {
  messages: AgentMessage[];
  #outbox: Outbox;
  #converted: RememberedOutbox | undefined;

  constructor(messages: readonly AgentMessage[]) {
    this.messages = messages.slice();
    this.#outbox = makeOutbox(messages);
  }

  append(message: AgentMessage): void {
    this.messages.push(message);
    this.#outbox.append(message);
  }

  hasCallId(id: string): boolean {
    return this.#outbox.validator.hasId(id);
  }

  outgoing(): Outgoing {
    return { messages: this.#outbox.sent, problems: this.#outbox.validator.finish() };
  }

  /** What to send of a list that the application's own functions made. */
  outgoingFrom(messages: readonly AgentMessage[]): Outgoing {
    this.#converted ??= new RememberedOutbox();
    const outbox = this.#converted.update(messages);
    return { messages: outbox.sent, problems: outbox.validator.finish() };
  }

  unanswered(): Unanswered[] {
    if (this.#outbox.validator.finish().length === 0) return [];
    const found: Unanswered[] = [];
    this.messages.forEach((message, index) => {
      if (!isAssistant(message)) return;
      const answered = new Set(listResultsAfter(this.messages, index).map((r) => r.toolCallId));
      const calls = listCalls(message).filter((call) => !answered.has(call.id));
      if (calls.length > 0) found.push({ message, calls });
    });
    return found;
  }

  /** Puts a result where it belongs: after its siblings' results, in call order. */
  insertResult(result: ToolResultMessage): void {
    this.messages = withResult(this.messages, result);
    this.#outbox = fillOutbox(this.messages);
  }
}

/**
 * The list with a result in its place: behind the message that made the call, in
 * the order of the calls; at the end where no message made it. Appends to the list
 * itself where that is the place, and makes a new one otherwise.
 */
export function withResult(messages: AgentMessage[], result: ToolResultMessage): AgentMessage[] {
  const place = findPlace(messages, result.toolCallId);
  if (place < messages.length) return messages.toSpliced(place, 0, result);
  messages.push(result);
  return messages;
}

function findPlace(messages: readonly AgentMessage[], callId: string): number {
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (!message || !isAssistant(message)) continue;
    const order = listCalls(message).map((call) => call.id);
    const rank = order.indexOf(callId);
    if (rank < 0) continue;
    const last = messages.at(-1) as AgentMessage;
    const isNext =
      rank === 0
        ? index === messages.length - 1
        : isToolResult(last) && last.toolCallId === order[rank - 1];
    if (isNext) return messages.length;
    let place = index + 1;
    for (const other of listResultsAfter(messages, index)) {
      if (order.indexOf(other.toolCallId) < rank) place = messages.indexOf(other, place) + 1;
    }
    return place;
  }
  return messages.length;
}

/** The tool calls of a message, in order. */
export function listCalls(message: AssistantMessage): ToolCall[] {
  const calls: ToolCall[] = [];
  for (const block of message.content) if (block.type === "toolCall") calls.push(block);
  return calls;
}

/** Whether a message is one that a model reads, and not the application's own. */
export function isLlmMessage(message: AgentMessage): message is Message {
  const { role } = message as { role: string };
  return role === "user" || role === "assistant" || role === "toolResult";
}

/** The default of `convertToLlm`: the messages without those of the application's own roles. */
export function defaultConvertToLlm(messages: readonly AgentMessage[]): Message[] {
  return messages.filter(isLlmMessage);
}

export function isAssistant(message: AgentMessage): message is AssistantMessage {
  return isLlmMessage(message) && message.role === "assistant";
}

export function isToolResult(message: AgentMessage): message is ToolResultMessage {
  return isLlmMessage(message) && message.role === "toolResult";
}

/** Whether a message broke off: by an error, an abort or a redirect. */
export function isIncomplete(message: AssistantMessage): boolean {
  const { stopReason } = message;
  return stopReason === "error" || stopReason === "aborted" || stopReason === "redirected";
}

/** Whether a message broke off and has no call, so that nothing answers it. */
export function isBrokenOffText(message: AgentMessage): message is AssistantMessage {
  return isAssistant(message) && isIncomplete(message) && listCalls(message).length === 0;
}

function listResultsAfter(messages: readonly AgentMessage[], index: number): ToolResultMessage[] {
  const results: ToolResultMessage[] = [];
  for (let i = index + 1; i < messages.length; i++) {
    const message = messages[i] as AgentMessage;
    if (!isLlmMessage(message)) continue;
    if (message.role !== "toolResult") break;
    results.push(message);
  }
  return results;
}

function makeOutbox(messages: readonly AgentMessage[]): Outbox {
  if (messages.length < REMEMBER_FROM_MESSAGES) return fillOutbox(messages);
  let known = outboxes.get(messages);
  if (!known) {
    known = new RememberedOutbox();
    outboxes.set(messages, known);
  }
  const outbox = known.update(messages);
  return outbox.validator.finish().length === 0 ? outbox.fork() : fillOutbox(messages);
}

function fillOutbox(messages: readonly AgentMessage[]): Outbox {
  const outbox = new Outbox();
  for (const message of messages) outbox.append(message);
  return outbox;
}

function startsWith(list: readonly AgentMessage[], start: readonly AgentMessage[]): boolean {
  if (list.length < start.length) return false;
  for (let i = 0; i < start.length; i++) if (list[i] !== start[i]) return false;
  return true;
}
