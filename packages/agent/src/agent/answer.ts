import { textOf } from "@gyre/ai";
import type { AgentEndEvent, PendingCall } from "../contract/types.ts";

/** How a run ended, with its answer. */
export interface AgentEnd<T = undefined, Pending = PendingCall> extends AgentEndEvent<Pending> {
  /**
   * The text of the last answer; "" where it has none. Throws `RunFailedError` where the run
   * ended with an error: a program that prints the text does not print nothing.
   */
  readonly text: string;
  /** The validated answer, in a run with an `output` schema. Throws `OutputError` without one. */
  readonly output: T;
}

/** The run ended with an error. `end` has all that it produced. */
export class RunFailedError extends Error {
  readonly code = "run_failed";
  readonly end: AgentEndEvent;
  constructor(end: AgentEndEvent) {
    super(end.errorMessage ?? end.finalMessage?.errorMessage ?? "The run failed.");
    this.name = "RunFailedError";
    this.end = end;
  }
}

/** Throws where a run ended with an error. */
export function assertSucceeded(end: AgentEndEvent): void {
  if (end.stop === "error" || end.stop === "sink") throw new RunFailedError(end);
}

const TEXT: PropertyDescriptor & ThisType<AgentEndEvent> = {
  configurable: true,
  get() {
    assertSucceeded(this);
    return this.finalMessage ? textOf(this.finalMessage) : "";
  },
};

/**
 * The same object with its answer. Both are read, not stored: copies and JSON of the event do
 * not have the text twice.
 */
export function withAnswer<T>(end: AgentEndEvent, output?: () => T): AgentEnd<T> {
  Object.defineProperty(end, "text", TEXT);
  if (output) Object.defineProperty(end, "output", { configurable: true, get: output });
  return end as AgentEnd<T>;
}
