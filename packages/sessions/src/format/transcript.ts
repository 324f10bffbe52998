import type { ToolCall } from "@gyre/ai";
import { type AgentMessage, listCalls, isLlmMessage, withResult } from "@gyre/agent";

/**
 * Messages with their entries, in the order of an agent's list: results go next to their
 * calls, whenever they came.
 */
export class Transcript {
  messages: AgentMessage[];
  readonly entries: number[];

  constructor(messages: readonly AgentMessage[] = [], entries: readonly number[] = []) {
    this.messages = [...messages];
    this.entries = [...entries];
  }

  add(message: AgentMessage, entry: number): void {
    if (!isLlmMessage(message) || message.role !== "toolResult") {
      this.messages.push(message);
      this.entries.push(entry);
      return;
    }
    this.messages = withResult(this.messages, message);
    this.entries.splice(this.messages.lastIndexOf(message), 0, entry);
  }

  /** Calls without a result, by id, with the entry of the message that made each. */
  unanswered(): Map<string, { call: ToolCall; entry: number }> {
    const open = new Map<string, { call: ToolCall; entry: number }>();
    this.messages.forEach((message, index) => {
      if (!isLlmMessage(message)) return;
      if (message.role === "toolResult") open.delete(message.toolCallId);
      if (message.role !== "assistant") return;
      for (const call of listCalls(message)) {
        open.set(call.id, { call, entry: this.entries[index] ?? 0 });
      }
    });
    return open;
  }
}
