import type { AgentEvent } from "@gyre/agent";

/** An event as it travels: only what is new, never the message so far. */
export interface WireEvent {
  type: AgentEvent["type"];
  payload: Record<string, unknown>;
}

/**
 * The event as plain data that is as long as what is new in it. An update of a message is
 * its delta; the other end builds the message from these. The payload is valid for the
 * call: it shares its parts with the event.
 */
export function wireEvent(event: AgentEvent): WireEvent {
  const { type, ...payload } = event;
  if (event.type !== "message_update") return { type, payload };
  const { partial: _, ...delta } = { partial: undefined, ...event.assistantMessageEvent };
  return { type, payload: { event: delta } };
}
