import { isRecord } from "@gyre/ai";
import type { EntryType, SessionHeader } from "./entry.ts";
import { parseFields } from "./body.ts";
import { formatPrompt } from "./prompt.ts";
import type { SessionSummary } from "./types.ts";

/** An entry as a store keeps it. */
export interface EntryRow {
  id: number;
  parentId: number | null;
  type: EntryType;
  /** Milliseconds since 1970. */
  timestamp: number;
  /** What the entry says, as a JSON object. Kept as it is, to the byte: requests are made of it. */
  data: string;
}

/** The summary of a session without entries. */
export function summarizeHeader({ id, cwd, createdAt }: SessionHeader): SessionSummary {
  return { id, cwd, createdAt, updatedAt: createdAt, bytes: 0 };
}

/** The summary of a session that has got one more entry. */
export function addToSummary(summary: SessionSummary, row: EntryRow): SessionSummary {
  const { type, timestamp: updatedAt, data } = row;
  const next = { ...summary, updatedAt, bytes: summary.bytes + data.length };
  if (type === "title") {
    const title = parseFields(data)?.["title"];
    return typeof title === "string" && title.trim() !== ""
      ? { ...next, title: title.trim() }
      : next;
  }
  if (type !== "message" || summary.firstPrompt !== undefined) return next;
  const message = parseFields(data)?.["message"];
  if (!isRecord(message) || message["role"] !== "user") return next;
  const firstPrompt = formatPrompt(message["content"]);
  return firstPrompt === "" ? next : { ...next, firstPrompt };
}
