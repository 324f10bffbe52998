import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A piece of text, described by its measures. */
export interface TextMeasure {
  chars: number;
  utf8_bytes: number;
  sha256: string;
}

export interface ExpectedCall {
  id: string | null;
  name: string;
  arguments: unknown;
  item_id?: string;
}

/** What the service's own client reads out of a recording; what it did not report is absent. */
export interface Expected {
  ok: boolean;
  text?: TextMeasure;
  reasoning?: TextMeasure;
  reasoning_summary?: TextMeasure;
  reasoning_text?: TextMeasure;
  refusal?: TextMeasure;
  tool_calls?: ExpectedCall[];
  server_tool_calls?: ExpectedCall[];
  other_client_executed_items?: string[];
  blocks?: string[];
  items?: string[];
  part_kinds?: string[];
  payload_types?: string[];
  signatures?: string[];
  redacted?: number;
  encrypted?: number;
  reasoning_details?: number;
  choices?: number;
  chunks?: number;
  events?: number;
  stop_reason?: string | null;
  stop_sequence?: string;
  status?: string;
  incomplete?: unknown;
  prompt_feedback?: unknown;
  usage?: Record<string, unknown>;
  /** Why it ended, in the words of a client that knows them all. */
  third_unified_finish?: string;
  response_id?: string;
  model?: string;
  error?: { message?: string; type?: string | null; code?: unknown } | null;
  partial?: Partial<Expected>;
  accept_partial_as_final?: boolean;
  http_status?: number;
  error_class?: string;
  message?: string;
  jsonrpc_messages?: number;
  ids?: unknown[];
  methods?: unknown[];
  has_result?: boolean[];
}

export interface Case {
  id: string;
  api: string;
  dir: string;
  file: string;
  request: string | null;
  framing: "sse" | "payload-lines" | "json-array" | "ndjson" | "aws-eventstream" | "json";
  http_status: number;
  content_type: string;
  headers: Record<string, string>;
  note?: string;
  caveat?: string;
  conversation: string | null;
  source: { interaction: number; url?: string; path: string };
  expected: Expected;
}

export interface Recordings {
  folder: string;
  cases: Case[];
}

export function loadRecordings(folder: string): Recordings {
  const path = join(folder, "manifest.json");
  if (!existsSync(path)) {
    throw new Error(
      `There is no ${path}. Give a folder with recordings: npm run recorded -- FOLDER`,
    );
  }
  const { cases } = JSON.parse(readFileSync(path, "utf8")) as { cases: Case[] };
  return { folder, cases };
}

/** The bytes that the service sent, framed again where the recording keeps only payloads. */
export function readBody({ folder }: Recordings, one: Case): Uint8Array {
  const bytes = readFileSync(join(folder, one.file));
  if (one.framing !== "payload-lines") return bytes;
  const note = one.note ?? "";
  const named = note.includes("event: <type>");
  const events = bytes
    .toString("utf8")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => `${named ? `event: ${parseType(line)}\n` : ""}data: ${line}\n\n`);
  if (note.includes("data: [DONE]")) events.push("data: [DONE]\n\n");
  return Buffer.from(events.join(""));
}

function parseType(line: string): string {
  return (JSON.parse(line) as { type: string }).type;
}

export function readRecordedRequest(
  { folder }: Recordings,
  one: Case,
): Record<string, unknown> | undefined {
  if (one.request === null) return undefined;
  return JSON.parse(readFileSync(join(folder, one.request), "utf8")) as Record<string, unknown>;
}

/** Headers of a connection rather than of a body: the bytes here are whole and not packed. */
const NOT_REPLAYED = new Set([
  "transfer-encoding",
  "content-encoding",
  "content-length",
  "connection",
]);

export function buildHeaders(one: Case): Record<string, string> {
  const type = one.content_type || TYPES[one.framing];
  const kept = Object.entries(one.headers).filter(
    ([name]) => !NOT_REPLAYED.has(name.toLowerCase()),
  );
  return { "content-type": type, ...Object.fromEntries(kept) };
}

const TYPES: Record<Case["framing"], string> = {
  sse: "text/event-stream",
  "payload-lines": "text/event-stream",
  "json-array": "application/json",
  ndjson: "application/x-ndjson",
  "aws-eventstream": "application/vnd.amazon.eventstream",
  json: "application/json",
};
