import { isRetryable } from "../../messages/failure.ts";
import type { Failure, FailureKind } from "../../messages/messages.ts";

/** An error of a service, for programs (`failure`) and for people (`message`). */
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
    return isRetryable(this.failure);
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
 * What a service sent in place of the rest of its response, such as an error object. Readers
 * throw it as it came; the driver finds out what it means, so that formats load no error tables.
 */
export class ServiceFault extends Error {
  readonly payload: unknown;
  /** The name of the error, where the framing has one. */
  readonly fault: string | undefined;

  constructor(payload: unknown, fault?: string) {
    super("The service ended its response with an error.");
    this.name = "ServiceFault";
    this.payload = payload;
    this.fault = fault;
  }
}

/** Whether an error says itself what it is: ours, and those of functions that look up keys. */
export function hasFailure(error: unknown): error is Error & { failure: Failure } {
  return error instanceof Error && "failure" in error && typeof error.failure === "object";
}
