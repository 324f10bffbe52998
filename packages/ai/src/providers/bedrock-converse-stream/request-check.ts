import { createModel, type FormatFixture } from "../testing/format-fixture.ts";
import {
  checkBinding,
  checkClaudeThinking,
  checkGeneration,
  takesPrefill,
} from "../anthropic-messages/request-check.ts";
import {
  toFields,
  type Fields,
  isBlank,
  isFields,
  toList,
  type Problems,
  requestCheck,
} from "../testing/problems.ts";

// "ConverseStream", "ContentBlock", "ToolUseBlock", "ToolResultBlock", "ToolSpecification",
// "ImageBlock" and "CachePointBlock" in the API reference of Amazon Bedrock; the order of
// turns, the service says in its errors.

const KEYS: ReadonlySet<string> = new Set([
  "messages",
  "system",
  "inferenceConfig",
  "toolConfig",
  "guardrailConfig",
  "additionalModelRequestFields",
  "additionalModelResponseFieldPaths",
  "promptVariables",
  "requestMetadata",
  "performanceConfig",
  "serviceTier",
  "outputConfig",
]);
const INFERENCE_KEYS: ReadonlySet<string> = new Set([
  "maxTokens",
  "temperature",
  "topP",
  "stopSequences",
]);
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const CALL_ID = /^[a-zA-Z0-9_-]{1,64}$/;
const IMAGE_FORMATS = ["png", "jpeg", "gif", "webp"];
const VIDEO_FORMATS = ["mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"];
const AUDIO_FORMATS = ["aac", "flac", "m4a", "mp3", "ogg", "opus", "wav", "webm"];
const DOCUMENT_FORMATS = ["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"];
/** No two spaces in a row. */
const DOCUMENT_NAME = /^(?!.* {2})[a-zA-Z0-9 ()[\]-]{1,200}$/;
const MAX_DOCUMENTS = 5;
const MAX_CACHE_POINTS = 4;
const OF_USERS = ["text", "image", "document", "video", "audio", "toolResult", "guardContent"];
const OF_ASSISTANTS = ["text", "image", "toolUse", "toolResult", "reasoningContent"];
const OF_BOTH = ["cachePoint", "citationsContent"];
const IN_RESULTS = ["text", "json", "image", "document", "video", "searchResult"];

/** A request to ConverseStream. `model` is the id in the address. */
const check = requestCheck((problems, body, model) => {
  problems.onlyKeys(body, KEYS, "body");
  const messages = problems.filled(body["messages"], "messages").map((message, index) => {
    const at = `messages[${index}]`;
    const { content, role } = problems.fields(message, at);
    return { role, at, content: problems.filled(content, `${at}.content`).map(toFields) };
  });
  for (const [index, { at, role }] of messages.entries()) {
    const due = index % 2 === 0 ? "user" : "assistant";
    problems.must(role === due, at, "user and assistant must take turns, the user first");
  }
  for (const message of messages) checkMessage(problems, message);
  checkDocuments(problems, messages);
  checkCalls(problems, messages);
  checkTools(problems, body, messages);
  checkSystem(problems, body["system"]);
  checkCachePoints(problems, body);
  checkInference(problems, body, messages, model);
});

interface Message {
  role: unknown;
  at: string;
  content: Fields[];
}

function checkMessage(problems: Problems, { at, content, role }: Message): void {
  const allowed = [...(role === "user" ? OF_USERS : OF_ASSISTANTS), ...OF_BOTH];
  for (const [index, block] of content.entries()) {
    const here = `${at}.content[${index}]`;
    const kinds = Object.keys(block);
    problems.must(kinds.length === 1, here, `a block holds one thing, not ${kinds.length}`);
    problems.mustBeIn(kinds[0], allowed, here);
    checkBlock(problems, block, here);
  }
  const marked = content[0]?.["cachePoint"] !== undefined;
  problems.must(!marked, at, "a cachePoint must follow something");
}

/** "Using the Converse API" and "API restrictions". */
function checkDocuments(problems: Problems, messages: readonly Message[]): void {
  const all: unknown[] = [];
  for (const { at, content } of messages) {
    const documents = content.flatMap(({ document }) => (document === undefined ? [] : [document]));
    all.push(...documents);
    const names = documents.map((document) => toFields(document)["name"]);
    problems.distinct(names, `${at} names of documents`);
    const hasText = content.some(({ text }) => text !== undefined);
    problems.must(documents.length === 0 || hasText, at, "a document needs a text beside it");
  }
  problems.must(all.length <= MAX_DOCUMENTS, "messages", `more than ${MAX_DOCUMENTS} documents`);
}

function checkBlock(problems: Problems, block: Fields, at: string): void {
  const { citationsContent, image, reasoningContent, text, toolResult, toolUse } = block;
  if (text !== undefined) problems.must(!isBlank(text), at, "text must not be blank");
  if (image !== undefined) checkMedia(problems, image, IMAGE_FORMATS, at);
  if (block["video"] !== undefined) checkMedia(problems, block["video"], VIDEO_FORMATS, at);
  if (block["audio"] !== undefined) checkMedia(problems, block["audio"], AUDIO_FORMATS, at);
  if (block["document"] !== undefined) checkDocument(problems, block["document"], at);
  if (toolUse !== undefined) {
    const { input, name, toolUseId } = problems.fields(toolUse, at);
    problems.matches(toolUseId, CALL_ID, at);
    problems.matches(name, NAME, at);
    problems.fields(input, `${at} input`);
  }
  if (toolResult !== undefined) checkResult(problems, problems.fields(toolResult, at), at);
  if (reasoningContent !== undefined) checkReasoning(problems, toFields(reasoningContent), at);
  if (citationsContent !== undefined) {
    const { content } = problems.fields(citationsContent, at);
    for (const part of problems.filled(content, at).map(toFields)) {
      problems.must(!isBlank(part["text"]), at, "text must not be blank");
    }
  }
}

function checkMedia(
  problems: Problems,
  media: unknown,
  formats: readonly string[],
  at: string,
): void {
  const { format, source } = problems.fields(media, at);
  problems.mustBeIn(format, formats, at);
  const { bytes, s3Location } = toFields(source);
  if (s3Location === undefined) problems.base64(bytes, at);
  else problems.matches(toFields(s3Location)["uri"], /^s3:\/\/[^/]+\/./, at);
}

function checkDocument(problems: Problems, document: unknown, at: string): void {
  checkMedia(problems, document, DOCUMENT_FORMATS, at);
  problems.matches(toFields(document)["name"], DOCUMENT_NAME, at);
}

function checkResult(problems: Problems, result: Fields, at: string): void {
  const { content, status, toolUseId } = result;
  problems.matches(toolUseId, CALL_ID, at);
  if (status !== undefined) problems.mustBeIn(status, ["success", "error"], at);
  const parts = status === "error" ? problems.filled(content, at) : toList(content);
  for (const part of parts.map(toFields)) {
    const [kind = "", ...more] = Object.keys(part);
    problems.must(more.length === 0, at, "a block holds one thing");
    problems.mustBeIn(kind, IN_RESULTS, at);
    if (kind === "text") problems.must(!isBlank(part["text"]), at, "text must not be blank");
    if (kind === "image") checkMedia(problems, part["image"], IMAGE_FORMATS, at);
    if (kind === "video") checkMedia(problems, part["video"], VIDEO_FORMATS, at);
    if (kind === "document") checkDocument(problems, part["document"], at);
  }
}

function checkReasoning(problems: Problems, reasoning: Fields, at: string): void {
  const { reasoningText, redactedContent } = reasoning;
  if (redactedContent !== undefined) return problems.base64(redactedContent, at);
  const { signature, text } = problems.fields(reasoningText, at);
  problems.text(text, at);
  problems.must(!isBlank(signature), at, "thinking needs its signature");
}

/** What the service itself ran has a type, and is answered in the same message. */
function held(content: readonly Fields[], kind: "toolUse" | "toolResult"): Fields[] {
  return content
    .map((block) => block[kind])
    .filter(isFields)
    .filter((use) => use["type"] === undefined);
}

function checkCalls(problems: Problems, messages: readonly Message[]): void {
  const ids: unknown[] = [];
  for (const [index, { at, content, role }] of messages.entries()) {
    const before = messages[index - 1];
    const asked = (before ? held(before.content, "toolUse") : []).map((use) => use["toolUseId"]);
    const answered = held(content, "toolResult").map((result) => result["toolUseId"]);
    ids.push(...held(content, "toolUse").map((use) => use["toolUseId"]));
    if (role !== "user") continue;
    problems.distinct(answered, `${at} toolResult`);
    for (const id of asked) problems.must(answered.includes(id), at, `no result of ${String(id)}`);
    for (const id of answered) problems.must(asked.includes(id), at, `no call ${String(id)}`);
  }
  problems.distinct(ids, "toolUseId");
  const last = messages.at(-1);
  const open = last ? held(last.content, "toolUse").length : 0;
  problems.must(open === 0, "messages", "ends with calls that have no results");
}

function checkTools(problems: Problems, body: Fields, messages: readonly Message[]): void {
  const uses = messages.some(
    ({ content }) => held(content, "toolUse").length + held(content, "toolResult").length > 0,
  );
  const config = body["toolConfig"];
  problems.must(!uses || config !== undefined, "toolConfig", "needed when there are calls");
  if (config === undefined) return;
  const { toolChoice, tools } = problems.fields(config, "toolConfig");
  const names: unknown[] = [];
  for (const tool of problems.filled(tools, "toolConfig.tools").map(toFields)) {
    if (tool["toolSpec"] === undefined) continue;
    const { description, inputSchema, name } = problems.fields(tool["toolSpec"], "toolSpec");
    problems.matches(name, NAME, "toolSpec");
    if (description !== undefined) problems.must(description !== "", "toolSpec", "no description");
    problems.objectSchema(toFields(inputSchema)["json"], "toolSpec.inputSchema");
    names.push(name);
  }
  problems.distinct(names, "toolSpec");
  if (toolChoice === undefined) return;
  const [kind, ...more] = Object.keys(problems.fields(toolChoice, "toolChoice"));
  problems.must(more.length === 0, "toolChoice", "is one thing");
  problems.mustBeIn(kind, ["auto", "any", "tool"], "toolChoice");
  const chosen = toFields(toFields(toolChoice)["tool"])["name"];
  if (kind === "tool") problems.mustBeIn(chosen, names, "toolChoice");
}

function checkSystem(problems: Problems, system: unknown): void {
  for (const block of toList(system).map(toFields)) {
    if (block["text"] === undefined) continue;
    problems.must(!isBlank(block["text"]), "system", "text must not be blank");
  }
}

function checkCachePoints(problems: Problems, body: Fields): void {
  const blocks = [
    ...toList(body["system"]),
    ...toList(body["messages"]).flatMap((message) => toList(toFields(message)["content"])),
    ...toList(toFields(body["toolConfig"])["tools"]),
  ].map(toFields);
  const points = blocks.flatMap(({ cachePoint }) => (cachePoint === undefined ? [] : [cachePoint]));
  problems.must(points.length <= MAX_CACHE_POINTS, "cachePoint", `more than ${MAX_CACHE_POINTS}`);
  for (const point of points) {
    const { ttl, type } = problems.fields(point, "cachePoint");
    problems.mustBeIn(type, ["default"], "cachePoint");
    problems.mustBeIn(ttl, [undefined, "5m", "1h"], "cachePoint");
  }
}

function checkInference(
  problems: Problems,
  body: Fields,
  messages: readonly Message[],
  model: string,
): void {
  const config = toFields(body["inferenceConfig"]);
  problems.onlyKeys(config, INFERENCE_KEYS, "inferenceConfig");
  const last = messages.at(-1);
  const text = last?.content.at(-1)?.["text"];
  if (last?.role === "assistant") {
    problems.must(takesPrefill(model), last.at, "the last must be of the user");
    problems.must(
      typeof text !== "string" || !/\s$/.test(text),
      last.at,
      "must not end in white space",
    );
  }
  if (!model.includes("claude")) return;
  for (const { at, content, role } of messages) {
    const end = content.at(-1)?.["reasoningContent"];
    problems.must(role !== "assistant" || end === undefined, at, "must not end in thinking");
    for (const { content: parts, status } of held(content, "toolResult")) {
      const shown = toList(parts).some((part) => toFields(part)["image"] !== undefined);
      problems.must(status !== "error" || !shown, at, "an error may hold text alone");
    }
  }
  const fields = toFields(body["additionalModelRequestFields"]);
  const choice = Object.keys(toFields(toFields(body["toolConfig"])["toolChoice"]))[0];
  const forced = choice === "any" || choice === "tool";
  const { maxTokens, temperature } = config;
  checkGeneration(problems, { ...fields, temperature }, model, choice);
  const bound = messages.some(({ content }) =>
    content.some((block) => "reasoningContent" in block),
  );
  checkBinding(problems, fields["thinking"], bound, model);
  if (fields["thinking"] === undefined) return;
  checkClaudeThinking(problems, { ...fields, temperature, forced }, maxTokens);
  if (toFields(fields["thinking"])["type"] !== "enabled") return;
  const answer = messages.findLast(({ role }) => role === "assistant");
  // Anything else than results that the user says begins another turn.
  const texts = (last?.content ?? []).filter(
    ({ cachePoint, toolResult }) => cachePoint === undefined && toolResult === undefined,
  );
  const goesOn = last === answer || texts.length === 0;
  const begins = answer?.content[0]?.["reasoningContent"] !== undefined;
  const fits = !answer || !goesOn || begins;
  problems.must(fits, answer?.at ?? "", "the turn that goes on must begin with thinking");
}

/** What the tests of all formats know of this one. */
export const fixture: FormatFixture = {
  check,
  models: [
    createModel("bedrock-converse-stream", "amazon-bedrock", "us.anthropic.claude-sonnet-4-5-v1:0"),
    createModel("bedrock-converse-stream", "amazon-bedrock", "us.anthropic.claude-opus-4-6-v1"),
    createModel("bedrock-converse-stream", "amazon-bedrock", "us.anthropic.claude-opus-5-5"),
    createModel("bedrock-converse-stream", "amazon-bedrock", "amazon.nova-pro-v1:0"),
    createModel("bedrock-converse-stream", "amazon-bedrock", "meta.llama3-3-70b-instruct-v1:0"),
  ],
  respond: (n, seal) => ({
    // Under this type the events come as text, which is easier to write.
    headers: { "content-type": "application/json" },
    body: [
      event("messageStart", { role: "assistant" }),
      event("contentBlockDelta", thinkingDelta({ text: `Thought #${n}#` })),
      event("contentBlockDelta", thinkingDelta({ signature: seal })),
      event("contentBlockStop", { contentBlockIndex: 0 }),
      event("contentBlockDelta", { contentBlockIndex: 1, delta: { text: `Said #${n}#` } }),
      event("contentBlockStop", { contentBlockIndex: 1 }),
      event("contentBlockStart", {
        contentBlockIndex: 2,
        start: { toolUse: { toolUseId: `tooluse_${n}`, name: "read_file" } },
      }),
      event("contentBlockDelta", { contentBlockIndex: 2, delta: { toolUse: { input: "{}" } } }),
      event("contentBlockStop", { contentBlockIndex: 2 }),
      event("messageStop", { stopReason: "tool_use" }),
      event("metadata", { usage: {} }),
    ],
  }),
};

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function thinkingDelta(reasoningContent: object): object {
  return { contentBlockIndex: 0, delta: { reasoningContent } };
}
