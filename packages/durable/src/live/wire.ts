import type { AgentEvent } from "@gyre/agent";
import { type CompactEvent, toCompactEvent, toMessageHead } from "@gyre/ai/stream";
import type { LiveWire } from "../contract/bus.ts";

/** The event for the wire; nothing for those that are not live. */
export function toLiveWire(event: AgentEvent): LiveWire | undefined {
  switch (event.type) {
    case "message_start": {
      const { type, message } = event;
      if (message.role !== "assistant") return undefined;
      return { type, message: toMessageHead(message) };
    }
    case "message_update":
      return { type: event.type, event: toCompactEvent(event.assistantMessageEvent) };
    case "message_end":
      return event.message.role === "assistant" ? { type: event.type } : undefined;
    case "tool_execution_start":
    case "tool_execution_update":
    case "retry":
    case "waiting":
    case "fallback":
      return event;
    case "tool_execution_end":
      return { type: event.type, toolCallId: event.toolCallId };
    default:
      return undefined;
  }
}

/**
 * Adds an event to those that wait to be sent: deltas of one block become one, and of the updates of
 * a call the newest is enough.
 */
export function joinWire(waiting: LiveWire[], event: LiveWire): void {
  if (event.type === "message_update") {
    const last = waiting.at(-1);
    const joined = last?.type === "message_update" && joinDeltas(last.event, event.event);
    if (joined) waiting[waiting.length - 1] = { type: event.type, event: joined };
    else waiting.push(event);
    return;
  }
  if (event.type === "tool_execution_update") {
    const at = waiting.findIndex(
      (each) => each.type === event.type && each.toolCallId === event.toolCallId,
    );
    if (at >= 0) waiting.splice(at, 1);
  }
  waiting.push(event);
}

function joinDeltas(one: CompactEvent, other: CompactEvent): CompactEvent | undefined {
  const { type, contentIndex, delta } = other;
  if (one.type !== type || one["contentIndex"] !== contentIndex) return undefined;
  if (typeof one["delta"] !== "string" || typeof delta !== "string") return undefined;
  return { type, contentIndex, delta: one["delta"] + delta };
}
