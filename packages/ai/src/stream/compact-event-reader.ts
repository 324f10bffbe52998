import { isRecord } from "../common/records.ts";
import type {
  AssistantContent,
  AssistantMessage,
  Citation,
  ToolCall,
} from "../messages/messages.ts";
import { Accumulator } from "./accumulate.ts";
import { AssistantMessageEventStream, isDelta } from "./assistant-stream.ts";
import {
  type BlockEvent,
  type CompactEvent,
  type MessageHead,
  toBlockFacts,
  toCallFacts,
} from "./compact-event.ts";
import { isSameJson } from "./same-json.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A compact event that cannot be read: not valid by itself, or not after those before it. */
export class CompactEventError extends Error {
  readonly code: "invalid_request" | "invalid_sequence";

  constructor(code: CompactEventError["code"], message: string) {
    super(message);
    this.name = "CompactEventError";
    this.code = code;
  }
}

/**
 * A block of a finished message. One that streamed: its length in UTF-16 code units (of a call:
 * of the text of its arguments) and everything beside its text. One that did not: whole.
 */
export type CompactBlock =
  | ({ index: number; length: number } & Fields)
  | { content: AssistantContent };

/** The end of a response: everything that the deltas did not have. */
export interface CompactEnd {
  message: MessageHead;
  blocks: CompactBlock[];
}

/** What is known of a block beside its content. */
interface BlockState {
  /** The text of a call's arguments: the block has only the parsed ones. */
  readonly raw: RawText;
  isClosed: boolean;
  /** Its end replaced what its deltas had. */
  isCorrected: boolean;
}

/** How many small pieces are joined into one. */
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
 * Reads one response from compact events: builds the partial message with the accumulator that
 * the providers use. An event that fits no block is passed on and builds nothing; its effect is
 * in the end of the message.
 */
export class CompactEventReader {
  readonly #out: Accumulator;
  readonly #events = new AssistantMessageEventStream();
  readonly #blocks: BlockState[] = [];

  constructor(head: MessageHead) {
    const { api, provider, model, timestamp } = head;
    this.#out = new Accumulator(this.#events, { id: model, name: model, api, provider }, timestamp);
    // `head` may be a whole message: the content comes with the events.
    Object.assign(this.#out.message, head, { content: [], usage: { ...head.usage } });
    this.#out.start();
    this.#events.take();
  }

  /** The live message, as in a provider's events. */
  get partial(): AssistantMessage {
    return this.#out.message;
  }

  /** Returns the whole event. Throws `CompactEventError` for one that is not valid here. */
  read(event: CompactEvent): BlockEvent {
    const contentIndex = readNumber(event, "contentIndex");
    const block = this.#blocks[contentIndex];
    const partial = this.partial;
    const out = this.#out;
    switch (event.type) {
      case "text_start":
      case "thinking_start":
      case "toolcall_start": {
        const { type } = event;
        if (contentIndex !== partial.content.length) return { type, contentIndex, partial };
        this.#begin();
        if (type === "text_start") out.textStart();
        else if (type === "thinking_start") out.thinkingStart();
        else {
          const signature = event["signature"];
          const proof = typeof signature === "string" ? [signature] : [];
          out.toolCallStart(readString(event, "id"), readString(event, "name"), ...proof);
        }
        return this.#takeEvent({ type, contentIndex, partial });
      }
      case "text_delta":
      case "thinking_delta":
      case "toolcall_delta": {
        const { type } = event;
        const delta = readString(event, "delta");
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
        const { type } = event;
        const { citations, signature, redacted } = event;
        const proof = {
          ...(typeof signature === "string" && { signature }),
          ...(typeof redacted === "boolean" && { redacted }),
        };
        if (type === "text_end") {
          // What is in them is checked by no reader: services invent new kinds.
          const cited = Array.isArray(citations) ? (citations as Citation[]) : [];
          out.textEnd(contentIndex, proof.signature, cited);
        } else out.thinkingEnd(contentIndex, proof);
        const made = this.#takeEvent({ type, contentIndex, content: "", partial });
        if (block && this.#isBlock(contentIndex, type)) block.isClosed = true;
        if (typeof event["content"] !== "string") return made;
        this.applyCorrection(contentIndex, event);
        return { type, contentIndex, content: event["content"], partial };
      }
      case "toolcall_end": {
        const { type } = event;
        const { id, name, signature } = event;
        out.identify(contentIndex, {
          ...(typeof id === "string" && { id }),
          ...(typeof name === "string" && { name }),
          ...(typeof signature === "string" && { signature }),
        });
        out.toolCallEnd(contentIndex);
        const made = this.#events.take();
        if (block && made) block.isClosed = true;
        this.applyCorrection(contentIndex, event);
        const own = partial.content[contentIndex];
        const toolCall = readToolCall(event) ?? (own?.type === "toolCall" ? own : undefined);
        if (toolCall) return { type, contentIndex, toolCall, partial };
        throw new CompactEventError("invalid_sequence", `There is no call at ${contentIndex}.`);
      }
      case "service_tool":
      case "image":
      case "file": {
        const content = event["content"];
        if (!isRecord(content)) throw createFieldError("content", "an object");
        // The type of the event is the type of the block.
        const whole = content as unknown as AssistantContent;
        if (contentIndex === partial.content.length) {
          this.#begin();
          if (whole.type === "serviceTool") out.serviceTool(whole);
          else if (whole.type === "image") out.image(whole);
          else if (whole.type === "file") out.file(whole);
          else throw createFieldError("content.type", '"serviceTool", "image" or "file"');
        }
        const { type } = event;
        if (type === "image" && whole.type === "image") {
          return this.#takeEvent({ type, contentIndex, content: whole, partial });
        }
        if (type === "file" && whole.type === "file") {
          return this.#takeEvent({ type, contentIndex, content: whole, partial });
        }
        if (type === "service_tool" && whole.type === "serviceTool") {
          return this.#takeEvent({ type, contentIndex, content: whole, partial });
        }
        throw createFieldError("content.type", "that of the event");
      }
      default:
        throw new CompactEventError(
          "invalid_request",
          `"${event.type}" is not an event of a message's content.`,
        );
    }
  }

  /** Replaces what streamed with what the end of a block has instead. */
  applyCorrection(contentIndex: number, event: Fields): void {
    const block = this.partial.content[contentIndex];
    const { content } = event;
    if (block?.type === "text" && typeof content === "string") block.text = content;
    if (block?.type === "thinking" && typeof content === "string") block.thinking = content;
    const toolCall = readToolCall(event);
    const state = this.#blocks[contentIndex];
    if (block?.type !== "toolCall" || !toolCall || !state) return;
    this.partial.content[contentIndex] = toolCall;
    state.isCorrected = true;
  }

  /** The finished message. Throws `CompactEventError` if a block has another length than was sent. */
  finish({
    message,
    blocks,
  }: {
    message: MessageHead;
    blocks: readonly unknown[];
  }): AssistantMessage {
    return { ...message, content: blocks.map((block) => this.#finishBlock(block)) };
  }

  /** The blocks of a finished message, as references to what has streamed already. */
  compactBlocks(content: readonly AssistantContent[]): CompactBlock[] {
    let from = 0;
    return content.map((block) => {
      const index = this.partial.content.findIndex(
        (own, at) => at >= from && hasSameBody(own, block),
      );
      if (index < 0) return { content: block };
      from = index + 1;
      return { index, length: this.#readLength(index), ...toFacts(block) };
    });
  }

  listEvents(): CompactEvent[] {
    return this.partial.content.flatMap((block, contentIndex): CompactEvent[] => {
      if (block.type === "serviceTool")
        return [{ type: "service_tool", contentIndex, content: block }];
      if (block.type === "image" || block.type === "file")
        return [{ type: block.type, contentIndex, content: block }];
      const state = this.#blocks[contentIndex];
      const isCall = block.type === "toolCall";
      const name = isCall ? "toolcall" : block.type;
      const delta = isCall ? (state?.raw.value ?? "") : readText(block);
      const proof = isCall ? toCallFacts(block) : { ...toBlockFacts(block), length: delta.length };
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

  #takeEvent<E extends BlockEvent>(fallback: E): E {
    // The accumulator makes at most one event for each method that is called.
    return (this.#events.take() as E | undefined) ?? fallback;
  }

  #isBlock(contentIndex: number, type: "text_end" | "thinking_end"): boolean {
    return `${this.partial.content[contentIndex]?.type}_end` === type;
  }

  #readLength(index: number): number {
    const block = this.partial.content[index];
    if (block?.type === "toolCall") return this.#blocks[index]?.raw.length ?? 0;
    return readText(block).length;
  }

  #finishBlock(block: unknown): AssistantContent {
    if (!isRecord(block)) throw createFieldError("blocks", "a list of objects");
    const { index, length, content, ...light } = block;
    // A block that did not stream cannot be checked.
    if (isRecord(content)) return content as unknown as AssistantContent;
    const own = typeof index === "number" ? this.partial.content[index] : undefined;
    if (typeof index !== "number" || !own) {
      throw new CompactEventError("invalid_sequence", `Block ${String(index)} never came.`);
    }
    if (this.#readLength(index) !== length) {
      throw new CompactEventError(
        "invalid_sequence",
        `Block ${index} has a length of ${this.#readLength(index)}; ${String(length)} was sent.`,
      );
    }
    return restoreBlock(own, light);
  }
}

function readText(block: AssistantContent | undefined): string {
  if (block?.type === "text") return block.text;
  return block?.type === "thinking" ? block.thinking : "";
}

function hasSameBody(one: AssistantContent, other: AssistantContent): boolean {
  if (one.type !== other.type) return false;
  if (one.type === "serviceTool" || one.type === "image" || one.type === "file")
    return isSameJson(one, other);
  if (one.type !== "toolCall" || other.type !== "toolCall")
    return readText(one) === readText(other);
  if (one.name !== other.name || one.rawArguments !== other.rawArguments) return false;
  return isSameJson(one.arguments, other.arguments);
}

function toFacts(block: AssistantContent): object {
  if (block.type === "toolCall") {
    const { type: _, arguments: __, rawArguments: ___, ...light } = block;
    return light;
  }
  return toBlockFacts(block);
}

function restoreBlock(own: AssistantContent, light: Fields): AssistantContent {
  if (own.type === "text") return { ...light, type: own.type, text: own.text };
  if (own.type === "thinking") return { ...light, type: own.type, thinking: own.thinking };
  if (own.type !== "toolCall") return own;
  const { type, arguments: args, rawArguments, id, name } = own;
  const raw = rawArguments === undefined ? {} : { rawArguments };
  return { id, name, ...light, type, arguments: args, ...raw };
}

function readToolCall(event: Fields): ToolCall | undefined {
  const { toolCall } = event;
  // Its arguments are whatever a model wrote: there is nothing to check.
  return isRecord(toolCall) ? (toolCall as unknown as ToolCall) : undefined;
}

function readNumber(payload: Fields, key: string): number {
  const value = payload[key];
  if (typeof value === "number") return value;
  throw createFieldError(key, "a number");
}

function readString(payload: Fields, key: string): string {
  const value = payload[key];
  if (typeof value === "string") return value;
  throw createFieldError(key, "a string");
}

function createFieldError(key: string, what: string): CompactEventError {
  return new CompactEventError("invalid_request", `"${key}" is ${what}.`);
}
