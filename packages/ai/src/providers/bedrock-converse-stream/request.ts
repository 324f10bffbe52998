import type { CacheRetention, StreamOptions } from "../../client/client.ts";
import type {
  AssistantContent,
  Message,
  Model,
  Tool,
  ToolResultMessage,
  UserContent,
} from "../../messages/messages.ts";
import { fileKind, isImage } from "../../files/file-facts.ts";
import { toFile } from "../../files/files.ts";
import { toToolSchema } from "../../schema/tool-schema.ts";
import {
  BINDING_BETA,
  chooseThinking,
  claudeMessages,
  dropsMismatches,
  FAILED,
  INTERLEAVED_BETA,
  withoutBoundThinking,
} from "../services/claude.ts";
import { hasFeature } from "../services/claude-models.ts";
import {
  listCalledTools,
  transformPrepared,
  type MessageConstraints,
} from "../../messages/transform-messages.ts";
import { findEffortWord, nearestLevel } from "../services/thinking-level.ts";
import { ProviderError } from "../errors/provider-error.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";
import { parseSignature } from "../http/json.ts";
import { authHeaders } from "../http/headers.ts";
import { joinUrl } from "../http/url.ts";
import { findMediaFormat, type MediaFormat } from "./media-formats.ts";

const MAX_DOCUMENT_NAME_CHARS = 180;
const EVENT_STREAM = "application/vnd.amazon.eventstream";

const RULES: MessageConstraints = { ids: { pattern: /^[\w-]+$/, maxLength: 64 } };

/** One request to ConverseStream. Throws where it is to be signed and no region is known. */
export function writeRequest(request: RequestContext): ApiRequest {
  const { context, model, options } = request;
  const messages = transform(context.messages, model);
  const cache = cachePoint(model, options.cacheRetention);
  const toolConfig = toolParams(request, messages);
  const reasoning = chooseReasoning(model, options, messages, toolConfig !== undefined);
  const { maxTokens, sent = messages } = reasoning;
  const temperature =
    reasoning.fields || hasFeature(model, "fixedTemperature") ? undefined : options.temperature;
  const body: Record<string, unknown> = {
    messages: withCachePoints(toConverseMessages(sent, model), cache),
  };
  if (context.systemPrompt?.trim()) {
    body["system"] = [{ text: context.systemPrompt }, ...(cache ? [{ cachePoint: cache }] : [])];
  }
  if (maxTokens !== undefined || temperature !== undefined) {
    body["inferenceConfig"] = {
      ...(maxTokens !== undefined && { maxTokens }),
      ...(temperature !== undefined && { temperature }),
    };
  }
  if (toolConfig) body["toolConfig"] = toolConfig;
  if (reasoning.fields) body["additionalModelRequestFields"] = reasoning.fields;
  return addressRequest(request, "converse-stream", body);
}

/** A body on its way to one of the operations on a model, with a key or to be signed. */
export function addressRequest(
  request: RequestContext,
  operation: string,
  body: Record<string, unknown>,
): ApiRequest {
  const keys = awsKeys(request.apiKey);
  return {
    url: joinUrl(request.baseUrl, `/model/${encodeURIComponent(request.model.id)}/${operation}`),
    headers: { accept: EVENT_STREAM, ...(!keys && authHeaders(request, "bearer")) },
    body,
    ...(keys && { sign: signer(request, keys) }),
  };
}

interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

function awsKeys(apiKey: string | undefined): AwsKeys | undefined {
  const [accessKeyId = "", secretAccessKey, sessionToken] = apiKey?.split(":") ?? [];
  if (!/^(AKIA|ASIA)[A-Z0-9]+$/.test(accessKeyId) || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };
}

function signer(request: RequestContext, keys: AwsKeys): NonNullable<ApiRequest["sign"]> {
  const region = findRegion(request);
  return async (sent) => {
    const { signRequest } = await import("../aws/sigv4.ts");
    const now = request.clock.now();
    return signRequest({ method: "POST", ...sent, ...keys, region, service: "bedrock", now });
  };
}

function findRegion({ baseUrl, model, service }: RequestContext): string {
  const given = model.quirks?.["region"] ?? service.quirks?.["region"];
  if (typeof given === "string") return given;
  const [, region] = /\bbedrock-runtime(?:-fips)?\.([a-z0-9-]+)\./.exec(baseUrl) ?? [];
  if (region !== undefined) return region;
  throw new ProviderError(
    `The region to sign for is not known: ${baseUrl} does not name it. Give model "${model.id}" the quirk "region".`,
    { kind: "bad_request", retryable: false },
  );
}

type Family = "claude" | "nova" | "openai" | "other";

/** Whose model it is: what a model can differs by that, whatever region or profile is named with it. */
export function findFamily({ id, quirks }: Model): Family {
  const family = quirks?.["family"];
  if (family === "claude" || family === "nova" || family === "openai") return family;
  if (id.includes("claude")) return "claude";
  if (id.includes("amazon.nova")) return "nova";
  return id.includes("openai.") ? "openai" : "other";
}

type ConverseBlock =
  | { text: string }
  | { image: Media }
  | { video: Media }
  | { audio: Media }
  | { document: Media & { name: string } }
  | { toolUse: { toolUseId: string; name: string; input: Record<string, unknown> } }
  | { toolResult: { toolUseId: string; content: ConverseBlock[]; status?: "error" } }
  | { reasoningContent: { reasoningText: { text: string; signature: string } } }
  | { reasoningContent: { redactedContent: string } }
  | { citationsContent: { content: { text: string }[]; citations: unknown } }
  | { cachePoint: CachePoint };

interface Media {
  format: MediaFormat;
  source: { bytes: string } | { s3Location: { uri: string } };
}

interface ConverseMessage {
  role: "user" | "assistant";
  content: ConverseBlock[];
}

/** The messages as this service takes them. */
export function formatMessages(messages: readonly Message[], model: Model): object[] {
  return toConverseMessages(transform(messages, model), model);
}

function transform(messages: readonly Message[], model: Model): Message[] {
  const ours = transformPrepared(messages, model, RULES);
  return findFamily(model) === "claude" ? claudeMessages(ours, model) : ours;
}

function toConverseMessages(messages: readonly Message[], model: Model): ConverseMessage[] {
  const formatted: ConverseMessage[] = [];
  const add = (role: ConverseMessage["role"], content: ConverseBlock[]): void => {
    if (content.length === 0) return;
    const last = formatted.at(-1);
    // Results and what the user says next are one message here.
    if (last?.role === role) last.content.push(...content);
    else formatted.push({ role, content });
  };
  const inResults = ["claude", "nova"].includes(findFamily(model));
  // Files of results that cannot have any: they follow when all the results are said.
  let files: ConverseBlock[] = [];
  // It wants a user to begin.
  if (messages[0]?.role === "assistant") add("user", [{ text: "(The conversation goes on.)" }]);
  for (const message of messages) {
    if (message.role === "toolResult") {
      add("user", [resultBlock(message, inResults)]);
      const isLater = ({ type }: UserContent): boolean => type !== "text";
      if (!inResults) files.push(...userBlocks(message.content.filter(isLater)));
      continue;
    }
    add("user", files);
    files = [];
    if (message.role === "assistant") add("assistant", message.content.flatMap(assistantBlock));
    else add("user", userBlocks(message.content));
  }
  add("user", files);
  for (const { role, content } of formatted) if (role === "user") finishDocuments(content);
  const last = formatted.at(-1);
  const end = last?.role === "assistant" ? last.content.at(-1) : undefined;
  if (end && "text" in end) end.text = end.text.trimEnd();
  return formatted;
}

function resultBlock(message: ToolResultMessage, inResults: boolean): ConverseBlock {
  const { content, isError, toolCallId } = message;
  const texts = content.filter(({ type }) => type === "text");
  const shown = inResults ? content : texts;
  // What is marked as an error may hold text alone, and other models do not know the mark.
  const marked = isError && inResults && texts.length === content.length;
  const note: ConverseBlock[] = isError && inResults && !marked ? [{ text: FAILED }] : [];
  const what = content.every((block) => block.type !== "text" && isImage(block)) ? "image" : "file";
  return {
    toolResult: {
      toolUseId: toolCallId,
      content: [
        ...note,
        ...(shown.length > 0 ? userBlocks(shown) : [{ text: `(The ${what} follows.)` }]),
      ],
      ...(marked && { status: "error" }),
    },
  };
}

function userBlocks(content: string | readonly UserContent[]): ConverseBlock[] {
  return typeof content === "string" ? [{ text: content }] : content.map(userBlock);
}

function userBlock(block: UserContent): ConverseBlock {
  if (block.type === "text") return { text: block.text };
  const file = toFile(block);
  const { mediaType, source } = file;
  const media: Media = {
    format: findMediaFormat(mediaType),
    source:
      source.type === "url"
        ? { s3Location: { uri: source.url } }
        : { bytes: source.type === "base64" ? source.data : "" },
  };
  const kind = fileKind(mediaType);
  if (kind === "image") return { image: media };
  if (kind === "video") return { video: media };
  return kind === "audio" ? { audio: media } : { document: { ...media, name: file.name ?? "" } };
}

/** A document needs a name of few signs, which no other has, and a text beside it. */
function finishDocuments(content: ConverseBlock[]): void {
  const used = new Set<string>();
  const visit = (blocks: readonly ConverseBlock[]): boolean => {
    let found = false;
    for (const block of blocks) {
      if ("toolResult" in block) visit(block.toolResult.content);
      if (!("document" in block)) continue;
      found = true;
      const plain = block.document.name
        .replace(/\.\w+$/, "")
        .replace(/[^a-zA-Z0-9 ()[\]-]+/g, "-")
        .replace(/ +/g, " ")
        .slice(0, MAX_DOCUMENT_NAME_CHARS);
      let name = plain.trim() || "document";
      for (let count = 2; used.has(name); count++) name = `${plain.trim() || "document"} ${count}`;
      used.add(name);
      block.document.name = name;
    }
    return found;
  };
  const isText = (block: ConverseBlock): boolean => "text" in block;
  if (visit(content) && !content.some(isText)) content.push({ text: "(See the document.)" });
}

function assistantBlock(block: AssistantContent): ConverseBlock[] {
  switch (block.type) {
    case "text":
      // A blank text is refused, also where it has citations.
      if (block.text.trim() === "") return [];
      if (block.signature === undefined) return [{ text: block.text }];
      return [
        {
          citationsContent: {
            content: [{ text: block.text }],
            citations: parseSignature(block.signature, "a text"),
          },
        },
      ];
    case "thinking": {
      const signature = block.signature ?? "";
      if (block.redacted) return [{ reasoningContent: { redactedContent: signature } }];
      return [{ reasoningContent: { reasoningText: { text: block.thinking, signature } } }];
    }
    case "toolCall":
      return [{ toolUse: { toolUseId: block.id, name: block.name, input: block.arguments } }];
    case "serviceTool":
      return [block.raw as ConverseBlock];
    case "image":
    case "file":
      return [{ text: `[Image: ${toFile(block).mediaType}]` }];
  }
}

interface CachePoint {
  type: "default";
  ttl?: "1h";
}

function cachePoint(model: Model, retention: CacheRetention = "short"): CachePoint | undefined {
  if (retention === "none" || !hasCache(model)) return undefined;
  const long = retention === "long" && hasFeature(model, "longBedrockCache");
  return { type: "default", ...(long && { ttl: "1h" }) };
}

/** A model without a cache rejects a cache point. */
export function hasCache(model: Model): boolean {
  const given = model.quirks?.["cache"];
  if (typeof given === "boolean") return given;
  if (findFamily(model) === "nova") return true;
  return hasFeature(model, "bedrockCache");
}

/**
 * With the one after the system prompt three of the four that the service allows: at the
 * end of the last two messages of the user, so that what the last request wrote is found
 * by this one, whatever came in between.
 */
function withCachePoints(
  messages: ConverseMessage[],
  cache: CachePoint | undefined,
): ConverseMessage[] {
  if (!cache) return messages;
  const users = messages.filter(({ role }) => role === "user").slice(-2);
  for (const { content } of users) content.push({ cachePoint: cache });
  return messages;
}

function toolParams(
  { context, model, options }: RequestContext,
  messages: readonly Message[],
): Record<string, unknown> | undefined {
  const { toolChoice: choice } = options;
  // There is no word for "none": the tools are left out as far as the transcript allows it.
  const tools = choice === "none" ? [] : (context.tools ?? []);
  if (tools.length > 0) {
    const specs = tools.map((tool) => toolSpec(tool, model));
    if (hasFeature(model, "noForcedCalls")) return { tools: specs };
    if (choice === "required") return { tools: specs, toolChoice: { any: {} } };
    if (typeof choice === "object") return { tools: specs, toolChoice: { tool: choice } };
    return { tools: specs };
  }
  // Calls in the transcript have to be of tools that are declared.
  const called = listCalledTools(messages).map((name) =>
    toolSpec({ name, description: "Not to be used any more.", parameters: {} }, model),
  );
  return called.length > 0 ? { tools: called } : undefined;
}

function toolSpec({ name, description, parameters }: Tool, model: Model): object {
  const { properties, required, $defs, ...rest } = toToolSchema(parameters);
  const json = {
    // Nova takes nothing else at the top of a schema.
    ...(findFamily(model) !== "nova" && rest),
    type: "object",
    properties,
    ...(required !== undefined && { required }),
    ...($defs !== undefined && { $defs }),
  };
  return { toolSpec: { name, ...(description.trim() && { description }), inputSchema: { json } } };
}

interface Reasoning {
  maxTokens?: number;
  /** What the model takes beside what all models take. With it goes no temperature. */
  fields?: Record<string, unknown>;
  /** The messages to send, where not all of their thinking may go with it. */
  sent?: readonly Message[];
}

function chooseReasoning(
  model: Model,
  options: StreamOptions,
  messages: readonly Message[],
  hasTools: boolean,
): Reasoning {
  const { maxTokens, thinkingLevel = "off" } = options;
  const asked: Reasoning = maxTokens === undefined ? {} : { maxTokens };
  const family = findFamily(model);
  if (family === "claude") return claudeThinking(model, options, messages, hasTools);
  if (thinkingLevel === "off" || model.reasoning === false) return asked;
  // Of a model that is not known, what nearly all take.
  const level = nearestLevel(thinkingLevel, model.thinkingLevels);
  if (level === undefined) return asked;
  const effort = findEffortWord(model, level);
  if (family === "nova" && model.reasoning === true) {
    const fields = { reasoningConfig: { type: "enabled", maxReasoningEffort: effort } };
    // With the highest effort it takes no limit.
    return effort === "high" ? { fields } : { ...asked, fields };
  }
  if (family !== "openai") return asked;
  if (model.id.includes("gpt-oss")) return { ...asked, fields: { reasoning_effort: effort } };
  return { ...asked, fields: { reasoning: { effort } } };
}

function claudeThinking(
  model: Model,
  options: StreamOptions,
  messages: readonly Message[],
  hasTools: boolean,
): Reasoning {
  const level = model.reasoning === false ? "off" : (options.thinkingLevel ?? "off");
  const thinking = chooseThinking(model, { ...options, thinkingLevel: level }, messages);
  const { max_tokens, ...fields } = thinking.params;
  const { messages: sent } = withoutBoundThinking(messages, model, thinking);
  const { maxTokens = model.maxTokens } = options;
  if (!fields.thinking) return { sent, ...(maxTokens !== undefined && { maxTokens: max_tokens }) };
  // Older models refuse to hear of it.
  const interleaved = thinking.budgeted && hasTools && hasFeature(model, "interleavedThinking");
  const beta = interleaved
    ? INTERLEAVED_BETA
    : dropsMismatches(thinking)
      ? BINDING_BETA
      : undefined;
  return {
    sent,
    maxTokens: max_tokens,
    fields: { ...fields, ...(beta !== undefined && { anthropic_beta: [beta] }) },
  };
}
