import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { textOf } from "@gyre/ai";

/** What the result of a call says that was ended by a person. */
const STOPPED_CALL = "Aborted: the user stopped the run";

/**
 * Whether the user has stopped what was done last, in the middle of an answer or of calls.
 * What ended in any other way, by force say, was not stopped by anybody.
 */
export function wasInterrupted(messages: readonly AgentMessage[]): boolean {
  for (const message of messages.toReversed()) {
    if (!isLlmMessage(message) || message.role === "user") return false;
    if (message.role === "assistant") return message.stopReason === "aborted";
    if (message.isError && textOf(message).startsWith(STOPPED_CALL)) return true;
  }
  return false;
}
