import type { AgentEvent } from "@gyre/agent";
import type { AssistantMessage, AssistantMessageEvent } from "@gyre/ai";
import type { World } from "../world/world.ts";
import { isIncomplete } from "./transcript.ts";

interface ReplayedBlock {
  type: "text" | "thinking" | "toolCall" | "other";
  text: string;
  ended: boolean;
}

const BLOCK_TYPES = {
  text_start: "text",
  thinking_start: "thinking",
  toolcall_start: "toolCall",
} as const;

/** Builds each assistant message again from its updates, and compares. */
export class Replay {
  readonly #world: World;
  #blocks: ReplayedBlock[] = [];
  #updates = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** `whole`: nothing of the answer was to be ignored. */
  take(event: AgentEvent, whole: boolean): void {
    if (event.type === "message_start") {
      this.#blocks = [];
      this.#updates = 0;
    } else if (event.type === "message_update") {
      this.#updates++;
      if (whole) this.#update(event.assistantMessageEvent);
    } else if (event.type === "message_end" && event.message.role === "assistant") {
      if (whole && this.#updates > 0) this.#compare(event.message);
    }
  }

  #update(event: AssistantMessageEvent): void {
    switch (event.type) {
      case "text_start":
      case "thinking_start":
      case "toolcall_start":
        if (event.contentIndex !== this.#blocks.length) this.#fail("a block begins out of order");
        this.#blocks.push({ type: BLOCK_TYPES[event.type], text: "", ended: false });
        return;
      case "text_delta":
      case "thinking_delta":
      case "toolcall_delta":
      case "text_end":
      case "thinking_end":
      case "toolcall_end": {
        const block = this.#blocks[event.contentIndex];
        if (!block || block.ended) this.#fail(`a ${event.type} comes for a block that is not open`);
        else if ("delta" in event) block.text += event.delta;
        else block.ended = true;
        return;
      }
      case "service_tool":
      case "image":
        this.#blocks.push({ type: "other", text: "", ended: true });
        return;
      default:
        this.#fail(`message_update carries ${event.type}`);
    }
  }

  #compare(message: AssistantMessage): void {
    const dropsCalls = message.stopReason === "redirected";
    const kept = this.#blocks.filter((block) => {
      if (block.type !== "toolCall" || !isIncomplete(message)) return true;
      return block.ended && !dropsCalls;
    });
    const replayed = kept.map((block) => `${block.type} ${block.text}`);
    const final = message.content.map((block, index) => {
      if (block.type === "text") return `text ${block.text}`;
      if (block.type === "thinking") return `thinking ${block.thinking}`;
      // What arguments come to is the accumulator's matter; that the call is there is ours.
      return block.type === "toolCall" ? `toolCall ${kept[index]?.text}` : "other ";
    });
    if (replayed.join("\n") === final.join("\n")) return;
    this.#fail(
      `the deltas make ${JSON.stringify(replayed)}, the message is ${JSON.stringify(final)}`,
    );
  }

  #fail(text: string): void {
    this.#world.fail("replay", text);
  }
}
