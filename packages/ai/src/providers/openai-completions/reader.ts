import { readCitations } from "../../messages/citations.ts";
import type { Accumulator } from "../../stream/accumulate.ts";
import type { DoneReason } from "../../stream/events.ts";
import type { ServiceToolContent } from "../../messages/messages.ts";
import { detailText, mergeDetails, type ReasoningDetail } from "./chat-messages.ts";
import { type ChatDialect, chatDialect, chatUsage } from "../services/chat-quirks.ts";
import { ProviderError, ServiceFault } from "../errors/provider-error.ts";
import { addLogprobs } from "../options/logprobs.ts";
import type { RequestContext, ResponseReader } from "../http/format.ts";
import { parseJsonOr, parseObject } from "../http/json.ts";

// What comes back. Services differ in nearly every field, so every field is optional.

interface Chunk {
  id?: string;
  object?: string;
  type?: string;
  model?: string;
  choices?: Choice[] | null;
  usage?: RawUsage | null;
  x_groq?: { usage?: RawUsage | null } | null;
  error?: unknown;
  [field: string]: unknown;
}

interface Choice {
  index?: number;
  delta?: Delta | null;
  /** A whole message, from services that do not stream. */
  message?: Delta | null;
  /** Of text completions, the older format. */
  text?: string | null;
  finish_reason?: string | null;
  usage?: RawUsage | null;
  logprobs?: { content?: unknown } | null;
  error?: unknown;
  [field: string]: unknown;
}

interface Delta {
  content?: string | Part[] | null;
  reasoning_content?: string | null;
  reasoning?: string | null;
  reasoning_text?: string | null;
  reasoning_details?: ReasoningDetail[] | null;
  refusal?: string | null;
  tool_calls?: CallDelta[] | null;
  function_call?: CallDelta["function"];
  executed_tools?: ExecutedTool[] | null;
  annotations?: unknown[] | null;
  images?: { image_url?: { url?: string } }[] | null;
}

interface Part {
  type?: string;
  text?: string;
  thinking?: string | { text?: string }[];
}

interface CallDelta {
  index?: number | null;
  id?: string | null;
  function?: { name?: string | null; arguments?: unknown } | null;
  /** What a service behind a gateway wants back with the call. */
  extra_content?: unknown;
}

/** Nothing but text, as nearly all of them are. */
function isPlain(delta: Delta): delta is Delta & { content: string } {
  for (const name in delta) if (name !== "content" && name !== "role") return false;
  return typeof delta.content === "string";
}

interface ExecutedTool {
  index?: number;
  type?: string;
  name?: string;
  arguments?: unknown;
  output?: unknown;
  [field: string]: unknown;
}

type RawUsage = Record<string, unknown>;

interface OpenCall {
  contentIndex: number;
  /** As the service said them; empty as long as it did not. */
  id: string;
  name: string;
  /** Arguments have begun to come. */
  begun: boolean;
}

const DONE = "[DONE]";
/** With white space around it; longer payloads are not looked at for the mark. */
const MAX_MARK_CHARS = 16;
/** What is kept in the report as it came last. */
const DETAILS = [
  "provider",
  "service_tier",
  "citations",
  "search_results",
  "prompt_filter_results",
];
const CHOICE_DETAILS = ["native_finish_reason", "content_filter_results"];
const KNOWN_FIELDS = new Set([
  "role",
  "content",
  "reasoning_content",
  "reasoning",
  "reasoning_text",
  "reasoning_details",
  "refusal",
  "tool_calls",
  "function_call",
  "executed_tools",
  "annotations",
  "images",
]);

/** Reads chunks of chat completions, and of text completions. Only choice 0 becomes the message. */
export class Reader implements ResponseReader {
  readonly #out: Accumulator;
  readonly #request: RequestContext;
  readonly #dialect: ChatDialect;
  readonly #choices = new Set([0]);
  #text: number | undefined;
  #refusal: { contentIndex: number; text: string } | undefined;
  #thinking: number | undefined;
  #details: ReasoningDetail[] = [];
  readonly #calls: OpenCall[] = [];
  readonly #callAt = new Map<number, OpenCall>();
  readonly #ran = new Map<number, ExecutedTool>();
  /** What the service ran; how much it bills for these it does not say. */
  readonly #tools = new Set<string>();
  #failure: ServiceFault | undefined;
  /** It said why it stopped, and no more of its message followed. */
  #stopped = false;

  constructor(out: Accumulator, request: RequestContext) {
    this.#out = out;
    this.#request = request;
    this.#dialect = chatDialect(request.model, request.service);
  }

  read(data: string, event: string | undefined): void {
    if (data.length <= MAX_MARK_CHARS && data.trim() === DONE) {
      // A mark, no event.
      this.#out.report.events--;
      return this.#finish();
    }
    const chunk = parseObject(data) as Chunk;
    this.#begin(chunk);
    const choices = Array.isArray(chunk.choices) ? chunk.choices : [];
    const failed = chunk.error || event === "error" || chunk.object === "error";
    let error: object | undefined = failed ? chunk : undefined;
    for (const choice of choices) {
      this.#choice(choice);
      if (choice.error) error ??= choice;
    }
    const usage = chunk.usage ?? chunk.x_groq?.usage ?? choices[0]?.usage;
    if (usage) this.#usage(usage);
    if (error) this.#failure ??= new ServiceFault(error);
    // Usage may follow an error: report it once usage has come, or nothing more comes.
    if (this.#failure && this.#out.report.usage) throw this.#failure;
    if (!error && !usage && !Array.isArray(chunk.choices)) {
      this.#out.unknown(`event ${event ?? chunk.type ?? chunk.object ?? "without choices"}`);
    }
  }

  /** A reason to stop makes it whole, also where the service forgot its last mark. */
  end(): void {
    if (this.finished) this.#finish();
  }

  get finished(): boolean {
    return this.#stopped || this.#failure !== undefined;
  }

  #begin(chunk: Chunk): void {
    this.#out.start();
    // What has no choices is some other event, whatever id it has.
    if (!Array.isArray(chunk.choices)) return;
    const { message } = this.#out;
    // Azure's first chunk has neither; Groq's agents have another id in each.
    if (chunk.id) message.responseId ??= chunk.id;
    if (chunk.model) message.servedModel ??= chunk.model;
    const detail =
      chunk["provider"] ??
      chunk["service_tier"] ??
      chunk["citations"] ??
      chunk["search_results"] ??
      chunk["prompt_filter_results"];
    if (detail !== undefined && detail !== null) this.#addDetails(chunk, DETAILS);
  }

  #addDetails(from: Record<string, unknown>, names: readonly string[]): void {
    for (const name of names) {
      const value = from[name];
      if (value !== undefined && value !== null) this.#detail(name, value);
    }
  }

  #detail(name: string, value: unknown): void {
    (this.#out.report.details ??= {})[name] = value;
  }

  #choice(choice: Choice): void {
    const index = choice.index ?? 0;
    if (!this.#choices.has(index)) {
      this.#choices.add(index);
      this.#detail("choices", this.#choices.size);
    }
    if (index !== 0) return;
    const whole = this.#out.message.content.length === 0 ? choice.message : undefined;
    const delta = choice.delta ?? whole ?? { content: choice.text ?? null };
    this.#delta(delta);
    if (choice.logprobs) {
      const { options } = this.#request;
      // Some give one object for several tokens.
      addLogprobs(this.#out.report, options, choice.logprobs.content ?? [choice.logprobs]);
    }
    if (choice["native_finish_reason"] || choice["content_filter_results"]) {
      this.#addDetails(choice, CHOICE_DETAILS);
    }
    if (choice.finish_reason) {
      this.#stopped = true;
      this.#out.report.stopReason = choice.finish_reason;
    }
  }

  #delta(delta: Delta): void {
    if (isPlain(delta)) return this.#addText(delta.content);
    // Thinking comes first also where both come together.
    this.#reasoning(delta);
    if (typeof delta.content === "string") this.#addText(delta.content);
    else for (const part of delta.content ?? []) this.#part(part);
    if (delta.refusal) this.#addRefusal(delta.refusal);
    for (const call of delta.tool_calls ?? []) this.#call(call);
    if (delta.function_call) this.#call({ index: 0, function: delta.function_call });
    for (const tool of delta.executed_tools ?? []) this.#executed(tool);
    for (const image of delta.images ?? []) this.#image(image.image_url?.url ?? "");
    if (delta.annotations?.length) {
      const known = this.#out.report.details?.["annotations"];
      if (Array.isArray(known)) known.push(...delta.annotations);
      else this.#detail("annotations", [...delta.annotations]);
    }
    for (const [name, value] of Object.entries(delta)) {
      if (value !== null && !KNOWN_FIELDS.has(name)) this.#out.unknown(`field ${name}`);
    }
  }

  #reasoning(delta: Delta): void {
    const pieces = delta.reasoning_details ?? [];
    // The same thought under several names is one.
    const text =
      delta.reasoning_content ||
      delta.reasoning ||
      delta.reasoning_text ||
      pieces.map(detailText).join("");
    this.#addThinking(text);
    if (pieces.length === 0) return;
    this.#details.push(...pieces);
    const { details } = this.#out.report;
    this.#detail("reasoningDetails", Number(details?.["reasoningDetails"] ?? 0) + pieces.length);
  }

  #part(part: Part): void {
    if (part.type === "text") return this.#addText(part.text ?? "");
    if (part.type !== "thinking") return this.#out.unknown(`part ${part.type}`);
    const { thinking = "" } = part;
    if (typeof thinking === "string") return this.#addThinking(thinking);
    for (const { text } of thinking) this.#addThinking(text ?? "");
  }

  #addThinking(text: string): void {
    if (text === "") return;
    this.#stopped = false;
    this.#endText();
    this.#thinking ??= this.#out.thinkingStart();
    this.#out.thinking(this.#thinking, text);
  }

  #addText(text: string): void {
    if (text === "") return;
    this.#stopped = false;
    this.#endThinking();
    this.#text ??= this.#out.textStart();
    this.#out.text(this.#text, text);
  }

  /** Shown as a text of its own. */
  #addRefusal(text: string): void {
    this.#endThinking();
    this.#endText();
    this.#refusal ??= { contentIndex: this.#out.textStart(), text: "" };
    this.#refusal.text += text;
    this.#out.text(this.#refusal.contentIndex, text);
    this.#detail("refusal", this.#refusal.text);
  }

  #endText(): void {
    if (this.#text === undefined) return;
    this.#out.textEnd(this.#text);
    this.#text = undefined;
  }

  #endThinking(): void {
    const details = this.#details;
    const isRedacted = this.#thinking === undefined;
    if (isRedacted && details.length === 0) return;
    const index = this.#thinking ?? this.#out.thinkingStart();
    this.#thinking = undefined;
    this.#details = [];
    this.#out.thinkingEnd(index, {
      ...(details.length > 0 && { signature: JSON.stringify(mergeDetails(details)) }),
      ...(isRedacted && { redacted: true }),
    });
  }

  #call(delta: CallDelta): void {
    const id = delta.id ?? "";
    const name = delta.function?.name ?? "";
    const call = this.#known(delta, id, name) ?? this.#startCall(delta, id, name);
    this.#stopped = false;
    if (delta.extra_content) {
      this.#out.identify(call.contentIndex, { signature: JSON.stringify(delta.extra_content) });
    }
    const given = delta.function?.arguments ?? "";
    const json = typeof given === "string" ? given : JSON.stringify(given);
    // Some begin with an empty object, whatever follows; no arguments mean the same.
    if (json === "" || (!call.begun && json.trim() === "{}")) return;
    call.begun = true;
    this.#out.toolCall(call.contentIndex, json);
  }

  /** The call that a delta goes on with: another id or name begins another one, at any index. */
  #known({ index }: CallDelta, id: string, name: string): OpenCall | undefined {
    const indexed = typeof index === "number";
    const call = indexed
      ? this.#callAt.get(index)
      : id !== ""
        ? this.#calls.find((open) => open.id === id)
        : this.#calls.at(name === "" ? -1 : this.#calls.length);
    if (!call) return undefined;
    const differs = (now: string, before: string): boolean =>
      now !== "" && before !== "" && now !== before;
    // Some give a call another id with each delta: without a name it is no other call.
    const isOtherId = differs(id, call.id) && !(indexed && name === "");
    if (isOtherId || differs(name, call.name)) return undefined;
    if (id !== "" && call.id === "") {
      call.id = id;
      this.#out.identify(call.contentIndex, { id: this.#freeId(id, call) });
    }
    if (name !== "" && call.name === "") {
      call.name = name;
      this.#out.identify(call.contentIndex, { name });
    }
    return call;
  }

  #startCall({ index }: CallDelta, id: string, name: string): OpenCall {
    this.#endThinking();
    this.#endText();
    const contentIndex = this.#out.toolCallStart(this.#freeId(id), name);
    const call: OpenCall = { contentIndex, id, name, begun: false };
    this.#calls.push(call);
    if (typeof index === "number") this.#callAt.set(index, call);
    return call;
  }

  /** Every call has an id, and none that another call of this response has. */
  #freeId(id: string, but?: OpenCall): string {
    const taken = this.#calls.some((call) => call !== but && call.id === id);
    if (id !== "" && !taken) return id;
    const { responseId, timestamp } = this.#out.message;
    return `call_${this.#calls.length}_${responseId ?? timestamp}`;
  }

  /** Shown once it has an answer, or at the end. */
  #executed(tool: ExecutedTool): void {
    const index = tool.index ?? this.#ran.size;
    const whole = { ...this.#ran.get(index), ...tool };
    this.#ran.set(index, whole);
    if (tool.output === undefined || tool.output === null) return;
    this.#ran.delete(index);
    this.#showTool(whole, index);
  }

  #showTool(tool: ExecutedTool, index: number): void {
    this.#endThinking();
    this.#endText();
    const block = serviceTool(tool, index);
    this.#out.serviceTool(block);
    this.#tools.add(CODE_TOOLS.test(block.name) ? "codeExecution" : "webSearch");
  }

  #image(url: string): void {
    const [, mimeType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
    if (mimeType === undefined || data === undefined) return this.#out.unknown("image");
    this.#endThinking();
    this.#endText();
    this.#out.image({ type: "image", data, mimeType });
  }

  #usage(raw: RawUsage): void {
    this.#out.report.usage = raw;
    const tier = this.#out.report.details?.["service_tier"];
    this.#out.usage({
      ...chatUsage(raw, this.#dialect),
      ...(isOtherTier(tier) && { serviceTier: tier }),
    });
  }

  /** Citations come at the end, without the text that they are of. */
  #cite(): void {
    const { annotations, search_results: results } = this.#out.report.details ?? {};
    const citations = [annotations, results].flatMap((list) =>
      Array.isArray(list) ? readCitations(list) : [],
    );
    const text = this.#out.message.content.find((block) => block.type === "text");
    if (text && citations.length > 0) text.citations = citations;
  }

  #finish(): void {
    this.#endThinking();
    this.#endText();
    if (this.#refusal) this.#out.textEnd(this.#refusal.contentIndex);
    for (const call of this.#calls) this.#out.toolCallEnd(call.contentIndex);
    for (const [index, tool] of this.#ran) this.#showTool(tool, index);
    if (this.#tools.size > 0 && !this.#dialect.usageCost) {
      this.#out.usage({ unpricedTools: [...this.#tools] });
    }
    this.#cite();
    if (this.#failure) throw this.#failure;
    const reason = this.#out.report.stopReason?.toLowerCase() ?? "";
    const { name } = this.#request.service;
    if (REFUSED.has(reason)) {
      throw new ProviderError(
        `${name} cut the answer off (${reason}). Rephrase the request, or leave out what it objects to.`,
        { kind: "refused", retryable: false },
      );
    }
    if (FAILED.has(reason)) {
      throw new ProviderError(`${name} ended its response with the reason ${reason}. Try again.`, {
        kind: reason === OUT_OF_RESOURCES ? "overloaded" : "unknown",
        retryable: true,
      });
    }
    this.#out.done(doneReason(reason, this.#calls.length > 0));
  }
}

const REFUSED = new Set(["content_filter", "refusal", "safety", "sensitive", "prohibited_content"]);
const OUT_OF_RESOURCES = "insufficient_system_resource";
const FAILED = new Set(["error", "network_error", OUT_OF_RESOURCES]);
const LENGTH = new Set(["length", "max_tokens", "model_length", "model_context_window_exceeded"]);

const CODE_TOOLS = /code|python/;
const USUAL_TIERS: ReadonlySet<unknown> = new Set(["default", "auto", "on_demand", "standard"]);

/** Whether a service names a tier that may have prices of its own. */
function isOtherTier(tier: unknown): tier is string {
  return typeof tier === "string" && !USUAL_TIERS.has(tier);
}

function doneReason(reason: string, calls: boolean): DoneReason {
  if (LENGTH.has(reason)) return "length";
  // If there are calls, the reason is toolUse, whatever the service reports.
  return calls ? "toolUse" : "stop";
}

function serviceTool(tool: ExecutedTool, index: number): ServiceToolContent {
  const { arguments: input, name, output, type = "tool" } = tool;
  return {
    type: "serviceTool",
    id: `${type}_${index}`,
    name: name ?? type,
    ...(input !== undefined && {
      input: typeof input === "string" ? parseJsonOr(input, input) : input,
    }),
    ...(output !== undefined && { output }),
    raw: tool,
  };
}
