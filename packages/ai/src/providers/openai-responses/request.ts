import type { ModelQuirks } from "../../messages/quirks.ts";
import type {
  ResponseCreateParamsStreaming,
  ResponseInputItem,
  ResponseInputMessageContentList,
  ResponseOutputMessage,
  ResponseOutputText,
  ResponseReasoningItem,
  ToolChoiceFunction,
  ToolChoiceTypes,
} from "openai/resources/responses/responses";
import {
  type AssistantContent,
  type Message,
  type Model,
  type TextContent,
  THINKING_LEVELS,
  type ThinkingLevel,
  type UserContent,
} from "../../messages/messages.ts";
import { toToolSchema } from "../../schema/tool-schema.ts";
import { transformPrepared, type MessageConstraints } from "../../messages/transform-messages.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";
import {
  COMPUTER,
  type ComputerAnswer,
  findComputerAnswers,
  readComputerCall,
} from "./computer.ts";
import { readState } from "./state.ts";
import { authHeaders } from "../http/headers.ts";
import { fileName, toFileUrl } from "../../files/file-facts.ts";
import { toFile } from "../../files/files.ts";
import { parseJsonOr } from "../http/json.ts";
import { joinUrl } from "../http/url.ts";
import { findEffortWord, nearestLevel, USUAL_LEVELS } from "../services/thinking-level.ts";
import { toRecord } from "../../common/records.ts";

/** The service takes no smaller limit. */
const MIN_OUTPUT_TOKENS = 16;
/** Longer ids of items and keys of caches are refused. */
const MAX_ID_CHARS = 64;

const RULES: MessageConstraints = {
  ids: { pattern: /^[\w-]+$/, maxLength: MAX_ID_CHARS },
};

/** Items of its own tools that the service reads again; the others wait for an answer of ours. */
const RETURNED: ReadonlySet<unknown> = new Set([
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "mcp_list_tools",
  "mcp_call",
  "tool_search_call",
  "tool_search_output",
  "compaction",
]);

/** One request to the Responses API. */
export function writeRequest(request: RequestContext): ApiRequest {
  const { context, model, options } = request;
  const body: ResponseCreateParamsStreaming = {
    model: model.id,
    stream: true,
    store: false,
    input: formatMessages(context.messages, model),
    ...(context.systemPrompt?.trim() && { instructions: context.systemPrompt }),
    ...toolParams(request),
    ...reasoningParams(request),
    ...cacheParams(request),
  };
  if (options.maxTokens !== undefined) {
    body.max_output_tokens = Math.max(MIN_OUTPUT_TOKENS, options.maxTokens);
  }
  // Models that reason refuse any.
  if (options.temperature !== undefined && !model.reasoning) body.temperature = options.temperature;
  const user = options.metadata?.["user_id"];
  if (typeof user === "string") body.safety_identifier = user;
  return {
    url: joinUrl(request.baseUrl, "/responses"),
    headers: authHeaders(request, "bearer"),
    body: body as unknown as Record<string, unknown>,
  };
}

/** The input items as this service takes them. */
export function formatMessages(messages: readonly Message[], model: Model): ResponseInputItem[] {
  return formatEach(messages, model).flatMap(({ items }) => items);
}

/** The same, each message with its items. */
export function formatEach(
  messages: readonly Message[],
  model: Model,
): { message: Message; items: ResponseInputItem[] }[] {
  const usedIds = new Set<string>();
  const transformed = transformPrepared(messages, model, RULES);
  const computer = findComputerAnswers(transformed);
  let position = 0;
  return transformed.map((message) => {
    const items = toItems(message, model, position, usedIds, computer);
    position += items.length;
    return { message, items };
  });
}

function toItems(
  message: Message,
  model: Model,
  position: number,
  usedIds: Set<string>,
  computer: ComputerAnswers,
): ResponseInputItem[] {
  if (message.role === "assistant") {
    return assistantItems(message.content, model, position, usedIds, computer);
  }
  if (message.role === "toolResult") {
    const answer = computer.get(message.toolCallId);
    if (answer) return [answer.item, ...userItems(answer.rest)];
    const output = toOutput(message.content);
    return [{ type: "function_call_output", call_id: message.toolCallId, output }];
  }
  const { content } = message;
  return userItems(typeof content === "string" ? [textBlock(content)] : content);
}

type ComputerAnswers = ReadonlyMap<string, ComputerAnswer | undefined>;

function userItems(blocks: readonly UserContent[]): ResponseInputItem[] {
  if (blocks.length === 0) return [];
  return [{ type: "message", role: "user", content: blocks.map(inputPart) }];
}

function textBlock(text: string): TextContent {
  return { type: "text", text };
}

type InputPart = Extract<
  ResponseInputMessageContentList[number],
  { type: "input_text" | "input_image" | "input_file" }
>;

function inputPart(block: UserContent): InputPart {
  if (block.type === "text") return { type: "input_text", text: block.text };
  const file = toFile(block);
  const { mediaType, source } = file;
  const url = toFileUrl(file);
  if (mediaType.startsWith("image/")) {
    const at = source.type === "id" ? { file_id: source.id } : { image_url: url };
    return { type: "input_image", ...at, detail: "auto" };
  }
  if (source.type === "id") return { type: "input_file", file_id: source.id };
  if (source.type === "url") return { type: "input_file", file_url: url };
  return { type: "input_file", filename: fileName(file), file_data: url };
}

/** Plain text where that is all there is: not every service reads a list here. */
function toOutput(content: readonly UserContent[]): string | InputPart[] {
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.length === content.length ? texts.join("\n") : content.map(inputPart);
}

/**
 * One response of the model as items. Reasoning goes only together with the item that
 * it led to, and ids of items only together with their reasoning: the service refuses
 * the one without the other, and an id that comes twice.
 */
function assistantItems(
  content: readonly AssistantContent[],
  model: Model,
  position: number,
  usedIds: Set<string>,
  computer: ComputerAnswers,
): ResponseInputItem[] {
  const items: ResponseInputItem[] = [];
  let message: { id: unknown; parts: ResponseOutputMessage["content"] } | undefined;
  const use = (id: unknown, prefix = ""): id is string => {
    if (typeof id !== "string" || usedIds.has(id) || !id.startsWith(prefix)) return false;
    if (prefix !== "" && id.length > MAX_ID_CHARS) return false;
    usedIds.add(id);
    return true;
  };
  const isNew = (id: unknown): boolean => id === undefined || use(id);
  const withIds = (): boolean => !model.reasoning || items.some(({ type }) => type === "reasoning");
  const dropReasoning = (): void => {
    while (items.at(-1)?.type === "reasoning") items.pop();
  };
  for (const block of content) {
    if (block.type === "text" && block.text.trim() !== "") {
      const { id, phase, annotations = [] } = parseRecord(block.signature) as TextProof;
      const part: ResponseOutputText = { type: "output_text", text: block.text, annotations };
      if (message && id !== undefined && message.id === id) {
        message.parts.push(part);
        continue;
      }
      message = { id, parts: [part] };
      items.push({
        type: "message",
        role: "assistant",
        id: withIds() && use(id, "msg_") ? id : `msg_said_${position + items.length}`,
        status: "completed",
        ...(phase && { phase }),
        content: message.parts,
      });
      continue;
    }
    message = undefined;
    if (block.type === "toolCall") {
      const { id: call_id, name, signature } = block;
      const call = readComputerCall(block);
      // One that no screenshot answers is not known to the service as what its reasoning led to.
      const isAnswered = !computer.has(call_id) || computer.get(call_id) !== undefined;
      if (call && isAnswered && use(call.id)) {
        items.push(call);
        continue;
      }
      if (call) dropReasoning();
      items.push({
        type: "function_call",
        ...(withIds() && use(signature, "fc_") && { id: signature }),
        call_id,
        name,
        arguments: JSON.stringify(block.arguments),
      });
    } else if (block.type === "thinking") {
      const item = parseRecord(block.signature);
      if (isReadable(item) && isNew(item.id)) items.push(withFittingId(item));
    } else if (block.type === "serviceTool" && isReturned(block.raw) && isNew(block.raw.id)) {
      items.push(block.raw);
    } else {
      dropReasoning();
    }
  }
  dropReasoning();
  return items;
}

/** What is kept beside a text: the item that it was of, and what the service wants back with it. */
interface TextProof {
  id?: string;
  phase?: "commentary" | "final_answer";
  annotations?: ResponseOutputText["annotations"];
}

/** Reasoning without content is lost: the service keeps nothing under its id. */
function isReadable(
  item: Record<string, unknown>,
): item is Record<string, unknown> & ResponseReasoningItem {
  const { content, encrypted_content, type } = item;
  return (
    type === "reasoning" && (!!encrypted_content || (Array.isArray(content) && content.length > 0))
  );
}

/** Gateways give ids that they refuse themselves. What counts is what was sealed. */
function withFittingId<T extends ResponseReasoningItem>(item: T): T {
  const { id, ...rest } = item;
  return id === undefined || id.length <= MAX_ID_CHARS ? item : (rest as T);
}

function isReturned(raw: unknown): raw is ResponseInputItem & { id?: unknown } {
  const { execution, type } = toRecord(raw);
  return RETURNED.has(type) && execution !== "client";
}

/** Parses a signature that `reader.ts` wrote; any other one has no fields. */
function parseRecord(json = "{}"): Record<string, unknown> {
  return toRecord(parseJsonOr(json, {}));
}

type Params = Partial<ResponseCreateParamsStreaming>;

function toolParams({ context, options, service }: RequestContext): Params {
  const { toolChoice: choice } = options;
  const tools = (context.tools ?? []).map(({ name, description, parameters }) => ({
    type: "function" as const,
    name,
    description,
    parameters: { ...toToolSchema(parameters) },
    strict: false,
  }));
  if (tools.length === 0) return {};
  if (choice === undefined) return { tools };
  const [computer] = readState(options, service.id).serviceTools ?? [];
  const toChoice = (name: string): ToolChoiceFunction | ToolChoiceTypes => {
    if (name !== COMPUTER || !computer) return { type: "function", name };
    return { type: computer.preview ? "computer_use_preview" : "computer" };
  };
  return { tools, tool_choice: typeof choice === "object" ? toChoice(choice.name) : choice };
}

function reasoningParams(request: RequestContext): Params {
  const { model, options } = request;
  if (!model.reasoning) return {};
  const { thinkingLevel = "off" } = options;
  const effort = findEffort(request, thinkingLevel);
  return {
    ...(effort && { reasoning: { effort, ...(thinkingLevel !== "off" && { summary: "auto" }) } }),
    ...(quirk(request, "encryptedReasoning") !== false && {
      include: ["reasoning.encrypted_content"],
    }),
  };
}

const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
type Effort = (typeof EFFORTS)[number];

/** Nothing, where the model has no word for what is asked. */
function findEffort(request: RequestContext, wanted: ThinkingLevel): Effort | undefined {
  const known = findLevels(request);
  // As little as there is, where thinking cannot be switched off.
  const least = known.find((one) => one === "off" || one === "minimal");
  const level = wanted === "off" ? least : nearestLevel(wanted, known);
  if (level === undefined) return undefined;
  const word = findEffortWord(request.model, level);
  return EFFORTS.find((effort) => effort === word);
}

/** What the model takes; of one that is not known only what nearly all take, and nothing at `off`. */
function findLevels(request: RequestContext): readonly ThinkingLevel[] {
  const given = quirk(request, "efforts");
  if (!Array.isArray(given)) return request.model.thinkingLevels ?? USUAL_LEVELS;
  return THINKING_LEVELS.filter((level) => given.includes(level === "off" ? "none" : level));
}

function cacheParams(request: RequestContext): Params {
  const { cacheRetention, sessionId } = request.options;
  if (cacheRetention === "none") return {};
  const lasting = quirk(request, "cacheRetention") ?? /^gpt-(4\.1|[5-9])/.test(request.model.id);
  return {
    ...(sessionId && { prompt_cache_key: sessionId.slice(0, MAX_ID_CHARS) }),
    ...(cacheRetention === "long" && lasting === true && { prompt_cache_retention: "24h" }),
  };
}

function quirk({ model, service }: RequestContext, name: keyof ModelQuirks): unknown {
  return model.quirks?.[name] ?? service.quirks?.[name];
}
