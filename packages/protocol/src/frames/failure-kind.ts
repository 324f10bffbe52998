import type { Failure, FailureKind } from "@gyre/ai";
import type { ErrorCode, ProtocolError } from "./protocol-error.ts";

const KINDS: Readonly<Record<ErrorCode, FailureKind>> = {
  invalid_request: "bad_request",
  unauthorized: "auth",
  model_not_found: "bad_request",
  provider_error: "unknown",
  rate_limited: "rate_limit",
  context_overflow: "overflow",
  stream_not_found: "network",
  stream_exists: "bad_request",
  session_not_found: "bad_request",
  session_busy: "bad_request",
  file_not_found: "bad_request",
  tool_not_found: "bad_request",
  version_mismatch: "bad_request",
  invalid_sequence: "network",
  // A shorter conversation fits into a frame.
  too_large: "overflow",
  too_many_streams: "overloaded",
  timeout: "timeout",
  not_implemented: "bad_request",
  unavailable: "overloaded",
  internal_error: "unknown",
};

/** An error of the protocol as the failure of a request to a model. */
export function toFailure({ code, details }: ProtocolError): Failure {
  const { retryAfterMs } = details;
  return { kind: KINDS[code], ...(typeof retryAfterMs === "number" && { retryAfterMs }) };
}
