import { type AgentMessage, listCalls } from "@gyre/agent";
import { outcomeOf, type ToolCall } from "@gyre/ai";
import { counted } from "../../../text/tool-text.ts";
import type { Transcript } from "./transcript.ts";

/** Messages that are shown when a session is resumed. */
export const MAX_REPLAYED_MESSAGES = 40;

/** Shows the end of a conversation. Earlier messages are only counted. Calls of `running` go on. */
export function replay(
  messages: readonly AgentMessage[],
  transcript: Transcript,
  maxMessages: number = MAX_REPLAYED_MESSAGES,
  running: ReadonlySet<string> = new Set(),
): void {
  const first = Math.max(0, messages.length - maxMessages);
  if (first > 0) {
    transcript.note(`… ${counted(first, "earlier message")}`);
  }
  const called = new Set<string>();
  const begun: ToolCall[] = [];
  for (let index = first; index < messages.length; index++) {
    const message = messages[index];
    if (message?.role === "toolResult") {
      const { toolCallId, toolName, isError, content, details, reason, shortened } = message;
      // A result without its call says nothing.
      if (!called.has(toolCallId)) continue;
      const result = {
        content,
        ...(details !== undefined && { details }),
        ...(shortened && { shortened }),
      };
      transcript.handle({
        type: "tool_execution_end",
        toolCallId,
        toolName,
        result,
        outcome: outcomeOf(message),
        ...(reason !== undefined && { reason }),
        isError,
        durationMs: 0,
      });
    } else if (message?.role === "userCommand") {
      transcript.startUserCommand(message);
      transcript.endUserCommand({ ...message, durationMs: 0 });
    } else if (message) {
      if (message.role === "assistant") {
        const calls = listCalls(message);
        for (const { id } of calls) called.add(id);
        begun.push(...calls.filter(({ id }) => running.has(id)));
      }
      transcript.handle({ type: "message_start", message });
      transcript.handle({ type: "message_end", message });
    }
  }
  for (const { id: toolCallId, name: toolName, arguments: args } of begun) {
    transcript.handle({ type: "tool_execution_start", toolCallId, toolName, args });
  }
  // Ends calls without a result.
  transcript.endRun(running);
}
