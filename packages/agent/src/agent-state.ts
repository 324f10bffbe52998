import { addUsage, type ToolCall, type ToolResultMessage, type Usage } from "@gyre/ai";
import type { Compaction } from "./contract/compaction.ts";
import type { AgentEvent, AgentMessage, PendingCall } from "./contract/types.ts";
import { ABORTED_TEXT } from "./loop/failed-message.ts";
import { isAssistant, isToolResult, listCalls, withResult } from "./transcript/history.ts";

/**
 * What the events of an agent say about it: the one place where events become state, for an
 * agent and for all that follow one by its events. An event changes the state in place, at a cost
 * that depends neither on the length of the transcript nor on the number of running calls.
 */
export class EventState {
  /** The transcript. */
  messages: AgentMessage[];
  /** A run goes on. */
  isStreaming = false;
  /** The assistant message that is being streamed. */
  streamMessage: AgentMessage | undefined = undefined;
  /** Ids of calls that run, or wait for a decision. */
  readonly pendingToolCalls: Set<string> = new Set();
  /** Calls that a suspended run left for a person to decide. */
  pending: readonly PendingCall[] = [];
  /** What went wrong in the last run, if anything did. */
  error: string | undefined = undefined;
  /** Tokens and cost of all runs. */
  usage: Usage = {};
  /** What is sent in place of a part of the messages, since the context was compacted. */
  compaction: Compaction | undefined = undefined;
  /** The calls of the message whose results arrive, and where the next of them is looked for. */
  #calls: readonly ToolCall[] = [];
  #nextCall = 0;
  #lastResult: ToolResultMessage | undefined = undefined;

  constructor(messages: AgentMessage[] = []) {
    this.messages = messages;
  }

  apply(event: AgentEvent): void {
    switch (event.type) {
      case "message_update":
        this.streamMessage = event.message;
        break;
      case "message_start":
        this.streamMessage = isAssistant(event.message) ? event.message : undefined;
        break;
      case "message_end":
        this.streamMessage = undefined;
        this.#addMessage(event.message);
        break;
      case "tool_execution_start":
        this.pendingToolCalls.add(event.toolCallId);
        break;
      case "tool_execution_end":
        this.pendingToolCalls.delete(event.toolCallId);
        break;
      case "turn_end":
        this.error = event.message.errorMessage || this.error;
        break;
      case "compaction":
        this.compaction = event.compaction;
        break;
      case "agent_start":
        this.isStreaming = true;
        this.pending = [];
        this.error = undefined;
        break;
      case "agent_end":
        this.isStreaming = false;
        this.streamMessage = undefined;
        this.usage = addUsage(this.usage, event.usage);
        this.error = event.errorMessage ?? this.error;
        // No message says so where tools ran.
        if (event.stop === "aborted") this.error ??= ABORTED_TEXT;
        this.setPending(event.pending);
        break;
      case "turn_start":
        // A turn that failed is followed by another only where the prompt goes on.
        this.error = undefined;
        break;
      case "tool_execution_update":
      case "waiting":
      case "retry":
      case "fallback":
      case "limit":
        break;
      default:
        // An event that a newer version has added.
        event satisfies never;
    }
  }

  /** These calls wait for a person, and no other call is open. */
  setPending(pending: readonly PendingCall[]): void {
    this.pending = pending;
    this.pendingToolCalls.clear();
    for (const { toolCall } of pending) this.pendingToolCalls.add(toolCall.id);
  }

  #addMessage(message: AgentMessage): void {
    if (isToolResult(message) && !this.#belongsAtEnd(message)) {
      this.messages = withResult(this.messages, message);
    } else this.messages.push(message);
  }

  /** Results arrive in call order: of those that only results precede, none is searched a place. */
  #belongsAtEnd(result: ToolResultMessage): boolean {
    const last = this.messages.at(-1);
    if (last && isAssistant(last)) {
      this.#calls = listCalls(last);
      this.#nextCall = 0;
    } else if (!last || last !== this.#lastResult) return false;
    while (this.#nextCall < this.#calls.length) {
      if (this.#calls[this.#nextCall++]?.id !== result.toolCallId) continue;
      this.#lastResult = result;
      return true;
    }
    return false;
  }
}
