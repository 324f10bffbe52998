import { readToolError, readToolOutput } from "@gyre/agent";
import {
  type AssistantMessage,
  isRecord,
  isToolOutcome,
  type ToolCall,
  type ToolResultMessage,
  type UserContent,
} from "@gyre/ai";
import { toPageFailure } from "../common/failures.ts";

// What a transcript has and the parts of a UI message do not. It travels in the metadata of the
// message, under `gyre`, so that a page that sends its messages back brings it along.

/** The fields of an answer beside its content. Error messages and reports of a service stay here. */
export type StepRecord = Omit<AssistantMessage, "role" | "content" | "errorMessage" | "report">;
/** What the parts of a call do not say. */
export type CallRecord = Pick<
  ToolCall,
  "signature" | "rawArguments" | "repaired" | "argumentsError"
>;
/** What the output of a call does not say. */
export interface ResultRecord extends Partial<
  Pick<ToolResultMessage, "content" | "details" | "shortened" | "outcome" | "reason">
> {
  timestamp: number;
}
/** Of a user's message. */
export interface UserRecord {
  timestamp: number;
  /** Its content is a list of blocks, even of one. */
  isList?: true;
}

export interface MessageRecord {
  steps?: Record<string, StepRecord>;
  calls?: Record<string, CallRecord>;
  /** Calls that were cut off and are not in the transcript, by `nameDropped`. */
  dropped?: Record<string, true>;
  results?: Record<string, ResultRecord>;
  user?: UserRecord;
}

/** A call of a step: a later step may have a call with the same id. */
export function nameDropped(step: number, id: string): string {
  return `${step}.${id}`;
}

export const RECORD_KEY = "gyre";

/** The record of a message that came from a page: read as far as its shape is right. */
export function readRecord(metadata: unknown): MessageRecord {
  const record = isRecord(metadata) ? metadata[RECORD_KEY] : undefined;
  return isRecord(record) ? record : {};
}

export function toStepRecord(message: AssistantMessage): StepRecord {
  const { role: _, content: __, errorMessage: ___, report: ____, failure, ...record } = message;
  return { ...record, ...(failure && { failure: { kind: failure.kind } }) };
}

/** The answer that a record and its content were made of. */
export function fromStepRecord(
  record: StepRecord | undefined,
  content: AssistantMessage["content"],
): AssistantMessage {
  const hasCalls = content.some(({ type }) => type === "toolCall");
  const unknown: StepRecord = {
    api: "unknown",
    provider: "unknown",
    model: "unknown",
    usage: {},
    stopReason: hasCalls ? "toolUse" : "stop",
    timestamp: 0,
  };
  const { failure, ...head } = isRecord(record) ? record : unknown;
  const kind = isRecord(failure) ? failure.kind : undefined;
  return {
    role: "assistant",
    content,
    ...unknown,
    ...head,
    ...(kind !== undefined && {
      failure: { kind },
      errorMessage: toPageFailure(kind).message,
    }),
  };
}

/** Only what the parts do not say; nothing where they say all. */
export function toCallRecord(call: ToolCall): CallRecord | undefined {
  const { signature, rawArguments, repaired, argumentsError } = call;
  const record: CallRecord = {
    ...(signature !== undefined && { signature }),
    ...(rawArguments !== undefined && { rawArguments }),
    ...(repaired && { repaired }),
    ...(argumentsError !== undefined && { argumentsError }),
  };
  return Object.keys(record).length > 0 ? record : undefined;
}

/** The content of a result whose output a page has, where no record says otherwise. */
export function fromOutput(output: unknown): Pick<ToolResultMessage, "content" | "details"> {
  if (typeof output === "string") return { content: [{ type: "text", text: output }] };
  return { content: [{ type: "text", text: JSON.stringify(output) ?? "" }], details: output };
}

export type OutputState = "output-available" | "output-error" | "output-denied";

export function toState({
  outcome,
  isError,
}: Pick<ToolResultMessage, "outcome" | "isError">): OutputState {
  if (outcome === "denied") return "output-denied";
  return isError ? "output-error" : "output-available";
}

/** What the state of a call and its output do not say. */
export function toResultRecord(message: ToolResultMessage): ResultRecord {
  const { content, details, shortened, outcome, reason, timestamp } = message;
  const state = toState(message);
  const shown = readShown(
    state,
    state === "output-available" ? readToolOutput(message) : readToolError(message),
  );
  // A page has no text of a call that was denied.
  const isShown =
    state !== "output-denied" && isSame(shown.content, content) && isSame(shown.details, details);
  return {
    timestamp,
    ...(!isShown && { content, ...(details !== undefined && { details }) }),
    ...(shortened && { shortened }),
    ...(outcome !== undefined && { outcome }),
    ...(reason !== undefined && { reason }),
  };
}

/** The result that a state, its output and a record were made of. */
export function fromResultRecord(
  call: Pick<ToolCall, "id" | "name">,
  state: OutputState,
  shown: unknown,
  record: ResultRecord | undefined,
): ToolResultMessage {
  const { content, details, shortened, outcome, reason, timestamp } = isRecord(record)
    ? record
    : { timestamp: 0, outcome: IMPLIED[state] };
  const restored = content ? { content: readContent(content), details } : readShown(state, shown);
  return {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: restored.content,
    ...(restored.details !== undefined && { details: restored.details }),
    ...(shortened && { shortened }),
    isError: state !== "output-available",
    ...(isToolOutcome(outcome) && { outcome }),
    ...(typeof reason === "string" && { reason }),
    timestamp: typeof timestamp === "number" ? timestamp : 0,
  };
}

const IMPLIED = {
  "output-available": "ok",
  "output-error": "error",
  "output-denied": "denied",
} as const;

function readShown(
  state: OutputState,
  shown: unknown,
): Pick<ToolResultMessage, "content" | "details"> {
  if (state === "output-available") return fromOutput(shown);
  return { content: [{ type: "text", text: typeof shown === "string" ? shown : "It failed." }] };
}

function readContent(content: unknown): UserContent[] {
  const blocks: unknown[] = Array.isArray(content) ? content : [];
  return blocks.filter(isBlock);
}

function isBlock(value: unknown): value is UserContent {
  if (!isRecord(value)) return false;
  if (value["type"] === "text") return typeof value["text"] === "string";
  if (value["type"] === "file") return isRecord(value["source"]);
  return value["type"] === "image" && typeof value["data"] === "string";
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
