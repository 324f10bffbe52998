import type { AgentEndEvent, AgentEvent, AgentMessage, PendingCall } from "@gyre/agent";
import { listCalls } from "@gyre/agent";
import { type AssistantMessage, isRecord, type ToolResultMessage } from "@gyre/ai";
import type { CompactEvent, MessageHead } from "@gyre/ai/stream";
import { invalidRequest, type Payload, ProtocolError, WireMessageReader } from "@gyre/protocol";
import { isAssistant, type ReaderState } from "./wire-event.ts";

/** Where a reader begins, if not at the first event. */
export interface ReaderStart {
  messages: readonly AgentMessage[];
  state?: ReaderState;
}

/**
 * Restores the events of an agent from those on the wire, of `toWireEvent` and of
 * `WireEventWriter`. The message of an update is built here and live, as in the original. A message
 * that does not stream is reported when it is whole: its start comes with its end.
 */
export class WireEventReader {
  #assistant: WireMessageReader | undefined;
  /** Events after the start of a message that does not stream; they wait for its end. */
  #held: AgentEvent[] | undefined;
  #run: AgentMessage[] = [];
  #answer: AssistantMessage | undefined;
  readonly #results = new Map<string, ToolResultMessage>();
  readonly #args = new Map<string, Record<string, unknown>>();
  /** Messages with calls, by the id of the first. */
  readonly #callers = new Map<string, AssistantMessage>();

  constructor({ messages, state }: ReaderStart = { messages: [] }) {
    for (const message of messages) this.#note(message);
    if (!state) return;
    this.#run = state.run.flatMap((place) => messages[place] ?? []);
    if (state.hasAnswer) this.#answer = this.#run.findLast(isAssistant);
    for (const { toolCallId, args } of state.executing) this.#args.set(toolCallId, args);
    for (const event of state.open) this.read(event);
  }

  /** The partial message. */
  get partial(): AssistantMessage | undefined {
    return this.#assistant?.partial;
  }

  /**
   * The events that are complete with this one: often one, sometimes none. Throws `ProtocolError`
   * where it does not follow from those before it.
   */
  read(wire: { type: string; payload: Payload }): AgentEvent[] {
    const { type, payload } = wire;
    if (type === "message_start") {
      const head = payload["message"];
      if (isRecord(head) && head["role"] === "assistant") return this.#pass(this.#begin(head));
      this.#held = [];
      return [];
    }
    if (type === "message_end") return this.#endMessage(payload);
    if (type === "agent_end") {
      const { messages: _, ...end } = this.#end(payload);
      const held = this.#held ?? [];
      this.#held = undefined;
      return [...held, { ...end, messages: this.#run }];
    }
    return this.#pass(this.#event(type, payload));
  }

  #pass(event: AgentEvent): AgentEvent[] {
    if (!this.#held) return [event];
    this.#held.push(event);
    return [];
  }

  #begin(head: Record<string, unknown>): AgentEvent {
    // The fields of the service are not checked.
    this.#assistant = new WireMessageReader(head as unknown as MessageHead);
    return { type: "message_start", message: this.#assistant.partial };
  }

  #endMessage({ message, blocks }: Payload): AgentEvent[] {
    if (!isRecord(message)) throw missingError("message");
    const assistant = this.#assistant;
    const held = this.#held ?? [];
    this.#assistant = undefined;
    this.#held = undefined;
    const whole = Array.isArray(blocks)
      ? assistant?.finish({ message: message as unknown as MessageHead, blocks })
      : (message as unknown as AgentMessage);
    if (!whole) throw new ProtocolError("invalid_sequence", "A message ended that had not begun.");
    this.#note(whole);
    this.#run.push(whole);
    const end: AgentEvent = { type: "message_end", message: whole };
    if (isAssistant(whole)) {
      this.#answer = whole;
      return [...held, end];
    }
    return [{ type: "message_start", message: whole }, ...held, end];
  }

  #event(type: string, payload: Payload): AgentEvent {
    switch (type) {
      case "agent_start":
        this.#run = [];
        this.#args.clear();
        return { type };
      case "turn_start":
        this.#answer = undefined;
        return { type };
      case "message_update": {
        const { event } = payload;
        if (!this.#assistant || !isRecord(event)) throw missingError("event");
        const assistantMessageEvent = this.#assistant.read(event as CompactEvent);
        return { type, message: this.#assistant.partial, assistantMessageEvent };
      }
      case "tool_execution_start": {
        const { toolCallId, args } = payload;
        if (typeof toolCallId === "string" && isRecord(args)) this.#args.set(toolCallId, args);
        break;
      }
      case "tool_execution_update": {
        const args = this.#args.get(String(payload["toolCallId"])) ?? {};
        return { ...payload, type, args } as AgentEvent;
      }
      case "tool_execution_end":
        this.#args.delete(String(payload["toolCallId"]));
        break;
      case "turn_end":
        return this.#endTurn(payload);
      default:
        break;
    }
    // Other events travel as they are.
    return { ...payload, type } as AgentEvent;
  }

  #endTurn({ calls, toolResults }: Payload): AgentEvent {
    const ids = Array.isArray(toolResults) ? toolResults : [];
    // A turn that waits for a person has the message of an earlier one.
    const first: unknown = Array.isArray(calls) ? calls[0] : undefined;
    const message = this.#answer ?? this.#callers.get(String(first));
    if (!message) throw new ProtocolError("invalid_sequence", "A turn ended without its message.");
    return {
      type: "turn_end",
      message,
      toolResults: ids.flatMap((id) => this.#results.get(String(id)) ?? []),
    };
  }

  #end(payload: Payload): AgentEndEvent {
    const finalMessage = this.#run.findLast(isAssistant);
    const { undelivered = [], pending = [] } = payload;
    return {
      ...payload,
      type: "agent_end",
      ...(finalMessage && { finalMessage }),
      undelivered: undelivered as AgentMessage[],
      pending: pending as PendingCall[],
    } as AgentEndEvent;
  }

  #note(message: AgentMessage): void {
    if (isAssistant(message)) {
      const [first] = listCalls(message);
      if (first) this.#callers.set(first.id, message);
    } else if (isResult(message)) this.#results.set(message.toolCallId, message);
  }
}

function isResult(message: AgentMessage): message is ToolResultMessage {
  return message.role === "toolResult";
}

function missingError(key: string): ProtocolError {
  return invalidRequest(`"${key}" is missing, or came too early.`);
}
