import type { AssistantMessage, ToolCall } from "@gyre/ai";
import type { AgentEvent, AgentMessage, AgentToolResult } from "../contract/types.ts";

/** One event as it is now: a live partial is rendered as far as it has come. */
export function render(event: AgentEvent): string {
  switch (event.type) {
    case "agent_start":
    case "turn_start":
      return event.type;
    case "message_start":
      return `message_start ${renderStart(event.message)}`;
    case "message_update":
      return `update ${renderUpdate(event)}`;
    case "message_end":
      return `message_end ${renderMessage(event.message)}`;
    case "tool_execution_start":
      return `tool_start ${event.toolName}#${event.toolCallId} ${JSON.stringify(event.args)}`;
    case "tool_execution_update":
      return `tool_update ${event.toolName}#${event.toolCallId} ${joinText(event.partialResult)}`;
    case "tool_execution_end": {
      const outcome = event.isError ? "error" : "ok";
      return `tool_end ${event.toolName}#${event.toolCallId} ${outcome} ${joinText(event.result)}`;
    }
    case "turn_end": {
      const results = event.toolResults.map((result) => ` ${result.toolName}#${result.toolCallId}`);
      return `turn_end ${event.message.stopReason}${results.join("")}`;
    }
    case "waiting": {
      const what = [event.phase, event.toolName].filter(Boolean).join(" ");
      return `waiting for ${what} ${event.silentMs} ms`;
    }
    case "retry":
      return `retry ${event.attempt} after ${event.delayMs} ms: ${event.kind} "${event.errorMessage}"`;
    case "fallback": {
      const { from, to, kind, errorMessage } = event;
      return `fallback ${from.provider}/${from.id} to ${to.provider}/${to.id}: ${kind} "${errorMessage}"`;
    }
    case "compaction":
      return `compaction ${event.before} to ${event.after}: ${event.reason}`;
    case "limit":
      return `limit ${event.limit} ${event.value}`;
    case "agent_end": {
      const { limit, pending, undelivered } = event;
      const more = [
        limit && `limit=${limit}`,
        undelivered.length > 0 && `undelivered=${undelivered.map(renderContent).join(",")}`,
        pending.length > 0 && `pending=${pending.map((p) => renderCall(p.toolCall)).join(",")}`,
      ].filter(Boolean);
      return ["agent_end", event.stop, ...more].join(" ");
    }
    default:
      return event satisfies never;
  }
}

/** The lines of a message that is not streamed. */
export function injected(text: string): string[] {
  return [`message_start user "${text}"`, `message_end user "${text}"`];
}

/** The lines of a response that is one text in one delta. */
export function answer(text: string, stopReason = "stop"): string[] {
  return [
    "message_start assistant",
    `update text +"${text}" end`,
    `message_end assistant ${stopReason} "${text}"`,
  ];
}

/** The lines of a response that is all calls, each `name#id`, with the same arguments. */
export function asks(calls: readonly string[], args = "{}", stopReason = "toolUse"): string[] {
  const update = calls.map(() => `call +${JSON.stringify(args)} end`).join(" ");
  return [
    "message_start assistant",
    `update ${update}`,
    `message_end assistant ${stopReason} ${calls.join(" ")}`,
  ];
}

/** The lines of a message with nothing in it. */
export function empty(stopReason: string, errorMessage = ""): string[] {
  const why = errorMessage && ` (${errorMessage})`;
  return ["message_start assistant", `message_end assistant ${stopReason}${why}`];
}

/** The lines of a call that ran alone, from its start to its result. */
export function ran(call: string, outcome: string, args = "{}"): string[] {
  return [`tool_start ${call} ${args}`, `tool_end ${call} ${outcome}`, ...result(call, outcome)];
}

/** The lines of a result's message. */
export function result(call: string, outcome: string): string[] {
  return [`message_start toolResult ${call}`, `message_end toolResult ${call} ${outcome}`];
}

/** A message on one line. */
export function renderMessage(message: AgentMessage): string {
  if (message.role === "assistant") return renderAssistant(message);
  if (message.role === "toolResult") {
    const outcome = message.isError ? "error" : "ok";
    return `toolResult ${message.toolName}#${message.toolCallId} ${outcome} ${joinText(message)}`;
  }
  return `${message.role} ${renderContent(message)}`;
}

function renderStart(message: AgentMessage): string {
  if (message.role === "assistant") return "assistant";
  if (message.role === "toolResult") return `toolResult ${message.toolName}#${message.toolCallId}`;
  return `${message.role} ${renderContent(message)}`;
}

function renderAssistant(message: AssistantMessage): string {
  const blocks = message.content.map((block) => {
    if (block.type === "text") return ` "${block.text}"`;
    if (block.type === "thinking") return ` <${block.thinking}>`;
    if (block.type === "toolCall") return ` ${renderCall(block)}`;
    return ` ${block.type}`;
  });
  const why = message.errorMessage === undefined ? "" : ` (${message.errorMessage})`;
  return `assistant ${message.stopReason}${blocks.join("")}${why}`;
}

function renderCall(call: ToolCall): string {
  return `${call.name}#${call.id}`;
}

function renderUpdate(event: Extract<AgentEvent, { type: "message_update" }>): string {
  const { assistantMessageEvent: inner } = event;
  if ("delta" in inner) return `+${JSON.stringify(inner.delta)}`;
  if (inner.type.endsWith("_end")) return "end";
  return inner.type.replace("_start", "").replace("toolcall", "call");
}

function joinText({ content }: Pick<AgentToolResult, "content">): string {
  return `"${content.map((block) => (block.type === "text" ? block.text : block.type)).join("|")}"`;
}

function renderContent(message: AgentMessage): string {
  const { content } = message as { content?: unknown };
  return typeof content === "string" ? `"${content}"` : JSON.stringify(content);
}
