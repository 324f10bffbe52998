import { toRecord } from "../common/records.ts";
import type {
  AssistantContent,
  AssistantMessage,
  Failure,
  Message,
  Model,
  ServiceToolContent,
  TextContent,
  ToolCall,
  ToolResultMessage,
  UserContent,
  UserMessage,
} from "./messages.ts";

/** What one API format accepts of a transcript. */
export interface MessageConstraints {
  /** What a call's id may look like there. */
  ids: { pattern: RegExp; maxLength: number };
  /** What the name of a tool may look like. Default: 64 letters, digits, `_` and `-`. */
  names?: { pattern: RegExp; maxLength: number };
  /** `keep`: thinking without a signature can be said as such. `text`: only as text. Default `text`. */
  unsignedThinking?: "keep" | "text";
}

/** Placeholders where a service wants a text and there is none. */
export const NO_OUTPUT = "(no output)";
export const NO_TEXT = "(no text)";
/** How much is shown of a service's tool to another service. */
const MAX_SHOWN_CHARS = 2_000;

/**
 * Transforms a transcript for one model, as `transformMessages` does, but for its images and files: these
 * are prepared already, and stay.
 */
export function transformPrepared(
  messages: readonly Message[],
  model: Model,
  rules: MessageConstraints,
): Message[] {
  const ids = new CallIds(rules.ids);
  const sendable = (content: readonly UserContent[], nothing: string): UserContent[] =>
    transformUserContent(content, nothing);
  return sortResultsByCall(messages).flatMap((message): Message[] => {
    if (message.role === "user") return [transformUserMessage(message, sendable)];
    if (message.role === "toolResult") return [transformResult(message, rules, ids, sendable)];
    const content = transformAssistantContent(message, model, rules, ids);
    return content.length > 0 ? [{ ...message, content }] : [];
  });
}

/** Results in the order of their calls: some services know them by their place. */
function sortResultsByCall(messages: readonly Message[]): Message[] {
  const ordered = [...messages];
  for (const [index, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const calls = message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []));
    if (calls.length < 2) continue;
    const results: ToolResultMessage[] = [];
    for (let at = index + 1; ; at++) {
      const result = messages[at];
      if (result?.role !== "toolResult") break;
      results.push(result);
    }
    results.sort((a, b) => calls.indexOf(a.toolCallId) - calls.indexOf(b.toolCallId));
    ordered.splice(index + 1, results.length, ...results);
  }
  return ordered;
}

type Sendable = (content: readonly UserContent[], nothing: string) => UserContent[];

function transformUserMessage(message: UserMessage, sendable: Sendable): UserMessage {
  const { content } = message;
  const blocks: readonly UserContent[] =
    typeof content === "string" ? [{ type: "text", text: content }] : content;
  return { ...message, content: sendable(blocks, NO_TEXT) };
}

function transformResult(
  message: ToolResultMessage,
  rules: MessageConstraints,
  ids: CallIds,
  sendable: Sendable,
): ToolResultMessage {
  return {
    ...message,
    toolCallId: ids.fit(message.toolCallId),
    toolName: fitToolName(message.toolName, rules),
    content: sendable(message.content, NO_OUTPUT),
  };
}

function transformUserContent(content: readonly UserContent[], nothing: string): UserContent[] {
  const blocks = content.flatMap((block): UserContent[] => {
    if (block.type === "image" || block.type === "file") return [block];
    if (block.type !== "text") throw new UnknownContentError(block);
    return block.text.trim() === "" ? [] : [createText(block.text)];
  });
  return blocks.length > 0 ? blocks : [{ type: "text", text: nothing }];
}

/** A transcript from elsewhere has content that no request can hold. */
export class UnknownContentError extends TypeError {
  readonly failure: Failure = { kind: "bad_request", retryable: false };
  constructor(block: never) {
    const { type } = toRecord(block);
    super(
      `A message has content of the type ${JSON.stringify(type) ?? "undefined"}, which is not known. Take it out, or write it as text.`,
    );
    this.name = "UnknownContentError";
  }
}

function createText(text: string): TextContent {
  return { type: "text", text: toWellFormed(text) };
}

const NAMES: NonNullable<MessageConstraints["names"]> = { pattern: /^[\w-]+$/, maxLength: 64 };
const NO_NAME = "unnamed";

/** The name of a tool as a service takes it: a model may have called one that does not exist. */
function fitToolName(name: string, { names = NAMES }: MessageConstraints): string {
  const { maxLength, pattern } = names;
  if (pattern.test(name) && name.length <= maxLength) return name;
  const plain = name.replace(/[^\w-]/g, "_").slice(0, maxLength) || NO_NAME;
  return pattern.test(plain) ? plain : `_${plain}`.slice(0, maxLength);
}

/**
 * The names of the tools that a transformed transcript calls: some services want each one
 * declared.
 */
export function listCalledTools(messages: readonly Message[]): string[] {
  const names = new Set<string>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) if (block.type === "toolCall") names.add(block.name);
  }
  return [...names];
}

/** Whether this very model wrote a message: only then does it know its signatures. */
export function isOwn(message: AssistantMessage, model: Model): boolean {
  return (
    message.api === model.api && message.provider === model.provider && message.model === model.id
  );
}

function transformAssistantContent(
  message: AssistantMessage,
  model: Model,
  rules: MessageConstraints,
  ids: CallIds,
): AssistantContent[] {
  const own = isOwn(message, model);
  return message.content.flatMap((block): AssistantContent[] => {
    switch (block.type) {
      case "text": {
        if (block.text.trim() === "" && !(own && block.signature !== undefined)) return [];
        const { signature } = block;
        return [
          { ...createText(block.text), ...(own && signature !== undefined && { signature }) },
        ];
      }
      case "thinking": {
        if (own && block.signature !== undefined) return [block];
        const thinking = toWellFormed(block.thinking);
        if (thinking.trim() === "") return [];
        if (own && rules.unsignedThinking === "keep") return [{ type: "thinking", thinking }];
        return [{ type: "text", text: `[thinking]\n${thinking}\n[/thinking]` }];
      }
      case "toolCall":
        return [transformCall(block, own, rules, ids)];
      case "serviceTool":
        return own && block.raw !== undefined ? [block] : [describeServiceTool(block)];
      case "image":
      case "file":
        return [block];
      default:
        throw new UnknownContentError(block);
    }
  });
}

function transformCall(
  call: ToolCall,
  own: boolean,
  rules: MessageConstraints,
  ids: CallIds,
): ToolCall {
  const { signature } = call;
  return {
    type: "toolCall",
    id: ids.fit(call.id),
    name: fitToolName(call.name, rules),
    arguments: toWellFormedFields(call.arguments),
    ...(own && signature !== undefined && { signature }),
  };
}

/** What a service ran, as text for services that do not know its blocks. */
export function describeServiceTool({ name, input, output }: ServiceToolContent): TextContent {
  const details = [
    input === undefined ? "" : ` with ${formatValue(input)}`,
    output === undefined ? "" : `, which gave ${formatValue(output)}`,
  ];
  return { type: "text", text: `[The service ran its tool ${name}${details.join("")}]` };
}

/** What only the service that wrote it can read. */
const SEALED = /^(encrypted_\w+|signature|thoughtSignature)$/;

function formatValue(value: unknown): string {
  const readable = (key: string, item: unknown): unknown =>
    SEALED.test(key) ? undefined : typeof item === "string" ? toWellFormed(item) : item;
  const json = typeof value === "string" ? value : (JSON.stringify(value, readable) ?? "");
  const text = toWellFormed(json);
  if (text.length <= MAX_SHOWN_CHARS) return text;
  return `${toWellFormed(text.slice(0, MAX_SHOWN_CHARS))}… (${text.length} characters in all)`;
}

/** `text` with lone halves of surrogate pairs replaced: services refuse a request that has one. */
export function toWellFormed(text: string): string {
  return LONE_SURROGATE.test(text) ? text.replace(LONE_SURROGATES, "\uFFFD") : text;
}

/** The same for all strings of an object, and for the names of its fields. */
function toWellFormedFields(fields: Record<string, unknown>): Record<string, unknown> {
  // Lone halves are all that JSON writes so.
  if (!/\\ud[89a-f]/.test(JSON.stringify(fields))) return fields;
  return toWellFormedValue(fields) as Record<string, unknown>;
}

function toWellFormedValue(value: unknown): unknown {
  if (typeof value === "string") return toWellFormed(value);
  if (Array.isArray(value)) return value.map(toWellFormedValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [toWellFormed(name), toWellFormedValue(item)]),
  );
}

// With the u flag a pair counts as one character, so that only lone halves are of this class.
// Written out: a property of Unicode takes the engine a millisecond to look up.
const LONE_SURROGATE = /[\uD800-\uDFFF]/u;
const LONE_SURROGATES = /[\uD800-\uDFFF]/gu;

/** A hash fits at once, or after a few tries where the service wants something special. */
const MAX_ID_TRIES = 1_000;

/**
 * Ids of calls in the alphabet and length that a service takes. An id that fits is
 * kept; any other is replaced by a hash of itself, so that it is the same in every
 * request, and never one that another call of the transcript has.
 */
class CallIds {
  readonly #rules: MessageConstraints["ids"];
  readonly #fitted = new Map<string, string>();
  readonly #taken = new Set<string>();

  constructor(rules: MessageConstraints["ids"]) {
    this.#rules = rules;
  }

  fit(id: string): string {
    const known = this.#fitted.get(id);
    if (known !== undefined) return known;
    const { pattern, maxLength } = this.#rules;
    let wireId = id;
    for (let salt = 0; ; salt++) {
      const fits = wireId !== "" && wireId.length <= maxLength && pattern.test(wireId);
      if (fits && !this.#taken.has(wireId)) break;
      if (salt === MAX_ID_TRIES) {
        throw new Error(
          `No id for the call "${id}" fits ${String(pattern)} with at most ${maxLength} characters. Correct the rules for ids.`,
        );
      }
      wireId = hashId(`${salt}:${id}`, maxLength);
    }
    this.#fitted.set(id, wireId);
    this.#taken.add(wireId);
    return wireId;
  }
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const HASHED_LENGTH = 24;

/** Letters and digits that depend on all of `text` (FNV-1a, a round for each four of them). */
export function hashId(text: string, maxLength: number): string {
  let id = "";
  for (let round = 0; id.length < Math.min(maxLength, HASHED_LENGTH); round++) {
    let hash = 0x811c9dc5 ^ Math.imul(round + 1, 0x9e3779b1);
    for (let at = 0; at < text.length; at++) {
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    }
    hash ^= hash >>> 15;
    hash = Math.imul(hash, 0x85ebca6b);
    hash ^= hash >>> 13;
    for (let digit = 0, rest = hash >>> 0; digit < 4; digit++, rest = Math.floor(rest / 62)) {
      id += ALPHABET[rest % 62] ?? "";
    }
  }
  return id.slice(0, maxLength);
}
