import type { AgentEvent, AgentMessage } from "@gyre/agent";
import { listCalls, isLlmMessage } from "@gyre/agent";
import type { AssistantMessage } from "@gyre/ai";
import { CompactEventWriter, toCompactEvent, toMessageHead } from "@gyre/ai/stream";

/** An event on the wire: only its news, never the partial message. */
export interface WireEvent {
  type: AgentEvent["type"];
  payload: Record<string, unknown>;
}

/** The state that a reader which begins later needs, beside the messages. */
export interface ReaderState {
  /** Indexes of the messages of the current or last run. */
  run: number[];
  /** Whether the last assistant message belongs to the current turn. */
  hasAnswer: boolean;
  /** Calls that are running. */
  executing: { toolCallId: string; args: Record<string, unknown> }[];
  /** Events that build the partial message. */
  open: WireEvent[];
}

/**
 * The event as plain data without repetition. An update of a message is its delta, from which the
 * other end builds the message. `message_start` has no content, `message_end` has the whole message.
 * `turn_end` and `agent_end` refer to earlier messages and do not repeat them. The payload is valid
 * during the call: it shares its parts with the event.
 */
export function toWireEvent(event: AgentEvent): WireEvent {
  const { type } = event;
  switch (type) {
    case "message_start":
      return { type, payload: { message: toOpening(event.message) } };
    case "message_update":
      return { type, payload: { event: toCompactEvent(event.assistantMessageEvent) } };
    case "tool_execution_update": {
      const { toolCallId, toolName, partialResult } = event;
      return { type, payload: { toolCallId, toolName, partialResult } };
    }
    case "turn_end": {
      const { message, toolResults } = event;
      const calls = listCalls(message).map(({ id }) => id);
      const results = toolResults.map(({ toolCallId }) => toolCallId);
      return {
        type,
        payload: { stopReason: message.stopReason, calls, toolResults: results },
      };
    }
    case "agent_end": {
      const { type: _, messages: __, finalMessage: ___, ...payload } = event;
      return { type, payload };
    }
    default: {
      const { type: _, ...payload } = event;
      return { type, payload };
    }
  }
}

/**
 * Writes the events of one agent for readers that get all of them: the end of a message does not
 * repeat what has streamed.
 */
export class WireEventWriter {
  #assistant: CompactEventWriter | undefined;
  /** The start of the partial message. */
  #start: WireEvent | undefined;
  #run: AgentMessage[] = [];
  #hasAnswer = false;
  readonly #executing = new Map<string, Record<string, unknown>>();

  write(event: AgentEvent): WireEvent {
    const wire = toWireEvent(event);
    switch (event.type) {
      case "agent_start":
        this.#run = [];
        this.#executing.clear();
        break;
      case "turn_start":
        this.#hasAnswer = false;
        break;
      case "message_start":
        this.#start = wire;
        if (isAssistant(event.message)) this.#assistant = new CompactEventWriter(event.message);
        break;
      case "message_update":
        if (!this.#assistant) break;
        return { ...wire, payload: { event: this.#assistant.write(event.assistantMessageEvent) } };
      case "message_end":
        return this.#endMessage(event.message, wire);
      case "tool_execution_start":
        this.#executing.set(event.toolCallId, event.args);
        break;
      case "tool_execution_end":
        this.#executing.delete(event.toolCallId);
        break;
      case "agent_end":
        this.#start = undefined;
        this.#assistant = undefined;
        break;
      default:
        break;
    }
    return wire;
  }

  /** Forgets the partial message: it is not finished. */
  dropPartial(): void {
    this.#start = undefined;
    this.#assistant = undefined;
  }

  /** For a reader that begins here and has `messages`. */
  createReaderState(messages: readonly AgentMessage[]): ReaderState {
    const updates = this.#assistant?.listEvents() ?? [];
    const places = new Map(messages.map((message, place) => [message, place]));
    return {
      run: this.#run.flatMap((message) => places.get(message) ?? []),
      hasAnswer: this.#hasAnswer,
      executing: [...this.#executing].map(([toolCallId, args]) => ({ toolCallId, args })),
      open: [
        ...(this.#start ? [this.#start] : []),
        ...updates.map((event): WireEvent => ({ type: "message_update", payload: { event } })),
      ],
    };
  }

  #endMessage(message: AgentMessage, wire: WireEvent): WireEvent {
    const assistant = this.#assistant;
    this.#start = undefined;
    this.#assistant = undefined;
    this.#run.push(message);
    if (!isAssistant(message)) return wire;
    this.#hasAnswer = true;
    return assistant ? { ...wire, payload: { ...assistant.writeEnd(message) } } : wire;
  }
}

/** Whether a message is an assistant message. */
export function isAssistant(message: AgentMessage): message is AssistantMessage {
  return isLlmMessage(message) && message.role === "assistant";
}

/** The fields of a message at its start. */
function toOpening(message: AgentMessage): object {
  if (isAssistant(message)) return toMessageHead(message);
  const { role } = message;
  if (!isLlmMessage(message) || message.role !== "toolResult") return { role };
  const { toolCallId, toolName } = message;
  return { role, toolCallId, toolName };
}
