import type { AgentEvent, AgentMessage, AgentToolResult, PendingCall } from "@gyre/agent";
import type { AssistantMessage, Message, ToolCall, ToolResultMessage } from "@gyre/ai";
import type { World } from "../world/world.ts";

export function listCalls(message: AgentMessage): ToolCall[] {
  if (message.role !== "assistant") return [];
  return message.content.filter((block) => block.type === "toolCall");
}

export function isIncomplete({ stopReason }: AssistantMessage): boolean {
  return stopReason === "error" || stopReason === "aborted" || stopReason === "redirected";
}

/**
 * The conversation as the events report it: what a journal behind the sink would
 * hold. A message is not changed once its end was reported.
 */
export class Transcript {
  messages: AgentMessage[] = [];
  pending: readonly PendingCall[] = [];
  readonly #world: World;
  readonly #results = new Map<string, AgentToolResult>();
  /** How each message looked when it ended. */
  readonly #looks = new Map<AgentMessage, string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The result that the journal has of a call, whether or not its message was taken. */
  result(callId: string): AgentToolResult | undefined {
    return this.#results.get(callId);
  }

  take(event: AgentEvent): void {
    if (event.type === "message_end") {
      this.#looks.set(event.message, JSON.stringify(event.message));
      this.#add(event.message);
    } else if (event.type === "tool_execution_end") {
      this.#results.set(event.toolCallId, event.result);
    } else if (event.type === "agent_end") {
      this.pending = event.pending;
    }
  }

  #add(message: AgentMessage): void {
    const place = message.role === "toolResult" ? this.#findPlace(message) : -1;
    if (place < 0) this.messages.push(message);
    else this.messages.splice(place, 0, message);
  }

  /** Behind the message that made the call and the results of its earlier calls. */
  #findPlace({ toolCallId }: ToolResultMessage): number {
    const made = this.messages.findLastIndex((message) =>
      listCalls(message).some(({ id }) => id === toolCallId),
    );
    if (made < 0) return -1;
    const order = listCalls(this.messages[made] as AgentMessage).map(({ id }) => id);
    let place = made + 1;
    for (; place < this.messages.length; place++) {
      const other = this.messages[place];
      if (other?.role !== "toolResult") break;
      if (order.indexOf(other.toolCallId) > order.indexOf(toolCallId)) break;
    }
    return place;
  }

  /** Reported messages never change. */
  checkUnchanged(): void {
    for (const [message, look] of this.#looks) {
      if (JSON.stringify(message) === look) continue;
      this.#world.fail(
        "frozen",
        `a message was changed after its end: ${look} is now ${JSON.stringify(message)}`,
      );
    }
  }

  /** R8: one result for each call, next to it, in call order; those that wait have none. */
  check(messages: readonly AgentMessage[], waiting: ReadonlySet<string>): void {
    const wrong = findFault(messages, waiting);
    if (wrong) this.#world.fail("R8", `the transcript is not valid: ${wrong}`);
  }
}

/** What a strict service would say of a conversation, in our own words. */
export function findFault(
  messages: readonly AgentMessage[],
  waiting: ReadonlySet<string> = new Set(),
): string | undefined {
  const used = new Set<string>();
  const due: string[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "note") continue;
    if (message.role === "toolResult") {
      if (due.shift() !== message.toolCallId) {
        return `message ${index}: the result of ${message.toolCallId} is not where it belongs`;
      }
      continue;
    }
    if (due.length > 0) return `message ${index}: call ${due[0]} has no result before it`;
    for (const { id } of listCalls(message)) {
      if (id === "") return `message ${index}: a call has no id`;
      if (used.has(id)) return `message ${index}: the id ${id} is used twice`;
      used.add(id);
      if (!waiting.has(id)) due.push(id);
    }
  }
  return due.length > 0 ? `call ${due[0]} has no result` : undefined;
}

/** What is wrong with a request, beyond the order of calls and results. */
export function findRequestFault(messages: readonly Message[]): string | undefined {
  const wrong = findFault(messages);
  if (wrong) return wrong;
  const last = messages.at(-1);
  if (!last) return "it is empty";
  if (last.role === "assistant" && last.stopReason !== "pause") return "it ends with an answer";
  for (const [index, { role, content }] of messages.entries()) {
    if (content.length === 0) return `message ${index} (${role}) is empty`;
    if (typeof content === "string") continue;
    const isEmpty = content.every((block) => block.type === "text" && block.text === "");
    if (isEmpty) return `message ${index} (${role}) has only empty text`;
  }
  return undefined;
}
