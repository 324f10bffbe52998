import type { CompactEvent } from "@gyre/ai/stream";
import { ProtocolError } from "../frames/protocol-error.ts";

interface Block {
  /** `text`, `thinking`, `toolcall`, …: how the names of its events begin. */
  kind: string;
  delta: string;
  isClosed: boolean;
}

/**
 * The events that a reader with a part of a message still needs, of those that build the whole
 * message (`listEvents`): a reader that resumes late continues with the message it has. Throws
 * `ProtocolError` where its part is not the beginning of that message.
 */
export function findMissingEvents(
  own: readonly CompactEvent[],
  whole: readonly CompactEvent[],
): CompactEvent[] {
  const [had, all] = [collectBlocks(own), collectBlocks(whole)];
  return whole.flatMap((event): CompactEvent[] => {
    const { contentIndex, delta, type } = event;
    const mine = had.get(contentIndex);
    const theirs = all.get(contentIndex);
    if (!mine || !theirs) return [event];
    if (mine.isClosed) return [];
    const goesOn = theirs.delta.startsWith(mine.delta);
    // The end of a text may correct its deltas.
    const isReplaced = theirs.isClosed && theirs.kind !== "toolcall";
    if (mine.kind !== theirs.kind || (!goesOn && !isReplaced)) {
      throw new ProtocolError("invalid_sequence", `Block ${String(contentIndex)} is another one.`);
    }
    if (type.endsWith("_end")) return [goesOn ? event : { ...event, content: theirs.delta }];
    const rest = goesOn && typeof delta === "string" ? delta.slice(mine.delta.length) : "";
    return rest === "" ? [] : [{ ...event, delta: rest }];
  });
}

function collectBlocks(events: readonly CompactEvent[]): Map<unknown, Block> {
  const blocks = new Map<unknown, Block>();
  for (const { contentIndex, delta, type } of events) {
    const kind = type.replace(/_(?:start|delta|end)$/, "");
    const block = blocks.get(contentIndex) ?? { kind, delta: "", isClosed: false };
    blocks.set(contentIndex, block);
    if (typeof delta === "string") block.delta = delta;
    if (type.endsWith("_end")) block.isClosed = true;
  }
  return blocks;
}
