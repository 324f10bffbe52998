import { isRecord } from "../common/records.ts";
import { readFile } from "../convert/model-messages.ts";
import type { Usage } from "../messages/messages.ts";
import type { Accumulator } from "../stream/accumulate.ts";

type Part = Readonly<Record<string, unknown>>;

/** A block that is being streamed: its place, and what the provider wants back with it. */
interface Open {
  kind: "text" | "thinking" | "toolCall";
  index: number;
  metadata: Record<string, Record<string, unknown>>;
  hasInput: boolean;
}

/** Why a response ended, where it did not end well. */
export interface BadEnd {
  error: unknown;
}

/** Turns the parts of a stream of the AI SDK into our events. */
export class AiSdkReader {
  readonly #out: Accumulator;
  readonly #open = new Map<string, Open>();
  #hasCalls = false;

  constructor(out: Accumulator) {
    this.#out = out;
  }

  /** Takes a part. Gives an error that the stream reported. */
  take(part: unknown): BadEnd | undefined {
    if (!isRecord(part)) return undefined;
    this.#out.report.events++;
    const type = text(part, "type");
    switch (type) {
      case "stream-start":
        this.#out.start();
        return undefined;
      case "text-start":
        return this.#begin("text", part, this.#out.textStart());
      case "reasoning-start":
        return this.#begin("thinking", part, this.#out.thinkingStart());
      case "tool-input-start":
        if (part["providerExecuted"] === true) return undefined;
        this.#hasCalls = true;
        return this.#begin(
          "toolCall",
          part,
          this.#out.toolCallStart(text(part, "id"), text(part, "toolName")),
        );
      case "text-delta":
      case "reasoning-delta":
      case "tool-input-delta":
        return this.#add(part);
      case "text-end":
      case "reasoning-end":
        return this.#end(part);
      case "tool-input-end":
        this.#note(part);
        return undefined;
      case "tool-call":
        return this.#call(part);
      case "tool-result":
        return this.#result(part);
      case "file":
      case "reasoning-file":
        return this.#file(part, type);
      case "response-metadata":
        return this.#metadata(part);
      case "finish":
        return this.#finish(part);
      case "error":
        return { error: part["error"] };
      default:
        this.#out.unknown(type);
        return undefined;
    }
  }

  #begin(kind: Open["kind"], part: Part, index: number): undefined {
    this.#open.set(text(part, "id"), { kind, index, metadata: {}, hasInput: false });
    this.#note(part);
    return undefined;
  }

  /** Providers send what they want back with any part of a block, the signature of a thought with a delta. */
  #note(part: Part, id = text(part, "id")): Open | undefined {
    const open = this.#open.get(id);
    const { providerMetadata } = part;
    if (!open || !isRecord(providerMetadata)) return open;
    for (const [provider, values] of Object.entries(providerMetadata)) {
      if (isRecord(values)) open.metadata[provider] = { ...open.metadata[provider], ...values };
    }
    return open;
  }

  #add(part: Part): undefined {
    const open = this.#note(part);
    const delta = text(part, "delta");
    if (!open || delta === "") return undefined;
    open.hasInput = true;
    if (open.kind === "text") this.#out.text(open.index, delta);
    else if (open.kind === "thinking") this.#out.thinking(open.index, delta);
    else this.#out.toolCall(open.index, delta);
    return undefined;
  }

  #end(part: Part): undefined {
    const open = this.#note(part);
    if (!open) return undefined;
    this.#open.delete(text(part, "id"));
    const signature = formatMetadata(open.metadata);
    if (open.kind === "text") this.#out.textEnd(open.index, signature);
    else this.#out.thinkingEnd(open.index, signature === undefined ? {} : { signature });
    return undefined;
  }

  #call(part: Part): undefined {
    const id = text(part, "toolCallId");
    const name = text(part, "toolName");
    const input = text(part, "input");
    if (part["providerExecuted"] === true) {
      this.#out.serviceTool({ type: "serviceTool", id, name, input });
      return undefined;
    }
    this.#hasCalls = true;
    if (!this.#open.has(id)) this.#begin("toolCall", { id }, this.#out.toolCallStart(id, name));
    const open = this.#note(part, id);
    if (!open) return undefined;
    this.#open.delete(id);
    if (!open.hasInput) this.#out.toolCall(open.index, input);
    this.#out.toolCallEnd(open.index, formatMetadata(open.metadata));
    return undefined;
  }

  #result(part: Part): undefined {
    const { result: output } = part;
    const [id, name] = [text(part, "toolCallId"), text(part, "toolName")];
    this.#out.serviceTool({ type: "serviceTool", id, name, output });
    return undefined;
  }

  #file(part: Part, type: string): undefined {
    const file = readFile(part);
    if (file?.type === "image") this.#out.image(file);
    else if (file) this.#out.file(file);
    else this.#out.unknown(type);
    return undefined;
  }

  #metadata(part: Part): undefined {
    const { message } = this.#out;
    const [id, model] = [text(part, "id"), text(part, "modelId")];
    if (id !== "") message.responseId = id;
    if (model !== "" && model !== message.model) message.servedModel = model;
    return undefined;
  }

  #finish(part: Part): BadEnd | undefined {
    const { finishReason, usage } = part;
    const reason = isRecord(finishReason) ? text(finishReason, "unified") : "";
    const raw = isRecord(finishReason) ? text(finishReason, "raw") : "";
    if (raw !== "") this.#out.report.stopReason = raw;
    this.#out.usage(readUsage(usage));
    if (reason === "content-filter") return { error: new RefusedError() };
    if (reason === "error") return { error: new Error("The model's service reported an error.") };
    if (reason === "length") this.#out.done("length");
    else this.#out.done(reason === "tool-calls" || this.#hasCalls ? "toolUse" : "stop");
    return undefined;
  }
}

/** The service withheld the answer. */
export class RefusedError extends Error {
  constructor() {
    super("The model's service refused to answer (content filter).");
    this.name = "RefusedError";
  }
}

function text(part: Part, name: string): string {
  const value = part[name];
  return typeof value === "string" ? value : "";
}

function formatMetadata(metadata: Open["metadata"]): string | undefined {
  return Object.keys(metadata).length > 0 ? JSON.stringify(metadata) : undefined;
}

/** What the service did not report is absent. */
function readUsage(usage: unknown): Usage {
  const input = isRecord(usage) ? usage["inputTokens"] : undefined;
  const output = isRecord(usage) ? usage["outputTokens"] : undefined;
  const cacheRead = count(input, "cacheRead");
  const cacheWrite = count(input, "cacheWrite");
  const total = count(input, "total");
  const rest = total === undefined ? undefined : total - (cacheRead ?? 0) - (cacheWrite ?? 0);
  const fields: Record<string, number | undefined> = {
    input: count(input, "noCache") ?? rest,
    output: count(output, "total"),
    cacheRead,
    cacheWrite,
    reasoning: count(output, "reasoning"),
    totalTokens: addKnown(total, count(output, "total")),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function count(record: unknown, name: string): number | undefined {
  const value = isRecord(record) ? record[name] : undefined;
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function addKnown(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other;
}
