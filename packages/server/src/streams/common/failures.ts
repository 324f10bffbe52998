import { type AgentEndEvent, RunFailedError } from "@gyre/agent";
import { type FailureKind, isRecord } from "@gyre/ai";

/**
 * What a page is shown of each kind of failure. The message of the service itself is not sent: it
 * may name addresses, accounts and models.
 */
const MESSAGES: Readonly<Record<FailureKind, string>> = {
  auth: "The model service does not accept the credential of this server.",
  quota: "The account of this server at the model service is used up.",
  rate_limit: "The model service gets too many requests. Try again later.",
  overloaded: "The model service is overloaded. Try again later.",
  overflow: "The conversation is too long for the model.",
  bad_request: "The model service rejected the request.",
  refused: "The model declined to answer.",
  network: "The model service could not be reached. Try again later.",
  timeout: "The model service took too long. Try again later.",
  stalled: "The model service went silent. Try again later.",
  incomplete: "The answer broke off. Try again.",
  empty: "The model gave no answer. Try again.",
  aborted: "The run was stopped.",
  invalid_transcript: "The conversation cannot be sent to the model.",
  hook: "The server failed while it worked on the answer.",
  unknown: "The answer failed.",
};

/** A failure as a page may see it. */
export interface PageFailure {
  kind: FailureKind;
  message: string;
}

/** What to report of a failure in place of the built-in sentence. */
export type DescribeFailure = (failure: PageFailure, end: AgentEndEvent) => string;

/** Gets the error itself, of which a page reads the kind alone: a `RunFailedError` where the run failed. */
export type OnError = (error: unknown) => void;

/** What a route does with errors unless its program says otherwise: the reason has to be somewhere. */
export const logError: OnError = (error) => {
  console.error("@gyre/server:", error instanceof RunFailedError ? error.message : error);
};

/**
 * Gives an error to the program. A function that throws, or whose promise rejects, does not break the stream: what it
 * was given and what it threw are written with `console.error`.
 */
export function reportError(error: unknown, onError: OnError | undefined): void {
  void giveError(error, onError);
}

/** Calls the function at once. Never rejects. */
async function giveError(error: unknown, onError: OnError | undefined): Promise<void> {
  try {
    // A function that is declared to return nothing may be an asynchronous one.
    const done: unknown = onError?.(error);
    await done;
  } catch (thrown) {
    logError(error);
    logError(thrown);
  }
}

/** Why a run failed, with nothing of what the service wrote; nothing where it did not fail. */
export function findFailure(end: AgentEndEvent, onError?: OnError): PageFailure | undefined {
  if (end.stop !== "error" && end.stop !== "sink") return undefined;
  reportError(new RunFailedError(end), onError);
  if (end.stop === "sink") return toPageFailure("hook");
  return toPageFailure(end.finalMessage?.failure?.kind ?? "unknown");
}

/** The failure of a kind; one that is not known counts as `unknown`. */
export function toPageFailure(kind: FailureKind): PageFailure {
  const message: string | undefined = MESSAGES[kind];
  return message === undefined ? toPageFailure("unknown") : { kind, message };
}

/** Why a run did not start, or what its stream threw. */
export function findThrownFailure(error: unknown, onError?: OnError): PageFailure {
  reportError(error, onError);
  const failure = isRecord(error) ? error["failure"] : undefined;
  const kind = isRecord(failure) ? failure["kind"] : undefined;
  return toPageFailure(isKind(kind) ? kind : "hook");
}

function isKind(kind: unknown): kind is FailureKind {
  return typeof kind === "string" && Object.hasOwn(MESSAGES, kind);
}
