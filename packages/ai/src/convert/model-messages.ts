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
  readFileData,
  readFileUrl,
  textBlock,
  textField,
} from "./shared.ts";
import { isRecord } from "../common/records.ts";
import { toBase64 } from "../files/base64.ts";
import { describeFile, isImage } from "../files/file-facts.ts";
import { toFile } from "../files/files.ts";
import type {
  AssistantContent,
  FileContent,
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
export type ModelFilePart = {
  type: "file";
  /** Base64, or an address. */
  data: string;
  mediaType: string;
  filename?: string;
} & Proven;
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
          | { type: "file-data"; data: string; mediaType: string; filename?: string }
          | { type: "image-url" | "file-url"; url: string }
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
 * their signatures, for models of `fromAiSdk`. Files by an id of a provider and approvals are lost.
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
  const file = readFile(part);
  if (!file) losses.add(describePart(part));
  return file ? [file] : [];
}

function describePart(part: unknown): string {
  return `a file or part (${textField(part, "mediaType") ?? textField(part, "type")})`;
}

/** A file of a part, in any of the ways that versions of the AI SDK write one. */
export function readFile(part: unknown): ImageContent | FileContent | undefined {
  if (!isRecord(part)) return undefined;
  const held = part["data"] ?? part["image"] ?? part["url"];
  const given = isRecord(held) && "type" in held ? (held["data"] ?? held["url"]) : held;
  const mediaType = textField(part, "mediaType") ?? textField(part, "mimeType");
  const name = textField(part, "filename");
  const isPicture = "image" in part || textField(part, "type")?.startsWith("image");
  const facts = { mediaType: mediaType === "image" ? "image/*" : mediaType, name };
  if (given instanceof Uint8Array) return readFileData(toBase64(given), facts);
  const text = given instanceof URL ? given.href : given;
  if (typeof text !== "string") return undefined;
  // An address is a part of other kinds as well.
  if (/^(?:https?|s3|gs):/.test(text)) {
    if (!isPicture && !textField(part, "type")?.startsWith("file")) return undefined;
    return readFileUrl(text, isPicture ? "image" : "application/pdf", facts);
  }
  if (text.startsWith("data:")) return readFileUrl(text, "image", facts);
  return readFileData(text, facts);
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
      const file = readFile(part);
      if (!file) losses.add(describePart(part));
      return file ? [{ ...file, ...proof }] : [];
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
      results.push(writeResult(message, losses));
      return;
    }
    results = undefined;
    if (message.role === "user") {
      const { content } = message;
      const blocks = typeof content === "string" ? [textBlock(content)] : content;
      const parts = blocks.flatMap((block) => writeUserPart(block, losses));
      return void written.push({ role: "user", content: parts });
    }
    noteAnswer(message, losses);
    const content = message.content.flatMap((block) => writeAnswerPart(block, message.api, losses));
    if (content.length > 0) written.push({ role: "assistant", content });
  });
  const system = { role: "system", content: systemPrompt ?? "" } as const;
  return { messages: systemPrompt ? [system, ...written] : written, lost: losses.lines };
}

function writeUserPart(block: UserContent, losses: Losses): (ModelTextPart | ModelFilePart)[] {
  return block.type === "text" ? [textBlock(block.text)] : writeFilePart(block, losses);
}

function writeFilePart(block: ImageContent | FileContent, losses: Losses): ModelFilePart[] {
  const file = toFile(block);
  const { mediaType, name, source } = file;
  const named = name === undefined ? {} : { filename: name };
  if (source.type === "base64") return [{ type: "file", data: source.data, mediaType, ...named }];
  if (source.type === "url") return [{ type: "file", data: source.url, mediaType, ...named }];
  losses.add(`a file (${describeFile(file)})`);
  return [];
}

function writeResult(
  { content, isError, toolCallId, toolName }: ToolResultMessage,
  losses: Losses,
): ModelToolResultPart {
  const [first] = content;
  const part = { type: "tool-result" as const, toolCallId, toolName };
  if (isError || (content.length === 1 && first?.type === "text")) {
    const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
    const type = isError ? "error-text" : "text";
    return { ...part, output: { type, value: texts.join("\n") } };
  }
  const value = content.flatMap((block): ResultPart[] =>
    block.type === "text" ? [textBlock(block.text)] : writeResultFile(block, losses),
  );
  return { ...part, output: { type: "content", value } };
}

type ResultPart = Extract<ModelToolResultPart["output"], { type: "content" }>["value"][number];

function writeResultFile(block: ImageContent | FileContent, losses: Losses): ResultPart[] {
  const isPicture = isImage(block);
  return writeFilePart(block, losses).map(({ data, filename, mediaType }) => {
    const { source } = toFile(block);
    if (source.type === "url") return { type: isPicture ? "image-url" : "file-url", url: data };
    if (isPicture && filename === undefined) return { type: "image-data", data, mediaType };
    return { type: "file-data", data, mediaType, ...(filename !== undefined && { filename }) };
  });
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
    case "file":
      return writeFilePart(block, losses).map((part) => ({ ...part, ...proof }));
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
