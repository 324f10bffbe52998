import {
  type FileContent,
  type ImageContent,
  isRecord,
  type Message,
  type UserContent,
} from "@gyre/ai";
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

/** Whether a value is a list of texts, images and files. */
export function isUserContent(value: unknown): value is UserContent[] {
  return (
    Array.isArray(value) &&
    value.every((block) => isTextBlock(block) || isImageContent(block) || isFileContent(block))
  );
}

export function isFileContent(value: unknown): value is FileContent {
  if (!isRecord(value) || value["type"] !== "file" || !isText(value["mediaType"])) return false;
  const { name, source } = value;
  if (!isRecord(source) || (name !== undefined && !isText(name))) return false;
  switch (source["type"]) {
    case "base64":
      return isText(source["data"]);
    case "url":
      return isText(source["url"]);
    case "id":
      return isText(source["id"]) && isText(source["service"]);
    case "stored":
      return isSha256(source["sha256"]) && Number.isSafeInteger(source["size"]);
    default:
      return false;
  }
}

function isSha256(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

export function isImageContent(value: unknown): value is ImageContent {
  if (!isRecord(value) || value["type"] !== "image") return false;
  return isText(value["data"]) && isText(value["mimeType"]);
}

function isTextBlock(block: unknown): boolean {
  if (!isRecord(block) || block["type"] !== "text" || !isText(block["text"])) return false;
  const { citations = [] } = block;
  return Array.isArray(citations) && citations.every(isRecord);
}

function isAssistantBlock(block: unknown): boolean {
  if (!isRecord(block)) return false;
  const { type, id, name } = block;
  if (type === "thinking") return isText(block["thinking"]);
  if (type === "toolCall") return isText(id) && isText(name) && isRecord(block["arguments"]);
  if (type === "serviceTool") return isText(id) && isText(name);
  return isTextBlock(block) || isImageContent(block) || isFileContent(block);
}
