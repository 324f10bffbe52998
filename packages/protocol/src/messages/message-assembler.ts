import {
  type AssistantMessage,
  type AssistantMessageEventStream,
  type DoneReason,
  emptyAssistantMessage,
  type Failure,
  isRecord,
  type Model,
} from "@gyre/ai";
import { BLOCK_EVENT_TYPES, type CompactEvent, type MessageHead } from "@gyre/ai/stream";
import { WireMessageReader } from "./wire-message-reader.ts";
import { isCount, type Payload } from "../frames/envelope.ts";
import { findMissingEvents } from "./missing-events.ts";
import { invalidRequest, ProtocolError } from "../frames/protocol-error.ts";

const DONE_REASONS: ReadonlySet<unknown> = new Set<DoneReason>([
  "stop",
  "length",
  "toolUse",
  "pause",
]);

/** Assembles one response from numbered events, over any number of connections. */
export class MessageAssembler {
  readonly #stream: AssistantMessageEventStream;
  readonly #model: Model;
  readonly #now: () => number;
  #reader: WireMessageReader | undefined;
  #last = 0;

  constructor(stream: AssistantMessageEventStream, model: Model, now: () => number) {
    this.#stream = stream;
    this.#model = model;
    this.#now = now;
  }

  /** The number of the last event. */
  get last(): number {
    return this.#last;
  }

  /**
   * Reads an event with its number, `seq`, in its data. A repeated one changes nothing. False where
   * one is missing before it; throws `ProtocolError` where it is invalid.
   */
  take(type: string, data: Payload): boolean {
    const { seq, from = seq, ...payload } = data;
    return this.takeNumbered(type, payload, seq, from);
  }

  /** The same, with the number beside the data. `from`: the first of joined events. */
  takeNumbered(type: string, payload: Payload, seq: unknown, from: unknown = seq): boolean {
    if (!isCount(seq) || !isCount(from)) {
      throw new ProtocolError("invalid_sequence", `An event, "${type}", has no number.`);
    }
    if (seq <= this.#last) return true;
    if (type !== "snapshot" && from !== this.#last + 1) return false;
    this.#apply(type, payload);
    this.#last = seq;
    return true;
  }

  /** Ends the response with an error. The partial message is kept. */
  fail(errorMessage: string, failure: Failure): void {
    if (this.#stream.closed) return;
    const error = this.#reader?.partial ?? emptyAssistantMessage(this.#model, this.#now());
    const reason = failure.kind === "aborted" ? "aborted" : "error";
    Object.assign(error, { stopReason: reason, errorMessage, failure });
    this.#stream.push({ type: "error", reason, error });
  }

  #apply(type: string, payload: Payload): void {
    switch (type) {
      case "start":
        this.#begin(payload);
        return;
      case "snapshot":
        this.#restore(payload);
        return;
      case "done": {
        const { reason } = payload;
        if (!isDoneReason(reason)) throw wrong(type, "reason");
        this.#stream.push({ type, reason, message: this.#finish(payload) });
        return;
      }
      case "error": {
        const reason = payload["reason"] === "aborted" ? "aborted" : "error";
        this.#stream.push({ type, reason, error: this.#finish(payload) });
        return;
      }
      default:
        // Ignore events of newer servers.
        if (BLOCK_EVENT_TYPES.has(type)) this.#read({ ...payload, type } as CompactEvent);
    }
  }

  #begin(payload: Payload): WireMessageReader {
    if (this.#reader) return this.#reader;
    this.#reader = new WireMessageReader(headIn(payload));
    this.#stream.push({ type: "start", partial: this.#reader.partial });
    return this.#reader;
  }

  #read(event: CompactEvent): void {
    if (!this.#reader) throw new ProtocolError("invalid_sequence", 'The first event is "start".');
    this.#stream.push(this.#reader.read(event));
  }

  /** Continues from the partial message to that of the snapshot, with the events in between. */
  #restore(payload: Payload): void {
    const { events } = payload;
    if (!Array.isArray(events) || !events.every(isPart)) throw wrong("snapshot", "events");
    const reader = this.#begin(payload);
    const missing = findMissingEvents(reader.listEvents(), events);
    Object.assign(reader.partial, headIn(payload), { content: reader.partial.content });
    for (const event of missing) this.#read(event);
  }

  #finish(payload: Payload): AssistantMessage {
    const { blocks } = payload;
    if (!Array.isArray(blocks)) throw wrong("done", "blocks");
    const message = headIn(payload);
    return (this.#reader ?? new WireMessageReader(message)).finish({ message, blocks });
  }
}

function headIn({ message }: Payload): MessageHead {
  if (isHead(message)) return message;
  throw invalidRequest('"message" is a message without its content.');
}

/** Checks the fields that are used here; the rest is up to the sender. */
function isHead(value: unknown): value is MessageHead {
  if (!isRecord(value) || value["role"] !== "assistant") return false;
  const { api, provider, model, timestamp, usage } = value;
  const names = [api, provider, model];
  return (
    names.every((name) => typeof name === "string") &&
    typeof timestamp === "number" &&
    isRecord(usage)
  );
}

function isPart(value: unknown): value is CompactEvent {
  return isRecord(value) && BLOCK_EVENT_TYPES.has(value["type"]);
}

function isDoneReason(value: unknown): value is DoneReason {
  return DONE_REASONS.has(value);
}

function wrong(type: string, key: string): ProtocolError {
  return invalidRequest(`"${key}" of "${type}" is missing or not known.`);
}
