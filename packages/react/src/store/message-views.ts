import { type AgentMessage, type EventView, isLlmMessage } from "@gyre/agent";
import type { AssistantMessage, ToolCall, ToolResultMessage } from "@gyre/ai";
import { keepEqual } from "./keep-equal.ts";
import {
  type OpenCall,
  toBlockParts,
  toEndedCall,
  toErrorPart,
  toOpenCall,
  toUserParts,
  toWrittenCall,
} from "./parts.ts";
import type { ViewMessage, ViewPart } from "./view-message.ts";

/** What is said of a call that has no result, by its id. */
export type ReadOpenCall = (id: string) => OpenCall;

interface Shown {
  readonly message: AgentMessage;
  /** The results of its calls, in the order of the calls. */
  readonly results: readonly (ToolResultMessage | undefined)[];
  view: ViewMessage;
}

type Blocks = readonly (readonly ViewPart[])[];

/**
 * The messages of an agent as a page shows them. `EventState` has made state of the events; this shows that
 * state. A message that has not changed keeps its object. A delta costs the block that it is for: the transcript is
 * looked through when a message was added, and not before.
 */
export class MessageViews {
  #from: readonly AgentMessage[] | undefined;
  #shown: Shown[] = [];
  #settled: readonly ViewMessage[] = [];
  /** Of `#shown`, the places of messages with calls that have no result. */
  #open: number[] = [];
  #userCount = 0;
  #streamed: { message: AgentMessage; blocks: Blocks; view: ViewMessage } | undefined;
  /** Blocks of the streamed message that have changed since it was last shown. */
  #changed = new Set<number>();
  /** How many messages were shown again, for tests of what a delta costs. */
  made = 0;

  /** How many messages of users are in the transcript. */
  get userCount(): number {
    return this.#userCount;
  }

  /** The messages of the transcript. */
  get settled(): readonly ViewMessage[] {
    return this.#settled;
  }

  /** The message that streams. */
  get streamed(): ViewMessage | undefined {
    return this.#streamed?.view;
  }

  /** A block of the streamed message has changed. */
  touch(contentIndex: number): void {
    this.#changed.add(contentIndex);
  }

  update(state: Pick<EventView, "messages" | "streamMessage">, readOpen: ReadOpenCall): void {
    if (this.#from !== state.messages) {
      this.#from = state.messages;
      this.#showAll(state.messages, readOpen);
    } else this.#showOpen(readOpen);
    this.#showStreamed(state.streamMessage);
  }

  #showAll(messages: readonly AgentMessage[], readOpen: ReadOpenCall): void {
    const results = new Map<string, ToolResultMessage>();
    for (const message of messages) {
      if (isLlmMessage(message) && message.role === "toolResult") {
        results.set(message.toolCallId, message);
      }
    }
    const before = this.#shown;
    const streamed = this.#streamed;
    this.#shown = [];
    this.#open = [];
    this.#userCount = 0;
    for (const message of messages) {
      if (isLlmMessage(message)) {
        if (message.role === "toolResult") continue;
        if (message.role === "user") this.#userCount++;
      }
      const at = this.#shown.length;
      const own = listCalls(message).map(({ id }) => results.get(id));
      const known = before[at];
      const isKnown = known?.message === message && isSameList(known.results, own);
      if (isKnown && !own.includes(undefined)) {
        this.#shown.push(known);
        continue;
      }
      const last =
        known?.view ?? (streamed?.view.id === nameMessage(at) ? streamed.view : undefined);
      if (own.includes(undefined)) this.#open.push(at);
      const view = this.#show(message, at, own, readOpen, last);
      this.#shown.push({ message, results: own, view });
    }
    this.#settled = keepEqual(
      this.#settled,
      this.#shown.map(({ view }) => view),
    );
  }

  /** Shows what has become of calls that have no result yet. */
  #showOpen(readOpen: ReadOpenCall): void {
    let hasChanged = false;
    for (const at of this.#open) {
      const shown = this.#shown[at];
      if (!shown) continue;
      const view = this.#show(shown.message, at, shown.results, readOpen, shown.view);
      hasChanged ||= view !== shown.view;
      shown.view = view;
    }
    if (hasChanged) this.#settled = this.#shown.map(({ view }) => view);
  }

  #show(
    message: AgentMessage,
    at: number,
    results: Shown["results"],
    readOpen: ReadOpenCall,
    before: ViewMessage | undefined,
  ): ViewMessage {
    this.made++;
    const of = { id: nameMessage(at), timestamp: message.timestamp };
    if (!isLlmMessage(message) || message.role === "toolResult") {
      return { ...of, role: "custom", parts: [{ type: "custom", message }], state: "done" };
    }
    if (message.role === "user") {
      const parts = toUserParts(message.content);
      return keepView(before, { ...of, role: "user", parts, state: "done" });
    }
    let call = 0;
    const parts = message.content.flatMap((block): ViewPart[] => {
      if (block.type !== "toolCall") return toBlockParts(block, false);
      const result = results[call++];
      return result ? toEndedCall(block, result) : [toOpenCall(block, readOpen(block.id))];
    });
    const error = toErrorPart(message);
    if (error) parts.push(error);
    const state = readState(message);
    return keepView(before, { ...of, role: "assistant", parts, state });
  }

  #showStreamed(message: AgentMessage | undefined): void {
    const at = this.#shown.length;
    if (!message || !isAssistant(message)) {
      this.#streamed = undefined;
      this.#changed.clear();
      return;
    }
    const id = nameMessage(at);
    const before =
      this.#streamed?.message === message && this.#streamed.view.id === id
        ? this.#streamed
        : undefined;
    const { content, timestamp } = message;
    const isSame = before && this.#changed.size === 0 && before.blocks.length === content.length;
    if (isSame) return;
    this.made++;
    const last = content.length - 1;
    const blocks = content.map((block, index) => {
      const known = before?.blocks[index];
      // The block before the newest one ends when that begins.
      const mayChange = this.#changed.has(index) || index >= (before?.blocks.length ?? 0) - 1;
      if (known && !mayChange) return known;
      const parts =
        block.type === "toolCall" ? [toWrittenCall(block)] : toBlockParts(block, index === last);
      return keepParts(known, parts);
    });
    this.#changed.clear();
    const view: ViewMessage = {
      id,
      role: "assistant",
      parts: blocks.flat(),
      state: "streaming",
      timestamp,
    };
    this.#streamed = { message, blocks, view };
  }
}

/** The key of the message at a place. A prompt that is shown before it is delivered has the key that it keeps. */
export function nameMessage(at: number): string {
  return `m${at}`;
}

function readState({ stopReason }: AssistantMessage): ViewMessage["state"] {
  if (stopReason === "error") return "failed";
  return stopReason === "aborted" ? "aborted" : "done";
}

function keepView(before: ViewMessage | undefined, now: ViewMessage): ViewMessage {
  const parts = keepParts(before?.parts, now.parts);
  return keepEqual(before, { ...now, parts });
}

function keepParts(
  before: readonly ViewPart[] | undefined,
  now: readonly ViewPart[],
): readonly ViewPart[] {
  return keepEqual(
    before,
    now.map((part, index) => keepEqual(before?.[index], part)),
  );
}

function listCalls(message: AgentMessage): ToolCall[] {
  if (!isAssistant(message)) return [];
  return message.content.filter((block): block is ToolCall => block.type === "toolCall");
}

function isAssistant(message: AgentMessage): message is AssistantMessage {
  return isLlmMessage(message) && message.role === "assistant";
}

function isSameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
