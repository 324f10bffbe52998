import type { ChatRequest, Message as ChatMessage, Options, Tool as ChatTool } from "ollama";
import type { Accumulator } from "../../stream/accumulate.ts";
import type { StreamOptions } from "../../client/client.ts";
import type { DoneReason } from "../../stream/events.ts";
import type {
  AssistantMessage,
  ImageContent,
  Message,
  Model,
  Usage,
  UserContent,
} from "../../messages/messages.ts";
import type { ApiProvider } from "../../client/registry.ts";
import { toJsonSchema } from "../../schema/schema.ts";
import { handOver, type HandoverRules } from "../http/transform-messages.ts";
import { LineDecoder } from "../../stream/ndjson.ts";
import {
  authHeaders,
  createProvider,
  joinUrl,
  parseObject,
  type ProviderConfig,
  ServiceFault,
  type Wire,
  type WireJob,
  type WireReader,
  type WireRequest,
} from "../http/wire.ts";

/** Where the server listens when only its host is named. */
const DEFAULT_PORT = 11_434;
/** How long the model, and with it the cache of the prompt, stays loaded on demand. */
const LONG_KEEP_ALIVE = "1h";

const RULES: HandoverRules = {
  ids: { pattern: /^[\w-]+$/, maxLength: 64 },
  unsignedThinking: "keep",
  imageTypes: ["image/png", "image/jpeg", "image/webp"],
  // The server is usually one's own, and says itself what is too much for it.
  maxImageBytes: Number.POSITIVE_INFINITY,
};

/**
 * Ollama's own chat API. Quirks: `numCtx` (the window to load the model with, instead of
 * the model's `contextWindow`), `thinking` (`levels` or `switch`: what it takes to say how
 * much to think).
 */
export function ollama(config: ProviderConfig = {}): ApiProvider {
  return createProvider(WIRE, config);
}

const WIRE: Wire = {
  api: "ollama",
  request: writeRequest,
  reader: (out, job) => new Reader(out, job),
  framing: (onPayload) => new LineDecoder(onPayload),
};

function writeRequest(job: WireJob): WireRequest {
  const { context, model, options } = job;
  const system: ChatMessage[] = context.systemPrompt?.trim()
    ? [{ role: "system", content: context.systemPrompt }]
    : [];
  const tools = toolParams(job);
  const runtime = runtimeOptions(model, options);
  const think = thinkOf(model, options);
  const body: ChatRequest = {
    model: model.id,
    stream: true,
    messages: [...system, ...wireMessages(handOver(context.messages, model, RULES))],
    ...(tools.length > 0 && { tools }),
    ...(think !== undefined && { think }),
    ...(Object.keys(runtime).length > 0 && { options: runtime }),
    ...(options.cacheRetention === "long" && { keep_alive: LONG_KEEP_ALIVE }),
  };
  return {
    url: joinUrl(addressOf(job.baseUrl), "/api/chat"),
    headers: authHeaders(job, "bearer"),
    body: body as unknown as Record<string, unknown>,
  };
}

/**
 * The address as OLLAMA_HOST may say it: without a scheme or a port, or as the one that
 * the server listens on, which is not one to connect to.
 */
function addressOf(baseUrl: string): string {
  const [, scheme = "", host = "", port = "", path = ""] =
    /^(\w+:\/\/)?(\[[^\]]*\]|[^:/]*)(:\d+)?(.*)$/.exec(baseUrl) ?? [];
  const reachable =
    host === "" || host === "0.0.0.0" ? "127.0.0.1" : host === "[::]" ? "[::1]" : host;
  if (scheme !== "") return `${scheme}${reachable}${port}${path}`;
  return `http://${reachable}${port || `:${DEFAULT_PORT}`}${path}`;
}

/** The messages as this service takes them. */
export function toWire(messages: readonly Message[], model: Model): object[] {
  return wireMessages(handOver(messages, model, RULES));
}

function wireMessages(messages: readonly Message[]): ChatMessage[] {
  const wire: ChatMessage[] = [];
  // Results have no images here: these follow as what the user shows, after the last result.
  let shown: ImageContent[] = [];
  const show = (): void => {
    const images = shown.map(({ data }) => data);
    if (images.length > 0) wire.push({ role: "user", content: "(Images of the results.)", images });
    shown = [];
  };
  for (const message of messages) {
    if (message.role === "toolResult") {
      const images = message.content.filter((block) => block.type === "image");
      shown.push(...images);
      wire.push({
        role: "tool",
        content: textOf(message.content) || "(The image follows.)",
        tool_name: message.toolName,
        // Not in the client's types, but in the API.
        ...{ tool_call_id: message.toolCallId },
      });
      continue;
    }
    show();
    const said = message.role === "assistant" ? assistantMessage(message) : userMessage(message);
    if (said) wire.push(said);
  }
  show();
  return wire;
}

function userMessage({ content }: Extract<Message, { role: "user" }>): ChatMessage {
  if (typeof content === "string") return { role: "user", content };
  const images = content.flatMap((block) => (block.type === "image" ? [block.data] : []));
  return { role: "user", content: textOf(content), ...(images.length > 0 && { images }) };
}

function textOf(content: readonly UserContent[]): string {
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
    else if (block.type === "image") texts.push(`[Image: ${block.mimeType}]`);
    else if (block.type === "toolCall") {
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
function toolParams({ context, options: { toolChoice: choice } }: WireJob): ChatTool[] {
  if (choice === "none") return [];
  return (context.tools ?? [])
    .filter(({ name }) => typeof choice !== "object" || name === choice.name)
    .map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters: { ...toJsonSchema(parameters), type: "object" } },
    }));
}

function runtimeOptions(model: Model, options: StreamOptions): Partial<Options> {
  const said = model.quirks?.["numCtx"];
  // Else the server loads the model with a small window, and cuts off what does not fit.
  const num_ctx = typeof said === "number" ? said : model.contextWindow;
  const { maxTokens: num_predict, temperature } = options;
  return {
    ...(num_ctx !== undefined && { num_ctx }),
    ...(num_predict !== undefined && { num_predict }),
    ...(temperature !== undefined && { temperature }),
  };
}

function thinkOf(model: Model, options: StreamOptions): ChatRequest["think"] {
  // A model that cannot think refuses to be asked for it.
  if (model.reasoning === false) return undefined;
  const { thinkingLevel = "off" } = options;
  const said = model.quirks?.["thinking"];
  const levels = said === "levels" || (said !== "switch" && model.id.includes("gpt-oss"));
  if (!levels) return thinkingLevel !== "off";
  // Where there are levels, thinking cannot be switched off.
  if (thinkingLevel === "medium" || thinkingLevel === "high") return thinkingLevel;
  return thinkingLevel === "xhigh" ? "high" : "low";
}

// What comes back. Every field is what the documentation says, and checked where it matters.

interface Chunk {
  model?: string;
  message?: { content?: string; thinking?: string; tool_calls?: RawCall[] };
  done?: boolean;
  done_reason?: string;
  error?: unknown;
}

interface RawCall {
  id?: string;
  function?: { name?: string; arguments?: unknown };
}

/** Fields of a line that are read above, or of no use. */
const READ: readonly string[] = ["model", "created_at", "message", "done", "done_reason"];

class Reader implements WireReader {
  readonly #out: Accumulator;
  readonly #job: WireJob;
  /** Of the calls in this response. */
  readonly #ids = new Set<string>();
  #open: { type: "text" | "thinking"; contentIndex: number } | undefined;
  /** Of those before it; looked for when an id has to be made up. */
  #earlierIds: Set<string> | undefined;

  constructor(out: Accumulator, job: WireJob) {
    this.#out = out;
    this.#job = job;
  }

  read(data: string): void {
    const line = parseObject(data);
    const { done, error, message, model }: Chunk = line;
    if (error !== undefined) throw new ServiceFault(line);
    if (model !== undefined) this.#out.message.servedModel = model;
    this.#out.start();
    if (message?.thinking) {
      this.#out.thinking(this.#block("thinking"), message.thinking);
    }
    if (message?.content) this.#out.text(this.#block("text"), message.content);
    for (const call of message?.tool_calls ?? []) this.#call(call);
    if (!message && !done) this.#out.unknown(`line with ${Object.keys(line)[0] ?? "nothing"}`);
    if (done) this.#finish(line);
  }

  /** Only a line that says `done` makes a response whole. */
  end(): void {}

  /** Where the next piece of a kind goes: on with what is open, or into a block of its own. */
  #block(type: "text" | "thinking"): number {
    if (this.#open?.type === type) return this.#open.contentIndex;
    this.#close();
    const contentIndex = type === "text" ? this.#out.textStart() : this.#out.thinkingStart();
    this.#open = { type, contentIndex };
    return contentIndex;
  }

  #close(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open?.type === "text") this.#out.textEnd(open.contentIndex);
    else if (open) this.#out.thinkingEnd(open.contentIndex);
  }

  /** Calls come whole. */
  #call({ id, function: { name = "", arguments: args } = {} }: RawCall): void {
    this.#close();
    const index = this.#out.toolCallStart(this.#callId(id), name);
    this.#out.toolCall(index, typeof args === "string" ? args : (JSON.stringify(args) ?? ""));
    this.#out.toolCallEnd(index);
  }

  /** The id that the service gave, or a new one that no other call of the conversation has. */
  #callId(given = ""): string {
    let id = given;
    if (id === "" || this.#ids.has(id)) {
      const earlier = (this.#earlierIds ??= callIds(this.#job.context.messages));
      let count = earlier.size + this.#ids.size;
      while (id === "" || this.#ids.has(id) || earlier.has(id)) id = `call_${count++}`;
    }
    this.#ids.add(id);
    return id;
  }

  #finish(line: Record<string, unknown>): void {
    const { done_reason }: Chunk = line;
    const { report } = this.#out;
    if (done_reason !== undefined) report.stopReason = done_reason;
    for (const [name, value] of Object.entries(line)) {
      if (READ.includes(name)) continue;
      const told = name.endsWith("_count") ? (report.usage ??= {}) : (report.details ??= {});
      told[name] = value;
    }
    this.#out.usage(usageOf(report.usage ?? {}));
    this.#out.done(doneReason(done_reason, this.#out.message));
  }
}

function callIds(messages: readonly Message[]): Set<string> {
  const ids = new Set<string>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) if (block.type === "toolCall") ids.add(block.id);
  }
  return ids;
}

function doneReason(reason: string | undefined, { content }: AssistantMessage): DoneReason {
  if (reason === "length") return "length";
  // The service says "stop" also where it calls.
  return content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop";
}

function usageOf(raw: Record<string, unknown>): Usage {
  const usage: Usage = {};
  const input = raw["prompt_eval_count"];
  const output = raw["eval_count"];
  // It is a part of the input here.
  const cached = raw["prompt_eval_cached_count"];
  if (typeof cached === "number") usage.cacheRead = cached;
  if (typeof input === "number") usage.input = input - (usage.cacheRead ?? 0);
  if (typeof output === "number") usage.output = output;
  return usage;
}
