import type { AssistantMessage } from "@gyre/ai";
import type { CompactEvent, MessageHead } from "@gyre/ai/stream";

interface Block {
  readonly start: CompactEvent;
  /** Of a call: the text of its arguments. */
  text: string;
  end?: CompactEvent;
}

/** As much of a message as has streamed. */
export class MessageSoFar {
  readonly head: MessageHead;
  readonly #blocks = new Map<unknown, Block>();

  constructor(head: MessageHead, events: readonly CompactEvent[] = []) {
    this.head = head;
    for (const event of events) this.take(event);
  }

  take(event: CompactEvent): void {
    const { contentIndex, delta, type } = event;
    const block = this.#blocks.get(contentIndex);
    if (typeof delta === "string") {
      if (block) block.text += delta;
    } else if (type.endsWith("_end")) {
      if (block) block.end = event;
    } else if (!block) this.#blocks.set(contentIndex, { start: event, text: "" });
  }

  /** The events that build it, each block in one delta. */
  list(): CompactEvent[] {
    return [...this.#blocks.values()].flatMap((block) => listBlock(block, 0));
  }

  /** The events that lead from here to a later state. Undefined: this is not the beginning of that. */
  listMissing(later: MessageSoFar): CompactEvent[] | undefined {
    const missing: CompactEvent[] = [];
    for (const contentIndex of this.#blocks.keys()) {
      if (!later.#blocks.has(contentIndex)) return undefined;
    }
    for (const [contentIndex, theirs] of later.#blocks) {
      const mine = this.#blocks.get(contentIndex);
      if (!mine) {
        missing.push(...listBlock(theirs, 0));
        continue;
      }
      const isClosed = mine.end !== undefined && (!theirs.end || theirs.text !== mine.text);
      if (mine.start.type !== theirs.start.type || isClosed) return undefined;
      if (!theirs.text.startsWith(mine.text)) return undefined;
      const [, ...rest] = listBlock(theirs, mine.text.length);
      missing.push(...rest.filter(({ type }) => !mine.end || !type.endsWith("_end")));
    }
    return missing;
  }

  /** What is missing of the finished message. Undefined: it is another one. */
  listRest(message: AssistantMessage): CompactEvent[] | undefined {
    const events = message.content.flatMap((block, contentIndex): CompactEvent[] => {
      switch (block.type) {
        case "text": {
          const { text, type: _, ...facts } = block;
          return listText("text", contentIndex, text, facts);
        }
        case "thinking": {
          const { thinking, type: _, ...facts } = block;
          return listText("thinking", contentIndex, thinking, facts);
        }
        case "toolCall": {
          const { id, name } = block;
          const mine = this.#blocks.get(contentIndex);
          // What a call has streamed is known as text alone here, as values alone there.
          const isSame = mine?.end !== undefined && mine.start["id"] === id;
          const delta = isSame ? mine.text : JSON.stringify(block.arguments);
          return [
            { type: "toolcall_start", contentIndex, id, name },
            { type: "toolcall_delta", contentIndex, delta },
            { type: "toolcall_end", contentIndex, id, name, toolCall: block },
          ];
        }
        case "serviceTool":
          return [{ type: "service_tool", contentIndex, content: block }];
        case "image":
        case "file":
          return [{ type: block.type, contentIndex, content: block }];
        default:
          return block satisfies never;
      }
    });
    return this.listMissing(new MessageSoFar(this.head, events));
  }
}

/** Start, the text behind what is there already, and end, as far as they have come. */
function listBlock({ start, text, end }: Block, from: number): CompactEvent[] {
  const { contentIndex } = start;
  const type = start.type.replace("_start", "_delta") as CompactEvent["type"];
  const delta = text.slice(from);
  return [start, ...(delta === "" ? [] : [{ type, contentIndex, delta }]), ...(end ? [end] : [])];
}

function listText(
  kind: "text" | "thinking",
  contentIndex: number,
  text: string,
  facts: object,
): CompactEvent[] {
  return [
    { type: `${kind}_start`, contentIndex },
    { type: `${kind}_delta`, contentIndex, delta: text },
    { type: `${kind}_end`, contentIndex, length: text.length, ...facts },
  ];
}
