import type { Message, UserContent } from "@gyre/ai";

/**
 * A message as a model reads it: texts that came from elsewhere stand between two lines that
 * say where from. The message itself stays as it is.
 */
export function markSources(message: Message): Message {
  if (message.role === "assistant" || typeof message.content === "string") return message;
  if (!message.content.some((block) => block.type === "text" && block.source)) return message;
  return { ...message, content: message.content.map(markBlock) };
}

function markBlock(block: UserContent): UserContent {
  if (block.type !== "text" || !block.source) return block;
  const { text, source, ...rest } = block;
  const { kind, name, mark } = source;
  const open = `<source kind="${kind}" name="${name}" mark="${mark}">`;
  return { ...rest, text: `${open}\n${text}\n</source mark="${mark}">` };
}
