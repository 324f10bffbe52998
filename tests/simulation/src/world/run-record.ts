import type { AgentEndEvent, AgentEvent, AgentMessage, Decision } from "@gyre/agent";

/** One run as the world sees it from outside. */
export interface RunRecord {
  readonly number: number;
  readonly epoch: number;
  readonly kind: "prompt" | "continue";
  readonly prompts: readonly AgentMessage[];
  /** What a person said about calls that wait, by call id. */
  readonly decisions: Readonly<Record<string, Decision>>;
  /** The tools that it began with, by name. */
  readonly tools: readonly string[];
  readonly startedAt: number;
  /** All events that were taken, in order. */
  readonly events: AgentEvent[];
  abortedAt?: number;
  waitsAtAbort: number;
  /** The sink failed on this event; nothing may reach it any more. */
  sinkFailedOn?: AgentEvent;
  end?: AgentEndEvent;
  /** Its promise has settled, and the driver is idle. */
  over: boolean;
}

/** What the world reports to the checker. */
export interface Watch {
  begun(run: RunRecord): void;
  /** The sink, or the first listener, or the reader of a stream has taken an event. */
  taken(event: AgentEvent): void;
  /** The sink fails on an event; the loop can know of it after `inMs`. */
  sinkFails(event: AgentEvent, inMs: number): void;
  heard(listener: number, event: AgentEvent): void;
  listenerDone(listener: number): void;
  /** The run's promise has settled. */
  finished(run: RunRecord, end: AgentEndEvent | undefined, error: unknown): void;
  polled(queue: "steering" | "followUp"): void;
  /** What a poll came to, perhaps later. */
  drained(queue: "steering" | "followUp", count: number): void;
  hookCalled(name: string): void;
  /** A hook, a queue or a middleware threw or hung on purpose in the run that goes on. */
  hookFailed(text: string, how: "throws" | "waits"): void;
  /** A hook says that there is no key for the model. */
  keyMissing(): void;
  prepared(changes: { model?: { id: string }; thinkingLevel?: string }): void;
  stopAsked(): void;
  lateResult(callId: string): void;
}

export function joinText(message: AgentMessage): string {
  const { content } = message as { content?: unknown };
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as { text?: string }[]).map((block) => block.text ?? "").join("");
}
