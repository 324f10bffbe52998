import { hasContent, type UserContent, type UserMessage } from "@gyre/ai";
import { isLlmMessage } from "./history.ts";
import type { AgentMessage } from "../contract/types.ts";

const MAX_SHOWN = 80;

type WithOptionalTime<M> = M extends { timestamp: number }
  ? Omit<M, "timestamp"> & { timestamp?: number }
  : M;

/** A message as an application writes it: without a `timestamp` it gets the time of the call. */
export type MessageInput = WithOptionalTime<AgentMessage>;

/** What a prompt may be: a text, a message, or several messages. */
export type PromptInput = string | MessageInput | readonly MessageInput[];

/** Messages as a transcript holds them. Throws on what no service can be sent, and says why. */
export function withTimestamps(
  messages: readonly MessageInput[],
  timestamp: number,
): AgentMessage[] {
  return messages.map((message) => {
    checkShape(message);
    return isTimed(message) ? message : { ...message, timestamp };
  });
}

function isTimed(message: MessageInput): message is AgentMessage {
  return message.timestamp !== undefined;
}

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
      : withTimestamps(isList(input) ? input : [input], timestamp);
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

function isList(input: Exclude<PromptInput, string>): input is readonly MessageInput[] {
  return Array.isArray(input);
}

/** Histories come from JSON, where no compiler has seen them. */
function checkShape(message: MessageInput): void {
  const { role, content }: { role?: unknown; content?: unknown } = message ?? {};
  if (typeof role !== "string") {
    throw new TypeError(
      `A prompt is a text, or messages such as { role: "user", content: "Hi" }; got ${showValue(message)}.`,
    );
  }
  if (role === "system") {
    throw new TypeError('There is no role "system": give the text as `instructions` of the agent.');
  }
  if ((role === "assistant" || role === "toolResult") && !Array.isArray(content)) {
    throw new TypeError(
      `The content of a message of role "${role}" is a list of blocks, such as [{ type: "text", text: "Hi" }]; got ${showValue(content)}.`,
    );
  }
}

function showValue(value: unknown): string {
  return JSON.stringify(value)?.slice(0, MAX_SHOWN) ?? String(value);
}
