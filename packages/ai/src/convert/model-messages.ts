import {
  type Exported,
  type ExportOptions,
  Importer,
  type Imported,
  type ImportOptions,
  toList,
  type Loose,
  Losses,
  noteAnswer,
  parseOr,
  readCall,
  readImage,
  textBlock,
  textField,
} from "./shared.ts";
import { isRecord } from "../common/records.ts";
import type {
  AssistantContent,
  ImageContent,
  Message,
  ToolResultMessage,
  UserContent,
} from "../messages/messages.ts";

/** What a provider of the AI SDK wants back with a part, by the name of the provider. */
export type ProviderOptions = Record<string, Record<string, JsonData>>;
/** A value of JSON. */
export type JsonData = null | string | number | boolean | JsonData[] | { [key: string]: JsonData };

interface Proven {
  providerOptions?: ProviderOptions;
}
export type ModelTextPart = { type: "text"; text: string } & Proven;
export type ModelFilePart = { type: "file"; data: string; mediaType: string } & Proven;
export type ModelReasoningPart = { type: "reasoning"; text: string } & Proven;
export type ModelToolCallPart = {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  input: unknown;
} & Proven;
export interface ModelToolResultPart {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output:
    | { type: "text" | "error-text"; value: string }
    | {
        type: "content";
        value: (
          | { type: "text"; text: string }
          | { type: "image-data"; data: string; mediaType: string }
        )[];
      };
}

/** A `ModelMessage` of the AI SDK, as `toModelMessages` writes it. */
export type AiModelMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: (ModelTextPart | ModelFilePart)[] }
  | {
      role: "assistant";
      content: (ModelTextPart | ModelFilePart | ModelReasoningPart | ModelToolCallPart)[];
    }
  | { role: "tool"; content: ModelToolResultPart[] };

/** The API format of messages whose signatures are `providerOptions` of the AI SDK, as JSON. */
export const AI_SDK_API = "ai-sdk";

/**
 * Reads `ModelMessage`s of the AI SDK. What `providerOptions` of an answer's parts have is kept in
 * their signatures, for models of `fromAiSdk`. Files other than images, images at an address, and
 * approvals are lost.
 */
export function fromModelMessages(
  messages: readonly object[],
  options: ImportOptions = {},
): Imported {
  const importer = new Importer(AI_SDK_API, AI_SDK_API, options);
  messages.forEach((message, index) => {
    importer.losses.at(index);
    readMessage(importer, message as Loose);
  });
  return importer.end();
}

function readMessage(importer: Importer, { role, content }: Loose): void {
  const { losses } = importer;
  const parts = typeof content === "string" ? [textBlock(content)] : toList(content);
  if (role === "system") importer.system(typeof content === "string" ? content : "");
  else if (role === "user") {
    const read = parts.flatMap((part) => readUserPart(part, losses));
    importer.user(typeof content === "string" ? content : read);
  } else if (role === "assistant") {
    importer.assistant(parts.flatMap((part) => readAnswerPart(part, importer.api, losses)));
  } else if (role === "tool") for (const part of parts) readResult(importer, part);
  else losses.add(`a message of the role ${String(role)}`);
}

function readUserPart(part: unknown, losses: Losses): UserContent[] {
  const text = textField(part, "text");
  if (textField(part, "type") === "text" && text !== undefined) return [textBlock(text)];
  const image = readFile(part);
  if (!image) losses.add(describeFile(part));
  return image ? [image] : [];
}

function describeFile(part: unknown): string {
  const type = textField(part, "mediaType") ?? textField(part, "type");
  return `a file or part that is no image in the message (${type})`;
}

/** An image of a part, in any of the ways that versions of the AI SDK write one. */
export function readFile(part: unknown): ImageContent | undefined {
  if (!isRecord(part)) return undefined;
  const held = part["data"] ?? part["image"] ?? part["url"];
  const given = isRecord(held) && "type" in held ? (held["data"] ?? held["url"]) : held;
  const mimeType = textField(part, "mediaType") ?? textField(part, "mimeType") ?? "image/png";
  if (!mimeType.startsWith("image")) return undefined;
  if (given instanceof Uint8Array) return { type: "image", data: toBase64(given), mimeType };
  const text = given instanceof URL ? given.href : given;
  if (typeof text !== "string" || /^https?:/.test(text)) return undefined;
  return text.startsWith("data:") ? readImage(text) : { type: "image", data: text, mimeType };
}

function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function readAnswerPart(part: unknown, api: string, losses: Losses): AssistantContent[] {
  if (!isRecord(part)) return [];
  const proof = readProof(part["providerOptions"] ?? part["providerMetadata"], api);
  const text = textField(part, "text") ?? "";
  const id = textField(part, "toolCallId") ?? "";
  const name = textField(part, "toolName") ?? "unknown";
  switch (part["type"]) {
    case "text":
      return [{ ...textBlock(text), ...proof }];
    case "reasoning": {
      const redacted = proof.redacted ?? false;
      return [{ type: "thinking", thinking: text, ...proof, ...(redacted && { redacted }) }];
    }
    case "tool-call":
      if (part["providerExecuted"] === true) {
        return [{ type: "serviceTool", id, name, input: part["input"] }];
      }
      return [readCall(id, name, part["input"], proof.signature)];
    case "tool-result":
      return [{ type: "serviceTool", id, name, output: part["output"] }];
    default: {
      const image = readFile(part);
      if (!image) losses.add(describeFile(part));
      return image ? [{ ...image, ...proof }] : [];
    }
  }
}

/** The signature of a part: the provider's own for Anthropic's API, else all options as JSON. */
function readProof(options: unknown, api: string): { signature?: string; redacted?: true } {
  if (!isRecord(options)) return {};
  if (api !== "anthropic-messages") {
    return Object.keys(options).length > 0 ? { signature: JSON.stringify(options) } : {};
  }
  const signature = textField(options["anthropic"], "signature");
  const hidden = textField(options["anthropic"], "redactedData");
  if (hidden !== undefined) return { signature: hidden, redacted: true };
  return signature === undefined ? {} : { signature };
}

function readResult(importer: Importer, part: unknown): void {
  if (!isRecord(part) || part["type"] !== "tool-result") {
    return importer.losses.add(`a part of the type ${textField(part, "type")}`);
  }
  const { output } = part;
  const type = textField(output, "type") ?? "";
  const value = isRecord(output) ? output["value"] : undefined;
  const isError = type.startsWith("error") || type === "execution-denied";
  const name = textField(part, "toolName");
  importer.result(textField(part, "toolCallId") ?? "", readOutput(type, value, output, importer), {
    isError,
    name,
  });
}

function readOutput(
  type: string,
  value: unknown,
  output: unknown,
  { losses }: Importer,
): UserContent[] {
  if (type === "execution-denied") return [textBlock(textField(output, "reason") ?? "Denied.")];
  if (type === "content") return toList(value).flatMap((part) => readUserPart(part, losses));
  return [textBlock(typeof value === "string" ? value : (JSON.stringify(value) ?? ""))];
}

/**
 * Writes `ModelMessage`s of the AI SDK. Adjacent results are one message. Signatures of answers of
 * other APIs than Anthropic's and of models of `fromAiSdk` are lost, and tools that a service ran.
 */
export function toModelMessages(
  messages: readonly Message[],
  { systemPrompt }: ExportOptions = {},
): Exported<AiModelMessage> {
  const losses = new Losses();
  const written: AiModelMessage[] = [];
  let results: ModelToolResultPart[] | undefined;
  messages.forEach((message, index) => {
    losses.at(index);
    if (message.role === "toolResult") {
      if (!results) written.push({ role: "tool", content: (results = []) });
      results.push(writeResult(message));
      return;
    }
    results = undefined;
    if (message.role === "user") {
      const { content } = message;
      const blocks = typeof content === "string" ? [textBlock(content)] : content;
      return void written.push({ role: "user", content: blocks.map(writeUserPart) });
    }
    noteAnswer(message, losses);
    const content = message.content.flatMap((block) => writeAnswerPart(block, message.api, losses));
    if (content.length > 0) written.push({ role: "assistant", content });
  });
  const system = { role: "system", content: systemPrompt ?? "" } as const;
  return { messages: systemPrompt ? [system, ...written] : written, lost: losses.lines };
}

function writeUserPart(block: UserContent): ModelTextPart | ModelFilePart {
  if (block.type === "text") return textBlock(block.text);
  return { type: "file", data: block.data, mediaType: block.mimeType };
}

function writeResult({
  content,
  isError,
  toolCallId,
  toolName,
}: ToolResultMessage): ModelToolResultPart {
  const [first] = content;
  const part = { type: "tool-result" as const, toolCallId, toolName };
  if (isError || (content.length === 1 && first?.type === "text")) {
    const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
    const type = isError ? "error-text" : "text";
    return { ...part, output: { type, value: texts.join("\n") } };
  }
  const value = content.map((block) =>
    block.type === "text"
      ? textBlock(block.text)
      : { type: "image-data" as const, data: block.data, mediaType: block.mimeType },
  );
  return { ...part, output: { type: "content", value } };
}

function writeAnswerPart(
  block: AssistantContent,
  api: string,
  losses: Losses,
): Extract<AiModelMessage, { role: "assistant" }>["content"] {
  if (block.type === "serviceTool") {
    losses.add("a tool that the service ran");
    return [];
  }
  const providerOptions = writeProof(block, api);
  const proof = providerOptions ? { providerOptions } : {};
  if (block.signature !== undefined && !providerOptions) losses.add("a signature");
  switch (block.type) {
    case "text":
      return [{ ...textBlock(block.text), ...proof }];
    case "thinking":
      return [{ type: "reasoning", text: block.thinking, ...proof }];
    case "image":
      return [{ type: "file", data: block.data, mediaType: block.mimeType, ...proof }];
    case "toolCall": {
      if (block.argumentsError !== undefined) losses.add("arguments that did not parse");
      const { id: toolCallId, name: toolName, arguments: input } = block;
      return [{ type: "tool-call", toolCallId, toolName, input, ...proof }];
    }
  }
}

function writeProof(
  block: Exclude<AssistantContent, { type: "serviceTool" }>,
  api: string,
): ProviderOptions | undefined {
  const { signature } = block;
  if (signature === undefined) return undefined;
  if (api === AI_SDK_API) {
    const options = parseOr(signature);
    return isRecord(options) ? (options as ProviderOptions) : undefined;
  }
  if (api !== "anthropic-messages" || block.type !== "thinking") return undefined;
  return { anthropic: block.redacted ? { redactedData: signature } : { signature } };
}
