import type { AssistantMessage } from "@gyre/ai";
import { contain } from "../contract/contain.ts";
import type { Run } from "../run/run.ts";

/** A `generateId` that gives ids in use more often than this in a row is not called again. */
const MAX_ID_TRIES = 100;

/** Gives every call an id of its own: services may use one twice, a transcript may not (R8). */
export function withUniqueIds(run: Run, message: AssistantMessage): AssistantMessage {
  const own = new Set<string>();
  let changed = false;
  const content = message.content.map((block) => {
    if (block.type !== "toolCall") return block;
    const isTaken = (id: string): boolean => id === "" || own.has(id) || run.history.hasCallId(id);
    const id = isTaken(block.id) ? newId(run, isTaken) : block.id;
    own.add(id);
    if (id === block.id) return block;
    changed = true;
    return { ...block, id };
  });
  return changed ? { ...message, content } : message;
}

/** An id of the application's `generateId`, if it gives one that is free. */
function newId(run: Run, isTaken: (id: string) => boolean): string {
  const given = contain("generateId threw", () => {
    for (let tries = 0; run.config.generateId && tries < MAX_ID_TRIES; tries++) {
      const id = run.config.generateId();
      if (!isTaken(id)) return id;
    }
    return undefined;
  });
  return given ?? `call_${globalThis.crypto.randomUUID()}`;
}
