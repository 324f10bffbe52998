import { textOf } from "@gyre/ai";
import type { AgentEndEvent, AgentMessage } from "../contract/types.ts";
import { isAssistant } from "../transcript/history.ts";

/**
 * Why an agent that works for another did not come to an end of its own, in a sentence for the
 * model that asked; nothing where it did. `who`: what the sentence calls it.
 */
export function explainEnd(who: string, end: AgentEndEvent): string | undefined {
  const after = `after ${end.turns} ${end.turns === 1 ? "turn" : "turns"}`;
  switch (end.stop) {
    case "done":
    case "terminated":
      return undefined;
    case "stopped":
      // Its last message may have been the answer all the same.
      return end.finalMessage?.stopReason === "stop"
        ? undefined
        : `The ${who} was stopped ${after}, before it was done.`;
    case "limit":
      return `The ${who} was stopped ${after}, before it was done, by its limit ${end.limit ?? ""}. Ask for less at a time, or go on yourself.`;
    case "aborted":
      return `The ${who} was stopped ${after}, before it was done.`;
    case "suspended": {
      const calls = end.pending.map(({ toolCall, reason }) => `"${toolCall.name}" (${reason})`);
      return `The ${who} was stopped ${after}: its call of ${calls.join(", ")} waits for a person, and a call inside of a call cannot be left waiting. Make that call yourself.`;
    }
    case "error":
    case "sink":
      return `The ${who} failed ${after}: ${end.finalMessage?.errorMessage ?? end.errorMessage ?? "no reason was given"}`;
  }
}

/** The last text of the assistant; what it wrote before a call that was the last included. */
export function lastText(messages: readonly AgentMessage[]): string {
  for (const message of messages.toReversed()) {
    const text = isAssistant(message) ? textOf(message).trim() : "";
    if (text !== "") return text;
  }
  return "";
}
