import { estimateMessageTokens, type Message, type ToolResultMessage } from "@gyre/ai";
import type { Compaction, ContextConfig } from "../contract/compaction.ts";
import type { AgentMessage } from "../contract/types.ts";
import { isLlmMessage, isToolResult } from "../transcript/history.ts";

/**
 * What the runs over one transcript have computed of its messages. An `Agent` keeps it from run
 * to run, so that a long transcript is measured and summarized once.
 */
export class ContextMemory {
  readonly #convertMessage: ContextConfig["convertMessage"];
  readonly #sizes = new WeakMap<AgentMessage, number>();
  readonly #shortForms = new WeakMap<AgentMessage, ToolResultMessage>();
  readonly #summaries = new WeakMap<
    AgentMessage,
    { base: Compaction | undefined; summary: string }
  >();

  constructor({ convertMessage }: ContextConfig = {}) {
    this.#convertMessage = convertMessage;
  }

  /** Estimates the tokens of a message, as the model reads it. */
  countTokens(message: AgentMessage): number {
    let size = this.#sizes.get(message);
    if (size === undefined) {
      const read = this.toRead(message);
      size = read ? estimateMessageTokens(read) : 0;
      this.#sizes.set(message, size);
    }
    return size;
  }

  /** What a model reads of a message. Throws what the application's function throws. */
  toRead(message: AgentMessage): Message | undefined {
    return isLlmMessage(message) ? message : this.#convertMessage?.(message);
  }

  /** A message as it is sent: the same object each time, so that lists can be compared. */
  toSent(message: AgentMessage, shortened: Compaction["shortened"]): AgentMessage {
    if (!shortened || !isToolResult(message)) return message;
    const { toolCallId: id } = message;
    const text = Object.hasOwn(shortened, id) ? shortened[id] : undefined;
    if (text === undefined || hasOnlyText(message, text)) return message;
    const known = this.#shortForms.get(message);
    if (known && hasOnlyText(known, text)) return known;
    const short: ToolResultMessage = { ...message, content: [{ type: "text", text }] };
    this.#shortForms.set(message, short);
    return short;
  }

  /** Keeps a summary of everything behind `base` up to and including `last`. */
  storeSummary(last: AgentMessage, base: Compaction | undefined, summary: string): void {
    this.#summaries.set(last, { base, summary });
  }

  /** The summary that ends with `last` and continues `base`, if one was made. */
  findSummary(last: AgentMessage, base: Compaction | undefined): string | undefined {
    const found = this.#summaries.get(last);
    return found?.base === base ? found?.summary : undefined;
  }
}

function hasOnlyText({ content }: ToolResultMessage, text: string): boolean {
  const [only] = content;
  return content.length === 1 && only?.type === "text" && only.text === text;
}
