import { parseDataUrl } from "./data-url.ts";
import { isRecord } from "../common/records.ts";
import { describeFile } from "../files/file-facts.ts";
import { guessMediaType } from "../files/media-types.ts";
import type {
  AssistantContent,
  AssistantMessage,
  FileContent,
  FileSource,
  ImageContent,
  Message,
  ToolCall,
  ToolResultMessage,
  UserContent,
} from "../messages/messages.ts";

/** Messages of another library as messages for this one. */
export interface Imported {
  /** What system messages say, joined. */
  systemPrompt?: string;
  messages: Message[];
  /** What has no place here, a line each. */
  lost: string[];
}

/** Messages in the form of another library. */
export interface Exported<T> {
  messages: T[];
  /** What has no place there, a line each. */
  lost: string[];
}

/** What the other library does not record. */
export interface ImportOptions {
  /** Of answers. Default: the name of the form, and "unknown". */
  api?: string;
  provider?: string;
  model?: string;
  /** Of all messages. Default 0. */
  timestamp?: number;
}

export interface ExportOptions {
  /** Goes first, as a system message. */
  systemPrompt?: string;
}

/** A message from outside, of which nothing is known. */
export type Loose = Readonly<Record<string, unknown>>;

/** Collects what is lost, with the message that it was in. */
export class Losses {
  readonly lines: string[] = [];
  #at = 0;

  /** What is added from now on is of this message. */
  at(index: number): void {
    this.#at = index;
  }

  add(what: string): void {
    const line = `message ${this.#at}: ${what}`;
    if (!this.lines.includes(line)) this.lines.push(line);
  }
}

/** Builds messages from those of another library. */
export class Importer {
  readonly losses: Losses = new Losses();
  readonly messages: Message[] = [];
  readonly #system: string[] = [];
  readonly #names = new Map<string, string>();
  readonly #from: Required<ImportOptions>;

  constructor(api: string, provider: string, options: ImportOptions) {
    this.#from = { api, provider, model: "unknown", timestamp: 0, ...options };
  }

  get api(): string {
    return this.#from.api;
  }

  system(text: string): void {
    if (this.messages.length > 0) this.losses.add("the place of a system message");
    if (text !== "") this.#system.push(text);
  }

  user(content: string | UserContent[]): void {
    if (content.length === 0) return;
    this.messages.push({ role: "user", content, timestamp: this.#from.timestamp });
  }

  assistant(content: AssistantContent[]): void {
    if (content.length === 0) return;
    const { api, provider, model, timestamp } = this.#from;
    for (const block of content) {
      if (block.type === "toolCall") this.#names.set(block.id, block.name);
    }
    const hasCalls = content.some(({ type }) => type === "toolCall");
    const stopReason: AssistantMessage["stopReason"] = hasCalls ? "toolUse" : "stop";
    const from = { api, provider, model, usage: {}, stopReason, timestamp };
    this.messages.push({ role: "assistant", content, ...from });
  }

  result(
    toolCallId: string,
    content: UserContent[],
    { isError = false, name }: { isError?: boolean; name?: string | undefined } = {},
  ): void {
    const toolName = name ?? this.#names.get(toolCallId) ?? "unknown";
    const { timestamp } = this.#from;
    this.messages.push({ role: "toolResult", toolCallId, toolName, content, isError, timestamp });
  }

  end(): Imported {
    const { messages } = this;
    const systemPrompt = this.#system.join("\n\n");
    return { ...(systemPrompt !== "" && { systemPrompt }), messages, lost: this.losses.lines };
  }
}

/** A call whose arguments came as a text, or as a value. */
export function readCall(id: string, name: string, given: unknown, signature?: string): ToolCall {
  const call = {
    type: "toolCall" as const,
    id,
    name,
    ...(signature !== undefined && { signature }),
  };
  if (isRecord(given)) return { ...call, arguments: { ...given } };
  const rawArguments = typeof given === "string" ? given : (JSON.stringify(given) ?? "");
  if (rawArguments.trim() === "") return { ...call, arguments: {} };
  const value = parseOr(rawArguments);
  if (isRecord(value)) return { ...call, arguments: value };
  const argumentsError = "They are no JSON object.";
  return { ...call, arguments: {}, rawArguments, argumentsError };
}

/** The arguments of a call as the model wrote them, where that is known. */
export function writeArguments(call: ToolCall): string {
  return call.argumentsError === undefined
    ? JSON.stringify(call.arguments)
    : (call.rawArguments ?? "{}");
}

/** What is known of a file beside where it is. */
export interface FileFacts {
  mediaType?: string | undefined;
  name?: string | undefined;
}

/**
 * The file of an address. The contents of a `data:` URL are read; an image with its contents is an `image`
 * block. `kind`: for the media type of an address that does not say it.
 */
export function readFileUrl(
  url: string,
  kind: "image" | "application/pdf",
  { mediaType, name }: FileFacts = {},
): ImageContent | FileContent {
  const found = parseDataUrl(url);
  if (found) return readFileData(found.data, { mediaType: found.mimeType, name });
  const guess = guessMediaType(name ?? url);
  const type =
    mediaType ?? (kind !== "image" ? (guess ?? kind) : guess?.startsWith(kind) ? guess : "image/*");
  return writeFile({ type: "url", url }, { mediaType: type, name });
}

/** A file with its contents; an image is an `image` block. */
export function readFileData(
  data: string,
  { mediaType = "image/png", name }: FileFacts,
): ImageContent | FileContent {
  const isPlain = name === undefined && mediaType.startsWith("image/");
  if (isPlain) return { type: "image", data, mimeType: mediaType };
  return writeFile({ type: "base64", data }, { mediaType, name });
}

export function writeFile(
  source: FileSource,
  { mediaType = "application/octet-stream", name }: FileFacts,
): FileContent {
  return { type: "file", mediaType, ...(name !== undefined && { name }), source };
}

export function textBlock(text: string): { type: "text"; text: string } {
  return { type: "text", text };
}

export function textField(record: unknown, name: string): string | undefined {
  const value = isRecord(record) ? record[name] : undefined;
  return typeof value === "string" ? value : undefined;
}

export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function parseOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What is lost of a result that becomes a text. */
export function resultText({ content }: ToolResultMessage, losses: Losses): string {
  for (const block of content) {
    if (block.type === "image") losses.add("the image of a result");
    if (block.type === "file") losses.add(`the file of a result (${describeFile(block)})`);
  }
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

/** Names what an answer has besides its content, and is in no other form. */
export function noteAnswer(message: AssistantMessage, losses: Losses): void {
  const { errorMessage, stopReason } = message;
  if (errorMessage !== undefined || stopReason === "aborted")
    losses.add(`that it ended ${stopReason}`);
}
