import type { ChatModelStreamEvent } from "@langchain/core/language_models/event";
import type { ContentBlock } from "@langchain/core/messages";
import type { Part } from "../peer.ts";

/** Turns parts into the library's events of content blocks, of which one is open at a time. */
export class Blocks {
  hasCalls = false;
  #index = -1;
  /** The call of the open block; none while it is text. */
  #call: { readonly id: string; readonly name: string } | undefined;
  #text = "";

  get isOpen(): boolean {
    return this.#index >= 0;
  }

  /** Whether `part` begins another block. */
  isNext({ type }: Part): boolean {
    return type === "call" || (type === "text" && (!this.isOpen || this.#call !== undefined));
  }

  start(part: Part): ChatModelStreamEvent {
    const index = ++this.#index;
    this.#text = "";
    if (part.type !== "call") {
      this.#call = undefined;
      return { event: "content-block-start", index, content: { type: "text", text: "" } };
    }
    const { id, name } = part;
    this.#call = { id, name };
    this.hasCalls = true;
    const content = { type: "tool_call_chunk", id, name, args: "", index } as const;
    return { event: "content-block-start", index, content };
  }

  /** The protocol has arguments go out as all that came so far. */
  delta({ type, delta }: Exclude<Part, { type: "call" }>): ChatModelStreamEvent {
    this.#text += delta;
    return {
      event: "content-block-delta",
      index: this.#index,
      delta:
        type === "text"
          ? { type: "text-delta", text: delta }
          : { type: "block-delta", fields: { type: "tool_call_chunk", args: this.#text } },
    };
  }

  finish(): ChatModelStreamEvent {
    return { event: "content-block-finish", index: this.#index, content: this.#content() };
  }

  #content(): ContentBlock {
    if (!this.#call) return { type: "text", text: this.#text };
    try {
      return { type: "tool_call", ...this.#call, args: JSON.parse(this.#text) as unknown };
    } catch (error) {
      return { type: "invalid_tool_call", ...this.#call, args: this.#text, error: String(error) };
    }
  }
}
