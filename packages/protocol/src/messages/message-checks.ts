import { type ImageContent, isRecord, type Message, type UserContent } from "@gyre/ai";
import { isText } from "../frames/payload-fields.ts";

/** Whether a value that a client sent is a message, with all fields that its role requires. */
export function isMessage(value: unknown): value is Message {
  if (!isRecord(value) || typeof value["timestamp"] !== "number") return false;
  const { role, content } = value;
  if (role === "user") return isText(content) || isUserContent(content);
  if (role === "toolResult") {
    const { toolCallId, toolName, isError } = value;
    const isNamed = isText(toolCallId) && isText(toolName);
    return isNamed && typeof isError === "boolean" && isUserContent(content);
  }
  if (role !== "assistant" || !isRecord(value["usage"])) return false;
  const { api, provider, model, stopReason } = value;
  if (![api, provider, model, stopReason].every(isText)) return false;
  return Array.isArray(content) && content.every(isAssistantBlock);
}

/** Whether a value is a list of texts and images. */
export function isUserContent(value: unknown): value is UserContent[] {
  return (
    Array.isArray(value) && value.every((block) => isTextBlock(block) || isImageContent(block))
  );
}

export function isImageContent(value: unknown): value is ImageContent {
  if (!isRecord(value) || value["type"] !== "image") return false;
  return isText(value["data"]) && isText(value["mimeType"]);
}

function isTextBlock(block: unknown): boolean {
  return isRecord(block) && block["type"] === "text" && isText(block["text"]);
}

function isAssistantBlock(block: unknown): boolean {
  if (!isRecord(block)) return false;
  const { type, id, name } = block;
  if (type === "thinking") return isText(block["thinking"]);
  if (type === "toolCall") return isText(id) && isText(name) && isRecord(block["arguments"]);
  if (type === "serviceTool") return isText(id) && isText(name);
  return isTextBlock(block) || isImageContent(block);
}
