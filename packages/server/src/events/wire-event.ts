import type { AgentEvent, AgentMessage } from "@gyre/agent";
import { callsOf, isLlmMessage } from "@gyre/agent";
import type { AssistantMessage } from "@gyre/ai";
import { CompactEventWriter, toCompactEvent, toMessageHead } from "@gyre/ai/stream";

/** An event as it travels: only what is new, never the message so far. */
export interface WireEvent {
  type: AgentEvent["type"];
  payload: Record<string, unknown>;
}

/** What a reader that comes later needs in order to go on, beside the messages. */
export interface ReaderState {
  /** Which messages are of the run that goes on, or was the last: places in the list. */
  run: number[];
  /** Whether the last assistant message is of the turn that goes on. */
  hasAnswer: boolean;
  /** Calls that run. */
  executing: { toolCallId: string; args: Record<string, unknown> }[];
  /** Events that build the message that is on its way. */
  open: WireEvent[];
}

/**
 * The event as plain data that is as long as what is new in it. An update of a message is
 * its delta; the other end builds the message from these. `message_start` has no content,
 * `message_end` has the whole message. `turn_end` and `agent_end` name what came before and
 * do not repeat it. The payload is valid for the call: it shares its parts with the event.
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
      const calls = callsOf(message).map(({ id }) => id);
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
 * The events of one agent on their way to readers that have all of them: what has streamed
 * of a message is not in its end again.
 */
export class WireEventWriter {
  #assistant: CompactEventWriter | undefined;
  /** The start of the message that is on its way. */
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

  /** For a reader that begins here, and is given `messages`. */
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

/** Whether a message is a model's. */
export function isAssistant(message: AgentMessage): message is AssistantMessage {
  return isLlmMessage(message) && message.role === "assistant";
}

/** What is known of a message when it begins. */
function toOpening(message: AgentMessage): object {
  if (isAssistant(message)) return toMessageHead(message);
  const { role } = message;
  if (!isLlmMessage(message) || message.role !== "toolResult") return { role };
  const { toolCallId, toolName } = message;
  return { role, toolCallId, toolName };
}
