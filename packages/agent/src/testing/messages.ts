import {
  type AssistantMessage,
  type AssistantMessageEvent,
  AssistantMessageEventStream,
  type Message,
  type StreamFn,
} from "@gyre/ai";
import type { AgentMessage } from "../contract/types.ts";
import { user } from "./play.ts";

/** An answer of an earlier run. */
export const anAnswer: AssistantMessage = {
  role: "assistant",
  content: [{ type: "text", text: "Before" }],
  api: "scripted",
  provider: "scripted",
  model: "scripted",
  usage: {},
  stopReason: "stop",
  timestamp: 0,
};

/** An answer that is calls, each named by its id without the number. */
export function asked(...ids: string[]): AssistantMessage {
  return {
    ...anAnswer,
    stopReason: "toolUse",
    content: ids.map((id) => ({
      type: "toolCall",
      id,
      name: id.replace(/\d+$/, ""),
      arguments: {},
    })),
  };
}

/** The result of such a call. */
export function makeResult(id: string): Message {
  return {
    role: "toolResult",
    toolCallId: id,
    toolName: id.replace(/\d+$/, ""),
    content: [{ type: "text", text: "old" }],
    isError: false,
    timestamp: 0,
  };
}

/** A queue for `getSteeringMessages` or `getFollowUpMessages` that gives each list once. */
export function gives(...polls: (readonly string[])[]): () => AgentMessage[] {
  return () => (polls.shift() ?? []).map(user);
}

/** A model that sends these very events. */
export function sends(
  ...responses: ((message: AssistantMessage) => AssistantMessageEvent[])[]
): StreamFn {
  return () => {
    const stream = new AssistantMessageEventStream();
    const message = structuredClone(anAnswer);
    for (const event of responses.shift()?.(message) ?? []) stream.push(event);
    return stream;
  };
}
