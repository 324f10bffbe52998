import type { Failure, FailureKind } from "../messages.ts";

const TRANSIENT_KINDS = new Set<FailureKind>([
  "rate_limit",
  "overloaded",
  "network",
  "timeout",
  "stalled",
  "incomplete",
  "empty",
]);

const TRANSIENT_STATUS = new Set([408, 409, 424, 425, 429]);
const FIRST_SERVER_ERROR = 500;

/** What went wrong with a service, for programs (`failure`) and for people (`message`). */
export class ProviderError extends Error {
  readonly failure: Failure;

  constructor(message: string, failure: Failure, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "ProviderError";
    this.failure = failure;
  }

  get kind(): FailureKind {
    return this.failure.kind;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return this.failure.retryable ?? isTransient(this.failure.kind, this.failure.status);
  }

  get retryAfterMs(): number | undefined {
    return this.failure.retryAfterMs;
  }

  get status(): number | undefined {
    return this.failure.status;
  }

  get requestId(): string | undefined {
    return this.failure.requestId;
  }
}

/**
 * What a service sent in place of the rest of its answer: an error object, say. What it
 * means, the driver finds out: that takes more code than a wire should bring along.
 */
export class ServiceFault extends Error {
  readonly payload: unknown;
  /** The name of the trouble, where the framing tells it. */
  readonly fault: string | undefined;

  constructor(payload: unknown, fault?: string) {
    super("The service broke off its answer.");
    this.name = "ServiceFault";
    this.payload = payload;
    this.fault = fault;
  }
}

/** Whether trouble of this kind is likely to pass by itself. */
export function isTransient(kind: FailureKind, status: number | undefined): boolean {
  if (TRANSIENT_KINDS.has(kind)) return true;
  if (kind !== "unknown" || status === undefined) return false;
  return TRANSIENT_STATUS.has(status) || status >= FIRST_SERVER_ERROR;
}
