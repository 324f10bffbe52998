import type { AgentEvent } from "@gyre/agent";
import type { AssistantMessageEvent } from "@gyre/ai";

/** Of each machine and moment, and no part of what was said. */
const TIMES: ReadonlySet<string> = new Set(["timestamp", "durationMs"]);

/**
 * Events as they are compared: neighbouring deltas of a block as one, without times, and
 * without the live messages, which may be ahead of their events.
 */
export function joinEvents(events: readonly (AgentEvent | AssistantMessageEvent)[]): unknown {
  const told: Record<string, unknown>[] = [];
  for (const event of events) {
    if (event.type === "message_start") {
      told.push({ type: event.type, role: event.message.role });
    } else if (event.type === "message_update") {
      join(told, event.assistantMessageEvent);
    } else join(told, event);
  }
  const untimed = (key: string, value: unknown): unknown => (TIMES.has(key) ? 0 : value);
  return JSON.parse(JSON.stringify(told, untimed));
}

function join(told: Record<string, unknown>[], event: object): void {
  const next: Record<string, unknown> = { ...event, partial: undefined };
  const last = told.at(-1);
  const isDelta = typeof next["delta"] === "string" && last?.["type"] === next["type"];
  if (last && isDelta && last["contentIndex"] === next["contentIndex"]) {
    last["delta"] = `${String(last["delta"])}${String(next["delta"])}`;
  } else told.push(next);
}
