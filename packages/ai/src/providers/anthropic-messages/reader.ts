import { toRecord } from "../../common/records.ts";
import type { Accumulator } from "../../stream/accumulate.ts";
import type { DoneReason } from "../../stream/events.ts";
import { readCitations } from "../../messages/citations.ts";
import type { AssistantContent, ServiceToolContent, Usage } from "../../messages/messages.ts";
import { ProviderError, ServiceFault } from "../errors/provider-error.ts";
import type { ResponseReader } from "../http/format.ts";
import { parseJsonOr, parseObject } from "../http/json.ts";

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
  container?: { id: string; expires_at: string } | null;
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
export class Reader implements ResponseReader {
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
          readCitations(citations),
        );
      case "thinking":
        // An empty signature counts as absent.
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
        return this.#out.toolCallEnd(contentIndex, writeCaller(block));
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
    this.#out.usage(toUsage(raw));
  }

  #stopped({ container, stop_reason, stop_sequence, stop_details }: RawDelta): void {
    if (container) {
      const { id, expires_at: expiresAt } = container;
      this.#out.message.container = { id, expiresAt };
    }
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
function writeCaller({ caller }: Block): string | undefined {
  return caller && caller.type !== "direct" ? JSON.stringify(caller) : undefined;
}

function serviceTool(block: Block, index: number, input: string): ServiceToolContent {
  const given = input === "" ? block.input : parseJsonOr(input, {});
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

function isFilled(input: unknown): boolean {
  return typeof input === "object" && input !== null && Object.keys(input).length > 0;
}

function toUsage(raw: RawUsage): Usage {
  const usage: Usage = {};
  const put = (
    name:
      | "input"
      | "output"
      | "cacheRead"
      | "cacheWrite"
      | "longCacheWrite"
      | "reasoning"
      | "webSearches",
    value: unknown,
  ): void => {
    if (typeof value === "number") usage[name] = value;
  };
  put("input", raw["input_tokens"]);
  put("output", raw["output_tokens"]);
  put("cacheRead", raw["cache_read_input_tokens"]);
  put("cacheWrite", raw["cache_creation_input_tokens"]);
  const { ephemeral_1h_input_tokens: long } = toRecord(raw["cache_creation"]);
  // Most responses have none.
  if (long !== 0) put("longCacheWrite", long);
  // Its priority tier is paid for beforehand.
  if (raw["service_tier"] === "batch") usage.serviceTier = "batch";
  const details = raw["output_tokens_details"] as { thinking_tokens?: unknown } | undefined;
  put("reasoning", details?.thinking_tokens);
  const { web_search_requests: searches } = toRecord(raw["server_tool_use"]);
  if (searches !== 0) put("webSearches", searches);
  return usage;
}
