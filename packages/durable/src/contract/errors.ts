/**
 * What is wrong, for programs. `exists`: a run of this id has another prompt. `ended`: the run is
 * over. `busy`: the session has an open run. `not_pending`: no such call waits. `unavailable`: the store does not answer now; what was
 * asked for may be asked for again. `fenced`: another worker has the session.
 */
export type DurableErrorCode =
  | "bad_url"
  | "no_driver"
  | "no_access"
  | "not_a_store"
  | "schema_older"
  | "schema_newer"
  | "exists"
  | "not_found"
  | "ended"
  | "busy"
  | "not_pending"
  | "too_large"
  | "rate_limited"
  | "unavailable"
  | "fenced"
  | "invalid"
  | "closed";

/** What is wrong, and what to do. */
export class DurableError extends Error {
  readonly code: DurableErrorCode;
  /** Of `rate_limited`: when to try again. */
  readonly retryAfterMs?: number;
  constructor(
    code: DurableErrorCode,
    message: string,
    options: ErrorOptions & { retryAfterMs?: number } = {},
  ) {
    super(message, options);
    this.name = "DurableError";
    this.code = code;
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}

/** Whether what failed may succeed when it is tried again. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof DurableError && error.code === "unavailable";
}
