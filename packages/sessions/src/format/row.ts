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
export function summarizeHeader({ id, cwd, createdAt, headless }: SessionHeader): SessionSummary {
  return { id, cwd, createdAt, updatedAt: createdAt, bytes: 0, ...(headless && { headless }) };
}

/** The summary of a session that has got one more entry. */
export function addToSummary(summary: SessionSummary, row: EntryRow): SessionSummary {
  const { type, timestamp: updatedAt, data } = row;
  const next = { ...summary, updatedAt, bytes: summary.bytes + data.length };
  if (type === "archive") {
    const { archived: _before, ...rest } = next;
    return parseFields(data)?.["archived"] === true ? { ...rest, archived: true } : rest;
  }
  if (type === "title") {
    const title = parseFields(data)?.["title"];
    return typeof title === "string" && title.trim() !== ""
      ? { ...next, title: title.trim() }
      : next;
  }
  if (type !== "message") return next;
  const { archived: _before, ...rest } = next;
  if (summary.firstPrompt !== undefined) return rest;
  const message = parseFields(data)?.["message"];
  if (!isRecord(message) || message["role"] !== "user") return rest;
  const firstPrompt = formatPrompt(message["content"]);
  return firstPrompt === "" ? rest : { ...rest, firstPrompt };
}
