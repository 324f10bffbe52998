import { isRecord } from "../common/records.ts";
import type { AssistantMessageEventStream } from "./assistant-stream.ts";
import type { DoneReason } from "./events.ts";
import { GrowingText } from "./growing-text.ts";
import type {
  AssistantContent,
  AssistantMessage,
  Citation,
  Failure,
  FileContent,
  ImageContent,
  Model,
  ServiceReport,
  ServiceToolContent,
  TextContent,
  ThinkingContent,
  ToolCall,
  Usage,
} from "../messages/messages.ts";
import { PartialJsonParser } from "./partial-json.ts";
import { repairJson } from "./repair-json.ts";
import { computeCost } from "../messages/usage.ts";

type OpenBlock =
  | { type: "text"; block: TextContent; text: GrowingText }
  | { type: "thinking"; block: ThinkingContent; text: GrowingText }
  | { type: "toolCall"; block: ToolCall; raw: GrowingText; parser: PartialJsonParser };

/** A message with nothing in it yet, as asked of `model`. */
export function emptyAssistantMessage(model: Model, timestamp: number): AssistantMessage {
  return {
    role: "assistant",
    content: [],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: {},
    stopReason: "stop",
    timestamp,
  };
}

/**
 * The one place where deltas become a message. A reader calls its methods as bytes
 * arrive; each keeps `message` up to date and puts the event into the stream, at
 * a cost that depends on the delta alone. Blocks may interleave; each is named by
 * its index in the content. What comes after `done` or `fail` is dropped.
 */
export class Accumulator {
  readonly message: AssistantMessage;
  readonly #stream: AssistantMessageEventStream;
  readonly #model: Model;
  readonly #open: (OpenBlock | undefined)[] = [];
  #started = false;
  #isCutShort = false;

  constructor(stream: AssistantMessageEventStream, model: Model, timestamp: number) {
    this.#stream = stream;
    this.#model = model;
    this.message = emptyAssistantMessage(model, timestamp);
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#stream.push({ type: "start", partial: this.message });
  }

  textStart(): number {
    const block: TextContent = { type: "text", text: "" };
    const contentIndex = this.#begin({ type: "text", block, text: new GrowingText() });
    this.#stream.push({ type: "text_start", contentIndex, partial: this.message });
    return contentIndex;
  }

  text(contentIndex: number, delta: string): void {
    const open = this.#open[contentIndex];
    if (open?.type !== "text" || delta === "" || this.#stream.closed) return;
    open.block.text = open.text.append(delta);
    this.#stream.push({ type: "text_delta", contentIndex, delta, partial: this.message });
  }

  textEnd(contentIndex: number, signature?: string, citations: Citation[] = []): void {
    const open = this.#open[contentIndex];
    if (open?.type !== "text") return;
    this.#open[contentIndex] = undefined;
    if (signature !== undefined) open.block.signature = signature;
    if (citations.length > 0) open.block.citations = citations;
    const content = open.text.end();
    open.block.text = content;
    this.#stream.push({ type: "text_end", contentIndex, content, partial: this.message });
  }

  thinkingStart(): number {
    const block: ThinkingContent = { type: "thinking", thinking: "" };
    const contentIndex = this.#begin({ type: "thinking", block, text: new GrowingText() });
    this.#stream.push({ type: "thinking_start", contentIndex, partial: this.message });
    return contentIndex;
  }

  thinking(contentIndex: number, delta: string): void {
    const open = this.#open[contentIndex];
    if (open?.type !== "thinking" || delta === "" || this.#stream.closed) return;
    open.block.thinking = open.text.append(delta);
    this.#stream.push({ type: "thinking_delta", contentIndex, delta, partial: this.message });
  }

  thinkingEnd(contentIndex: number, proof: { signature?: string; redacted?: boolean } = {}): void {
    const open = this.#open[contentIndex];
    if (open?.type !== "thinking") return;
    this.#open[contentIndex] = undefined;
    const content = open.text.end();
    Object.assign(open.block, proof, { thinking: content });
    this.#stream.push({ type: "thinking_end", contentIndex, content, partial: this.message });
  }

  toolCallStart(id: string, name: string, signature?: string): number {
    const block: ToolCall = { type: "toolCall", id, name, arguments: {} };
    if (signature !== undefined) block.signature = signature;
    const contentIndex = this.#begin({
      type: "toolCall",
      block,
      raw: new GrowingText(),
      parser: new PartialJsonParser(),
    });
    this.#stream.push({ type: "toolcall_start", contentIndex, partial: this.message });
    return contentIndex;
  }

  /** A piece of the arguments' JSON. `block.arguments` is up to date when this returns. */
  toolCall(contentIndex: number, delta: string): void {
    const open = this.#open[contentIndex];
    if (open?.type !== "toolCall" || delta === "" || this.#stream.closed) return;
    open.raw.append(delta);
    open.parser.feed(delta);
    const value = open.parser.value;
    if (isRecord(value)) open.block.arguments = value;
    this.#stream.push({ type: "toolcall_delta", contentIndex, delta, partial: this.message });
  }

  /** What came late: an open call may get its id, its name or its signature after its start. */
  identify(contentIndex: number, late: { id?: string; name?: string; signature?: string }): void {
    const open = this.#open[contentIndex];
    if (open?.type === "toolCall") Object.assign(open.block, late);
  }

  toolCallEnd(contentIndex: number, signature?: string): void {
    const open = this.#open[contentIndex];
    if (open?.type !== "toolCall") return;
    this.#open[contentIndex] = undefined;
    if (signature !== undefined) open.block.signature = signature;
    Object.assign(open.block, finishedArguments(open.parser, open.raw.value));
    this.#stream.push({
      type: "toolcall_end",
      contentIndex,
      toolCall: open.block,
      partial: this.message,
    });
  }

  serviceTool(content: ServiceToolContent): void {
    this.start();
    if (this.#stream.closed) return;
    const contentIndex = this.message.content.push(content) - 1;
    this.#stream.push({ type: "service_tool", contentIndex, content, partial: this.message });
  }

  image(content: ImageContent): void {
    this.start();
    if (this.#stream.closed) return;
    const contentIndex = this.message.content.push(content) - 1;
    this.#stream.push({ type: "image", contentIndex, content, partial: this.message });
  }

  file(content: FileContent): void {
    this.start();
    if (this.#stream.closed) return;
    const contentIndex = this.message.content.push(content) - 1;
    this.#stream.push({ type: "file", contentIndex, content, partial: this.message });
  }

  /** What the service says in its own words; made when it is first asked for. */
  get report(): ServiceReport {
    return (this.message.report ??= { events: 0 });
  }

  /** Counts something that the format does not know. */
  unknown(name: string): void {
    const counts = (this.report.unknown ??= {});
    counts[name] = (counts[name] ?? 0) + 1;
  }

  /** True once `done` or `fail` came. */
  get closed(): boolean {
    return this.#stream.closed;
  }

  /** Adds what the service said last; cumulative figures replace earlier ones. */
  usage(reported: Usage): void {
    if (this.#stream.closed) return;
    const { usage } = this.message;
    Object.assign(usage, reported);
    const cost = reported.cost ?? computeCost(usage, this.#model.price);
    if (cost) usage.cost = cost;
    // What was known before may have no price now.
    else delete usage.cost;
  }

  /** From now on the response cannot be whole any more: `done` does nothing, only `fail` ends it. */
  cutShort(): void {
    this.#isCutShort = true;
  }

  /** Closes what is open and ends the response. */
  done(reason: DoneReason): void {
    if (this.#isCutShort) return;
    this.start();
    for (const [index, open] of this.#open.entries()) {
      if (open?.type === "text") this.textEnd(index);
      else if (open?.type === "thinking") this.thinkingEnd(index);
      else if (open?.type === "toolCall") this.toolCallEnd(index);
    }
    // Asked last, because a reader may have aborted on one of the events above.
    if (this.#stream.closed) return;
    // What was cut off may end like a whole text.
    if (reason !== "length") this.message.content.forEach(repairArguments);
    this.message.stopReason = reason;
    this.#stream.push({ type: "done", reason, message: this.message });
  }

  /** Ends the response with an error. What had arrived is kept as it is. */
  fail(errorMessage: string, failure: Failure): void {
    if (this.#stream.closed) return;
    this.#open.length = 0;
    const reason = failure.kind === "aborted" ? "aborted" : "error";
    Object.assign(this.message, { stopReason: reason, errorMessage, failure });
    this.#stream.push({ type: "error", reason, error: this.message });
  }

  /** After the end: an index that no block has, so that its deltas are dropped. */
  #begin(open: OpenBlock): number {
    this.start();
    if (this.#stream.closed) return -1;
    const contentIndex = this.message.content.push(open.block) - 1;
    this.#open[contentIndex] = open;
    return contentIndex;
  }
}

/** Arguments that are nearly JSON, of a call that was not cut off (R11). */
function repairArguments(block: AssistantContent): void {
  if (block.type !== "toolCall" || block.argumentsError === undefined) return;
  const repaired = repairJson(block.rawArguments ?? "");
  const value: unknown = repaired === undefined ? undefined : JSON.parse(repaired);
  if (!isRecord(value)) return;
  delete block.argumentsError;
  Object.assign(block, { arguments: value, repaired: true });
}

function finishedArguments(
  parser: PartialJsonParser,
  raw: string,
): Pick<ToolCall, "arguments" | "rawArguments" | "argumentsError"> {
  if (raw.trim() === "") return { arguments: {} };
  const end = parser.end();
  // Some services say so where a call has no arguments.
  if (end.ok && end.value === null) return { arguments: {} };
  if (!end.ok) return { arguments: {}, rawArguments: raw, argumentsError: end.error };
  if (isRecord(end.value)) return { arguments: end.value };
  const kind = Array.isArray(end.value) ? "an array" : `a ${typeof end.value}`;
  return {
    arguments: {},
    rawArguments: raw,
    argumentsError: `Expected a JSON object, got ${kind}`,
  };
}
