import {
  type Exported,
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
  writeFile,
} from "./shared.ts";
import { isRecord } from "../common/records.ts";
import { describeFile, encodeText, fileKind } from "../files/file-facts.ts";
import { decodeText, toFile } from "../files/files.ts";
import type { AssistantContent, FileSource, Message, UserContent } from "../messages/messages.ts";

type ImageType = "image/jpeg" | "image/png" | "image/gif" | "image/webp";
type Elsewhere = { type: "url"; url: string } | { type: "file"; file_id: string };
type UserBlock =
  | { type: "text"; text: string }
  | {
      type: "image";
      source: { type: "base64"; media_type: ImageType; data: string } | Elsewhere;
    }
  | {
      type: "document";
      title?: string;
      source:
        | { type: "base64"; media_type: "application/pdf"; data: string }
        | { type: "text"; media_type: "text/plain"; data: string }
        | Elsewhere;
    };
type AnswerBlock =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "redacted_thinking"; data: string }
  | { type: "tool_use"; id: string; name: string; input: Record<string, unknown> };

/** A message of Anthropic's Messages API, as `toAnthropic` writes it. */
export type AnthropicMessage =
  | { role: "user"; content: string | (UserBlock | AnthropicResult)[] }
  | { role: "assistant"; content: AnswerBlock[] };

export interface AnthropicResult {
  type: "tool_result";
  tool_use_id: string;
  content: UserBlock[];
  is_error?: true;
}

/**
 * Reads messages of Anthropic's Messages API, and `system` of the request. Thinking keeps its
 * signature. Documents with content blocks of their own and marks for the cache are lost.
 */
export function fromAnthropic(
  messages: readonly object[],
  { system, ...options }: ImportOptions & { system?: string | readonly object[] } = {},
): Imported {
  const importer = new Importer("anthropic-messages", "anthropic", options);
  if (typeof system === "string") importer.system(system);
  for (const block of toList(system)) importer.system(textField(block, "text") ?? "");
  messages.forEach((given, index) => {
    importer.losses.at(index);
    const { role, content } = given as Loose;
    if (role === "assistant") {
      const blocks = typeof content === "string" ? [textBlock(content)] : toList(content);
      importer.assistant(blocks.flatMap((block) => readAnswer(block, importer.losses)));
    } else if (typeof content === "string") importer.user(content);
    else readUser(importer, toList(content));
  });
  return importer.end();
}

function readUser(importer: Importer, blocks: readonly unknown[]): void {
  const userBlocks: UserContent[] = [];
  for (const block of blocks) {
    if (isRecord(block) && block["type"] === "tool_result") {
      const { content, is_error } = block;
      const given = typeof content === "string" ? [textBlock(content)] : toList(content);
      const read = given.flatMap((each) => readBlock(each, importer.losses));
      importer.result(textField(block, "tool_use_id") ?? "", read, { isError: is_error === true });
    } else userBlocks.push(...readBlock(block, importer.losses));
  }
  importer.user(userBlocks);
}

function readBlock(block: unknown, losses: Losses): UserContent[] {
  const type = textField(block, "type");
  const text = textField(block, "text");
  if (type === "text" && text !== undefined) return [textBlock(text)];
  const file = type === "image" || type === "document" ? readSource(block, type) : undefined;
  if (!file) losses.add(`a block of the type ${type}`);
  return file ? [file] : [];
}

function readSource(block: unknown, type: "image" | "document"): UserContent | undefined {
  const source = isRecord(block) ? block["source"] : undefined;
  const data = textField(source, "data");
  const mediaType = textField(source, "media_type");
  const url = textField(source, "url");
  const id = textField(source, "file_id");
  const name = textField(block, "title");
  const kind = type === "image" ? "image" : "application/pdf";
  if (data !== undefined) {
    const isText = textField(source, "type") === "text";
    return readFileData(isText ? encodeText(data) : data, { mediaType, name });
  }
  if (url !== undefined) return readFileUrl(url, kind, { name });
  if (id === undefined) return undefined;
  const known = type === "image" ? "image/*" : kind;
  return writeFile({ type: "id", id, service: "anthropic" }, { mediaType: known, name });
}

function readAnswer(block: unknown, losses: Losses): AssistantContent[] {
  if (!isRecord(block)) return [];
  const { type } = block;
  const id = textField(block, "id") ?? textField(block, "tool_use_id") ?? "";
  const name = textField(block, "name");
  if (type === "text") {
    const { citations } = block;
    const proof = toList(citations).length > 0 ? { signature: JSON.stringify(citations) } : {};
    return [{ ...textBlock(textField(block, "text") ?? ""), ...proof }];
  }
  if (type === "thinking") {
    const signature = textField(block, "signature");
    const thinking = textField(block, "thinking") ?? "";
    return [{ type, thinking, ...(signature && { signature }) }];
  }
  if (type === "redacted_thinking") {
    const signature = textField(block, "data") ?? "";
    return [{ type: "thinking", thinking: "", signature, redacted: true }];
  }
  if (type === "tool_use") return [readCall(id, name ?? "unknown", block["input"])];
  if (typeof type === "string" && /_tool_(?:use|result)$/.test(type)) {
    return [{ type: "serviceTool", id, name: name ?? type, raw: { ...block } }];
  }
  losses.add(`a block of the type ${String(type)}`);
  return [];
}

/**
 * Writes messages for Anthropic's Messages API. The system prompt is a field of the request there:
 * pass it yourself. Adjacent results are one message. Thinking of other services, images of
 * answers, and arguments that did not parse are lost.
 */
export function toAnthropic(messages: readonly Message[]): Exported<AnthropicMessage> {
  const losses = new Losses();
  const written: AnthropicMessage[] = [];
  let results: AnthropicResult[] | undefined;
  messages.forEach((message, index) => {
    losses.at(index);
    if (message.role === "toolResult") {
      const { content, isError, toolCallId: tool_use_id } = message;
      if (!results) written.push({ role: "user", content: (results = []) });
      results.push({
        type: "tool_result",
        tool_use_id,
        content: content.flatMap((block) => writeBlock(block, losses)),
        ...(isError && { is_error: true as const }),
      });
      return;
    }
    results = undefined;
    if (message.role === "user") {
      const { content } = message;
      const blocks =
        typeof content === "string"
          ? content
          : content.flatMap((block) => writeBlock(block, losses));
      written.push({ role: "user", content: blocks });
      return;
    }
    noteAnswer(message, losses);
    const isOurs = message.api === "anthropic-messages";
    const content = message.content.flatMap((block) => writeAnswer(block, isOurs, losses));
    if (content.length > 0) written.push({ role: "assistant", content });
  });
  return { messages: written, lost: losses.lines };
}

function writeBlock(block: UserContent, losses: Losses): UserBlock[] {
  if (block.type === "text") return [textBlock(block.text)];
  const file = toFile(block);
  const { mediaType, name, source } = file;
  const kind = fileKind(mediaType);
  const title = name === undefined ? {} : { title: name };
  const elsewhere = writeElsewhere(source);
  if (elsewhere && kind === "image") return [{ type: "image", source: elsewhere }];
  if (elsewhere && (kind === "pdf" || source.type === "id")) {
    return [{ type: "document", ...title, source: elsewhere }];
  }
  if (source.type === "base64") {
    const { data } = source;
    if (isImageType(mediaType)) {
      return [{ type: "image", source: { type: "base64", media_type: mediaType, data } }];
    }
    if (kind === "pdf") {
      const pdf = { type: "base64", media_type: "application/pdf", data } as const;
      return [{ type: "document", ...title, source: pdf }];
    }
    if (kind === "text") {
      const text = { type: "text", media_type: "text/plain", data: decodeText(data) } as const;
      return [{ type: "document", ...title, source: text }];
    }
  }
  losses.add(
    kind === "image" ? `an image of the type ${mediaType}` : `a file (${describeFile(file)})`,
  );
  return [];
}

function writeElsewhere(source: FileSource): Elsewhere | undefined {
  if (source.type === "url") return { type: "url", url: source.url };
  if (source.type !== "id" || source.service !== "anthropic") return undefined;
  return { type: "file", file_id: source.id };
}

function isImageType(type: string): type is ImageType {
  return /^image\/(?:jpeg|png|gif|webp)$/.test(type);
}

function writeAnswer(block: AssistantContent, isOurs: boolean, losses: Losses): AnswerBlock[] {
  switch (block.type) {
    case "text": {
      const citations =
        isOurs && block.signature !== undefined ? parseOr(block.signature) : undefined;
      return [{ ...textBlock(block.text), ...(Array.isArray(citations) && { citations }) }];
    }
    case "toolCall":
      if (block.argumentsError !== undefined) losses.add("arguments that did not parse");
      return [{ type: "tool_use", id: block.id, name: block.name, input: block.arguments }];
    case "thinking": {
      const { thinking, signature, redacted } = block;
      if (isOurs && redacted && signature !== undefined) {
        return [{ type: "redacted_thinking", data: signature }];
      }
      if (isOurs && signature !== undefined) return [{ type: "thinking", thinking, signature }];
      losses.add("thinking");
      return [];
    }
    case "serviceTool":
      if (isOurs && isRecord(block.raw)) return [block.raw as AnswerBlock];
      losses.add("a tool that the service ran");
      return [];
    default:
      losses.add(`the ${block.type} of an answer`);
      return [];
  }
}
