import type { AgentMessage, QueuedMessage, QueueName } from "@gyre/agent";
import { isRecord } from "@gyre/ai";
import type { Entry, SessionSettings } from "@gyre/sessions";

/** A change of the messages that wait for an agent, by the ids that they have there. */
export type QueueRequest = { readonly queue: QueueName } & (
  | { readonly op: "add"; readonly id: string; readonly message: AgentMessage }
  | { readonly op: "edit"; readonly id: string; readonly message: AgentMessage }
  | { readonly op: "remove"; readonly id: string }
  | { readonly op: "move"; readonly id: string; readonly place: number }
  | { readonly op: "clear" }
);

/** What the worker of an open run does at once, and answers in the log: the data of an item. */
export type RunRequest =
  | ({ readonly type: "queue" } & QueueRequest)
  | { readonly type: "settings"; readonly settings: SessionSettings };

/** What became of a change of a queue. */
export interface QueueAnswer {
  /** False: the message does not wait any more. */
  readonly isDone: boolean;
  /** What waits now. */
  readonly queued: readonly QueuedMessage[];
  /** The message that was removed. */
  readonly message?: AgentMessage;
}

const ANSWERED = "answered";

/** The answer to the request of a key, as the log has it. */
export interface AnsweredRequest {
  readonly key: string;
  readonly answer: Readonly<Record<string, unknown>>;
}

export function toAnsweredEntry(answered: AnsweredRequest): {
  type: "custom";
  kind: string;
  data: unknown;
} {
  return { type: "custom", kind: ANSWERED, data: answered };
}

export function readAnswered(entry: Entry): AnsweredRequest | undefined {
  if (entry.type !== "custom" || entry.kind !== ANSWERED || !isRecord(entry.data)) return undefined;
  return entry.data as unknown as AnsweredRequest;
}

/** Throws on what is no request. */
export function readRequest(value: unknown): RunRequest {
  const isKnown = isRecord(value) && (value["type"] === "queue" || value["type"] === "settings");
  if (isKnown) return value as unknown as RunRequest;
  throw new TypeError("A request is about a queue, or about settings.");
}

/** Applies a change to a list, where no agent has it. */
export function changeQueue(queued: readonly QueuedMessage[], request: QueueRequest): QueueAnswer {
  if (request.op === "clear") return { isDone: true, queued: [] };
  const { id } = request;
  const at = queued.findIndex((each) => each.id === id);
  const found = queued[at];
  if (request.op === "add") {
    return { isDone: true, queued: found ? queued : [...queued, { id, message: request.message }] };
  }
  if (!found) return { isDone: false, queued };
  if (request.op === "edit") {
    return { isDone: true, queued: queued.with(at, { id, message: request.message }) };
  }
  const rest = queued.toSpliced(at, 1);
  if (request.op === "remove") return { isDone: true, queued: rest, message: found.message };
  const place = Math.max(0, Math.min(request.place, rest.length));
  return { isDone: true, queued: rest.toSpliced(place, 0, found) };
}
