import type { AgentMessage, QueuedMessage, QueuedMessages, QueueName } from "@gyre/agent";
import { parseEntry } from "../format/body.ts";
import type { EntryIndex } from "./entry-index.ts";
import type { EntryReader } from "./log.ts";

export const NONE_QUEUED: QueuedMessages = { steering: [], followUp: [], made: 0 };

/**
 * What waits for the agent at the end of the file: what the newest `queue` of each queue lists, and
 * those after it add, but for what was delivered. Another place in the tree has nothing that waits.
 */
export async function readQueued(index: EntryIndex, reader: EntryReader): Promise<QueuedMessages> {
  const queues: number[] = [];
  let first = index.length;
  for (let at = index.length - 1; at >= 0 && index.typeAt(at) !== "leaf"; at--) {
    first = at;
    if (index.typeAt(at) === "queue") queues.push(at);
  }
  const ids: Record<QueueName, string[]> = { steering: [], followUp: [] };
  const messages = new Map<string, AgentMessage>();
  await reader.each(queues.reverse(), (fields, at) => {
    const entry = parseEntry(fields, index.infoAt(at));
    if (entry?.type !== "queue") return;
    if (entry.ids) ids[entry.queue] = [...entry.ids];
    for (const { id, message } of entry.messages ?? []) {
      messages.set(id, message);
      if (!entry.ids) ids[entry.queue].push(id);
    }
  });
  const delivered = new Set<unknown>();
  if (ids.steering.length + ids.followUp.length > 0) {
    const since = queues[0] ?? first;
    const places: number[] = [];
    for (let at = since; at < index.length; at++) {
      if (index.typeAt(at) === "message") places.push(at);
    }
    await reader.each(places, ({ queued }) => void delivered.add(queued));
  }
  const list = (queue: QueueName): QueuedMessage[] =>
    ids[queue].flatMap((id) => {
      const message = messages.get(id);
      return message && !delivered.has(id) ? { id, message } : [];
    });
  // Each message that was queued has at least one entry.
  return { steering: list("steering"), followUp: list("followUp"), made: index.lastId };
}
