import type {
  CacheControlEphemeral,
  ContentBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  ToolResultBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import type { CacheRetention } from "../../client/client.ts";
import { decodeText, toFile } from "../../files/files.ts";
import type {
  AssistantContent,
  FileContent,
  Message,
  Model,
  UserContent,
} from "../../messages/messages.ts";
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
  describeServiceTool,
} from "../../messages/transform-messages.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";
import { authHeaders } from "../http/headers.ts";
import { parseSignature } from "../http/json.ts";
import { joinUrl } from "../http/url.ts";

const VERSION = "2023-06-01";
const PDF = "application/pdf";

const RULES: MessageConstraints = {
  ids: { pattern: /^[\w-]+$/, maxLength: 64 },
  names: { pattern: /^[\w-]+$/, maxLength: 128 },
};

/** One request to the Messages API. */
export function writeRequest(request: RequestContext): ApiRequest {
  const { baseUrl, context, model, options } = request;
  const all = claudeMessages(transformPrepared(context.messages, model, RULES), model);
  const cache = cacheControl(options.cacheRetention);
  const thinking = chooseThinking(model, options, all);
  const { messages, prefix } = withoutBoundThinking(all, model, thinking, context);
  const body: MessageCreateParamsStreaming = {
    model: model.id,
    stream: true,
    messages: withBreakpoints(toMessageParams(messages), cache),
    ...thinking.params,
  };
  if (context.systemPrompt?.trim()) {
    const text = context.systemPrompt;
    body.system = [{ type: "text", text, ...(cache && { cache_control: cache }) }];
  }
  Object.assign(body, toolParams(request, messages));
  // Thinking goes with no other temperature than the service's own.
  if (
    options.temperature !== undefined &&
    !body.thinking &&
    !hasFeature(model, "fixedTemperature")
  ) {
    Object.assign(body, { temperature: options.temperature });
  }
  const user = options.metadata?.["user_id"];
  if (typeof user === "string") body.metadata = { user_id: user };
  const beta =
    thinking.budgeted && body.tools
      ? INTERLEAVED_BETA
      : dropsMismatches(thinking)
        ? BINDING_BETA
        : undefined;
  return {
    // Some write it with the version, as other services want it.
    url: joinUrl(baseUrl.replace(/\/v1$/, ""), "/v1/messages"),
    headers: {
      "anthropic-version": VERSION,
      ...(beta && { "anthropic-beta": beta }),
      // Tokens of an account, as opposed to keys, go the usual way.
      ...authHeaders(request, request.apiKey?.startsWith("sk-ant-oat") ? "bearer" : "x-api-key"),
    },
    body: body as unknown as Record<string, unknown>,
    ...(prefix !== undefined && { prefix }),
  };
}

/** The messages as this service takes them. */
export function formatMessages(messages: readonly Message[], model: Model): object[] {
  return toMessageParams(claudeMessages(transformPrepared(messages, model, RULES), model));
}

function toMessageParams(messages: readonly Message[]): MessageParam[] {
  const formatted: { role: "user" | "assistant"; content: ContentBlockParam[] }[] = [];
  // It wants a user to begin.
  if (messages[0]?.role === "assistant") {
    formatted.push({
      role: "user",
      content: [{ type: "text", text: "(The conversation goes on.)" }],
    });
  }
  for (const message of messages) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = toBlocks(message);
    const last = formatted.at(-1);
    // Results and what the user says next are one message here.
    if (last?.role === role) last.content.push(...content);
    else formatted.push({ role, content });
  }
  for (const earlier of formatted.slice(0, -1)) {
    if (earlier.role === "assistant") earlier.content = withoutUnanswered(earlier.content);
  }
  const last = formatted.at(-1);
  const end = last?.role === "assistant" ? last.content.at(-1) : undefined;
  if (end?.type === "text") end.text = end.text.trimEnd();
  return formatted;
}

/**
 * The service rejects a tool of its own that it began to run and never answered: it is sent as
 * text. Beside calls of the application it may still be at work.
 */
function withoutUnanswered(content: ContentBlockParam[]): ContentBlockParam[] {
  const answered = new Set(content.map((block) => "tool_use_id" in block && block.tool_use_id));
  if (content.some(({ type }) => type === "tool_use")) return content;
  return content.map((block) => {
    if (block.type !== "server_tool_use" || answered.has(block.id)) return block;
    const { id, input, name } = block;
    const { text } = describeServiceTool({ type: "serviceTool", id, name, input });
    return { type: "text", text };
  });
}

function toBlocks(message: Message): ContentBlockParam[] {
  if (message.role === "assistant") return message.content.map(assistantBlock);
  if (message.role === "toolResult") {
    const result: ToolResultBlockParam = {
      type: "tool_result",
      tool_use_id: message.toolCallId,
      content: message.content.map(userBlock),
    };
    if (!message.isError) return [result];
    // What is marked as an error may hold text alone.
    const shows = message.content.some(({ type }) => type !== "text");
    if (shows) result.content = [{ type: "text", text: FAILED }, ...message.content.map(userBlock)];
    else result.is_error = true;
    return [result];
  }
  const { content } = message;
  return typeof content === "string" ? [{ type: "text", text: content }] : content.map(userBlock);
}

type UserBlock = Extract<ContentBlockParam, { type: "text" | "image" | "document" }>;
type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

function userBlock(block: UserContent): UserBlock {
  return block.type === "text" ? { type: "text", text: block.text } : fileBlock(toFile(block));
}

function fileBlock({ mediaType, name, source }: FileContent): UserBlock {
  const data = source.type === "base64" ? source.data : "";
  const elsewhere =
    source.type === "url"
      ? ({ type: "url", url: source.url } as const)
      : source.type === "id" && ({ type: "file", file_id: source.id } as const);
  if (mediaType.startsWith("image/")) {
    const media_type = mediaType as ImageType;
    return { type: "image", source: elsewhere || { type: "base64", media_type, data } };
  }
  const here: Extract<UserBlock, { type: "document" }>["source"] =
    mediaType === PDF
      ? { type: "base64", media_type: PDF, data }
      : { type: "text", media_type: "text/plain", data: decodeText(data) };
  return { type: "document", source: elsewhere || here, ...(name && { title: name }) };
}

function assistantBlock(block: AssistantContent): ContentBlockParam {
  switch (block.type) {
    case "text":
      // Its own citations, which it wants back as they were.
      return {
        type: "text",
        text: block.text,
        ...(block.signature !== undefined && {
          citations: parseSignature(block.signature, "a text") as [],
        }),
      };
    case "thinking": {
      const signature = block.signature ?? "";
      if (block.redacted) return { type: "redacted_thinking", data: signature };
      return { type: "thinking", thinking: block.thinking, signature };
    }
    case "toolCall":
      // The caller, if code that the service runs made the call instead of the model.
      return {
        type: "tool_use",
        id: block.id,
        name: block.name,
        input: block.arguments,
        ...(block.signature !== undefined && {
          caller: parseSignature(block.signature, "a call") as { type: "direct" },
        }),
      };
    case "serviceTool":
      return block.raw as ContentBlockParam;
    case "image":
    case "file":
      return { type: "text", text: `[Image: ${toFile(block).mediaType}]` };
  }
}

function cacheControl(retention: CacheRetention = "short"): CacheControlEphemeral | undefined {
  if (retention === "none") return undefined;
  return { type: "ephemeral", ...(retention === "long" && { ttl: "1h" }) };
}

/**
 * With the one after the system prompt three of the four breakpoints that the service
 * allows: at the end of the last two messages of the user, so that what the last
 * request wrote is found by this one, whatever came in between.
 */
function withBreakpoints(
  messages: MessageParam[],
  cache: CacheControlEphemeral | undefined,
): MessageParam[] {
  if (!cache) return messages;
  const users = messages.filter(({ role }) => role === "user").slice(-2);
  for (const { content } of users) {
    const block = typeof content === "string" ? undefined : content.at(-1);
    if (block && "type" in block) Object.assign(block, { cache_control: cache });
  }
  return messages;
}

function toolParams(
  { context, model, options }: RequestContext,
  messages: readonly Message[],
): Pick<MessageCreateParamsStreaming, "tools" | "tool_choice"> {
  const eagerInput = hasFeature(model, "eagerInput");
  const tools = (context.tools ?? []).map(({ name, description, parameters }) => ({
    name,
    description,
    input_schema: { ...toToolSchema(parameters) },
    ...(eagerInput && { eager_input_streaming: true }),
  }));
  if (tools.length > 0) {
    const { toolChoice: choice } = options;
    if (choice === undefined) return { tools };
    if (choice === "auto" || choice === "none") return { tools, tool_choice: { type: choice } };
    if (hasFeature(model, "noForcedCalls")) return { tools };
    if (typeof choice === "object") return { tools, tool_choice: { type: "tool", ...choice } };
    return { tools, tool_choice: { type: "any" } };
  }
  // Calls in the transcript have to be of tools that are declared.
  const called = listCalledTools(messages).map((name) => ({
    name,
    description: "Not to be used any more.",
    input_schema: { type: "object" as const, properties: {} },
  }));
  return called.length > 0 ? { tools: called, tool_choice: { type: "none" } } : {};
}
