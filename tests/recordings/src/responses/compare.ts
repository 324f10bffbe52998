import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { AssistantContent, AssistantMessage, FailureKind } from "@gyre/ai";
import type { Case, Expected, TextMeasure } from "./manifest.ts";

/** How each field of `expected` is read off a message. Fields that are not here fail the case. */
type Readings = { [Field in keyof Expected]?: (message: AssistantMessage, one: Case) => unknown };

export function measure(text: string): TextMeasure | undefined {
  if (text === "") return undefined;
  const bytes = Buffer.from(text, "utf8");
  return { chars: text.length, utf8_bytes: bytes.length, sha256: sha256(bytes) };
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

type Of<T extends AssistantContent["type"]> = Extract<AssistantContent, { type: T }>;

function blocks<T extends AssistantContent["type"]>(message: AssistantMessage, type: T): Of<T>[] {
  return message.content.filter((block): block is Of<T> => block.type === type);
}

function details(message: AssistantMessage): Record<string, unknown> {
  return message.report?.details ?? {};
}

/** The text of the message; a refusal is text to us and a field of its own to some services. */
function joinText(message: AssistantMessage, { api }: Case): string {
  const text = blocks(message, "text")
    .filter((block) => api !== "bedrock-converse" || !isCited(block))
    .map((block) => block.text)
    .join("");
  const refusal = findRefusal(message);
  return text.endsWith(refusal) ? text.slice(0, text.length - refusal.length) : text;
}

function findRefusal(message: AssistantMessage): string {
  const { refusal } = details(message);
  return typeof refusal === "string" ? refusal : "";
}

function joinThinking(message: AssistantMessage): string {
  return blocks(message, "thinking")
    .map(({ thinking }) => thinking)
    .join("");
}

const FINISHES: Readonly<Record<string, string>> = {
  stop: "stop",
  pause: "stop",
  length: "length",
  toolUse: "tool-calls",
};

/** The service's own name for a block. */
function classifyBlock(block: AssistantContent, one: Case): string {
  if (one.api === "bedrock-converse") return classifyBedrockBlock(block);
  if (block.type === "serviceTool") return String((block.raw as { type?: unknown }).type);
  if (block.type === "toolCall") return "tool_use";
  return block.type === "thinking" && block.redacted ? "redacted_thinking" : block.type;
}

function classifyBedrockBlock(block: AssistantContent): string {
  if (block.type === "serviceTool") {
    return "toolUse" in (block.raw as object) ? "serverToolUse" : "toolResult";
  }
  if (block.type === "toolCall") return "toolUse";
  if (block.type === "thinking") return "reasoning";
  return isCited(block) ? "citation" : block.type;
}

/** Text with sources, which Bedrock has as a block of another kind. */
function isCited(block: AssistantContent): boolean {
  return block.type === "text" && block.signature !== undefined;
}

/** The fields of a part of Google's: which of them a message has, in order of first appearance. */
function partKinds({ content }: AssistantMessage): string[] {
  const kinds = content.map((block) => {
    if (block.type === "serviceTool")
      return Object.keys(block.raw as object)
        .toSorted()
        .join("+");
    const signed = block.signature === undefined ? "" : "+thoughtSignature";
    return `${PARTS[block.type]}${signed}`;
  });
  return [...new Set(kinds)];
}

const PARTS = {
  text: "text",
  thinking: "text+thought",
  toolCall: "functionCall",
  image: "inlineData",
  file: "inlineData",
} as const;

/** Every proof of origin, wherever it stands. */
function hashSignatures({ content }: AssistantMessage): string[] {
  return content.flatMap((block) => {
    const signature =
      block.type === "serviceTool"
        ? (block.raw as { thoughtSignature?: string }).thoughtSignature
        : block.signature;
    const hidden = block.type === "thinking" && block.redacted;
    return hidden || signature === undefined ? [] : [sha256(signature)];
  });
}

type Item = Record<string, unknown>;

/** The reasoning items of the Responses API, which are kept whole as signatures. */
function parseReasoning(message: AssistantMessage): Item[] {
  return blocks(message, "thinking").map(({ signature }) => JSON.parse(signature ?? "{}") as Item);
}

function listRaws(message: AssistantMessage): Item[] {
  return blocks(message, "serviceTool").map(({ raw }) => raw as Item);
}

/** One of the two ways in which a reasoning item shows what was thought. */
function readReasoning(message: AssistantMessage, field: "summary" | "content"): string {
  return parseReasoning(message)
    .flatMap((item) => (item[field] ?? []) as { text?: string }[])
    .map(({ text = "" }) => text)
    .join("");
}

function listItems({ content }: AssistantMessage): string[] {
  const items: string[] = [];
  let lastText: string | undefined;
  for (const block of content) {
    const text = block.type === "text" ? (block.signature ?? "") : undefined;
    // Parts of one message item are blocks of their own to us.
    if (text === undefined || text !== lastText) items.push(classifyItem(block));
    lastText = text;
  }
  return items;
}

function classifyItem(block: AssistantContent): string {
  if (block.type === "serviceTool") return String((block.raw as Item)["type"]);
  return ITEMS[block.type];
}

const ITEMS = {
  text: "message",
  thinking: "reasoning",
  toolCall: "function_call",
  image: "image_generation_call",
  file: "image_generation_call",
} as const;

/** Items that a client is to run itself. */
const OF_THE_CLIENT = /^(custom_tool|local_shell|shell|apply_patch|computer)_call$/;

const READINGS: Readings = {
  text: (message, one) => {
    const text = measure(joinText(message, one));
    return one.caveat?.includes("either value is acceptable") ? one.expected.text : text;
  },
  reasoning: (message) => measure(joinThinking(message)),
  refusal: (message) => measure(findRefusal(message)),
  tool_calls: (message, { expected }) =>
    blocks(message, "toolCall").map(({ id, name, arguments: args, signature, ...rest }, nth) => ({
      // Where the service gave none, any is right.
      id: expected.tool_calls?.[nth]?.id === null && id !== "" ? null : id,
      ...(expected.tool_calls?.[nth]?.item_id !== undefined && { item_id: signature }),
      name,
      // A call that did not parse is never equal to one that did.
      arguments: rest.argumentsError === undefined ? args : rest,
    })),
  server_tool_calls: (message) =>
    blocks(message, "serviceTool").flatMap(({ id, name, input }) =>
      input === undefined ? [] : [{ id, name, arguments: input }],
    ),
  blocks: (message, one) => message.content.map((block) => classifyBlock(block, one)),
  part_kinds: (message, { expected }) => {
    const kinds = partKinds(message);
    const { part_kinds: wanted = [] } = expected;
    // An empty text part is a part to the service, and nothing to us: where one comes first,
    // or is all there is of text, that "text" stands elsewhere.
    const others = wanted.filter((kind) => kind !== "text");
    const same = isDeepStrictEqual(
      kinds.filter((kind) => kind !== "text"),
      others,
    );
    return same && (wanted.includes("text") || !kinds.includes("text")) ? wanted : kinds;
  },
  signatures: (message) => hashSignatures(message),
  redacted: (message) => blocks(message, "thinking").filter(({ redacted }) => redacted).length,
  reasoning_summary: (message) => measure(readReasoning(message, "summary")),
  reasoning_text: (message) => measure(readReasoning(message, "content")),
  items: (message, { expected }) => {
    const items = listItems(message);
    // By their beginnings, as the service lists them in the end; some count by their ends.
    const same = isDeepStrictEqual(items.toSorted(), expected.items?.toSorted());
    return same ? expected.items : items;
  },
  encrypted: (message) =>
    [...parseReasoning(message), ...listRaws(message)].filter((item) => item["encrypted_content"])
      .length,
  other_client_executed_items: (message) =>
    listRaws(message).flatMap(({ type }) => (OF_THE_CLIENT.test(String(type)) ? [type] : [])),
  status: (message) => details(message)["status"],
  incomplete: (message) => details(message)["incomplete"],
  reasoning_details: (message) => details(message)["reasoningDetails"],
  prompt_feedback: (message) => details(message)["promptFeedback"],
  chunks: (message) => message.report?.events,
  events: (message, { api, expected }) => {
    const events = message.report?.events ?? 0;
    // What follows the end of the response is not read.
    const after = api === "openai-responses" && events === (expected.events ?? 0) - 1;
    return after ? expected.events : events;
  },
  choices: (message) => details(message)["choices"] ?? 1,
  stop_reason: (message) => message.report?.stopReason,
  stop_sequence: (message) => details(message)["stopSequence"],
  // Some clients drop what they do not know; we keep all that was said.
  usage: (message, { expected }) => picked(message.report?.usage, expected.usage),
  third_unified_finish: ({ stopReason, failure }, { expected }) => {
    const { third_unified_finish: third = "" } = expected;
    // Words for what that client does not understand.
    if (third === "other" || third === "error") return third;
    if (expected.other_client_executed_items) return third;
    return failure?.kind === "refused" ? "content-filter" : FINISHES[stopReason];
  },
  response_id: ({ responseId }, { expected }) => orEmpty(responseId, expected.response_id),
  model: ({ servedModel }, { expected }) => orEmpty(servedModel, expected.model),
};

/** A client that goes by the first chunk has nothing where that one is about something else. */
function orEmpty(actual: string | undefined, expected: string | undefined): string | undefined {
  return expected === "" ? expected : actual;
}

function picked(usage: object | undefined, expected: object | undefined): object | undefined {
  if (!usage || !expected) return usage;
  return Object.fromEntries(Object.entries(usage).filter(([name]) => name in expected));
}

/** What differs between what was expected of a recording and what our client made of it. */
export function differences(one: Case, message: AssistantMessage): string[] {
  const { expected } = one;
  const failed = message.stopReason === "error" && message.failure?.kind !== "refused";
  if (expected.ok) {
    if (failed && !isFailureForUs(one, message)) {
      return [`failed: ${message.failure?.kind}: ${message.errorMessage}`];
    }
    return compare(expected, message, one);
  }
  if (one.api === "http-error") return compareError(expected, message);
  if (!failed && !expected.accept_partial_as_final) return ["ended well, and should not have"];
  return [...compare(expected.partial ?? {}, message, one), ...compareWords(expected, message)];
}

/**
 * Two things that other clients take for an answer and we for a failure: a response that
 * never says that it has come to its end, which looks like one that was cut off, and one
 * that says of itself that it went wrong. What came of it has to be the same all the same.
 */
function isFailureForUs({ api, expected }: Case, { failure }: AssistantMessage): boolean {
  const { stop_reason, third_unified_finish: third } = expected;
  if (third === "error" || /malformed|error/i.test(stop_reason ?? "")) return true;
  const saysWhy = api === "openai-responses" || (stop_reason ?? undefined) !== undefined;
  return !saysWhy && failure?.kind === "incomplete";
}

function compare(expected: Partial<Expected>, message: AssistantMessage, one: Case): string[] {
  const problems: string[] = [];
  for (const [field, value] of Object.entries(expected)) {
    if (NOT_OF_THE_MESSAGE.has(field)) continue;
    const reading = READINGS[field as keyof Expected];
    if (!reading) problems.push(`${field}: no way to read it off a message`);
    else problems.push(...difference(field, value, reading(message, one)));
  }
  return problems;
}

function difference(field: string, expected: unknown, actual: unknown): string[] {
  if (isDeepStrictEqual(plain(expected), plain(actual))) return [];
  return [`${field}: expected ${shown(expected)}, got ${shown(actual)}`];
}

/** As JSON has it: what is undefined is not there. */
function plain(value: unknown): unknown {
  return value === undefined || value === null ? undefined : JSON.parse(JSON.stringify(value));
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}

/** The kind of failure that each class of recorded errors is to us. */
const KINDS: Readonly<Record<string, FailureKind>> = {
  auth: "auth",
  context_overflow: "overflow",
  invalid_request: "bad_request",
  // The request as it was made: a service accepts it once.
  not_found: "bad_request",
  model_output_invalid: "bad_request",
  quota_exhausted: "quota",
  rate_limit: "rate_limit",
  overloaded: "overloaded",
  refused: "refused",
};

function compareError(expected: Expected, { failure, errorMessage }: AssistantMessage): string[] {
  const { error_class = "", http_status, message } = expected;
  return [
    ...difference("error_class", KINDS[error_class] ?? error_class, failure?.kind),
    ...difference("http_status", http_status, failure?.status),
    ...says("message", message, errorMessage),
  ];
}

/** An error that the service itself sent has to be reported in its words. */
function compareWords({ error }: Expected, { errorMessage }: AssistantMessage): string[] {
  const fromService = error && (error.type ?? error.code ?? undefined) !== undefined;
  return fromService ? says("error", error.message, errorMessage) : [];
}

/** Long words are cut, so the beginning is what counts. */
function says(field: string, words: string | undefined, message: string | undefined): string[] {
  if (words === undefined || message?.includes(words.slice(0, 40))) return [];
  return [`${field}: expected to hear ${shown(words)}, got ${shown(message)}`];
}

/** What is said of the recording rather than of the message. */
const NOT_OF_THE_MESSAGE = new Set([
  "ok",
  "note",
  "error",
  "partial",
  "accept_partial_as_final",
  "payload_types",
]);
