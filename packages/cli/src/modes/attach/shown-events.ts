import { type AgentEvent, type AgentMessage, listCalls } from "@gyre/agent";
import {
  type AssistantContent,
  type AssistantMessage,
  outcomeOf,
  type ToolResultMessage,
} from "@gyre/ai";
import type { RemoteState } from "@gyre/server/client";
import { listRestEvents } from "./rest-events.ts";

/**
 * Makes of the events of a session on a server those that an agent in this process would have: a run that waits for an
 * answer goes on as the same run, and what came in a snapshot in place of events comes as events, once.
 */
export class ShownEvents {
  readonly #emit: (event: AgentEvent) => void;
  /** Messages that a view has, by their keys. */
  #seen: Set<string>;
  /** The newest of them. */
  #last: string | undefined;
  /** As much of the message that is on its way as a view has. */
  #partial: AssistantMessage | undefined;
  /** Calls that a view shows as running. */
  readonly #open: Set<string>;
  /** Calls whose end it shows, until the run is over. */
  readonly #ended = new Set<string>();
  /** A run waits for an answer: the next one is its rest. */
  #isSuspended: boolean;
  #skipsTurn = false;

  /** A view has the messages of the state, and shows the calls without a result as running. */
  constructor(state: RemoteState, emit: (event: AgentEvent) => void) {
    this.#emit = emit;
    this.#seen = new Set(state.messages.map(createKey));
    this.#last = createLastKey(state);
    this.#open = new Set(state.pendingToolCalls);
    this.#isSuspended = state.pending.length > 0;
  }

  /** An event, and the state after it. */
  take(event: AgentEvent, state: RemoteState): void {
    switch (event.type) {
      case "agent_start":
        this.#skipsTurn = this.#isSuspended;
        this.#isSuspended = false;
        if (this.#skipsTurn) return;
        break;
      case "turn_start":
        if (!this.#skipsTurn) break;
        this.#skipsTurn = false;
        return;
      case "tool_execution_start":
        if (this.#open.has(event.toolCallId)) return;
        this.#open.add(event.toolCallId);
        break;
      case "tool_execution_end":
        this.#open.delete(event.toolCallId);
        this.#ended.add(event.toolCallId);
        break;
      case "message_start":
      case "message_update":
        if (event.message.role === "assistant") this.#partial = event.message;
        break;
      case "message_end":
        this.#partial = undefined;
        this.#note(event.message);
        break;
      case "agent_end":
        // The end may come with a snapshot that stands for what was before it.
        this.#addMissing(state);
        this.#isSuspended = event.stop === "suspended" && event.pending.length > 0;
        if (this.#isSuspended) return;
        this.drop();
        break;
      default:
    }
    this.#emit(event);
  }

  /**
   * The state stands for events that did not come. False: it does not follow from what was shown, and a view begins
   * again with its messages.
   */
  resume(state: RemoteState): boolean {
    const keys = new Set(state.messages.map(createKey));
    if (this.#last !== undefined && !keys.has(this.#last)) {
      this.#seen = keys;
      this.#last = createLastKey(state);
      this.#partial = undefined;
      this.#open.clear();
      this.#isSuspended = state.pending.length > 0;
      return false;
    }
    this.#addMissing(state);
    this.#addRunning(state);
    this.addPartial(state);
    this.#isSuspended = state.pending.length > 0;
    return true;
  }

  /** Shows as much of the message that is on its way as there is. */
  addPartial({ streamMessage }: RemoteState): void {
    if (streamMessage?.role !== "assistant") return;
    this.#continue(streamMessage, false);
    this.#partial = streamMessage;
  }

  /** The run is over, also where no end of it was reported. */
  drop(): void {
    this.#open.clear();
    this.#ended.clear();
    this.#partial = undefined;
    this.#isSuspended = false;
    this.#skipsTurn = false;
  }

  #note(message: AgentMessage): void {
    this.#last = createKey(message);
    this.#seen.add(this.#last);
  }

  #addMissing({ messages }: RemoteState): void {
    for (const message of messages) {
      if (this.#seen.has(createKey(message))) continue;
      this.#note(message);
      if (message.role === "assistant") {
        this.#continue(message, true);
        this.#partial = undefined;
      } else {
        if (message.role === "toolResult") this.#endCall(message);
        this.#emit({ type: "message_start", message });
      }
      this.#emit({ type: "message_end", message });
    }
  }

  /** A view goes on with what it shows of the message, or begins with it. */
  #continue(message: AssistantMessage, isWhole: boolean): void {
    const rest = this.#partial && listRestEvents(this.#partial, message, isWhole);
    if (!rest) this.#emit({ type: "message_start", message });
    for (const event of rest ?? listRestEvents(undefined, message, isWhole) ?? []) {
      this.#emit({ type: "message_update", message, assistantMessageEvent: event });
    }
  }

  #endCall(message: ToolResultMessage): void {
    const { toolCallId, toolName, isError, content, details, reason, shortened } = message;
    this.#open.delete(toolCallId);
    if (this.#ended.has(toolCallId)) return;
    this.#ended.add(toolCallId);
    this.#emit({
      type: "tool_execution_end",
      toolCallId,
      toolName,
      result: {
        content,
        ...(details !== undefined && { details }),
        ...(shortened && { shortened }),
      },
      outcome: outcomeOf(message),
      ...(reason !== undefined && { reason }),
      isError,
      durationMs: 0,
    });
  }

  #addRunning({ messages, pendingToolCalls }: RemoteState): void {
    for (const { id, name, arguments: args } of listRunning(messages, pendingToolCalls)) {
      if (this.#open.has(id)) continue;
      this.#open.add(id);
      this.#emit({ type: "tool_execution_start", toolCallId: id, toolName: name, args });
    }
  }
}

/** The calls of these ids, which are of the last answer. */
function listRunning(messages: readonly AgentMessage[], ids: ReadonlySet<string>) {
  const last = messages.findLast((message) => message.role === "assistant");
  return last ? listCalls(last).filter(({ id }) => ids.has(id)) : [];
}

function createLastKey({ messages }: RemoteState): string | undefined {
  const last = messages.at(-1);
  return last && createKey(last);
}

/** The same for a message that was built from events and for the one of a snapshot. Several may be of one moment. */
function createKey(message: AgentMessage): string {
  const { role, timestamp } = message;
  if (role === "toolResult") return `${role} ${timestamp} ${message.toolCallId}`;
  if (role === "assistant") {
    return `${role} ${timestamp} ${message.content.map(describeBlock).join(" ")}`;
  }
  const text = role === "user" && typeof message.content === "string" ? message.content : "";
  return `${role} ${timestamp} ${text}`;
}

function describeBlock(block: AssistantContent): string {
  if (block.type === "text") return `text:${block.text.length}`;
  if (block.type === "thinking") return `thinking:${block.thinking.length}`;
  return block.type === "toolCall" ? `call:${block.id}` : block.type;
}
