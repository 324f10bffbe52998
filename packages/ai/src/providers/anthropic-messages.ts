import type {
  CacheControlEphemeral,
  ContentBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  ToolResultBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import type { Accumulator } from "../accumulate.ts";
import type { CacheRetention, StreamOptions, ThinkingBudgets } from "../client.ts";
import type { DoneReason } from "../events.ts";
import type {
  AssistantContent,
  Message,
  Model,
  ServiceToolContent,
  Usage,
  UserContent,
} from "../messages.ts";
import type { ApiProvider } from "../registry.ts";
import { toJsonSchema } from "../schema.ts";
import { calledTools, handOver, type HandoverRules, isOwn, serviceToolText } from "./handover.ts";
import { ProviderError, ServiceFault } from "./provider-error.ts";
import {
  authHeaders,
  createProvider,
  parseObject,
  type ProviderConfig,
  type Wire,
  type WireJob,
  type WireReader,
  type WireRequest,
} from "./wire.ts";

const VERSION = "2023-06-01";
/** Thinking between calls needs this, where thinking goes by a budget. */
export const INTERLEAVED_BETA = "interleaved-thinking-2025-05-14";
/** What is asked for where neither the caller nor the catalogue says. */
const DEFAULT_MAX_TOKENS = 8_192;
/** More is asked for only by callers who want it: it has to fit the window with the input. */
const USUAL_MAX_TOKENS = 32_000;
/** The service takes no smaller budget, and the answer needs some room beside it. */
const MIN_BUDGET = 1_024;
const BUDGETS: Required<ThinkingBudgets> = {
  minimal: MIN_BUDGET,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
};

const RULES: HandoverRules = {
  ids: { pattern: /^[\w-]+$/, maxLength: 64 },
  names: { pattern: /^[\w-]+$/, maxLength: 128 },
};

/** Said of a result that cannot be marked as an error. */
export const FAILED = "(The call failed.)";

/** Anthropic's Messages API. */
export function anthropicMessages(config: ProviderConfig = {}): ApiProvider {
  return createProvider(WIRE, config);
}

const WIRE: Wire = {
  api: "anthropic-messages",
  request: writeRequest,
  reader: (out) => new Reader(out),
};

function writeRequest(job: WireJob): WireRequest {
  const { baseUrl, context, model, options } = job;
  const messages = claudeMessages(handOver(context.messages, model, RULES), model);
  const cache = cacheControl(options.cacheRetention);
  const thinking = thinkingOf(model, options, messages);
  const body: MessageCreateParamsStreaming = {
    model: model.id,
    stream: true,
    messages: withBreakpoints(wireMessages(messages), cache),
    ...thinking.params,
  };
  if (context.systemPrompt?.trim()) {
    const text = context.systemPrompt;
    body.system = [{ type: "text", text, ...(cache && { cache_control: cache }) }];
  }
  Object.assign(body, toolParams(job, messages));
  // Thinking goes with no other temperature than the service's own.
  if (options.temperature !== undefined && !body.thinking) {
    Object.assign(body, { temperature: options.temperature });
  }
  const user = options.metadata?.["user_id"];
  if (typeof user === "string") body.metadata = { user_id: user };
  return {
    url: `${baseUrl}/v1/messages`,
    headers: {
      "anthropic-version": VERSION,
      ...(thinking.budgeted && body.tools && { "anthropic-beta": INTERLEAVED_BETA }),
      // Tokens of an account, as opposed to keys, go the usual way.
      ...authHeaders(job, job.apiKey?.startsWith("sk-ant-oat") ? "bearer" : "x-api-key"),
    },
    body: body as unknown as Record<string, unknown>,
  };
}

/** The messages as this service takes them. */
export function toWire(messages: readonly Message[], model: Model): object[] {
  return wireMessages(claudeMessages(handOver(messages, model, RULES), model));
}

/**
 * A transcript as Claude models take it, on whichever wire: no message of the assistant ends
 * with thinking (it was cut off there), no text is blank, and where the model does not go on
 * with what was begun for it, the user has the last word.
 */
export function claudeMessages(messages: readonly Message[], model: Model): Message[] {
  const turns = messages.flatMap((message): Message[] => {
    if (message.role !== "assistant") return [message];
    const content = message.content.filter(
      (block) => block.type !== "text" || block.text.trim() !== "",
    );
    while (content.at(-1)?.type === "thinking") content.pop();
    return content.length > 0 ? [{ ...message, content }] : [];
  });
  const last = turns.at(-1);
  if (last?.role !== "assistant" || claudeVersion(model.id) < FIRST_WITHOUT_PREFILL) return turns;
  // What the service paused it wants back as it was.
  const paused = isOwn(last, model) && last.content.some(({ type }) => type === "serviceTool");
  if (paused && last.stopReason === "pause") return turns;
  return [...turns, { role: "user", content: "(Go on.)", timestamp: last.timestamp }];
}

function wireMessages(messages: readonly Message[]): MessageParam[] {
  const wire: { role: "user" | "assistant"; content: ContentBlockParam[] }[] = [];
  // It wants a user to begin.
  if (messages[0]?.role === "assistant") {
    wire.push({ role: "user", content: [{ type: "text", text: "(The conversation goes on.)" }] });
  }
  for (const message of messages) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = blocksOf(message);
    const last = wire.at(-1);
    // Results and what the user says next are one message here.
    if (last?.role === role) last.content.push(...content);
    else wire.push({ role, content });
  }
  for (const said of wire.slice(0, -1)) {
    if (said.role === "assistant") said.content = withoutUnanswered(said.content);
  }
  const last = wire.at(-1);
  const end = last?.role === "assistant" ? last.content.at(-1) : undefined;
  if (end?.type === "text") end.text = end.text.trimEnd();
  return wire;
}

/**
 * What the service began to run and never answered, because it was cut off, it refuses to hear
 * of: it is told in words. Beside calls of ours it may still be at work.
 */
function withoutUnanswered(content: ContentBlockParam[]): ContentBlockParam[] {
  const answered = new Set(content.map((block) => "tool_use_id" in block && block.tool_use_id));
  if (content.some(({ type }) => type === "tool_use")) return content;
  return content.map((block) => {
    if (block.type !== "server_tool_use" || answered.has(block.id)) return block;
    const { id, input, name } = block;
    return serviceToolText({ type: "serviceTool", id, name, input });
  });
}

function blocksOf(message: Message): ContentBlockParam[] {
  if (message.role === "assistant") return message.content.map(assistantBlock);
  if (message.role === "toolResult") {
    const result: ToolResultBlockParam = {
      type: "tool_result",
      tool_use_id: message.toolCallId,
      content: message.content.map(userBlock),
    };
    if (!message.isError) return [result];
    // What is marked as an error may hold text alone.
    const shows = message.content.some(({ type }) => type === "image");
    if (shows) result.content = [{ type: "text", text: FAILED }, ...message.content.map(userBlock)];
    else result.is_error = true;
    return [result];
  }
  const { content } = message;
  return typeof content === "string" ? [{ type: "text", text: content }] : content.map(userBlock);
}

type UserBlock = Extract<ContentBlockParam, { type: "text" | "image" }>;
type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

function userBlock(block: UserContent): UserBlock {
  if (block.type === "text") return { type: "text", text: block.text };
  const media_type = block.mimeType as ImageType;
  return { type: "image", source: { type: "base64", media_type, data: block.data } };
}

function assistantBlock(block: AssistantContent): ContentBlockParam {
  switch (block.type) {
    case "text":
      // Its own citations, which it wants back as they were.
      return {
        type: "text",
        text: block.text,
        ...(block.signature !== undefined && { citations: JSON.parse(block.signature) }),
      };
    case "thinking": {
      const signature = block.signature ?? "";
      if (block.redacted) return { type: "redacted_thinking", data: signature };
      return { type: "thinking", thinking: block.thinking, signature };
    }
    case "toolCall":
      // Who called it, where it was not the model itself but code that the model had the service run.
      return {
        type: "tool_use",
        id: block.id,
        name: block.name,
        input: block.arguments,
        ...(block.signature !== undefined && { caller: JSON.parse(block.signature) }),
      };
    case "serviceTool":
      return block.raw as ContentBlockParam;
    case "image":
      return { type: "text", text: `[Image: ${block.mimeType}]` };
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
  { context, options }: WireJob,
  messages: readonly Message[],
): Pick<MessageCreateParamsStreaming, "tools" | "tool_choice"> {
  const tools = (context.tools ?? []).map(({ name, description, parameters }) => ({
    name,
    description,
    input_schema: { ...toJsonSchema(parameters), type: "object" as const },
  }));
  if (tools.length > 0) {
    const { toolChoice: choice } = options;
    if (choice === undefined) return { tools };
    if (typeof choice === "object") return { tools, tool_choice: { type: "tool", ...choice } };
    return { tools, tool_choice: { type: choice === "required" ? "any" : choice } };
  }
  // Calls in the transcript have to be of tools that are declared.
  const called = calledTools(messages).map((name) => ({
    name,
    description: "Not to be used any more.",
    input_schema: { type: "object" as const },
  }));
  return called.length > 0 ? { tools: called, tool_choice: { type: "none" } } : {};
}

export interface Thinking {
  params: {
    max_tokens: number;
    thinking?: { type: "adaptive" } | { type: "enabled"; budget_tokens: number };
    output_config?: { effort: "low" | "medium" | "high" | "xhigh" };
  };
  /** It goes by a number of tokens. */
  budgeted: boolean;
}

/** How much a Claude model may think and say in answer to `messages`, on whichever wire. */
export function thinkingOf(
  model: Model,
  options: StreamOptions,
  messages: readonly Message[],
): Thinking {
  const { maxTokens, thinkingBudgets, thinkingLevel = "off" } = options;
  const most = model.maxTokens ?? DEFAULT_MAX_TOKENS;
  const max_tokens = maxTokens ?? Math.min(most, USUAL_MAX_TOKENS);
  if (thinkingLevel === "off" || isForced(options) || !mayThink(messages)) {
    return { params: { max_tokens }, budgeted: false };
  }
  if (thinksAdaptively(model)) {
    const effort = thinkingLevel === "minimal" ? "low" : thinkingLevel;
    return {
      params: { max_tokens, thinking: { type: "adaptive" }, output_config: { effort } },
      budgeted: false,
    };
  }
  const wanted = thinkingBudgets?.[thinkingLevel] ?? BUDGETS[thinkingLevel];
  // More than the model can say in all is refused.
  const can = (model.maxTokens ?? Infinity) - MIN_BUDGET;
  const budget_tokens = Math.max(MIN_BUDGET, Math.min(wanted, can));
  // Thinking counts as output: what is asked for is room for the answer on top of it.
  const room = Math.max(Math.min(max_tokens + budget_tokens, most), budget_tokens + MIN_BUDGET);
  return {
    params: { max_tokens: room, thinking: { type: "enabled", budget_tokens } },
    budgeted: true,
  };
}

/** A call that has to be made leaves no room for thinking: the service refuses both together. */
function isForced({ toolChoice }: StreamOptions): boolean {
  return toolChoice === "required" || typeof toolChoice === "object";
}

/** In the middle of a turn that began without thinking, the service refuses to begin with it. */
function mayThink(messages: readonly Message[]): boolean {
  if (messages.at(-1)?.role === "user") return true;
  let first = messages.findLastIndex(({ role }) => role === "assistant");
  // Neighbours are one message there.
  while (messages[first - 1]?.role === "assistant") first--;
  const begun = messages[first];
  return begun?.role !== "assistant" || begun.content[0]?.type === "thinking";
}

/** Newer models take a level; the older ones a number of tokens. A quirk may say it. */
function thinksAdaptively({ id, quirks }: Model): boolean {
  const said = quirks?.["thinking"];
  if (said === "adaptive" || said === "budget") return said === "adaptive";
  return claudeVersion(id) >= FIRST_ADAPTIVE;
}

const MINOR_VERSIONS = 100;
const FIRST_ADAPTIVE = 406;
/** From here on the assistant may not have the last word. */
const FIRST_WITHOUT_PREFILL = 406;

/** 405 for a Claude 4.5, whatever stands around its name; 0 for those before Claude 4. */
export function claudeVersion(id: string): number {
  const [, major = "0", minor = "0"] = /claude-[a-z]+-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(id) ?? [];
  return Number(major) * MINOR_VERSIONS + Number(minor);
}

// What comes back. Every field is what the documentation says, and checked where it matters.

interface StreamEvent {
  type?: string;
  index?: number;
  message?: { id?: string; model?: string; content?: Block[]; usage?: RawUsage } & RawDelta;
  content_block?: Block;
  delta?: RawDelta;
  usage?: RawUsage;
}

interface RawDelta {
  type?: string;
  text?: string;
  thinking?: string;
  signature?: string;
  partial_json?: string;
  citation?: unknown;
  stop_reason?: string | null;
  stop_sequence?: string | null;
  stop_details?: unknown;
}

type RawUsage = Record<string, unknown>;

interface Block {
  type?: string;
  text?: string;
  thinking?: string;
  signature?: string;
  data?: string;
  id?: string;
  name?: string;
  input?: unknown;
  tool_use_id?: string;
  content?: unknown;
  to?: { model?: string };
  caller?: { type?: string };
  citations?: unknown;
}

/** A block on its way: what it began with, and where it stands in our message. */
interface OpenBlock {
  block: Block;
  contentIndex: number;
  /** The service's JSON of a tool's input, as far as it came. */
  input: string;
  citations: unknown[];
}

/** What its own blocks that are no text, thinking or call are known as. */
const SERVICE_BLOCKS = /^(server_tool_use|mcp_tool_use|\w+_tool_result|compaction|fallback)$/;

/** Reads the Messages API's events; also those that other services wrap into frames of their own. */
export class Reader implements WireReader {
  readonly #out: Accumulator;
  readonly #open = new Map<number, OpenBlock>();
  #stopReason: string | undefined;
  #began = false;

  constructor(out: Accumulator) {
    this.#out = out;
  }

  read(data: string): void {
    const event = parseObject(data) as StreamEvent;
    switch (event.type) {
      case "content_block_delta":
        return this.#delta(event.index ?? 0, event.delta ?? {});
      case "content_block_start":
        return this.#start(event.index ?? 0, event.content_block ?? {});
      case "content_block_stop":
        return this.#stop(event.index ?? 0);
      case "message_start":
        return this.#begin(event.message ?? {});
      case "message_delta":
        this.#usage(event.usage);
        return this.#stopped(event.delta ?? {});
      case "message_stop":
        return this.#finish();
      case "ping":
        return;
      case "error":
        throw new ServiceFault(event);
      default:
        if ("error" in event) throw new ServiceFault(event);
        this.#out.unknown(`event ${event.type ?? "without a type"}`);
    }
  }

  /** Only `message_stop` makes a response whole. */
  end(): void {}

  #begin(message: NonNullable<StreamEvent["message"]>): void {
    if (this.#began) {
      throw new ProviderError("The response began a second time before its end. Try again.", {
        kind: "incomplete",
      });
    }
    this.#began = true;
    const { message: ours } = this.#out;
    if (message.id !== undefined) ours.responseId = message.id;
    if (message.model !== undefined) ours.servedModel = message.model;
    this.#usage(message.usage);
    this.#out.start();
    // A response that goes on after a tool of the service may come with what it has already.
    for (const [index, block] of (message.content ?? []).entries()) {
      this.#start(index, block);
      this.#stop(index);
    }
    this.#stopped(message);
  }

  #start(index: number, block: Block): void {
    if (this.#open.has(index)) this.#stop(index);
    const open: OpenBlock = { block, contentIndex: -1, input: "", citations: [] };
    this.#open.set(index, open);
    switch (block.type) {
      case "text":
        open.contentIndex = this.#out.textStart();
        this.#out.text(open.contentIndex, block.text ?? "");
        if (Array.isArray(block.citations)) open.citations.push(...block.citations);
        break;
      case "thinking":
        open.contentIndex = this.#out.thinkingStart();
        this.#out.thinking(open.contentIndex, block.thinking ?? "");
        break;
      case "redacted_thinking":
        open.contentIndex = this.#out.thinkingStart();
        break;
      case "tool_use":
        open.contentIndex = this.#out.toolCallStart(block.id ?? "", block.name ?? "");
        break;
      case "fallback":
        // Another model took over; the last one that did made the rest.
        if (block.to?.model !== undefined) this.#out.message.servedModel = block.to.model;
        break;
      default:
        if (!SERVICE_BLOCKS.test(block.type ?? "")) this.#out.unknown(`block ${block.type}`);
    }
  }

  #delta(index: number, delta: RawDelta): void {
    const open = this.#open.get(index);
    if (!open) return this.#out.unknown("delta of no block");
    switch (delta.type) {
      case "text_delta":
        return this.#out.text(open.contentIndex, delta.text ?? "");
      case "thinking_delta":
        return this.#out.thinking(open.contentIndex, delta.thinking ?? "");
      case "input_json_delta":
        if (open.block.type === "tool_use") {
          this.#out.toolCall(open.contentIndex, delta.partial_json ?? "");
        }
        open.input += delta.partial_json ?? "";
        return;
      case "signature_delta":
        open.block.signature = delta.signature ?? "";
        return;
      case "citations_delta":
        open.citations.push(delta.citation);
        return;
      case "compaction_delta": {
        const { type: _, ...fields } = delta;
        Object.assign(open.block, fields);
        return;
      }
      default:
        this.#out.unknown(`delta ${delta.type}`);
    }
  }

  #stop(index: number): void {
    const open = this.#open.get(index);
    if (!open) return;
    this.#open.delete(index);
    const { block, citations, contentIndex } = open;
    switch (block.type) {
      case "text":
        return this.#out.textEnd(
          contentIndex,
          citations.length > 0 ? JSON.stringify(citations) : undefined,
        );
      case "thinking":
        // An empty signature is none.
        return this.#out.thinkingEnd(
          contentIndex,
          block.signature ? { signature: block.signature } : {},
        );
      case "redacted_thinking":
        return this.#out.thinkingEnd(contentIndex, {
          signature: block.data ?? "",
          redacted: true,
        });
      case "tool_use":
        // The whole input may have come with the start, and no delta after it.
        if (open.input === "" && isFilled(block.input)) {
          this.#out.toolCall(contentIndex, JSON.stringify(block.input));
        }
        return this.#out.toolCallEnd(contentIndex, callerOf(block));
      default:
        this.#out.serviceTool(serviceTool(block, index, open.input));
    }
  }

  #usage(reported: RawUsage | undefined): void {
    if (!reported) return;
    const raw = (this.#out.report.usage ??= {});
    for (const [name, value] of Object.entries(reported)) {
      // Cumulative: what is said again replaces what was said; what is not said stands.
      if (value !== null && value !== undefined) raw[name] = value;
    }
    this.#out.usage(usageOf(raw));
  }

  #stopped({ stop_reason, stop_sequence, stop_details }: RawDelta): void {
    if (!stop_reason) return;
    this.#stopReason = stop_reason;
    const { report } = this.#out;
    report.stopReason = stop_reason;
    if (stop_sequence) report.details = { ...report.details, stopSequence: stop_sequence };
    if (stop_details) report.details = { ...report.details, stopDetails: stop_details };
  }

  #finish(): void {
    for (const index of [...this.#open.keys()]) this.#stop(index);
    const reason = this.#stopReason;
    if (reason === "refusal") {
      throw new ProviderError(refusal(this.#out.report.details?.["stopDetails"]), {
        kind: "refused",
        retryable: false,
      });
    }
    if (reason === "model_context_window_exceeded") {
      return this.#out.done("length");
    }
    this.#out.done(doneReason(reason, this.#out.message.content));
  }
}

function doneReason(reason: string | undefined, content: readonly AssistantContent[]): DoneReason {
  if (reason === "max_tokens") return "length";
  if (reason === "pause_turn") return "pause";
  // A call is a call, also where the service forgot to say why it stopped.
  return content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop";
}

function refusal(details: unknown): string {
  const { explanation } = (details ?? {}) as { explanation?: unknown };
  const why =
    typeof explanation === "string" && explanation !== "" ? ` It says: ${explanation}` : "";
  return `The model refused to go on.${why} Rephrase the request, or leave out what it objects to.`;
}

/** Code of the service that made a call, and has to be named again with it. */
function callerOf({ caller }: Block): string | undefined {
  return caller && caller.type !== "direct" ? JSON.stringify(caller) : undefined;
}

function serviceTool(block: Block, index: number, input: string): ServiceToolContent {
  const given = input === "" ? block.input : parsedOr(input);
  const raw = given === undefined ? block : { ...block, input: given };
  const { content, id, name, tool_use_id, type = "block" } = block;
  if (tool_use_id !== undefined) {
    const tool = type.replace(/_tool_result$/, "");
    return { type: "serviceTool", id: tool_use_id, name: tool, output: content, raw };
  }
  return {
    type: "serviceTool",
    id: id ?? `${type}_${index}`,
    name: name ?? type,
    ...(given !== undefined && { input: given }),
    raw,
  };
}

function parsedOr(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}

function isFilled(input: unknown): boolean {
  return typeof input === "object" && input !== null && Object.keys(input).length > 0;
}

function usageOf(raw: RawUsage): Usage {
  const usage: Usage = {};
  const put = (
    name: "input" | "output" | "cacheRead" | "cacheWrite" | "reasoning",
    value: unknown,
  ): void => {
    if (typeof value === "number") usage[name] = value;
  };
  put("input", raw["input_tokens"]);
  put("output", raw["output_tokens"]);
  put("cacheRead", raw["cache_read_input_tokens"]);
  put("cacheWrite", raw["cache_creation_input_tokens"]);
  const details = raw["output_tokens_details"] as { thinking_tokens?: unknown } | undefined;
  put("reasoning", details?.thinking_tokens);
  return usage;
}
