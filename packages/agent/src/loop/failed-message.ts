import {
  type AssistantMessage,
  emptyAssistantMessage,
  errorMessage,
  type Failure,
  IncompleteStreamError,
} from "@gyre/ai";
import { listCalls, isIncomplete } from "../transcript/history.ts";
import type { Run } from "../run/run.ts";

/** What an aborted run says of itself. */
export const ABORTED_TEXT = "Aborted.";

/** An empty message that says what went wrong. */
export function failedMessage(run: Run, error: unknown): AssistantMessage {
  if (run.canceled) return abortedMessage(run);
  return withFailure(emptyMessage(run), errorMessage(error), toFailure(error));
}

/** An empty message of a run that was stopped. */
export function abortedMessage(run: Run): AssistantMessage {
  return withAbort(run, emptyMessage(run));
}

/** An empty message that a steering message cut off. */
export function redirectedMessage(run: Run): AssistantMessage {
  return { ...emptyMessage(run), stopReason: "redirected" };
}

export function emptyMessage(run: Run): AssistantMessage {
  return emptyAssistantMessage(run.model, run.clock.now());
}

/** The message as a run that was stopped ends it. */
export function withAbort(run: Run, message: AssistantMessage): AssistantMessage {
  const why = run.canceled === "limit" ? "The time limit of the run was reached." : ABORTED_TEXT;
  return withFailure(message, why, { kind: "aborted" });
}

export function withFailure(
  message: AssistantMessage,
  text: string,
  failure: Failure,
): AssistantMessage {
  const stopReason = failure.kind === "aborted" ? "aborted" : "error";
  return { ...message, stopReason, errorMessage: text, failure };
}

/** The failure that an error names itself; else that of a callback. */
export function toFailure(error: unknown): Failure {
  const { failure } = (error ?? {}) as { failure?: Failure };
  if (typeof failure?.kind === "string") return failure;
  if (error instanceof IncompleteStreamError) return { kind: "incomplete" };
  return { kind: "hook", retryable: false };
}

/** What a message lacks that says nothing, or that promises a call and makes none (R7). */
export function explainEmptiness(message: AssistantMessage): string | undefined {
  if (message.stopReason === "pause" || isIncomplete(message)) return undefined;
  const says = message.content.some((block) => {
    if (block.type === "text") return block.text !== "";
    if (block.type === "thinking") return block.thinking !== "" || block.signature !== undefined;
    return true;
  });
  if (!says) return "The model's answer was empty: neither text, thinking nor a tool call.";
  if (message.stopReason !== "toolUse" || listCalls(message).length > 0) return undefined;
  return "The model stopped to call a tool, but its answer has no call in it.";
}
