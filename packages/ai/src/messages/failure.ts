import type { Failure, FailureKind } from "./messages.ts";

const RETRYABLE_STATUS: ReadonlySet<number> = new Set([408, 409, 424, 425, 429]);
const FIRST_SERVER_ERROR = 500;

/** `status`: the kind says nothing, the HTTP status decides. */
const RETRYABLE: Readonly<Record<FailureKind, boolean | "status">> = {
  rate_limit: true,
  overloaded: true,
  network: true,
  timeout: true,
  stalled: true,
  incomplete: true,
  empty: true,
  auth: false,
  quota: false,
  overflow: false,
  bad_request: false,
  refused: false,
  aborted: false,
  invalid_transcript: false,
  hook: false,
  unknown: "status",
};

/** The part of a `Failure` that decides whether to retry. */
export interface RetryFacts {
  kind: FailureKind;
  retryable?: Failure["retryable"] | undefined;
  status?: Failure["status"] | undefined;
}

/** Whether the same request may succeed later: as the provider said, else by kind and status. */
export function isRetryable({ kind, retryable, status }: RetryFacts): boolean {
  if (retryable !== undefined) return retryable;
  // Failures also come over a connection, from a version that may know more kinds.
  const byKind: boolean | "status" | undefined = RETRYABLE[kind];
  if (typeof byKind === "boolean") return byKind;
  return status !== undefined && (RETRYABLE_STATUS.has(status) || status >= FIRST_SERVER_ERROR);
}
