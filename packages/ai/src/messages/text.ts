import type { Message } from "./messages.ts";

/** The text of a message: its text blocks one after the other, without anything else. */
export function textOf(message: Pick<Message, "content">): string {
  if (typeof message.content === "string") return message.content;
  let text = "";
  for (const block of message.content) if (block.type === "text") text += block.text;
  return text;
}
