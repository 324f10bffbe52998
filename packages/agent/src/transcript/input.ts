import { hasContent, type UserContent, type UserMessage } from "@gyre/ai";
import { isLlmMessage } from "./history.ts";
import type { AgentMessage } from "../contract/types.ts";

/** What a prompt may be: a text, a message, or several messages. */
export type PromptInput = string | AgentMessage | readonly AgentMessage[];

/** What a user says, as a message; attachments come after the text. */
export function userMessage(
  text: string,
  timestamp: number,
  attachments: readonly UserContent[] = [],
): UserMessage {
  if (attachments.length === 0) return { role: "user", content: text, timestamp };
  const content: UserContent[] = text === "" ? [] : [{ type: "text", text }];
  return { role: "user", content: [...content, ...attachments], timestamp };
}

/** A prompt as messages. Throws on one with nothing in it, and on an empty message in it. */
export function toMessages(
  input: PromptInput,
  timestamp: number,
  attachments: readonly UserContent[] = [],
): AgentMessage[] {
  const messages =
    typeof input === "string"
      ? [userMessage(input, timestamp, attachments)]
      : Array.isArray(input)
        ? [...(input as readonly AgentMessage[])]
        : [input as AgentMessage];
  if (attachments.length > 0 && typeof input !== "string") {
    throw new TypeError(
      "Attachments go with a text prompt; put them into the content of the message.",
    );
  }
  // An empty message would be kept, and never sent.
  if (messages.length === 0 || messages.some((one) => isLlmMessage(one) && !hasContent(one))) {
    throw new TypeError("The prompt is empty: give a text, a message or an image.");
  }
  return messages;
}
