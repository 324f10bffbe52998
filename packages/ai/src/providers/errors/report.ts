import { isRecord } from "../../common/records.ts";
import { FIRST_ERROR } from "./patterns.ts";
import { parseDuration, parseRateLimitReset, parseRetryAfter } from "./retry-after.ts";
import { cleanText, formatTitle, isPage, MAX_TEXT, parseTitle } from "./text.ts";

/** A longer body is not parsed: errors are short. */
const MAX_JSON = 1_000_000;
/** How deep errors may be wrapped in one another. */
const MAX_DEPTH = 8;
/** How many errors of a list are read. */
const MAX_LIST = 8;
const MS_PER_SECOND = 1_000;

/** What could be read from an error, before it is classified. */
export interface ErrorReport {
  /** The service's messages, those nearest to the cause first. */
  messages: string[];
  /** Further texts that name the kind, and are not shown. */
  hints: string[];
  codes: string[];
  waits: number[];
  status?: number;
  requestId?: string;
  /** The service that failed behind the one that was asked. */
  upstream?: string;
  /** The report quotes the model's output: the model is at fault, not the request. */
  modelFault: boolean;
}

const MESSAGE_KEYS = ["message", "Message", "msg", "error_message", "errorMessage", "detail"];
const CODE_KEYS = ["code", "type", "status", "name", "reason", "__type", "error_type", "quotaId"];
const STATUS_KEYS = ["code", "status", "status_code", "statusCode"];
const WAIT_SECONDS_KEYS = ["retry_after", "retry_after_seconds", "resets_in_seconds"];
const INNER_KEYS = ["error", "errors", "response", "innererror", "details", "violations"];
const JSON_START = /^\s*[[{"]/;
const EVENT_START = /^\s*(?:event|data):/;
const EVENT_DATA = /^data:(.+)$/m;
const AWS_EXCEPTION = /^[A-Za-z]+Exception$/;

export function createReport(): ErrorReport {
  return { messages: [], hints: [], codes: [], waits: [], modelFault: false };
}

/** Adds what a value says, in any of the shapes that services use, to the report. */
export function readReport(value: unknown, report: ErrorReport, now: number, depth: number): void {
  if (depth > MAX_DEPTH) return;
  if (typeof value === "string") readText(value, report, now, depth);
  else if (Array.isArray(value))
    for (const item of value.slice(0, MAX_LIST)) readReport(item, report, now, depth + 1);
  else if (isRecord(value)) readRecord(value, report, now, depth);
}

function readText(text: string, report: ErrorReport, now: number, depth: number): void {
  // Some services send an error as an event, even with an error's status.
  const data = EVENT_START.test(text) ? (EVENT_DATA.exec(text)?.[1] ?? text) : text;
  if (JSON_START.test(data) && data.length <= MAX_JSON) {
    try {
      const parsed: unknown = JSON.parse(data);
      readReport(parsed, report, now, depth + 1);
      return;
    } catch {
      // Not JSON after all: it is read as a message.
    }
  }
  const message = isPage(text)
    ? `An HTML page came${formatTitle(parseTitle(text))}`
    : cleanText(text);
  if (message !== "") report.messages.push(message);
}

function readRecord(
  value: Record<string, unknown>,
  report: ErrorReport,
  now: number,
  depth: number,
): void {
  for (const key of CODE_KEYS) if (typeof value[key] === "string") addCode(value[key], report);
  for (const key of STATUS_KEYS) {
    const status = parseStatus(value[key]);
    if (status !== undefined) report.status ??= status;
  }
  for (const key of WAIT_SECONDS_KEYS) {
    const seconds = value[key];
    if (typeof seconds === "number" && seconds >= 0)
      report.waits.push(Math.ceil(seconds * MS_PER_SECOND));
  }
  const delay = value["retryDelay"];
  const delayMs = typeof delay === "string" ? parseDuration(delay) : undefined;
  if (delayMs !== undefined) report.waits.push(delayMs);
  const requestId = value["request_id"] ?? value["requestId"];
  if (typeof requestId === "string") report.requestId ??= requestId;
  if ("failed_generation" in value) report.modelFault = true;

  readMetadata(value["metadata"], report, now, depth);
  for (const key of INNER_KEYS) readReport(value[key], report, now, depth + 1);
  const where = value["loc"];
  for (const key of MESSAGE_KEYS) {
    const message = value[key];
    const place = Array.isArray(where) && typeof message === "string" ? `${where.join(".")}: ` : "";
    readReport(place === "" ? message : `${place}${String(message)}`, report, now, depth + 1);
  }
  for (const [key, inner] of Object.entries(value))
    if (AWS_EXCEPTION.test(key) && isRecord(inner)) {
      addCode(key, report);
      readReport(inner, report, now, depth + 1);
    }
}

/** What a router reports of the service behind it, whose message takes precedence over the router's. */
function readMetadata(value: unknown, report: ErrorReport, now: number, depth: number): void {
  if (!isRecord(value)) return;
  if (typeof value["provider_name"] === "string")
    report.upstream ??= cleanText(value["provider_name"]);
  if ("flagged_input" in value) report.codes.push("moderation");
  readReport(value["raw"], report, now, depth + 1);
  const headers = value["headers"];
  if (!isRecord(headers)) return;
  const known = new Map<string, string>();
  for (const [name, text] of Object.entries(headers))
    if (/^(?:retry-after|x-ratelimit)[a-z-]*$/i.test(name) && /^[\d.a-z]+$/i.test(String(text)))
      known.set(name.toLowerCase(), String(text));
  const limits = { get: (name: string) => known.get(name) ?? null };
  const wait = parseRetryAfter(limits, now) ?? parseRateLimitReset(limits, now);
  if (wait !== undefined) report.waits.push(wait);
}

export function addCode(code: string, report: ErrorReport): void {
  const trimmed = code.trim();
  if (trimmed === "") return;
  // A sentence in place of a code is searched like a message.
  if (trimmed.includes(" ")) report.hints.push(trimmed.slice(0, MAX_TEXT));
  else report.codes.push(trimmed);
}

function parseStatus(value: unknown): number | undefined {
  const status = typeof value === "string" ? Number(value) : value;
  return typeof status === "number" && status >= FIRST_ERROR && status < 600 ? status : undefined;
}
