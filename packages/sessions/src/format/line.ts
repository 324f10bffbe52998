import type {
  AgentMessage,
  AgentToolResult,
  CompactionFacts,
  Decision,
  QueuedMessage,
} from "@gyre/agent";
import { isRecord, isToolOutcome, type UserMessage } from "@gyre/ai";
import { crc32 } from "node:zlib";
import { upgradeContent, upgradeResult } from "./upgrade.ts";
import {
  type Entry,
  type EntryBody,
  type EntryType,
  SESSION_VERSION,
  type SessionHeader,
  type SessionSettings,
} from "./entry.ts";

/** A longer line counts as damage, and is not written. */
export const MAX_LINE_BYTES: number = 256 * 1024 * 1024;
/** Ids are kept in 32 bits. */
export const MAX_ENTRY_ID = 0xffff_ffff;
export const LF = 0x0a;
const CR = 0x0d;

/** The end of every line, before its LF: `,"crc":"0123abcd"}`. */
const CRC_START = ',"crc":"';
const CRC_DIGITS = 8;
const TAIL_BYTES = CRC_START.length + CRC_DIGITS + 2;
const CRC_START_BYTES = Buffer.from(CRC_START);
const HEX = 16;

/** The fields of a line before its body. */
export interface LineHead {
  id: number;
  parentId: number | null;
  type: EntryType;
  /** The epoch of the writer. */
  w: number;
  timestamp: number;
}

/** A JSON object, as it was read. */
export type Fields = Record<string, unknown>;

export const ENTRY_TYPES: readonly EntryType[] = [
  "message",
  "result",
  "settings",
  "compaction",
  "title",
  "label",
  "leaf",
  "custom",
  "begin",
  "pending",
  "decision",
  "queue",
];

/** Entries that stand beside the branch: what follows them follows their parent. */
const BESIDE: ReadonlySet<EntryType> = new Set(["result", "begin", "pending", "decision", "queue"]);

export function isBeside(type: EntryType): boolean {
  return BESIDE.has(type);
}

export function isEntryType(value: unknown): value is EntryType {
  return ENTRY_TYPES.some((type) => type === value);
}

/** The line of an entry. `rest` is the JSON of what follows the head, without braces. */
export function encodeEntry({ id, parentId, type, w, timestamp }: LineHead, rest: string): Buffer {
  const head = `{"id":${id},"parentId":${parentId},"type":"${type}","w":${w},"timestamp":${timestamp}`;
  return sealed(rest === "" ? head : `${head},${rest}`);
}

export function encodeHeader(header: Omit<SessionHeader, "type" | "version">): Buffer {
  const fields = { type: "session", version: SESSION_VERSION, ...header };
  return sealed(JSON.stringify(fields).slice(0, -1));
}

/** The JSON of an object without its braces. Throws on a value that JSON cannot represent. */
export function unbraced(fields: object): string {
  return JSON.stringify(fields).slice(1, -1);
}

/** The JSON of a body, but for its type, without braces. */
export function encodeBody(body: EntryBody): string {
  const { type: _type, ...rest } = body;
  return unbraced(rest);
}

function sealed(open: string): Buffer {
  const bytes = Buffer.byteLength(open);
  const line = Buffer.allocUnsafe(bytes + TAIL_BYTES + 1);
  line.write(open, 0, "utf8");
  const crc = crc32(line.subarray(0, bytes)).toString(HEX).padStart(CRC_DIGITS, "0");
  line.write(`${CRC_START}${crc}"}\n`, bytes, "latin1");
  return line;
}

/**
 * Looks at the end of a line (without LF). `none`: it has no checksum, as a line written by
 * hand; `right` and `wrong` are what the checksum says.
 */
export function checkLine(bytes: Buffer, start: number, end: number): "right" | "wrong" | "none" {
  const tail = end - TAIL_BYTES;
  if (tail <= start) return "none";
  for (let i = 0; i < CRC_START.length; i++) {
    if (bytes[tail + i] !== CRC_START_BYTES[i]) return "none";
  }
  let stated = 0;
  for (let i = tail + CRC_START.length; i < end - 2; i++) {
    const digit = hexDigit(bytes[i] ?? 0);
    if (digit < 0) return "wrong";
    stated = stated * HEX + digit;
  }
  if (bytes[end - 2] !== 0x22 || bytes[end - 1] !== 0x7d) return "wrong";
  return crc32(bytes.subarray(start, tail)) === stated ? "right" : "wrong";
}

/** Where a line ends that an editor may have given a CR. */
export function withoutCr(bytes: Buffer, start: number, end: number): number {
  return end > start && bytes[end - 1] === CR ? end - 1 : end;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  if (byte >= 0x61 && byte <= 0x66) return byte - 0x61 + 10;
  return -1;
}

/** The object on a line; undefined where there is none. */
export function parseFields(line: Buffer | string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line.toString());
    return isRecord(value) ? value : undefined;
  } catch {
    // Callers report the damage.
    return undefined;
  }
}

/** The first line, as far as it is one of ours. `cwd` and `createdAt` may be missing in one written by hand. */
export function parseHeader(fields: Fields): SessionHeader | undefined {
  const { type, version, id, createdAt = 0, cwd = "", from } = fields;
  if (type !== "session" || typeof version !== "number" || typeof id !== "string") return undefined;
  if (typeof createdAt !== "number" || typeof cwd !== "string") return undefined;
  return { type, version, id, createdAt, cwd, ...(isRecord(from) && { from: parseOrigin(from) }) };
}

function parseOrigin({ session, entry, file }: Fields): NonNullable<SessionHeader["from"]> {
  return {
    ...(typeof session === "string" && { session }),
    ...(typeof entry === "number" && { entry }),
    ...(typeof file === "string" && { file }),
  };
}

/** A message that was stored as a reference names the result that it is made of. */
export function readReference(fields: Fields): number | undefined {
  const { type, resultOf } = fields;
  return type === "message" && typeof resultOf === "number" ? resultOf : undefined;
}

/**
 * The body of a line. `recorded` are the fields of the result that a message refers to. Undefined
 * where the line does not fit its type. A type that this version does not know is `custom`.
 */
export function readBody(fields: Fields, recorded?: Fields): EntryBody | undefined {
  const { type } = fields;
  switch (type) {
    case "message": {
      const message = fields["resultOf"] === undefined ? fields["message"] : join(fields, recorded);
      if (!isMessage(message)) return undefined;
      if (message.role === "toolResult") return { type, message: upgradeResult(message) };
      const { begins, queued } = fields;
      return {
        type,
        message,
        ...(begins === true && { begins }),
        ...(typeof queued === "string" && { queued }),
      };
    }
    case "result": {
      const { toolCallId, toolName, result, isError, outcome, reason } = fields;
      const isWhole = typeof toolCallId === "string" && typeof toolName === "string";
      if (!isWhole || !isToolResult(result)) return undefined;
      return {
        type,
        toolCallId,
        toolName,
        result:
          outcome === undefined ? { ...result, content: upgradeContent(result.content) } : result,
        isError: isError === true,
        ...(isToolOutcome(outcome) && { outcome }),
        ...(typeof reason === "string" && { reason }),
      };
    }
    case "begin":
    case "pending":
    case "decision":
      return readCallState(type, fields);
    case "queue": {
      const { queue, ids, messages = [] } = fields;
      if (queue !== "steering" && queue !== "followUp") return undefined;
      if (!isTextList(ids) || !isQueuedList(messages)) return undefined;
      return { type, queue, ids, messages };
    }
    case "settings": {
      const { settings } = fields;
      return isSettings(settings) ? { type, settings } : undefined;
    }
    case "compaction": {
      const { first, until, message, entries, shortened, facts } = fields;
      if (typeof first !== "number") return undefined;
      if (message === undefined ? !isTexts(shortened) : !isUserMessage(message)) return undefined;
      if (until !== null && typeof until !== "number") return undefined;
      return {
        type,
        first,
        until,
        ...(isUserMessage(message) && { message }),
        ...(isIdList(entries) && { entries }),
        ...(isTexts(shortened) && { shortened }),
        ...(isFacts(facts) && { facts }),
      };
    }
    case "title":
      return typeof fields["title"] === "string" ? { type, title: fields["title"] } : undefined;
    case "label": {
      const { entry, label } = fields;
      if (typeof entry !== "number") return undefined;
      return label === null || typeof label === "string" ? { type, entry, label } : undefined;
    }
    case "leaf":
      return { type };
    case "custom": {
      const { kind, data } = fields;
      return typeof kind === "string" ? { type, kind, data } : undefined;
    }
    default: {
      if (typeof type !== "string" || type === "session") return undefined;
      const { id: _i, parentId: _p, type: _t, w: _w, timestamp: _s, crc: _c, ...data } = fields;
      return { type: "custom", kind: type, data };
    }
  }
}

function readCallState(
  type: "begin" | "pending" | "decision",
  { toolCallId, toolName, reason, access, fingerprint, decision }: Fields,
): EntryBody | undefined {
  if (typeof toolCallId !== "string") return undefined;
  if (type === "begin") {
    return typeof toolName === "string" ? { type, toolCallId, toolName } : undefined;
  }
  if (type === "decision") {
    return isDecision(decision) ? { type, toolCallId, decision } : undefined;
  }
  if (typeof reason !== "string") return undefined;
  return {
    type,
    toolCallId,
    reason,
    ...(isRecord(access) && { access }),
    ...(typeof fingerprint === "string" && { fingerprint }),
  };
}

/** The entry of a line; `info` is what the index has, which may differ for an orphan. */
export function parseEntry(
  fields: Fields,
  info: { id: number; parentId: number | null },
  recorded?: Fields,
): Entry | undefined {
  const body = readBody(fields, recorded);
  if (!body) return undefined;
  const { timestamp } = fields;
  const { id, parentId } = info;
  return { ...body, id, parentId, timestamp: typeof timestamp === "number" ? timestamp : 0 };
}

function join({ timestamp }: Fields, recorded: Fields | undefined): unknown {
  const body = recorded && readBody(recorded);
  return body?.type === "result" ? resultMessage(body, timestamp) : undefined;
}

/** The message of a result, its fields in the order in which the agent makes them. */
export function resultMessage(
  {
    toolCallId,
    toolName,
    result,
    isError,
    outcome,
    reason,
  }: Extract<EntryBody, { type: "result" }>,
  timestamp: unknown,
): Record<string, unknown> {
  return {
    role: "toolResult",
    toolCallId,
    toolName,
    content: result.content,
    ...(result.details !== undefined && { details: result.details }),
    isError,
    ...(outcome !== undefined && { outcome }),
    ...(reason !== undefined && { reason }),
    timestamp,
  };
}

function isMessage(value: unknown): value is AgentMessage {
  return isRecord(value) && typeof value["role"] === "string";
}

function isUserMessage(value: unknown): value is UserMessage {
  return isRecord(value) && value["role"] === "user";
}

function isToolResult(value: unknown): value is AgentToolResult {
  return isRecord(value) && Array.isArray(value["content"]);
}

function isDecision(value: unknown): value is Decision {
  if (!isRecord(value)) return false;
  const { type, result } = value;
  return type === "approve" || type === "deny" || (type === "result" && isToolResult(result));
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isQueuedList(value: unknown): value is QueuedMessage[] {
  return (
    Array.isArray(value) &&
    value.every(
      (each) => isRecord(each) && typeof each["id"] === "string" && isMessage(each["message"]),
    )
  );
}

function isSettings(value: unknown): value is SessionSettings {
  return isRecord(value);
}

function isTexts(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((text) => typeof text === "string");
}

const FACTS: readonly (keyof CompactionFacts)[] = [
  "requests",
  "changed",
  "decisions",
  "commands",
  "steps",
];

function isFacts(value: unknown): value is CompactionFacts {
  if (!isRecord(value)) return false;
  return FACTS.every((name) => {
    return isTextList(value[name]);
  });
}

function isIdList(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((id) => typeof id === "number");
}
