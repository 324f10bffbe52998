import type { ChatRequest, Message as ChatMessage, Options, Tool as ChatTool } from "ollama";
import type { StreamOptions } from "../../client/client.ts";
import { toFile } from "../../files/files.ts";
import type { AssistantMessage, Message, Model, UserContent } from "../../messages/messages.ts";
import type { JsonSchema } from "../../schema/schema.ts";
import { toToolSchema } from "../../schema/tool-schema.ts";
import { transformPrepared, type MessageConstraints } from "../../messages/transform-messages.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";
import { authHeaders } from "../http/headers.ts";
import { joinUrl } from "../http/url.ts";

/** Where the server listens when only its host is named. */
const DEFAULT_PORT = 11_434;
/** How long the model, and with it the cache of the prompt, stays loaded on demand. */
const LONG_KEEP_ALIVE = "1h";

const RULES: MessageConstraints = {
  ids: { pattern: /^[\w-]+$/, maxLength: 64 },
  unsignedThinking: "keep",
};

/** One request to the chat API. */
export function writeRequest(request: RequestContext): ApiRequest {
  const { context, model, options } = request;
  const system: ChatMessage[] = context.systemPrompt?.trim()
    ? [{ role: "system", content: context.systemPrompt }]
    : [];
  const tools = toolParams(request);
  const runtime = runtimeOptions(model, options);
  const think = chooseThinking(model, options);
  const body: ChatRequest = {
    model: model.id,
    stream: true,
    messages: [...system, ...toChatMessages(transformPrepared(context.messages, model, RULES))],
    ...(tools.length > 0 && { tools }),
    ...(think !== undefined && { think }),
    ...(Object.keys(runtime).length > 0 && { options: runtime }),
    ...(options.cacheRetention === "long" && { keep_alive: LONG_KEEP_ALIVE }),
  };
  return {
    url: joinUrl(resolveAddress(request.baseUrl), "/api/chat"),
    headers: authHeaders(request, "bearer"),
    body: body as unknown as Record<string, unknown>,
  };
}

/**
 * The address as OLLAMA_HOST may say it: without a scheme or a port, or as the one that
 * the server listens on, which is not one to connect to.
 */
export function resolveAddress(baseUrl: string): string {
  const [, scheme = "", host = "", port = "", path = ""] =
    /^(\w+:\/\/)?(\[[^\]]*\]|[^:/]*)(:\d+)?(.*)$/.exec(baseUrl) ?? [];
  const reachable =
    host === "" || host === "0.0.0.0" ? "127.0.0.1" : host === "[::]" ? "[::1]" : host;
  if (scheme !== "") return `${scheme}${reachable}${port}${path}`;
  return `http://${reachable}${port || `:${DEFAULT_PORT}`}${path}`;
}

/** The messages as this service takes them. */
export function formatMessages(messages: readonly Message[], model: Model): object[] {
  return toChatMessages(transformPrepared(messages, model, RULES));
}

function toChatMessages(messages: readonly Message[]): ChatMessage[] {
  const chat: ChatMessage[] = [];
  // Results have no images here: these follow as what the user shows, after the last result.
  let images: string[] = [];
  const show = (): void => {
    if (images.length > 0) chat.push({ role: "user", content: "(Images of the results.)", images });
    images = [];
  };
  for (const message of messages) {
    if (message.role === "toolResult") {
      images.push(...listImages(message.content));
      chat.push({
        role: "tool",
        content: joinTexts(message.content) || "(The image follows.)",
        tool_name: message.toolName,
        // Not in the client's types, but in the API.
        ...{ tool_call_id: message.toolCallId },
      });
      continue;
    }
    show();
    const formatted =
      message.role === "assistant" ? assistantMessage(message) : userMessage(message);
    if (formatted) chat.push(formatted);
  }
  show();
  return chat;
}

function userMessage({ content }: Extract<Message, { role: "user" }>): ChatMessage {
  if (typeof content === "string") return { role: "user", content };
  const images = listImages(content);
  return { role: "user", content: joinTexts(content), ...(images.length > 0 && { images }) };
}

/** The contents of the files, which are images: nothing else is taken. */
function listImages(content: readonly UserContent[]): string[] {
  return content.flatMap((block) => {
    const source = block.type === "text" ? undefined : toFile(block).source;
    return source?.type === "base64" ? [source.data] : [];
  });
}

function joinTexts(content: readonly UserContent[]): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

/** Nothing, where all there was is what cannot be said here. */
function assistantMessage({ content }: AssistantMessage): ChatMessage | undefined {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: NonNullable<ChatMessage["tool_calls"]> = [];
  for (const block of content) {
    if (block.type === "text") texts.push(block.text);
    else if (block.type === "thinking") thoughts.push(block.thinking);
    else if (block.type === "image" || block.type === "file") {
      texts.push(`[Image: ${toFile(block).mediaType}]`);
    } else if (block.type === "toolCall") {
      const { arguments: args, id, name } = block;
      calls.push({ ...{ id }, function: { name, arguments: args } });
    }
  }
  if (texts.length + thoughts.length + calls.length === 0) return undefined;
  return {
    role: "assistant",
    content: texts.join("\n"),
    ...(thoughts.length > 0 && { thinking: thoughts.join("\n") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** There is no tool choice here: what must not be called is not shown. */
function toolParams({ context, options: { toolChoice: choice } }: RequestContext): ChatTool[] {
  if (choice === "none") return [];
  return (context.tools ?? [])
    .filter(({ name }) => typeof choice !== "object" || name === choice.name)
    .map(({ name, description, parameters }) => {
      const schema: JsonSchema = toToolSchema(parameters);
      return {
        type: "function",
        function: { name, description, parameters: { ...schema, type: "object" } },
      };
    });
}

function runtimeOptions(model: Model, options: StreamOptions): Partial<Options> {
  const given = model.quirks?.["numCtx"];
  // Else the server loads the model with a small window, and cuts off what does not fit.
  const num_ctx = typeof given === "number" ? given : model.contextWindow;
  const { maxTokens: num_predict, temperature } = options;
  return {
    ...(num_ctx !== undefined && { num_ctx }),
    ...(num_predict !== undefined && { num_predict }),
    ...(temperature !== undefined && { temperature }),
  };
}

function chooseThinking(model: Model, options: StreamOptions): ChatRequest["think"] {
  // A model that cannot think refuses to be asked for it.
  if (model.reasoning === false) return undefined;
  const { thinkingLevel = "off" } = options;
  const given = model.quirks?.["thinking"];
  const levels = given === "levels" || (given !== "switch" && model.id.includes("gpt-oss"));
  if (!levels) return thinkingLevel !== "off";
  // Where there are levels, thinking cannot be switched off.
  if (thinkingLevel === "medium" || thinkingLevel === "high") return thinkingLevel;
  return thinkingLevel === "xhigh" || thinkingLevel === "max" ? "high" : "low";
}
