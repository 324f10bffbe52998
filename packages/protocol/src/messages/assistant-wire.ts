import {
  Accumulator,
  type AssistantContent,
  type AssistantMessage,
  type AssistantMessageEvent,
  AssistantMessageEventStream,
  isDelta,
  isRecord,
  type ToolCall,
} from "@gyre/ai";
import { type Payload } from "../frames/envelope.ts";
import { ProtocolError } from "../frames/protocol-error.ts";

/** A message without what streams of it. */
export type MessageHead = Omit<AssistantMessage, "content">;

/**
 * A block of a finished message: one that streamed, with its length in UTF-16 code units
 * (of a call: of the text of its arguments) and all that is no delta; or one that did not, whole.
 */
export type WireBlock =
  | ({ index: number; length: number } & Payload)
  | { content: AssistantContent };

/** An event of a response as it travels: a name, and what is new. */
export type WireAssistantEvent = { readonly type: AssistantMessageEvent["type"] } & Payload;

/** How a response ended: all that was no delta. */
export interface WireEnd {
  message: MessageHead;
  blocks: WireBlock[];
}

/** The message without its content, as it is now. */
export function headOf(message: AssistantMessage): MessageHead {
  const { content: _, ...head } = message;
  return { ...head, usage: { ...head.usage } };
}

/**
 * The event without the message so far: for who does not ask what the other end has. The
 * end of a block leaves out the text that its deltas had; `done` and `error` have the message.
 */
export function wireAssistantEvent(event: AssistantMessageEvent): WireAssistantEvent {
  switch (event.type) {
    case "start":
      return { type: event.type, message: headOf(event.partial) };
    case "done":
      return { type: event.type, reason: event.reason, message: event.message };
    case "error":
      return { type: event.type, ...troubleOf(event), message: event.error };
    case "toolcall_start":
      return { ...whereOf(event), ...identityOf(event.partial.content[event.contentIndex]) };
    case "toolcall_end":
      return { ...whereOf(event), ...identityOf(event.toolCall) };
    case "text_end":
    case "thinking_end": {
      const proof = proofOf(event.partial.content[event.contentIndex]);
      return { ...whereOf(event), length: event.content.length, ...proof };
    }
    case "text_delta":
    case "thinking_delta":
    case "toolcall_delta": {
      const { type, contentIndex, delta } = event;
      return { type, contentIndex, delta };
    }
    default: {
      const { partial: _, ...news } = event;
      return news;
    }
  }
}

type BlockEvent = Exclude<AssistantMessageEvent, { type: "start" | "done" | "error" }>;

function whereOf({ type, contentIndex }: BlockEvent): Pick<BlockEvent, "type" | "contentIndex"> {
  return { type, contentIndex };
}

function identityOf(block: AssistantContent | undefined): Payload {
  if (block?.type !== "toolCall") return {};
  const { id, name, signature } = block;
  return { id, name, ...(signature !== undefined && { signature }) };
}

function proofOf(block: AssistantContent | undefined): Payload {
  if (block?.type !== "text" && block?.type !== "thinking") return {};
  const { text: _, thinking: __, type: ___, ...proof } = { text: "", thinking: "", ...block };
  return proof;
}

/** What a program acts on, where a reader finds it at once. */
function troubleOf({ reason, error }: Extract<AssistantMessageEvent, { type: "error" }>): Payload {
  const { kind = "unknown", retryable, retryAfterMs } = error.failure ?? {};
  return {
    reason,
    kind,
    ...(retryable !== undefined && { retryable }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

/**
 * One response on its way out. It knows what the other end has built, so that what streamed
 * is not sent again and what did not is, whatever the provider did.
 */
export class AssistantWriter {
  readonly #mirror: AssistantReader;

  constructor(head: MessageHead) {
    this.#mirror = new AssistantReader(head);
  }

  write(event: AssistantMessageEvent): WireAssistantEvent {
    if (event.type === "done") {
      return { type: event.type, reason: event.reason, ...this.end(event.message) };
    }
    if (event.type === "error") {
      return { type: event.type, ...troubleOf(event), ...this.end(event.error) };
    }
    const wire = wireAssistantEvent(event);
    if (event.type === "start") return wire;
    const built = this.#mirror.read(wire);
    if (event.type === "text_end" || event.type === "thinking_end") {
      if ("content" in built && built.content === event.content) return wire;
      return this.#correct(event.contentIndex, { ...wire, content: event.content });
    }
    if (event.type === "toolcall_end" && built.type === "toolcall_end") {
      if (sameJson(built.toolCall, event.toolCall)) return wire;
      return this.#correct(event.contentIndex, { ...wire, toolCall: event.toolCall });
    }
    return wire;
  }

  /** How it ended. `message` may be another one than streamed. */
  end(message: AssistantMessage): WireEnd {
    return { message: headOf(message), blocks: this.#mirror.blocksOf(message.content) };
  }

  /** Events that build, in one go, what the other end would have by now. */
  catchUp(): WireAssistantEvent[] {
    return this.#mirror.catchUp();
  }

  #correct(contentIndex: number, wire: WireAssistantEvent): WireAssistantEvent {
    this.#mirror.correct(contentIndex, wire);
    return wire;
  }
}

/** What is known of a block beside what it is. */
interface BlockState {
  /** The text of a call's arguments: the block itself has only what was made of it. */
  readonly raw: RawText;
  isClosed: boolean;
  /** It is not what its deltas say. */
  isCorrected: boolean;
}

/** So many small pieces are worth one larger one. */
const PIECES_A_CHUNK = 256;

/** A text that grows by small deltas and is hardly ever read. */
class RawText {
  readonly #chunks: string[] = [];
  #recent: string[] = [];
  length = 0;

  append(delta: string): void {
    this.length += delta.length;
    this.#recent.push(delta);
    if (this.#recent.length < PIECES_A_CHUNK) return;
    this.#chunks.push(this.#recent.join(""));
    this.#recent = [];
  }

  get value(): string {
    return [...this.#chunks, ...this.#recent].join("");
  }
}

/**
 * One response on its way in: builds the partial message with the accumulator that the
 * providers use. An event that fits no block is passed on and builds nothing; what comes of
 * it is in the end of the message.
 */
export class AssistantReader {
  readonly #out: Accumulator;
  readonly #events = new AssistantMessageEventStream();
  readonly #blocks: BlockState[] = [];

  constructor(head: MessageHead) {
    const { api, provider, model, timestamp } = head;
    this.#out = new Accumulator(this.#events, { id: model, name: model, api, provider }, timestamp);
    // Who has the whole message may give it; its content is for the events to bring.
    Object.assign(this.#out.message, head, { content: [], usage: { ...head.usage } });
    this.#out.start();
    this.#events.take();
  }

  /** The message so far; live, as a provider's. */
  get partial(): AssistantMessage {
    return this.#out.message;
  }

  /** Takes an event and gives it back whole. Throws `ProtocolError` where it makes no sense. */
  read(wire: WireAssistantEvent): BlockEvent {
    const contentIndex = numberIn(wire, "contentIndex");
    const block = this.#blocks[contentIndex];
    const partial = this.partial;
    const out = this.#out;
    switch (wire.type) {
      case "text_start":
      case "thinking_start":
      case "toolcall_start": {
        const { type } = wire;
        if (contentIndex !== partial.content.length) return { type, contentIndex, partial };
        this.#begin();
        if (type === "text_start") out.textStart();
        else if (type === "thinking_start") out.thinkingStart();
        else {
          const signature = wire["signature"];
          const proof = typeof signature === "string" ? [signature] : [];
          out.toolCallStart(stringIn(wire, "id"), stringIn(wire, "name"), ...proof);
        }
        return this.#made({ type, contentIndex, partial });
      }
      case "text_delta":
      case "thinking_delta":
      case "toolcall_delta": {
        const { type } = wire;
        const delta = stringIn(wire, "delta");
        if (type === "text_delta") out.text(contentIndex, delta);
        else if (type === "thinking_delta") out.thinking(contentIndex, delta);
        else out.toolCall(contentIndex, delta);
        const made = this.#events.take();
        if (!made || !isDelta(made)) return { type, contentIndex, delta, partial };
        if (type === "toolcall_delta") block?.raw.append(delta);
        return made;
      }
      case "text_end":
      case "thinking_end": {
        const { type } = wire;
        const { signature, redacted } = wire;
        const proof = {
          ...(typeof signature === "string" && { signature }),
          ...(typeof redacted === "boolean" && { redacted }),
        };
        if (type === "text_end") out.textEnd(contentIndex, proof.signature);
        else out.thinkingEnd(contentIndex, proof);
        const made = this.#made({ type, contentIndex, content: "", partial });
        if (block && this.#isBlock(contentIndex, type)) block.isClosed = true;
        if (typeof wire["content"] !== "string") return made;
        this.correct(contentIndex, wire);
        return { type, contentIndex, content: wire["content"], partial };
      }
      case "toolcall_end": {
        const { type } = wire;
        const { id, name, signature } = wire;
        out.identify(contentIndex, {
          ...(typeof id === "string" && { id }),
          ...(typeof name === "string" && { name }),
          ...(typeof signature === "string" && { signature }),
        });
        out.toolCallEnd(contentIndex);
        const made = this.#events.take();
        if (block && made) block.isClosed = true;
        this.correct(contentIndex, wire);
        const own = partial.content[contentIndex];
        const toolCall = toolCallIn(wire) ?? (own?.type === "toolCall" ? own : undefined);
        if (toolCall) return { type, contentIndex, toolCall, partial };
        throw new ProtocolError("invalid_sequence", `There is no call at ${contentIndex}.`);
      }
      case "service_tool":
      case "image": {
        const content = wire["content"];
        if (!isRecord(content)) throw missing("content", "an object");
        // The type of the event is the type of the block.
        const whole = content as unknown as AssistantContent;
        if (contentIndex === partial.content.length) {
          this.#begin();
          if (whole.type === "serviceTool") out.serviceTool(whole);
          else if (whole.type === "image") out.image(whole);
          else throw missing("content.type", '"serviceTool" or "image"');
        }
        const { type } = wire;
        if (type === "image" && whole.type === "image") {
          return this.#made({ type, contentIndex, content: whole, partial });
        }
        if (type === "service_tool" && whole.type === "serviceTool") {
          return this.#made({ type, contentIndex, content: whole, partial });
        }
        throw missing("content.type", "that of the event");
      }
      default:
        throw new ProtocolError("invalid_request", `"${wire.type}" is no part of a message.`);
    }
  }

  /** Puts in the place of what streamed what the end of a block says instead. */
  correct(contentIndex: number, wire: Payload): void {
    const block = this.partial.content[contentIndex];
    const { content } = wire;
    if (block?.type === "text" && typeof content === "string") block.text = content;
    if (block?.type === "thinking" && typeof content === "string") block.thinking = content;
    const toolCall = toolCallIn(wire);
    const state = this.#blocks[contentIndex];
    if (block?.type !== "toolCall" || !toolCall || !state) return;
    this.partial.content[contentIndex] = toolCall;
    state.isCorrected = true;
  }

  /** The finished message. Throws `ProtocolError` where a block is not as long as it was sent. */
  finish({
    message,
    blocks,
  }: {
    message: MessageHead;
    blocks: readonly unknown[];
  }): AssistantMessage {
    return { ...message, content: blocks.map((block) => this.#finished(block)) };
  }

  /** The blocks of a finished message, by what is here already. */
  blocksOf(content: readonly AssistantContent[]): WireBlock[] {
    let from = 0;
    return content.map((block) => {
      const index = this.partial.content.findIndex((own, at) => at >= from && sameBody(own, block));
      if (index < 0) return { content: block };
      from = index + 1;
      return { index, length: this.#lengthOf(index), ...besidesBody(block) };
    });
  }

  catchUp(): WireAssistantEvent[] {
    return this.partial.content.flatMap((block, contentIndex): WireAssistantEvent[] => {
      if (block.type === "serviceTool")
        return [{ type: "service_tool", contentIndex, content: block }];
      if (block.type === "image") return [{ type: "image", contentIndex, content: block }];
      const state = this.#blocks[contentIndex];
      const isCall = block.type === "toolCall";
      const name = isCall ? "toolcall" : block.type;
      const delta = isCall ? (state?.raw.value ?? "") : bodyOf(block);
      const proof = isCall ? identityOf(block) : { ...proofOf(block), length: delta.length };
      const whole = isCall && state?.isCorrected ? { toolCall: block } : {};
      return [
        { type: `${name}_start`, contentIndex, ...(isCall && proof) },
        ...(delta === "" ? [] : [{ type: `${name}_delta` as const, contentIndex, delta }]),
        ...(state?.isClosed
          ? [{ type: `${name}_end` as const, contentIndex, ...proof, ...whole }]
          : []),
      ];
    });
  }

  #begin(): void {
    this.#blocks.push({ raw: new RawText(), isClosed: false, isCorrected: false });
  }

  #made<E extends BlockEvent>(otherwise: E): E {
    // The accumulator makes one event a call, of the type that was asked for, or none.
    return (this.#events.take() as E | undefined) ?? otherwise;
  }

  #isBlock(contentIndex: number, type: "text_end" | "thinking_end"): boolean {
    return `${this.partial.content[contentIndex]?.type}_end` === type;
  }

  #lengthOf(index: number): number {
    const block = this.partial.content[index];
    if (block?.type === "toolCall") return this.#blocks[index]?.raw.length ?? 0;
    return bodyOf(block).length;
  }

  #finished(block: unknown): AssistantContent {
    if (!isRecord(block)) throw missing("blocks", "a list of objects");
    const { index, length, content, ...light } = block;
    // What did not stream is the sender's word alone.
    if (isRecord(content)) return content as unknown as AssistantContent;
    const own = typeof index === "number" ? this.partial.content[index] : undefined;
    if (typeof index !== "number" || !own) {
      throw new ProtocolError("invalid_sequence", `Block ${String(index)} never came.`);
    }
    if (this.#lengthOf(index) !== length) {
      throw new ProtocolError(
        "invalid_sequence",
        `Block ${index} has a length of ${this.#lengthOf(index)}; ${String(length)} was sent.`,
      );
    }
    return withBody(own, light);
  }
}

function bodyOf(block: AssistantContent | undefined): string {
  if (block?.type === "text") return block.text;
  return block?.type === "thinking" ? block.thinking : "";
}

function sameBody(one: AssistantContent, other: AssistantContent): boolean {
  if (one.type !== other.type) return false;
  if (one.type === "serviceTool" || one.type === "image") return sameJson(one, other);
  if (one.type !== "toolCall" || other.type !== "toolCall") return bodyOf(one) === bodyOf(other);
  if (one.name !== other.name || one.rawArguments !== other.rawArguments) return false;
  return sameJson(one.arguments, other.arguments);
}

function besidesBody(block: AssistantContent): Payload {
  if (block.type === "toolCall") {
    const { type: _, arguments: __, rawArguments: ___, ...light } = block;
    return light;
  }
  return proofOf(block);
}

function withBody(own: AssistantContent, light: Payload): AssistantContent {
  if (own.type === "text") return { ...light, type: own.type, text: own.text };
  if (own.type === "thinking") return { ...light, type: own.type, thinking: own.thinking };
  if (own.type !== "toolCall") return own;
  const { type, arguments: args, rawArguments, id, name } = own;
  const raw = rawArguments === undefined ? {} : { rawArguments };
  return { id, name, ...light, type, arguments: args, ...raw };
}

function toolCallIn(wire: Payload): ToolCall | undefined {
  const { toolCall } = wire;
  // Its arguments are whatever a model wrote: nothing more is known of them.
  return isRecord(toolCall) ? (toolCall as unknown as ToolCall) : undefined;
}

function sameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  try {
    return JSON.stringify(one) === JSON.stringify(other);
  } catch {
    return false;
  }
}

function numberIn(payload: Payload, key: string): number {
  const value = payload[key];
  if (typeof value === "number") return value;
  throw missing(key, "a number");
}

function stringIn(payload: Payload, key: string): string {
  const value = payload[key];
  if (typeof value === "string") return value;
  throw missing(key, "a string");
}

function missing(key: string, what: string): ProtocolError {
  return new ProtocolError("invalid_request", `"${key}" is ${what}.`);
}
