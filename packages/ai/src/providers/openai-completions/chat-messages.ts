import type { ChatCompletionContentPart } from "openai/resources/chat/completions";
import { fileKind, fileName, isImage, toFileUrl } from "../../files/file-facts.ts";
import { toFile } from "../../files/files.ts";
import type {
  AssistantContent,
  AssistantMessage,
  FileContent,
  ImageContent,
  Message,
  Model,
  ThinkingContent,
  ToolCall,
  UserContent,
} from "../../messages/messages.ts";
import type { ChatDialect } from "../services/chat-quirks.ts";
import { parseSignature } from "../http/json.ts";
import {
  transformPrepared,
  type MessageConstraints,
  isOwn,
} from "../../messages/transform-messages.ts";

export type ChatPart =
  | { type: "text"; text: string; cache_control?: object }
  | { type: "image_url"; image_url: { url: string }; cache_control?: object }
  | { type: "video_url"; video_url: { url: string }; cache_control?: object }
  | { type: "audio_url"; audio_url: { url: string }; cache_control?: object }
  | { type: "file_url"; file_url: { url: string }; cache_control?: object }
  | { type: "document_url"; document_url: string; cache_control?: object }
  | {
      type: "input_audio";
      input_audio: string | { data: string; format: string };
      cache_control?: object;
    }
  | (ChatCompletionContentPart.File & { cache_control?: object })
  | { type: "file"; file_id: string; cache_control?: object }
  | { type: "thinking"; thinking: { type: "text"; text: string }[]; cache_control?: object };

interface ChatCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
  extra_content?: unknown;
}

export interface ChatMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content: string | null | ChatPart[];
  reasoning_content?: string;
  reasoning?: string;
  reasoning_details?: ReasoningDetail[];
  tool_calls?: ChatCall[];
  tool_call_id?: string;
  name?: string;
}

/** Said where a service wants the assistant between a result and the user. */
const GO_ON = "(I have the results.)";
const BEGIN = "(The conversation goes on.)";
const ASK_ON = "(Go on.)";
/** Stands for thinking that another model did, where a service insists on the field. */
const NO_THINKING = " ";

/** The messages as a chat service takes them. */
export function chatMessages(
  messages: readonly Message[],
  model: Model,
  dialect: ChatDialect,
): ChatMessage[] {
  const { pattern, maxLength } = dialect.callIds;
  const rules: MessageConstraints = {
    ids: { pattern: new RegExp(pattern), maxLength },
    unsignedThinking: "keep",
  };
  const formatted: ChatMessage[] = [];
  // A result holds text alone: its files follow once all results of the turn are there.
  let files: ChatPart[] = [];
  const push = (message: ChatMessage): void => {
    if (
      message.role === "user" &&
      formatted.at(-1)?.role === "tool" &&
      dialect.assistantAfterResults
    ) {
      formatted.push({ role: "assistant", content: GO_ON });
    }
    formatted.push(message);
  };
  const showFiles = (): void => {
    if (files.length > 0) push({ role: "user", content: files });
    files = [];
  };
  for (const message of transformPrepared(
    dialect.tools ? messages : describeCalls(messages),
    model,
    rules,
  )) {
    if (message.role === "toolResult") {
      const { toolName: name } = message;
      const shown = message.content.filter((block) => block.type !== "text");
      const what = shown.every(isImage) ? "images" : "files";
      formatted.push({
        role: "tool",
        tool_call_id: message.toolCallId,
        ...(dialect.resultName && { name }),
        content: joinTexts(message.content, "\n") || `(See the ${what} in the next message.)`,
      });
      if (shown.length > 0) {
        const label = what === "images" ? "Images" : "Files";
        files.push(
          textPart(`[${label} that ${name} gave]`),
          ...shown.map((file) => filePart(file, dialect)),
        );
      }
      continue;
    }
    showFiles();
    if (message.role === "user") {
      const content = userContent(message.content, dialect);
      push({ role: "user", content });
    } else {
      const formatted = assistantMessage(message, model, dialect);
      if (formatted) push(formatted);
    }
  }
  showFiles();
  if (dialect.userLast && formatted.at(-1)?.role === "assistant") {
    formatted.push({ role: "user", content: ASK_ON });
  }
  return dialect.alternate ? mergeTurns(formatted) : formatted;
}

/** Calls and results as text, for a service that has no tools. */
function describeCalls(messages: readonly Message[]): Message[] {
  return messages.map((message): Message => {
    if (message.role === "user") return message;
    if (message.role === "assistant") {
      const content = message.content.map((block): AssistantContent => {
        if (block.type !== "toolCall") return block;
        const { name, arguments: given } = block;
        return { type: "text", text: `[Called ${name} with ${JSON.stringify(given)}]` };
      });
      return { ...message, content };
    }
    const { toolName, content, timestamp } = message;
    const label: UserContent = { type: "text", text: `[What ${toolName} answered]` };
    return { role: "user", content: [label, ...content], timestamp };
  });
}

function textPart(text: string): ChatPart {
  return { type: "text", text };
}

/** A file in the form that the service documents; `files.ts` says which services take which. */
function filePart(block: ImageContent | FileContent, { fileParts }: ChatDialect): ChatPart {
  const file = toFile(block);
  const { mediaType, source } = file;
  const url = toFileUrl(file);
  switch (fileKind(mediaType)) {
    case "image":
      return { type: "image_url", image_url: { url } };
    case "video":
      return { type: "video_url", video_url: { url } };
    case "audio":
      if (source.type === "url" && fileParts !== "mistral") {
        return { type: "audio_url", audio_url: { url } };
      }
      if (fileParts === "mistral") {
        return { type: "input_audio", input_audio: source.type === "base64" ? source.data : url };
      }
      return {
        type: "input_audio",
        input_audio: {
          data: source.type === "base64" ? source.data : "",
          format: findAudioFormat(mediaType),
        },
      };
    default:
      if (source.type === "id") {
        const at = { file_id: source.id };
        return fileParts === "mistral" ? { type: "file", ...at } : { type: "file", file: at };
      }
      if (fileParts === "mistral") return { type: "document_url", document_url: url };
      if (fileParts === "file_url") {
        // Contents go without the beginning that makes an address of them.
        const data = source.type === "base64" ? source.data : url;
        return { type: "file_url", file_url: { url: data } };
      }
      return { type: "file", file: { filename: fileName(file), file_data: url } };
  }
}

/** What the services call the formats whose media types have other names. */
const AUDIO_FORMATS: Readonly<Record<string, string>> = {
  "audio/mpeg": "mp3",
  "audio/x-wav": "wav",
  "audio/vnd.wave": "wav",
  "audio/mp4": "m4a",
  "audio/x-m4a": "m4a",
};

function findAudioFormat(mediaType: string): string {
  const type = mediaType.toLowerCase();
  return AUDIO_FORMATS[type] ?? type.replace(/^.*\//, "");
}

function joinTexts(content: readonly UserContent[], between: string): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(between);
}

/** Plain text where there are no files: servers of one's own often read nothing else. */
function userContent(
  content: string | readonly UserContent[],
  dialect: ChatDialect,
): string | ChatPart[] {
  if (typeof content === "string") return content;
  if (content.every(({ type }) => type === "text")) return joinTexts(content, "\n\n");
  return content.map((block) =>
    block.type === "text" ? textPart(block.text) : filePart(block, dialect),
  );
}

/** Nothing, where there is neither a text nor a call: such a message is refused. */
function assistantMessage(
  message: AssistantMessage,
  model: Model,
  dialect: ChatDialect,
): ChatMessage | undefined {
  const thoughts: ThinkingContent[] = [];
  const texts: string[] = [];
  const calls: ChatCall[] = [];
  for (const block of message.content) {
    if (block.type === "text") texts.push(block.text);
    else if (block.type === "thinking") thoughts.push(block);
    else if (block.type === "toolCall") calls.push(toChatCall(block));
    else if (block.type === "image" || block.type === "file") {
      texts.push(`[Image: ${toFile(block).mediaType}]`);
    }
    // The service does not take back what it ran itself; its answer has the effect.
  }
  // Its own text came in one piece, and was only parted by what came in between.
  const text = texts.join(isOwn(message, model) ? "" : "\n\n");
  if (text === "" && calls.length === 0) return undefined;
  const formatted: ChatMessage = {
    role: "assistant",
    content: text === "" ? dialect.emptyContent : text,
  };
  addThinking(formatted, thoughts, calls.length > 0, dialect);
  if (calls.length > 0) formatted.tool_calls = calls;
  return formatted;
}

function toChatCall({ id, name, arguments: given, signature }: ToolCall): ChatCall {
  return {
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(given) },
    ...(signature !== undefined && { extra_content: parseSignature(signature, "a call") }),
  };
}

function addThinking(
  formatted: ChatMessage,
  thoughts: readonly ThinkingContent[],
  calls: boolean,
  { reasoningBack, reasoningRequired }: ChatDialect,
): void {
  const details = thoughts.flatMap(({ signature }) => parseDetails(signature));
  if (details.length > 0) {
    formatted.reasoning_details = mergeDetails(details);
    return;
  }
  const thinking = thoughts.map((block) => block.thinking).join("");
  switch (reasoningBack) {
    case "none":
      return;
    case "parts":
      if (thinking === "") return;
      formatted.content = [
        { type: "thinking", thinking: [{ type: "text", text: thinking }] },
        ...(typeof formatted.content === "string" && formatted.content !== ""
          ? [textPart(formatted.content)]
          : []),
      ];
      return;
    default: {
      const field = reasoningBack === "reasoning_content" ? "reasoning_content" : "reasoning";
      if (thinking !== "") formatted[field] = thinking;
      else if (reasoningRequired && calls) formatted[field] = NO_THINKING;
    }
  }
}

function parseDetails(signature: string | undefined): ReasoningDetail[] {
  const value: unknown = signature === undefined ? [] : parseSignature(signature, "thinking");
  return Array.isArray(value) ? (value as ReasoningDetail[]) : [];
}

/** Neighbors of the same role become one message, and a user begins. */
function mergeTurns(messages: readonly ChatMessage[]): ChatMessage[] {
  const formatted: ChatMessage[] = [];
  if (messages[0]?.role === "assistant") formatted.push({ role: "user", content: BEGIN });
  for (const message of messages) {
    const last = formatted.at(-1);
    if (last?.role === message.role) last.content = joinContents(last.content, message.content);
    else formatted.push({ ...message });
  }
  return formatted;
}

function joinContents(
  first: ChatMessage["content"],
  second: ChatMessage["content"],
): string | ChatPart[] {
  if (typeof first === "string" && typeof second === "string") return `${first}\n\n${second}`;
  return [...toParts(first), ...toParts(second)];
}

export function toParts(content: ChatMessage["content"]): ChatPart[] {
  if (typeof content === "string") return content === "" ? [] : [textPart(content)];
  return content ?? [];
}

/** Breakpoints that a request may have beside the one after the system prompt. */
const BREAKPOINTS = 2;

/**
 * Marks the end of the system prompt and of the last two things that were said to the
 * model, so that what the last request wrote into the cache is found by this one.
 */
export function addBreakpoints(messages: readonly ChatMessage[], cache: object): void {
  const toModel = (message: ChatMessage | undefined): boolean =>
    message?.role === "user" || message?.role === "tool";
  const ends = messages.filter(
    (message, index) => toModel(message) && !toModel(messages[index + 1]),
  );
  const system = messages.filter(({ role }) => role === "system" || role === "developer");
  for (const message of [...system, ...ends.slice(-BREAKPOINTS)]) {
    const parts = toParts(message.content);
    const last = parts.at(-1);
    if (!last) continue;
    last.cache_control = cache;
    message.content = parts;
  }
}

/** A piece of thinking as gateways give it, and want it back: text, a summary, or sealed. */
export interface ReasoningDetail {
  type?: string;
  index?: number | null;
  text?: string | null;
  summary?: string | null;
  [field: string]: unknown;
}

/** What of a piece can be read. */
export function detailText({ text, summary }: ReasoningDetail): string {
  return text ?? summary ?? "";
}

/**
 * Whole details, of the pieces that a stream cut them into. Pieces of the same type and
 * index are one: their texts are joined, and what a later piece says beside its text
 * holds. What is sealed comes whole.
 */
export function mergeDetails(pieces: readonly ReasoningDetail[]): ReasoningDetail[] {
  const whole: ReasoningDetail[] = [];
  const known = new Map<string, ReasoningDetail>();
  for (const piece of pieces) {
    const key = `${piece.type} ${piece.index}`;
    const detail = known.get(key);
    if (!detail || "data" in piece) {
      const begun = { ...piece };
      whole.push(begun);
      known.set(key, begun);
      continue;
    }
    for (const [name, value] of Object.entries(piece)) {
      if (value === null || value === undefined) continue;
      const joins = (name === "text" || name === "summary") && typeof value === "string";
      detail[name] = joins ? `${detail[name] ?? ""}${value}` : value;
    }
  }
  return whole;
}
