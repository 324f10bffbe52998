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

  /** Calls without a result, and the entry of the first message that made one. */
  unanswered(): { calls: Set<string>; since: number } {
    const since = new Map<string, number>();
    this.messages.forEach((message, index) => {
      if (!isLlmMessage(message)) return;
      if (message.role === "toolResult") since.delete(message.toolCallId);
      if (message.role !== "assistant") return;
      for (const { id } of listCalls(message)) since.set(id, this.entries[index] ?? 0);
    });
    return { calls: new Set(since.keys()), since: Math.min(...since.values()) };
  }
}
