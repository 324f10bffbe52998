import { addUsage, type ToolCall, type ToolResultMessage, type Usage } from "@gyre/ai";
import type { Compaction } from "../contract/compaction.ts";
import type { AgentEvent, AgentMessage, InterruptedRun, PendingCall } from "../contract/types.ts";
import { ABORTED_TEXT } from "../loop/failed-message.ts";
import { isAssistant, isToolResult, listCalls, withResult } from "../transcript/history.ts";

/** What `EventState` holds, as it was at one moment. */
export interface EventView extends Readonly<
  Pick<
    EventState,
    "isStreaming" | "streamMessage" | "streamVersion" | "pending" | "error" | "usage" | "compaction"
  >
> {
  readonly messages: readonly AgentMessage[];
  readonly pendingToolCalls: ReadonlySet<string>;
}

const NO_CALLS: ReadonlySet<string> = new Set();

/** `before` where `now` has the same values, so that a view can compare states by identity. */
export function keepIdentity<T extends object>(before: T | undefined, now: T): T {
  if (!before) return now;
  for (const name in now) if (!Object.is(before[name], now[name])) return now;
  return before;
}

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
  /** Counts what happened to the streamed message, which grows in place. */
  streamVersion = 0;
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
  /** The run that a crash cut off, until the next one starts. */
  interrupted: InterruptedRun | undefined = undefined;
  /** The calls of the message whose results arrive, and where the next of them is looked for. */
  #calls: readonly ToolCall[] = [];
  #nextCall = 0;
  #lastResult: ToolResultMessage | undefined = undefined;
  /** Copies of the lists for `view`, and what they are copies of. */
  #shown: { from: readonly AgentMessage[]; messages: readonly AgentMessage[] } | undefined;
  #shownCalls: ReadonlySet<string> = NO_CALLS;

  constructor(messages: AgentMessage[] = []) {
    this.messages = messages;
  }

  /**
   * The state as it is now, in lists that stay as they are: the same lists as before where
   * nothing was added, so that a view can compare by identity. Costs the same for any transcript,
   * except once after each new message.
   */
  view(): EventView {
    const { messages, isStreaming, streamMessage, streamVersion, pending, error, usage } = this;
    const isSame =
      this.#shown?.from === messages && this.#shown.messages.length === messages.length;
    if (!isSame) this.#shown = { from: messages, messages: [...messages] };
    const calls = this.pendingToolCalls;
    if (
      calls.size !== this.#shownCalls.size ||
      [...calls].some((id) => !this.#shownCalls.has(id))
    ) {
      this.#shownCalls = new Set(calls);
    }
    return {
      messages: this.#shown?.messages ?? [],
      isStreaming,
      streamMessage,
      streamVersion,
      pendingToolCalls: this.#shownCalls,
      pending,
      error,
      usage,
      compaction: this.compaction,
    };
  }

  apply(event: AgentEvent): void {
    switch (event.type) {
      case "message_update":
        this.streamVersion++;
        this.streamMessage = event.message;
        break;
      case "message_start":
        this.streamVersion++;
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
        this.interrupted = undefined;
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
