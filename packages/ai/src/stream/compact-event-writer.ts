import type { AssistantMessage } from "../messages/messages.ts";
import {
  type CompactEvent,
  type MessageHead,
  toCompactEvent,
  toErrorFacts,
  toMessageHead,
} from "./compact-event.ts";
import { type CompactEnd, CompactEventReader } from "./compact-event-reader.ts";
import type { AssistantMessageEvent } from "./events.ts";
import { isSameJson } from "./same-json.ts";

/**
 * Writes one response as compact events. It builds what a reader builds, so that the end of the
 * message repeats nothing that streamed, and has everything that did not.
 */
export class CompactEventWriter {
  readonly #mirror: CompactEventReader;

  constructor(head: MessageHead) {
    this.#mirror = new CompactEventReader(head);
  }

  write(event: AssistantMessageEvent): CompactEvent {
    if (event.type === "done") {
      return { type: event.type, reason: event.reason, ...this.writeEnd(event.message) };
    }
    if (event.type === "error") {
      return { type: event.type, ...toErrorFacts(event), ...this.writeEnd(event.error) };
    }
    const compact = toCompactEvent(event);
    if (event.type === "start") return compact;
    const built = this.#mirror.read(compact);
    if (event.type === "text_end" || event.type === "thinking_end") {
      if ("content" in built && built.content === event.content) return compact;
      return this.#correct(event.contentIndex, { ...compact, content: event.content });
    }
    if (event.type === "toolcall_end" && built.type === "toolcall_end") {
      if (isSameJson(built.toolCall, event.toolCall)) return compact;
      return this.#correct(event.contentIndex, { ...compact, toolCall: event.toolCall });
    }
    return compact;
  }

  /** The end of the response. `message` may differ from the one that streamed. */
  writeEnd(message: AssistantMessage): CompactEnd {
    return { message: toMessageHead(message), blocks: this.#mirror.compactBlocks(message.content) };
  }

  /** Events that build the message as far as it was written, each block in one delta. */
  listEvents(): CompactEvent[] {
    return this.#mirror.listEvents();
  }

  #correct(contentIndex: number, compact: CompactEvent): CompactEvent {
    this.#mirror.applyCorrection(contentIndex, compact);
    return compact;
  }
}
