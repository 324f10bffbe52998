import { addUsage, type AssistantMessage, type ToolResultMessage, type Usage } from "@gyre/ai";
import type { Compaction } from "./contract/compaction.ts";
import type { AgentEvent, AgentMessage, PendingCall } from "./contract/types.ts";
import { isLlmMessage, withResult } from "./transcript/history.ts";

/** What the events of an agent say about it. */
export interface EventState {
  /** The transcript. A state that has none keeps no messages. */
  readonly messages?: AgentMessage[];
  /** A run goes on. */
  readonly isStreaming: boolean;
  /** The assistant message that is being streamed. */
  readonly streamMessage: AgentMessage | undefined;
  /** Ids of calls that run, or wait for a decision. */
  readonly pendingToolCalls: ReadonlySet<string>;
  /** Calls that a suspended run left for a person to decide. */
  readonly pending: readonly PendingCall[];
  /** What went wrong in the last run, if anything did. */
  readonly error: string | undefined;
  /** Tokens and cost of all runs. */
  readonly usage: Usage;
  /** What is sent in place of a part of the messages, since the context was compacted. */
  readonly compaction: Compaction | undefined;
}

const NO_CALLS: ReadonlySet<string> = new Set();

/** The state of an agent of which no event has come yet. */
export function emptyEventState(): EventState {
  return {
    isStreaming: false,
    streamMessage: undefined,
    pendingToolCalls: NO_CALLS,
    pending: [],
    error: undefined,
    usage: {},
    compaction: undefined,
  };
}

/**
 * The state after an event: the one place where events become state, for an agent and for all
 * that follow one by its events. The old state is not changed, but for its list of messages,
 * which both share: a message that ends is added to it. A delta of the message that is being
 * streamed gives back the same state.
 */
export function reduceAgentState<S extends EventState>(state: S, event: AgentEvent): S {
  switch (event.type) {
    case "agent_start":
      return { ...state, isStreaming: true, pending: [], error: undefined };
    case "message_start":
      return { ...state, streamMessage: isAssistant(event.message) ? event.message : undefined };
    case "message_update":
      return state.streamMessage === event.message
        ? state
        : { ...state, streamMessage: event.message };
    case "message_end":
      return { ...withMessage(state, event.message), streamMessage: undefined };
    case "tool_execution_start":
      return {
        ...state,
        pendingToolCalls: new Set(state.pendingToolCalls).add(event.toolCallId),
      };
    case "tool_execution_end": {
      const pendingToolCalls = new Set(state.pendingToolCalls);
      pendingToolCalls.delete(event.toolCallId);
      return { ...state, pendingToolCalls };
    }
    case "compaction":
      return { ...state, compaction: event.compaction };
    case "turn_end": {
      const { errorMessage } = event.message;
      return errorMessage ? { ...state, error: errorMessage } : state;
    }
    case "agent_end":
      return {
        ...withPendingCalls(state, event.pending),
        isStreaming: false,
        streamMessage: undefined,
        usage: addUsage(state.usage, event.usage),
      };
    case "turn_start":
    case "tool_execution_update":
    case "retry":
    case "fallback":
    case "limit":
      return state;
    default:
      // An event that a newer version has added.
      event satisfies never;
      return state;
  }
}

/** The state in which these calls wait for a person, and no other call is open. */
export function withPendingCalls<S extends EventState>(
  state: S,
  pending: readonly PendingCall[],
): S {
  const ids = new Set(pending.map(({ toolCall }) => toolCall.id));
  return { ...state, pending, pendingToolCalls: ids };
}

function withMessage<S extends EventState>(state: S, message: AgentMessage): S {
  const { messages } = state;
  if (!messages) return state;
  if (isToolResult(message)) return { ...state, messages: withResult(messages, message) };
  messages.push(message);
  return state;
}

export function isAssistant(message: AgentMessage): message is AssistantMessage {
  return isLlmMessage(message) && message.role === "assistant";
}

export function isToolResult(message: AgentMessage): message is ToolResultMessage {
  return isLlmMessage(message) && message.role === "toolResult";
}
