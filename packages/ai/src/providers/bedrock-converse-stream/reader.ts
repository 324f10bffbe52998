import { isRecord, toRecord } from "../../common/records.ts";
import { readCitations } from "../../messages/citations.ts";
import type { Accumulator } from "../../stream/accumulate.ts";
import type { DoneReason } from "../../stream/events.ts";
import type { AssistantContent, ServiceToolContent, Usage } from "../../messages/messages.ts";
import { EXCEPTION } from "../aws/decoder.ts";
import { ProviderError, ServiceFault } from "../errors/provider-error.ts";
import type { ResponseReader } from "../http/format.ts";
import { parseJsonOr, parseObject } from "../http/json.ts";

// What comes back. Every field is what the documentation says, and checked where it matters.

interface BlockEvent {
  contentBlockIndex?: number;
  start?: { toolUse?: RawTool; toolResult?: RawTool; image?: { format?: string } };
  delta?: RawDelta;
}

interface RawTool {
  toolUseId?: string;
  name?: string;
  type?: string;
  input?: unknown;
}

interface RawDelta {
  text?: string;
  reasoningContent?: { text?: string; signature?: string; redactedContent?: string };
  toolUse?: { input?: unknown };
  toolResult?: unknown[];
  citation?: unknown;
  image?: { source?: { bytes?: string } };
}

interface Metadata {
  usage?: RawUsage;
  trace?: { promptRouter?: { invokedModelId?: string } };
  [field: string]: unknown;
}

type RawUsage = Record<string, unknown>;

type BlockKind =
  | "text"
  | "reasoning"
  | "redacted"
  | "toolUse"
  | "serverToolUse"
  | "toolResult"
  | "image";

/** A block on its way: what it began with, and where it stands in our message. */
interface OpenBlock {
  kind: BlockKind;
  contentIndex: number;
  start: RawTool & { format?: string };
  /** The signature, or the JSON of a tool's input, as far as it came. */
  text: string;
  /** Citations, or what a tool of the service gave. */
  parts: unknown[];
  /** Pieces of base64. */
  bytes: string[];
}

const REFUSED: readonly unknown[] = ["guardrail_intervened", "content_filtered"];
const MALFORMED: readonly unknown[] = ["malformed_model_output", "malformed_tool_use"];

/** Reads the events of ConverseStream; Nova's own format has the same. */
export class Reader implements ResponseReader {
  readonly #out: Accumulator;
  readonly #open = new Map<number, OpenBlock>();
  #stopReason: string | undefined;
  #began = false;
  #stopped = false;
  #counted = false;

  constructor(out: Accumulator) {
    this.#out = out;
  }

  /** Its figures follow the end of the message. */
  get finished(): boolean {
    return this.#stopped;
  }

  read(data: string, event = "without a type"): void {
    const exception = event.startsWith(EXCEPTION) ? event.slice(EXCEPTION.length) : event;
    if (exception !== event || event.endsWith("Exception")) {
      throw new ServiceFault(parseJsonOr(data, data), exception || undefined);
    }
    this.take(event, parseObject(data));
  }

  /** Only `messageStop` makes a response whole. */
  end(): void {
    if (this.#stopped) this.#finish();
  }

  /** One event, unpacked. */
  take(event: string, payload: Record<string, unknown>): void {
    switch (event) {
      case "contentBlockDelta": {
        const { contentBlockIndex = 0, delta = {} }: BlockEvent = payload;
        return this.#delta(contentBlockIndex, delta);
      }
      case "contentBlockStart": {
        const { contentBlockIndex = 0, start = {} }: BlockEvent = payload;
        return this.#start(contentBlockIndex, start);
      }
      case "contentBlockStop": {
        const { contentBlockIndex = 0 }: BlockEvent = payload;
        return this.#stop(contentBlockIndex);
      }
      case "messageStart":
        return this.#begin();
      case "messageStop":
        return this.#stopMessage(payload);
      case "metadata":
        return this.#metadata(payload);
      default:
        this.#out.unknown(`event ${event}`);
    }
  }

  #begin(): void {
    if (this.#began) {
      throw new ProviderError("The response began a second time before its end. Try again.", {
        kind: "incomplete",
      });
    }
    this.#began = true;
    this.#out.start();
  }

  #start(index: number, start: NonNullable<BlockEvent["start"]>): void {
    const { image, toolResult, toolUse } = start;
    this.#stop(index);
    if (toolUse) {
      const { type = "tool_use" } = toolUse;
      this.#openBlock(index, type === "tool_use" ? "toolUse" : "serverToolUse", toolUse);
    } else if (toolResult) {
      this.#openBlock(index, "toolResult", toolResult);
    } else if (image) {
      this.#openBlock(index, "image", image);
    } else {
      // Texts and thoughts begin with their first delta.
      for (const name of Object.keys(start)) this.#out.unknown(`block ${name}`);
    }
  }

  #openBlock(index: number, kind: BlockKind, start: OpenBlock["start"] = {}): OpenBlock {
    const open: OpenBlock = { kind, contentIndex: -1, start, text: "", parts: [], bytes: [] };
    this.#open.set(index, open);
    if (kind === "text") open.contentIndex = this.#out.textStart();
    else if (kind === "reasoning" || kind === "redacted") {
      open.contentIndex = this.#out.thinkingStart();
    } else if (kind === "toolUse") {
      open.contentIndex = this.#out.toolCallStart(start.toolUseId ?? "", start.name ?? "");
    }
    return open;
  }

  /** The block of a kind that begins without saying so. */
  #getBlock(index: number, kind: BlockKind): OpenBlock {
    const open = this.#open.get(index);
    if (open?.kind === kind) return open;
    this.#stop(index);
    return this.#openBlock(index, kind);
  }

  #delta(index: number, delta: RawDelta): void {
    const { citation, image, reasoningContent, text, toolResult, toolUse } = delta;
    if (typeof text === "string") {
      this.#out.text(this.#getBlock(index, "text").contentIndex, text);
    } else if (reasoningContent) {
      this.#reasoning(index, reasoningContent);
    } else if (toolUse) {
      this.#input(index, toolUse.input);
    } else if (citation !== undefined) {
      this.#getBlock(index, "text").parts.push(citation);
    } else if (Array.isArray(toolResult)) {
      addResults(this.#getBlock(index, "toolResult").parts, toolResult);
    } else if (image) {
      this.#getBlock(index, "image").bytes.push(image.source?.bytes ?? "");
    } else {
      this.#out.unknown(`delta ${Object.keys(delta)[0] ?? "of nothing"}`);
    }
  }

  #reasoning(index: number, delta: NonNullable<RawDelta["reasoningContent"]>): void {
    const { redactedContent, signature, text } = delta;
    if (typeof text === "string") {
      this.#out.thinking(this.#getBlock(index, "reasoning").contentIndex, text);
    } else if (typeof signature === "string") {
      this.#getBlock(index, "reasoning").text += signature;
    } else if (typeof redactedContent === "string") {
      this.#getBlock(index, "redacted").bytes.push(redactedContent);
    } else {
      this.#out.unknown(`delta reasoningContent.${Object.keys(delta)[0] ?? "nothing"}`);
    }
  }

  #input(index: number, input: unknown): void {
    const open = this.#open.get(index);
    if (open?.kind !== "toolUse" && open?.kind !== "serverToolUse") {
      return this.#out.unknown("delta of no block");
    }
    const json = typeof input === "string" ? input : (JSON.stringify(input) ?? "");
    if (open.kind === "toolUse") this.#out.toolCall(open.contentIndex, json);
    open.text += json;
  }

  #stop(index: number): void {
    const open = this.#open.get(index);
    if (!open) return;
    this.#open.delete(index);
    const { bytes, contentIndex, kind, parts, start, text } = open;
    switch (kind) {
      case "text":
        return this.#out.textEnd(
          contentIndex,
          parts.length > 0 ? JSON.stringify(parts) : undefined,
          readCitations(parts),
        );
      case "reasoning":
        // An empty signature counts as absent.
        return this.#out.thinkingEnd(contentIndex, text ? { signature: text } : {});
      case "redacted":
        return this.#out.thinkingEnd(contentIndex, {
          signature: joinBase64(bytes),
          redacted: true,
        });
      case "toolUse":
        // The whole input may have come with the start, and no delta after it.
        if (text === "" && isRecord(start.input)) {
          this.#out.toolCall(contentIndex, JSON.stringify(start.input));
        }
        return this.#out.toolCallEnd(contentIndex);
      case "image":
        return this.#out.image({
          type: "image",
          data: joinBase64(bytes),
          mimeType: `image/${start.format ?? "png"}`,
        });
      default:
        this.#out.serviceTool(serviceTool(open));
    }
  }

  #stopMessage({ stopReason, ...details }: Record<string, unknown>): void {
    for (const index of [...this.#open.keys()]) this.#stop(index);
    this.#stopped = true;
    if (typeof stopReason === "string") {
      this.#stopReason = stopReason;
      this.#out.report.stopReason = stopReason;
    }
    this.#addDetails(details);
    if (this.#counted) this.#finish();
  }

  #metadata({ usage, ...details }: Metadata): void {
    this.#counted = true;
    if (usage) {
      const raw = Object.assign((this.#out.report.usage ??= {}), usage);
      this.#out.usage(toUsage(raw));
    }
    const served = details.trace?.promptRouter?.invokedModelId;
    if (served !== undefined) this.#out.message.servedModel = served;
    this.#addDetails(details);
    if (this.#stopped) this.#finish();
  }

  #addDetails(details: Record<string, unknown>): void {
    const { report } = this.#out;
    for (const [name, value] of Object.entries(details)) {
      // Padding, which hides the length of the content.
      if (name !== "p") (report.details ??= {})[name] = value;
    }
  }

  #finish(): void {
    const reason = this.#stopReason;
    if (REFUSED.includes(reason)) {
      throw new ProviderError(
        `The answer was held back (${reason}). Rephrase the request, or change the guardrail.`,
        { kind: "refused", retryable: false },
      );
    }
    if (MALFORMED.includes(reason)) {
      throw new ProviderError(
        `The model wrote something that the service cannot read (${reason}). Try again.`,
        { kind: "bad_request", retryable: true },
      );
    }
    this.#out.done(doneReason(reason, this.#out.message.content));
  }
}

function doneReason(reason: string | undefined, content: readonly AssistantContent[]): DoneReason {
  if (reason === "max_tokens" || reason === "model_context_window_exceeded") return "length";
  // A call is a call, also where the service forgot to say why it stopped.
  return content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop";
}

/** What a tool of the service gave, with texts that came in pieces put together. */
function addResults(parts: unknown[], more: readonly unknown[]): void {
  for (const part of more) {
    const last = parts.at(-1);
    if (isText(part) && isText(last)) last.text += part.text;
    else parts.push(part);
  }
}

function serviceTool({ kind, parts, start, text }: OpenBlock): ServiceToolContent {
  const { name, toolUseId: id = "", type = "" } = start;
  if (kind === "toolResult") {
    const tool = name ?? type.replace(/_(?:tool_)?result$/, "");
    const raw = { toolResult: { ...start, content: parts } };
    return { type: "serviceTool", id, name: tool, output: parts, raw };
  }
  const input = text === "" ? (start.input ?? {}) : parseJsonOr(text, {});
  const raw = { toolUse: { ...start, input } };
  return { type: "serviceTool", id, name: name ?? type, input, raw };
}

function toUsage(raw: RawUsage): Usage {
  const usage: Usage = {};
  const put = (
    name: Exclude<keyof Usage, "cost" | "serviceTier" | "unpricedTools">,
    ...values: unknown[]
  ): void => {
    const value = values.find((one) => typeof one === "number");
    if (typeof value === "number") usage[name] = value;
  };
  put("input", raw["inputTokens"]);
  put("output", raw["outputTokens"]);
  // Each has an older name, which some models still use.
  put("cacheRead", raw["cacheReadInputTokens"], raw["cacheReadInputTokenCount"]);
  put("cacheWrite", raw["cacheWriteInputTokens"], raw["cacheWriteInputTokenCount"]);
  const { cacheDetails } = raw;
  const writes = Array.isArray(cacheDetails) ? cacheDetails.map(toRecord) : [];
  put("longCacheWrite", writes.find(({ ttl }) => ttl === "1h")?.["inputTokens"]);
  put("totalTokens", raw["totalTokens"]);
  return usage;
}

/** Pieces of base64 as one. A single piece stays as it is, byte for byte. */
function joinBase64(pieces: readonly string[]): string {
  const [first = "", ...more] = pieces;
  return more.length === 0 ? first : btoa(pieces.map(decodeBase64).join(""));
}

/** The bytes as a string of one character each. */
export function decodeBase64(data: string): string {
  try {
    return atob(data);
  } catch {
    throw new ProviderError("The response has bytes that are no base64. Try again.", {
      kind: "incomplete",
    });
  }
}

function isText(value: unknown): value is { text: string } {
  return isRecord(value) && typeof value["text"] === "string";
}
