import type { AgentEvent, AgentMessage } from "@gyre/agent";
import { type Message, validateTranscript } from "@gyre/ai";

/** What is wrong with the order of a run's events: everything that begins ends, within its turn. */
export function nestingProblems(events: readonly AgentEvent[]): string[] {
  const problems: string[] = [];
  const expect = (holds: boolean, event: AgentEvent, why: string): void => {
    if (!holds) problems.push(`event ${event.type}: ${why}`);
  };
  let inTurn = false;
  let message: AgentMessage["role"] | undefined;
  const running = new Set<string>();
  const unanswered = new Set<string>();
  for (const [index, event] of events.entries()) {
    switch (event.type) {
      case "agent_start":
        expect(index === 0, event, "not the first");
        break;
      case "turn_start":
      case "turn_end":
        expect(inTurn === (event.type === "turn_end"), event, "turns overlap");
        expect(!message && unanswered.size === 0, event, "something is left open");
        inTurn = event.type === "turn_start";
        break;
      case "message_start":
        expect(inTurn && !message, event, "outside a turn, or in another message");
        message = event.message.role;
        break;
      case "message_update":
        expect(message === "assistant", event, "no answer is open");
        break;
      case "message_end":
        expect(message === event.message.role, event, "another message is open");
        message = undefined;
        if (event.message.role === "toolResult") {
          expect(unanswered.delete(event.message.toolCallId), event, "its call has not ended");
        }
        break;
      case "tool_execution_start":
        expect(inTurn && !message, event, "outside a turn, or in a message");
        running.add(event.toolCallId);
        break;
      case "tool_execution_end":
        expect(running.delete(event.toolCallId), event, "it does not run");
        unanswered.add(event.toolCallId);
        break;
      case "agent_end":
        expect(index === events.length - 1 && !inTurn, event, "not the last");
        break;
      default:
    }
  }
  if (events.at(-1)?.type !== "agent_end") problems.push("the run has no agent_end");
  return problems;
}

/** What is wrong with a transcript: faults that services refuse, calls without their one result. */
export function transcriptProblems(messages: readonly Message[]): string[] {
  // What ended with nothing said stays in the transcript, and is not sent.
  const sent = messages.filter(({ content }) => content.length > 0);
  return validateTranscript(sent).map(({ index, reason }) => `message ${index}: ${reason}`);
}

const KEY_HEADERS = ["authorization", "x-api-key", "api-key", "x-goog-api-key"] as const;
type KeyHeader = (typeof KEY_HEADERS)[number];

/** The header that each service documents for its key. */
function keyHeader(api: string, provider: string): KeyHeader {
  if (provider.startsWith("azure")) return "api-key";
  if (api === "anthropic-messages") return "x-api-key";
  if (api === "google-generative-ai" && provider !== "google-vertex") return "x-goog-api-key";
  return "authorization";
}

/** What is wrong with the headers of a request: the key in one place, and what the format insists on. */
export function headerProblems(
  headers: Readonly<Record<string, unknown>>,
  model: { api: string; provider: string },
  key: string,
): string[] {
  const problems: string[] = [];
  const due = keyHeader(model.api, model.provider);
  for (const name of KEY_HEADERS) {
    const value = name !== due ? undefined : name === "authorization" ? `Bearer ${key}` : key;
    if (headers[name] !== value) problems.push(`header ${name} is ${String(headers[name])}`);
  }
  if (headers["content-type"] !== "application/json")
    problems.push("the body is not declared as JSON");
  if (model.api === "anthropic-messages" && headers["anthropic-version"] !== "2023-06-01") {
    problems.push("no anthropic-version");
  }
  return problems;
}
