import { isRecord } from "@gyre/ai";
import type { Envelope, Payload } from "./envelope.ts";
import { MAX_JOINED_CHARS } from "./limits.ts";

const DELTAS: ReadonlySet<unknown> = new Set(["text_delta", "thinking_delta", "toolcall_delta"]);

/**
 * Joins two neighboring frames of a stream that wait for a slow reader: deltas of one block become
 * one, and of updates of a call the newest is kept. The joined frame spans `from` the first `seq`
 * to the last. Undefined where they cannot be joined.
 */
export function joinFrames(last: Envelope, next: Envelope): Envelope | undefined {
  if (last.type !== next.type || last.stream === undefined || last.stream !== next.stream) {
    return undefined;
  }
  if (last.seq === undefined || next.seq === undefined) return undefined;
  if ((next.from ?? next.seq) !== last.seq + 1) return undefined;
  const payload = joinPayloads(last.type, last.payload, next.payload);
  return payload && { ...next, from: last.from ?? last.seq, payload };
}

function joinPayloads(type: string, last: Payload, next: Payload): Payload | undefined {
  if (type === "tool_execution_update") {
    return last["toolCallId"] === next["toolCallId"] ? next : undefined;
  }
  if (DELTAS.has(type)) return joinDeltaParts(last, next);
  const [before, after] = [last["event"], next["event"]];
  if (type !== "message_update" || !isRecord(before) || !isRecord(after)) return undefined;
  if (before["type"] !== after["type"] || !DELTAS.has(before["type"])) return undefined;
  const event = joinDeltaParts(before, after);
  return event && { ...next, event };
}

function joinDeltaParts(last: Payload, next: Payload): Payload | undefined {
  const [before, after] = [last["delta"], next["delta"]];
  if (last["contentIndex"] !== next["contentIndex"]) return undefined;
  if (typeof before !== "string" || typeof after !== "string") return undefined;
  if (before.length + after.length > MAX_JOINED_CHARS) return undefined;
  return { ...next, delta: before + after };
}
