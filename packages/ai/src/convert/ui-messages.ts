import { AI_SDK_API, readFile } from "./model-messages.ts";
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
  textBlock,
  textField,
} from "./shared.ts";
import { isRecord } from "../common/records.ts";
import { describeFile, toFileUrl } from "../files/file-facts.ts";
import { toFile } from "../files/files.ts";
import type {
  AssistantContent,
  FileContent,
  ImageContent,
  Message,
  ToolCall,
  ToolResultMessage,
  UserContent,
} from "../messages/messages.ts";

type Metadata = Record<string, Record<string, never>>;
type UiFile = {
  type: "file";
  mediaType: string;
  filename?: string;
  url: string;
  providerMetadata?: Metadata;
};
type UiText = { type: "text" | "reasoning"; text: string; providerMetadata?: Metadata };
type UiTool = {
  type: "dynamic-tool";
  toolName: string;
  toolCallId: string;
  input: unknown;
  callProviderMetadata?: Metadata;
} & (
  | { state: "input-available" }
  | { state: "output-available"; output: unknown }
  | { state: "output-error"; errorText: string }
);

/** A part of a `UIMessage`, as `toUiMessages` writes it. */
export type AiUiPart = UiText | UiFile | UiTool | { type: "step-start" };

/** A `UIMessage` of the AI SDK, as `toUiMessages` writes it. */
export interface AiUiMessage {
  id: string;
  role: "system" | "user" | "assistant";
  parts: AiUiPart[];
}

/**
 * Reads `UIMessage`s of the AI SDK, what `useChat` keeps: an answer for each step, and a result for each call
 * that has one. Sources, data parts and metadata are lost. A call
 * without a result is answered when the agent continues.
 */
export function fromUiMessages(messages: readonly object[], options: ImportOptions = {}): Imported {
  const importer = new Importer(AI_SDK_API, AI_SDK_API, options);
  messages.forEach((given, index) => {
    const message = given as Loose;
    const parts = toList(message["parts"]);
    importer.losses.at(index);
    if (message["metadata"] !== undefined) importer.losses.add("metadata");
    if (message["role"] === "assistant") readAnswer(importer, parts);
    else if (message["role"] === "system") {
      importer.system(parts.flatMap((part) => textField(part, "text") ?? []).join("\n"));
    } else importer.user(parts.flatMap((part) => readUserPart(part, importer.losses)));
  });
  return importer.end();
}

function readUserPart(part: unknown, losses: Losses): UserContent[] {
  const text = textField(part, "text");
  if (textField(part, "type") === "text" && text !== undefined) return [textBlock(text)];
  const file = readFile(part);
  if (!file) losses.add(`a part of the type ${textField(part, "type")}`);
  return file ? [file] : [];
}

function readAnswer(importer: Importer, parts: readonly unknown[]): void {
  let content: AssistantContent[] = [];
  let calls: Loose[] = [];
  const flush = (): void => {
    importer.assistant(content);
    for (const call of calls) readResult(importer, call);
    content = [];
    calls = [];
  };
  for (const part of parts) {
    if (!isRecord(part)) continue;
    const { type } = part;
    const name = readToolName(part);
    if (type === "step-start") flush();
    else if (name !== undefined) {
      const id = textField(part, "toolCallId") ?? "";
      const { signature } = readProof(part["callProviderMetadata"]);
      content.push(readCall(id, name, part["input"], signature));
      calls.push(part);
    } else if (type === "text" || type === "reasoning") {
      const text = textField(part, "text") ?? "";
      const proof = readProof(part["providerMetadata"]);
      const block =
        type === "text" ? textBlock(text) : { type: "thinking" as const, thinking: text };
      content.push({ ...block, ...proof });
    } else content.push(...readUserPart(part, importer.losses));
  }
  flush();
}

function readToolName(part: Loose): string | undefined {
  const type = textField(part, "type") ?? "";
  if (type === "dynamic-tool") return textField(part, "toolName");
  return type.startsWith("tool-") ? type.slice("tool-".length) : undefined;
}

function readProof(metadata: unknown): { signature?: string } {
  return isRecord(metadata) && Object.keys(metadata).length > 0
    ? { signature: JSON.stringify(metadata) }
    : {};
}

function readResult(importer: Importer, part: Loose): void {
  const id = textField(part, "toolCallId") ?? "";
  const { output, state, approval } = part;
  if (state === "output-error") {
    importer.result(id, [textBlock(textField(part, "errorText") ?? "It failed.")], {
      isError: true,
    });
  } else if (state === "output-denied") {
    const reason = textField(approval, "reason") ?? "Denied.";
    importer.result(id, [textBlock(reason)], { isError: true });
  } else if (state === "output-available") importer.result(id, readOutput(output));
}

/** Content that `toUiMessages` wrote is blocks again; any other value is its JSON. */
function readOutput(output: unknown): UserContent[] {
  if (typeof output === "string") return [textBlock(output)];
  if (Array.isArray(output) && output.length > 0 && output.every(isBlock)) return output;
  return [textBlock(JSON.stringify(output) ?? "")];
}

function isBlock(value: unknown): value is UserContent {
  if (!isRecord(value)) return false;
  if (value["type"] === "text") return typeof value["text"] === "string";
  if (value["type"] === "file") return isRecord(value["source"]);
  return value["type"] === "image" && typeof value["data"] === "string";
}

/**
 * Writes `UIMessage`s of the AI SDK: answers and results up to the next user message are one, with a
 * `step-start` before each answer. Ids are the places in the list. Tools that a service ran are
 * lost, and signatures of answers of other models than those of `fromAiSdk`.
 */
export function toUiMessages(
  messages: readonly Message[],
  { systemPrompt }: ExportOptions = {},
): Exported<AiUiMessage> {
  const losses = new Losses();
  const results = new Map<string, ToolResultMessage>();
  for (const message of messages) {
    if (message.role === "toolResult") results.set(message.toolCallId, message);
  }
  const written: AiUiMessage[] = [];
  if (systemPrompt) {
    written.push({ id: "system", role: "system", parts: [{ type: "text", text: systemPrompt }] });
  }
  messages.forEach((message, index) => {
    losses.at(index);
    if (message.role === "toolResult") return;
    if (message.role === "user") {
      const { content } = message;
      const blocks = typeof content === "string" ? [textBlock(content)] : content;
      const parts = blocks.flatMap((block) => writeUserPart(block, losses));
      return void written.push({ id: `${index}`, role: "user", parts });
    }
    noteAnswer(message, losses);
    const last = written.at(-1);
    const target =
      last?.role === "assistant" ? last : { id: `${index}`, role: "assistant" as const, parts: [] };
    if (target !== last) written.push(target);
    const isOurs = message.api === AI_SDK_API;
    target.parts.push({ type: "step-start" });
    target.parts.push(
      ...message.content.flatMap((block) => writePart(block, isOurs, results, losses)),
    );
  });
  return { messages: written, lost: losses.lines };
}

function writeUserPart(block: UserContent, losses: Losses): (UiText | UiFile)[] {
  return block.type === "text" ? [textBlock(block.text)] : writeFilePart(block, losses);
}

function writeFilePart(block: ImageContent | FileContent, losses: Losses): UiFile[] {
  const file = toFile(block);
  const { mediaType, name, source } = file;
  const named = name === undefined ? {} : { filename: name };
  if (source.type === "base64" || source.type === "url") {
    return [{ type: "file", mediaType, ...named, url: toFileUrl(file) }];
  }
  losses.add(`a file (${describeFile(file)})`);
  return [];
}

function writePart(
  block: AssistantContent,
  isOurs: boolean,
  results: ReadonlyMap<string, ToolResultMessage>,
  losses: Losses,
): AiUiPart[] {
  if (block.type === "serviceTool") {
    losses.add("a tool that the service ran");
    return [];
  }
  const parsed = isOurs && block.signature !== undefined ? parseOr(block.signature) : undefined;
  const metadata = isRecord(parsed) ? (parsed as Metadata) : undefined;
  if (block.signature !== undefined && !metadata) losses.add("a signature");
  const proof = metadata ? { providerMetadata: metadata } : {};
  if (block.type === "text") return [{ ...textBlock(block.text), ...proof }];
  if (block.type === "thinking") return [{ type: "reasoning", text: block.thinking, ...proof }];
  if (block.type === "toolCall") return [writeTool(block, results.get(block.id), metadata)];
  return writeFilePart(block, losses).map((part) => ({ ...part, ...proof }));
}

function writeTool(
  { id: toolCallId, name: toolName, arguments: input }: ToolCall,
  result: ToolResultMessage | undefined,
  metadata: Metadata | undefined,
): UiTool {
  const proof = metadata ? { callProviderMetadata: metadata } : {};
  const part = { type: "dynamic-tool" as const, toolName, toolCallId, input, ...proof };
  if (!result) return { ...part, state: "input-available" };
  const { content, isError } = result;
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  if (isError) return { ...part, state: "output-error", errorText: texts.join("\n") };
  const isText = content.length === 1 && texts.length === 1;
  return { ...part, state: "output-available", output: isText ? texts[0] : content };
}
