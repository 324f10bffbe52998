import type { Accumulator } from "../../stream/accumulate.ts";
import type { DoneReason } from "../../stream/events.ts";
import type { AssistantMessage, Message, Usage } from "../../messages/messages.ts";
import { ServiceFault } from "../errors/provider-error.ts";
import { addLogprobs } from "../options/logprobs.ts";
import type { RequestContext, ResponseReader } from "../http/format.ts";
import { parseObject } from "../http/json.ts";

// What comes back. Every field is what the documentation says, and checked where it matters.

interface Chunk {
  model?: string;
  message?: { content?: string; thinking?: string; tool_calls?: RawCall[] };
  logprobs?: unknown;
  done?: boolean;
  done_reason?: string;
  error?: unknown;
}

interface RawCall {
  id?: string;
  function?: { name?: string; arguments?: unknown };
}

/** Fields of a line that are read above, or of no use. */
const READ: readonly string[] = [
  "model",
  "created_at",
  "message",
  "logprobs",
  "done",
  "done_reason",
];

export class Reader implements ResponseReader {
  readonly #out: Accumulator;
  readonly #request: RequestContext;
  /** Of the calls in this response. */
  readonly #ids = new Set<string>();
  #open: { type: "text" | "thinking"; contentIndex: number } | undefined;
  /** Of those before it; looked for when an id has to be made up. */
  #earlierIds: Set<string> | undefined;

  constructor(out: Accumulator, request: RequestContext) {
    this.#out = out;
    this.#request = request;
  }

  read(data: string): void {
    const line = parseObject(data);
    const { done, error, logprobs, message, model }: Chunk = line;
    if (error !== undefined) throw new ServiceFault(line);
    if (model !== undefined) this.#out.message.servedModel = model;
    this.#out.start();
    if (message?.thinking) {
      this.#out.thinking(this.#block("thinking"), message.thinking);
    }
    if (message?.content) this.#out.text(this.#block("text"), message.content);
    addLogprobs(this.#out.report, this.#request.options, logprobs);
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
      const earlier = (this.#earlierIds ??= callIds(this.#request.context.messages));
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
      const fields = name.endsWith("_count") ? (report.usage ??= {}) : (report.details ??= {});
      fields[name] = value;
    }
    this.#out.usage(toUsage(report.usage ?? {}));
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

function toUsage(raw: Record<string, unknown>): Usage {
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
