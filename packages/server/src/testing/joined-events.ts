import type { AgentEvent } from "@gyre/agent";
import type { AssistantMessageEvent } from "@gyre/ai";

/** Fields that differ between machines and moments. */
const TIMES: ReadonlySet<string> = new Set(["timestamp", "durationMs"]);

/**
 * Events in a form to compare: neighboring deltas of a block as one, without times, and without the
 * live messages, which may be ahead of their events.
 */
export function joinEvents(events: readonly (AgentEvent | AssistantMessageEvent)[]): unknown {
  const joined: Record<string, unknown>[] = [];
  for (const event of events) {
    if (event.type === "message_start") {
      joined.push({ type: event.type, role: event.message.role });
    } else if (event.type === "message_update") {
      join(joined, event.assistantMessageEvent);
    } else join(joined, event);
  }
  const untimed = (key: string, value: unknown): unknown => (TIMES.has(key) ? 0 : value);
  return JSON.parse(JSON.stringify(joined, untimed));
}

function join(joined: Record<string, unknown>[], event: object): void {
  const next: Record<string, unknown> = { ...event, partial: undefined };
  const last = joined.at(-1);
  const isDelta = typeof next["delta"] === "string" && last?.["type"] === next["type"];
  if (last && isDelta && last["contentIndex"] === next["contentIndex"]) {
    last["delta"] = `${String(last["delta"])}${String(next["delta"])}`;
  } else joined.push(next);
}
