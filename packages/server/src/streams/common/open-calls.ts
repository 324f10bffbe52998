import { type AgentMessage, type Decision, isLlmMessage, listCalls } from "@gyre/agent";
import type { ToolCall } from "@gyre/ai";

/**
 * On a call without a result that no person was asked about: the process ended meanwhile, or a client has
 * made the call up. It is not run.
 */
export const INTERRUPTED: Decision = {
  type: "result",
  result: {
    content: [{ type: "text", text: "The call was cut off, and has no result." }],
    isError: true,
    outcome: "interrupted",
  },
};

/** The calls of a transcript that have no result. */
export function listOpenCalls(messages: readonly AgentMessage[]): ToolCall[] {
  const known = messages.filter(isLlmMessage);
  const answered = new Set(
    known.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : [])),
  );
  return known
    .flatMap((message) => (message.role === "assistant" ? listCalls(message) : []))
    .filter(({ id }) => !answered.has(id));
}
