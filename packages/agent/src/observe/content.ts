import {
  type AssistantContent,
  type AssistantMessage,
  errorMessage,
  fileKind,
  type Message,
  type Tool,
  toFile,
  toJsonSchema,
  type UserContent,
} from "@gyre/ai";
import { finishReason } from "./attributes.ts";

type Part = Record<string, unknown>;

/** A message in the shape of the conventions. */
export function toInputMessage(message: Message): Part {
  switch (message.role) {
    case "user":
      return { role: "user", parts: toParts(message.content) };
    case "assistant":
      return { role: "assistant", parts: message.content.flatMap(parts) };
    case "toolResult": {
      const response = message.content.map(part);
      const answer: Part = { type: "tool_call_response", id: message.toolCallId, response };
      return { role: "tool", parts: [answer] };
    }
  }
}

export function toParts(content: string | readonly UserContent[]): Part[] {
  return typeof content === "string" ? [{ type: "text", content }] : content.map(part);
}

function parts(block: AssistantContent): Part[] {
  switch (block.type) {
    case "text":
    case "image":
    case "file":
      return [part(block)];
    case "thinking":
      return block.redacted ? [] : [{ type: "reasoning", content: block.thinking }];
    case "toolCall": {
      const { id, name, rawArguments } = block;
      return [{ type: "tool_call", id, name, arguments: rawArguments ?? block.arguments }];
    }
    case "serviceTool": {
      const { id, name, input, output } = block;
      const asked = { type: "server_tool_call", id, name, server_tool_call: { type: name, input } };
      if (output === undefined) return [asked];
      const response = { type: name, output };
      return [
        asked,
        { type: "server_tool_call_response", id, server_tool_call_response: response },
      ];
    }
  }
}

export function part(block: UserContent): Part {
  if (block.type === "text") return { type: "text", content: block.text };
  const { mediaType: mime_type, source } = toFile(block);
  const kind = fileKind(mime_type);
  const modality = kind === "audio" || kind === "video" || kind === "image" ? kind : "document";
  const file = { modality, mime_type };
  switch (source.type) {
    case "base64":
      return { type: "blob", ...file, content: source.data };
    case "url":
      return { type: "uri", ...file, uri: source.url };
    case "id":
      return { type: "file", ...file, file_id: source.id };
    case "stored":
      return { type: "file", ...file, file_id: `sha256:${source.sha256}` };
  }
}

/** An answer in the shape of the conventions. */
export function toOutputMessage(message: AssistantMessage): Part {
  return { ...toInputMessage(message), finish_reason: finishReason(message) };
}

/** A tool as a model is offered it. */
export function toDefinition({ name, description, parameters }: Tool): Part {
  return { type: "function", name, description, parameters: toJsonSchema(parameters) };
}

/** Messages since the last answer: what a run was given, seen from its first request. */
export function listNewest(messages: readonly Message[]): Message[] {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.slice(last + 1);
}

/** Arguments that a schema made of what the model sent may be no JSON. */
export function json(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    return `Not recorded: ${errorMessage(error)}`;
  }
}
