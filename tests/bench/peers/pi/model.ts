import type { Answer, Part } from "../peer.ts";

/*
 * A model for pi-agent-core: a stream function of our own, since pi's "faux" one cuts its
 * text at random. It does what the providers of pi do: one message that grows in place, is
 * part of each event, and has its call's arguments parsed by pi's own parser at each delta,
 * as the events of pi promise. A failure of the stream is an event at the end, not a throw.
 */

type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

export type Text = { type: "text"; text: string };
type Call = { type: "toolCall"; id: string; name: string; arguments: JsonObject };

export interface Assistant {
  role: "assistant";
  content: (Text | Call)[];
  api: string;
  provider: string;
  model: string;
  usage: typeof noUsage & { cost: typeof noCost };
  stopReason: "stop" | "toolUse" | "error" | "aborted";
  errorMessage?: string;
  timestamp: number;
}

interface Result {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: Text[];
  isError: boolean;
  timestamp: number;
}

export type Message =
  | { role: "user"; content: string | Text[]; timestamp: number }
  | Assistant
  | Result;

type ModelEvent =
  | { type: "start"; partial: Assistant }
  | { type: "text_start" | "toolcall_start"; contentIndex: number; partial: Assistant }
  | {
      type: "text_delta" | "toolcall_delta";
      contentIndex: number;
      delta: string;
      partial: Assistant;
    }
  | { type: "text_end"; contentIndex: number; content: string; partial: Assistant }
  | { type: "toolcall_end"; contentIndex: number; toolCall: Call; partial: Assistant }
  | { type: "done"; reason: "stop" | "toolUse"; message: Assistant }
  | { type: "error"; reason: "error" | "aborted"; error: Assistant };

/** The queue of a model's events that pi reads. */
export interface ModelEvents {
  push(event: ModelEvent): void;
  end(): void;
}

const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const noUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };

export const model = {
  id: "bench",
  name: "Bench",
  api: "bench",
  provider: "bench",
  baseUrl: "",
  reasoning: false,
  input: ["text" as const],
  cost: noCost,
  contextWindow: 1_000_000,
  maxTokens: 32_000,
};

/** Passes `answer` to `reply`; never rejects. */
export async function pump(answer: Answer, reply: Reply, signal?: AbortSignal): Promise<void> {
  try {
    throwIfAborted(signal);
    reply.start();
    for await (const parts of answer) {
      throwIfAborted(signal);
      for (const part of parts) reply.write(part);
    }
    throwIfAborted(signal);
    reply.done();
  } catch (error) {
    reply.fail(signal?.aborted ? "aborted" : "error", error);
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new Error("Request was aborted");
}

/** An answer as it grows, for pi. */
export class Reply {
  readonly #events: ModelEvents;
  readonly #parse: (json: string) => JsonObject;
  readonly #message = assistant([], "stop");
  #open: Text | Call | undefined;
  #json = "";

  constructor(events: ModelEvents, parse: (json: string) => JsonObject) {
    this.#events = events;
    this.#parse = parse;
  }

  start(): void {
    this.#events.push({ type: "start", partial: this.#message });
  }

  write(part: Part): void {
    if (part.type === "text") {
      const block = this.#open?.type === "text" ? this.#open : this.#begin(text(""));
      block.text += part.delta;
      this.#delta("text_delta", part.delta);
    } else if (part.type === "call") {
      this.#begin({ type: "toolCall", id: part.id, name: part.name, arguments: {} });
      this.#message.stopReason = "toolUse";
    } else if (this.#open?.type === "toolCall") {
      this.#json += part.delta;
      this.#open.arguments = this.#parse(this.#json);
      this.#delta("toolcall_delta", part.delta);
    }
  }

  #begin<Block extends Text | Call>(block: Block): Block {
    this.#end();
    this.#open = block;
    this.#json = "";
    const contentIndex = this.#message.content.push(block) - 1;
    const type = block.type === "text" ? "text_start" : "toolcall_start";
    this.#events.push({ type, contentIndex, partial: this.#message });
    return block;
  }

  #delta(type: "text_delta" | "toolcall_delta", delta: string): void {
    const contentIndex = this.#message.content.length - 1;
    this.#events.push({ type, contentIndex, delta, partial: this.#message });
  }

  #end(): void {
    const block = this.#open;
    const partial = this.#message;
    const contentIndex = partial.content.length - 1;
    if (block?.type === "text") {
      this.#events.push({ type: "text_end", contentIndex, content: block.text, partial });
    } else if (block) {
      block.arguments = this.#parse(this.#json);
      this.#events.push({ type: "toolcall_end", contentIndex, toolCall: block, partial });
    }
  }

  done(): void {
    this.#end();
    const reason = this.#message.stopReason === "toolUse" ? "toolUse" : "stop";
    this.#events.push({ type: "done", reason, message: this.#message });
    this.#events.end();
  }

  fail(reason: "error" | "aborted", error: unknown): void {
    this.#message.stopReason = reason;
    this.#message.errorMessage = error instanceof Error ? error.message : String(error);
    this.#events.push({ type: "error", reason, error: this.#message });
    this.#events.end();
  }
}

export function text(text: string): Text {
  return { type: "text", text };
}

export function assistant(
  content: Assistant["content"],
  stopReason: "stop" | "toolUse",
): Assistant {
  return {
    role: "assistant",
    content,
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: { ...noUsage, cost: { ...noCost } },
    stopReason,
    timestamp: 0,
  };
}
