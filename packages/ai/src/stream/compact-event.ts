import type { AssistantContent, AssistantMessage } from "../messages/messages.ts";
import type { AssistantMessageEvent } from "./events.ts";

/**
 * An event of a response without the live message: its name, and what is new. Cassettes and the
 * protocol store and send these. Unknown fields are allowed, since it may come from a newer version.
 */
export type CompactEvent = { readonly type: AssistantMessageEvent["type"] } & Readonly<
  Record<string, unknown>
>;

/** A message without its content, which streams. */
export type MessageHead = Omit<AssistantMessage, "content">;

/** An event that changes a block of the message. */
export type BlockEvent = Exclude<AssistantMessageEvent, { type: "start" | "done" | "error" }>;

/** The names of the events that change a block of the message. */
export const BLOCK_EVENT_TYPES: ReadonlySet<unknown> = new Set<BlockEvent["type"]>([
  "text_start",
  "text_delta",
  "text_end",
  "thinking_start",
  "thinking_delta",
  "thinking_end",
  "toolcall_start",
  "toolcall_delta",
  "toolcall_end",
  "service_tool",
  "image",
  "file",
]);

/** The names of all events of a response. */
export const EVENT_TYPES: ReadonlySet<unknown> = new Set([
  "start",
  ...BLOCK_EVENT_TYPES,
  "done",
  "error",
]);

/** The message without its content, as it is now. */
export function toMessageHead(message: AssistantMessage): MessageHead {
  const { content: _, ...head } = message;
  return { ...head, usage: { ...head.usage } };
}

/**
 * The event without the live message. The end of a block has the length of its text in place of
 * the text, which the deltas had; `done` and `error` have the whole message.
 */
export function toCompactEvent(event: AssistantMessageEvent): CompactEvent {
  switch (event.type) {
    case "start":
      return { type: event.type, message: toMessageHead(event.partial) };
    case "done":
      return { type: event.type, reason: event.reason, message: event.message };
    case "error":
      return { type: event.type, ...toErrorFacts(event), message: event.error };
    case "toolcall_start":
      return { ...toPlace(event), ...toCallFacts(event.partial.content[event.contentIndex]) };
    case "toolcall_end":
      return { ...toPlace(event), ...toCallFacts(event.toolCall) };
    case "text_end":
    case "thinking_end": {
      const facts = toBlockFacts(event.partial.content[event.contentIndex]);
      return { ...toPlace(event), length: event.content.length, ...facts };
    }
    case "text_delta":
    case "thinking_delta":
    case "toolcall_delta": {
      const { type, contentIndex, delta } = event;
      return { type, contentIndex, delta };
    }
    default: {
      const { partial: _, ...compact } = event;
      return compact;
    }
  }
}

function toPlace({ type, contentIndex }: BlockEvent): Pick<BlockEvent, "type" | "contentIndex"> {
  return { type, contentIndex };
}

/** What a call has beside its arguments. */
export function toCallFacts(block: AssistantContent | undefined): object {
  if (block?.type !== "toolCall") return {};
  const { id, name, signature } = block;
  return { id, name, ...(signature !== undefined && { signature }) };
}

/** What a text or a thought has beside its text. */
export function toBlockFacts(block: AssistantContent | undefined): object {
  if (block?.type !== "text" && block?.type !== "thinking") return {};
  const { text: _, thinking: __, type: ___, ...facts } = { text: "", thinking: "", ...block };
  return facts;
}

/** The facts that a program acts on, at the top of the event. */
export function toErrorFacts({
  reason,
  error,
}: Extract<AssistantMessageEvent, { type: "error" }>): object {
  const { kind = "unknown", retryable, retryAfterMs } = error.failure ?? {};
  return {
    reason,
    kind,
    ...(retryable !== undefined && { retryable }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}
