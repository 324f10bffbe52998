import {
  type AgentEvent,
  type AgentListener,
  type AgentMessage,
  EventState,
  type PendingCall,
} from "@gyre/agent";
import type { AssistantMessage, ToolCall, ToolResultMessage } from "@gyre/ai";
import type { StoreAgent } from "../store/source.ts";

/** An agent that does nothing by itself: a test plays its events. */
export class PlayedAgent implements StoreAgent {
  readonly #state: EventState;
  readonly #listeners = new Set<AgentListener>();
  /** What it was asked to go on with. */
  readonly continued: unknown[] = [];

  constructor(messages: AgentMessage[] = []) {
    this.#state = new EventState(messages);
  }

  get state(): ReturnType<EventState["view"]> {
    return this.#state.view();
  }

  /** How many follow it. */
  get listeners(): number {
    return this.#listeners.size;
  }

  play(event: AgentEvent): void {
    this.#state.apply(event);
    for (const listener of this.#listeners) void listener(event);
  }

  subscribe(listener: AgentListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  prompt(): Promise<void> {
    return Promise.resolve();
  }

  continue(options: Parameters<StoreAgent["continue"]>[0]): Promise<void> {
    this.continued.push(options);
    return Promise.resolve();
  }

  queued(): [] {
    return [];
  }

  takeQueued(): undefined {
    return undefined;
  }

  abort(): void {}

  waitForIdle(): Promise<void> {
    return Promise.resolve();
  }
}

const TEXTS = ["tea ", "green ", "ä🍵", "\n", '"quoted" ', "euros. "];

function createAnswer(): AssistantMessage {
  const model = { api: "played", provider: "played", model: "played" };
  const usage = { input: 1, output: 2 };
  return { role: "assistant", content: [], ...model, usage, stopReason: "stop", timestamp: 0 };
}

/**
 * Random events of conversations that never end, in the order in which an agent has them. Messages and arguments grow in
 * place, as those of services do.
 */
export function* playConversation(random: () => number): Generator<AgentEvent, never> {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const count = (most: number): number => 1 + Math.floor(random() * most);
  let ids = 0;

  function* writeBlock(message: AssistantMessage): Generator<AgentEvent, void> {
    const contentIndex = message.content.length;
    const emit = (
      update: Extract<AgentEvent, { type: "message_update" }>["assistantMessageEvent"],
    ): AgentEvent => ({ type: "message_update", message, assistantMessageEvent: update });
    const at = { contentIndex, partial: message };
    const kind = pick(["text", "text", "thinking", "toolCall"]);
    if (kind === "text") {
      const block = { type: "text" as const, text: "" };
      message.content.push(block);
      yield emit({ type: "text_start", ...at });
      for (let left = count(30); left > 0; left--) {
        const delta = pick(TEXTS);
        block.text += delta;
        yield emit({ type: "text_delta", delta, ...at });
      }
      yield emit({ type: "text_end", content: block.text, ...at });
    } else if (kind === "thinking") {
      const block = { type: "thinking" as const, thinking: "" };
      message.content.push(block);
      yield emit({ type: "thinking_start", ...at });
      for (let left = count(8); left > 0; left--) {
        const delta = pick(TEXTS);
        block.thinking += delta;
        yield emit({ type: "thinking_delta", delta, ...at });
      }
      yield emit({ type: "thinking_end", content: block.thinking, ...at });
    } else {
      const args: Record<string, unknown> = {};
      const id = `call-${ids++}`;
      const block: ToolCall = { type: "toolCall", id, name: pick(["a", "b"]), arguments: args };
      message.content.push(block);
      yield emit({ type: "toolcall_start", ...at });
      for (let left = count(6); left > 0; left--) {
        args[`field${left}`] = [pick(TEXTS)];
        yield emit({ type: "toolcall_delta", delta: "…", ...at });
      }
      yield emit({ type: "toolcall_end", toolCall: block, ...at });
    }
  }

  function* runCall(call: ToolCall): Generator<AgentEvent, ToolResultMessage> {
    const { id: toolCallId, name: toolName, arguments: args } = call;
    const of = { toolCallId, toolName };
    yield { type: "tool_execution_start", args, ...of };
    for (let left = count(3) - 1; left > 0; left--) {
      const partialResult = { content: [{ type: "text" as const, text: pick(TEXTS) }] };
      yield { type: "tool_execution_update", args, partialResult, ...of };
    }
    const outcome = pick(["ok", "ok", "error", "denied"] as const);
    const result = {
      content: [{ type: "text" as const, text: pick(TEXTS) }],
      ...(random() < 0.3 && { details: { tea: pick(TEXTS) } }),
    };
    const isError = outcome !== "ok";
    yield { type: "tool_execution_end", result, outcome, isError, durationMs: 1, ...of };
    return { role: "toolResult", ...of, ...result, isError, outcome, timestamp: 0 };
  }

  for (;;) {
    yield { type: "agent_start" };
    const user: AgentMessage = { role: "user", content: pick(TEXTS), timestamp: 0 };
    yield { type: "message_start", message: user };
    yield { type: "message_end", message: user };
    let pending: PendingCall[] = [];
    for (let turns = count(4); turns > 0; turns--) {
      yield { type: "turn_start" };
      const message = createAnswer();
      yield { type: "message_start", message };
      for (let left = count(4); left > 0; left--) yield* writeBlock(message);
      const calls = message.content.filter((block) => block.type === "toolCall");
      // An agent keeps what it has streamed, or a copy of it.
      const failed = random() < 0.1;
      const end = failed
        ? { ...message, stopReason: pick(["error", "aborted"] as const), errorMessage: "Full." }
        : pick([message, { ...message }]);
      yield { type: "message_end", message: end };
      const isAsked = turns === 1 && random() < 0.3;
      const toolResults: ToolResultMessage[] = [];
      if (isAsked) pending = calls.map((toolCall) => ({ toolCall, reason: "It costs." }));
      else {
        for (const call of calls) {
          const result = yield* runCall(call);
          toolResults.push(result);
          yield { type: "message_start", message: result };
          yield { type: "message_end", message: result };
        }
      }
      if (random() < 0.1) {
        yield { type: "retry", attempt: 1, delayMs: 1, kind: "overloaded", errorMessage: "Full." };
      }
      yield { type: "turn_end", message: end, toolResults };
    }
    const stop = pending.length > 0 ? "suspended" : "done";
    const totals = { messages: [], turns: 1, usage: { input: 1 }, undelivered: [] };
    yield { type: "agent_end", stop, pending, ...totals };
  }
}
