import {
  type AgentEndEvent,
  type AgentEvent,
  type AgentMessage,
  type AgentToolResult,
  isLlmMessage,
} from "@gyre/agent";
import type {
  AssistantContent,
  AssistantMessage,
  AssistantMessageEvent,
  FileContent,
  ImageContent,
  ServiceToolContent,
  TextContent,
  ThinkingContent,
  ToolCall,
  ToolOutcome,
  ToolResultMessage,
  UserMessage,
} from "@gyre/ai";

/** A block that grows while it streams. */
export type GrowingBlock = TextContent | ThinkingContent;

type Status = Extract<
  AgentEvent,
  { type: "retry" | "waiting" | "fallback" | "compaction" | "limit" }
>;

/**
 * What a page is shown of a run, whatever protocol it speaks. Every block that begins ends, and a
 * call is `call` once it is certain that it stays in the transcript: until then it may be `dropped`.
 */
export type Part =
  /** An answer begins. */
  | { type: "step_start" }
  | { type: "block_start"; id: string; kind: GrowingBlock["type"] }
  | { type: "block_delta"; id: string; kind: GrowingBlock["type"]; delta: string }
  | { type: "block_end"; id: string; block: GrowingBlock }
  | { type: "call_start"; id: string; name: string }
  | { type: "call_delta"; id: string; delta: string }
  | { type: "call"; call: ToolCall; isStreamed: boolean }
  /** The arguments of a call were cut off: it is not in the transcript. */
  | { type: "dropped"; id: string; name: string; text: string }
  | { type: "service_tool"; id: string; block: ServiceToolContent }
  | { type: "file"; block: ImageContent | FileContent }
  | { type: "step_end"; message: AssistantMessage }
  | { type: "progress"; id: string; name: string; result: AgentToolResult }
  | { type: "result"; id: string; name: string; result: AgentToolResult; outcome: ToolOutcome }
  /** The same result as it is in the transcript. */
  | { type: "result_message"; message: ToolResultMessage }
  /** The user's message is delivered: a prompt, or one that steers. */
  | { type: "user"; message: UserMessage }
  | { type: "status"; event: Status }
  | { type: "end"; end: AgentEndEvent };

interface StreamedCall {
  kind: "call";
  id: string;
  name: string;
  text: string;
  isOpen: boolean;
}
interface StreamedBlock {
  kind: GrowingBlock["type"];
  id: string;
  text: string;
  isOpen: boolean;
}
type Streamed = StreamedCall | StreamedBlock | { kind: "whole" };

/** Makes parts of the events of one run. */
export class PartReader {
  #steps: number;
  #streamed = new Map<number, Streamed>();
  #isOpen = false;
  /** The rest of the answer is shown when it is whole, in its order. */
  #isHeld = false;
  /** The ids of calls of the transcript: a service may use one twice, and the loop renames the second. */
  readonly #ids = new Set<string>();

  /** `steps`: how many answers the page shows in this message already. `history`: what came before the run. */
  constructor({
    steps = 0,
    history = [],
  }: { steps?: number; history?: readonly AgentMessage[] } = {}) {
    this.#steps = steps;
    for (const message of history) {
      if (isLlmMessage(message) && message.role === "assistant") this.#noteCalls(message);
    }
  }

  read(event: AgentEvent): Part[] {
    switch (event.type) {
      case "message_start": {
        if (!isAssistant(event.message)) return [];
        this.#streamed.clear();
        this.#isOpen = true;
        return [{ type: "step_start" }];
      }
      case "message_update":
        return this.#update(event.assistantMessageEvent);
      case "message_end":
        return this.#endMessage(event.message);
      case "tool_execution_update": {
        const { toolCallId: id, toolName: name, partialResult: result } = event;
        return [{ type: "progress", id, name, result }];
      }
      case "tool_execution_end": {
        const { toolCallId: id, toolName: name, result, outcome } = event;
        return [{ type: "result", id, name, result, outcome }];
      }
      case "retry":
      case "waiting":
      case "fallback":
      case "compaction":
      case "limit":
        return [{ type: "status", event }];
      case "agent_end":
        return [{ type: "end", end: event }];
      default:
        return [];
    }
  }

  #update(event: AssistantMessageEvent): Part[] {
    if (!("contentIndex" in event)) return [];
    const { contentIndex: at } = event;
    switch (event.type) {
      case "text_start":
      case "thinking_start":
        return this.#beginBlock(at, event.type === "text_start" ? "text" : "thinking");
      case "text_delta":
      case "thinking_delta": {
        const block = this.#streamed.get(at);
        if (!block || block.kind === "call" || block.kind === "whole") return [];
        block.text += event.delta;
        return [{ type: "block_delta", id: block.id, kind: block.kind, delta: event.delta }];
      }
      case "text_end":
      case "thinking_end": {
        const block = this.#streamed.get(at);
        const whole = event.partial.content[at];
        if (!block || block.kind === "call" || block.kind === "whole" || !isGrowing(whole))
          return [];
        block.isOpen = false;
        return endBlock(block, whole);
      }
      case "toolcall_start":
        return this.#beginCall(at, event.partial.content[at]);
      case "toolcall_delta": {
        const call = this.#streamed.get(at);
        if (call?.kind !== "call") return [];
        call.text += event.delta;
        return [{ type: "call_delta", id: call.id, delta: event.delta }];
      }
      case "toolcall_end": {
        const call = this.#streamed.get(at);
        if (call?.kind === "call") call.isOpen = false;
        return [];
      }
      case "service_tool":
      case "image":
      case "file":
        if (this.#isHeld) return [];
        this.#streamed.set(at, { kind: "whole" });
        return [this.#showWhole(at, event.content)];
      default:
        event satisfies never;
        return [];
    }
  }

  #beginBlock(at: number, kind: GrowingBlock["type"]): Part[] {
    if (this.#isHeld) return [];
    const id = this.#nameBlock(at);
    this.#streamed.set(at, { kind, id, text: "", isOpen: true });
    return [{ type: "block_start", id, kind }];
  }

  #beginCall(at: number, block: AssistantContent | undefined): Part[] {
    const { id, name } = block?.type === "toolCall" ? block : { id: "", name: "" };
    const isUsed = [...this.#streamed.values()].some((one) => one.kind === "call" && one.id === id);
    // The call gets another id, or has no name yet.
    if (id === "" || name === "" || this.#ids.has(id) || isUsed) this.#isHeld = true;
    if (this.#isHeld) return [];
    this.#streamed.set(at, { kind: "call", id, name, text: "", isOpen: true });
    return [{ type: "call_start", id, name }];
  }

  #showWhole(at: number, block: ServiceToolContent | ImageContent | FileContent): Part {
    if (block.type !== "serviceTool") return { type: "file", block };
    return { type: "service_tool", id: `service-${this.#nameBlock(at)}`, block };
  }

  #nameBlock(at: number): string {
    return `${this.#steps}.${at}`;
  }

  #endMessage(message: AgentMessage): Part[] {
    if (!isLlmMessage(message)) return [];
    if (message.role === "user") return [{ type: "user", message }];
    if (message.role === "toolResult") return [{ type: "result_message", message }];
    const parts: Part[] = this.#isOpen ? [] : [{ type: "step_start" }];
    // The loop takes calls that were cut off out of the message; all else keeps its order.
    const content = [...message.content];
    for (const [at, streamed] of [...this.#streamed].toSorted(([a], [b]) => a - b)) {
      if (streamed.kind === "call" && isDropped(streamed, message)) {
        const { id, name, text } = streamed;
        parts.push({ type: "dropped", id, name, text });
        continue;
      }
      const block = content.shift();
      if (block) parts.push(...this.#settle(at, block, streamed));
    }
    this.#isHeld = false;
    let at = this.#streamed.size;
    for (const block of content) parts.push(...this.#settle(at++, block));
    this.#noteCalls(message);
    this.#isOpen = false;
    this.#streamed.clear();
    this.#steps++;
    parts.push({ type: "step_end", message });
    return parts;
  }

  /** What is left to say of a block when its message is whole. */
  #settle(at: number, block: AssistantContent, streamed?: Streamed): Part[] {
    if (block.type === "toolCall") {
      if (streamed?.kind !== "call") {
        return [{ type: "call", call: block, isStreamed: false }];
      }
      const { id, name, text } = streamed;
      if (id === block.id) return [{ type: "call", call: block, isStreamed: true }];
      return [
        { type: "dropped", id, name, text },
        { type: "call", call: block, isStreamed: false },
      ];
    }
    if (block.type === "text" || block.type === "thinking") {
      if (streamed && streamed.kind !== "call" && streamed.kind !== "whole") {
        return streamed.isOpen ? endBlock(streamed, block) : [];
      }
      const started = this.#beginBlock(at, block.type);
      const begun = this.#streamed.get(at);
      return begun?.kind === block.type ? [...started, ...endBlock(begun, block)] : started;
    }
    return streamed ? [] : [this.#showWhole(at, block)];
  }

  #noteCalls(message: AssistantMessage): void {
    for (const block of message.content) if (block.type === "toolCall") this.#ids.add(block.id);
  }
}

/** The end of a block, after what of it was not streamed. */
function endBlock({ id, kind, text }: StreamedBlock, block: GrowingBlock): Part[] {
  const whole = block.type === "text" ? block.text : block.thinking;
  const rest = whole.startsWith(text) ? whole.slice(text.length) : "";
  const end: Part = { type: "block_end", id, block };
  return rest === "" ? [end] : [{ type: "block_delta", id, kind, delta: rest }, end];
}

/** Whether the loop has taken a call out of its message, which was cut off. */
function isDropped({ isOpen }: StreamedCall, { stopReason }: AssistantMessage): boolean {
  if (stopReason === "redirected") return true;
  return isOpen && (stopReason === "error" || stopReason === "aborted");
}

function isGrowing(block: AssistantContent | undefined): block is GrowingBlock {
  return block?.type === "text" || block?.type === "thinking";
}

function isAssistant(message: AgentMessage): message is AssistantMessage {
  return isLlmMessage(message) && message.role === "assistant";
}
