import type {
  AgentMessage,
  AgentStop,
  AgentToolResult,
  CompactionFacts,
  Decision,
  QueuedMessage,
} from "@gyre/agent";
import { isRecord, isToolOutcome, type UserMessage } from "@gyre/ai";
import type { Entry, EntryBody, EntryType, SessionSettings } from "./entry.ts";
import { upgradeContent, upgradeResult } from "./upgrade.ts";

/** Ids are kept in 32 bits. */
export const MAX_ENTRY_ID = 0xffff_ffff;

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
  "start",
  "end",
  "archive",
];

/** Entries that stand beside the branch: what follows them follows their parent. */
const BESIDE: ReadonlySet<EntryType> = new Set([
  "result",
  "begin",
  "pending",
  "decision",
  "queue",
  "start",
  "end",
  "archive",
]);

export function isBeside(type: EntryType): boolean {
  return BESIDE.has(type);
}

export function isEntryType(value: unknown): value is EntryType {
  return ENTRY_TYPES.some((type) => type === value);
}

/** The JSON of a body, but for its type. Throws on a value that JSON cannot represent. */
export function encodeBody(body: EntryBody): string {
  const { type: _type, ...rest } = body;
  return JSON.stringify(rest);
}

/** The object on a line; undefined where there is none. */
export function parseFields(line: { toString(): string }): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line.toString());
    return isRecord(value) ? value : undefined;
  } catch {
    // Callers report the damage.
    return undefined;
  }
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
      if (!isQueuedList(messages)) return undefined;
      if (ids === undefined) return { type, queue, messages };
      return isTextList(ids) ? { type, queue, ids, messages } : undefined;
    }
    case "start": {
      const { durationMs } = fields;
      return { type, ...(typeof durationMs === "number" && { durationMs }) };
    }
    case "end": {
      const { stop } = fields;
      // A newer version may know more of them.
      return typeof stop === "string" ? { type, stop: stop as AgentStop } : undefined;
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
    case "archive":
      return { type, archived: fields["archived"] === true };
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

/** Whether a body is read as what it was written as. */
export function isReadable(body: EntryBody): boolean {
  return readBody({ ...body })?.type === body.type;
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
    // A newer version may know more of them.
    if (!isDecision(decision))
      return { type: "custom", kind: type, data: { toolCallId, decision } };
    return { type, toolCallId, decision };
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
    ...(result.shortened && { shortened: result.shortened }),
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
