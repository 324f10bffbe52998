import { isRecord } from "@gyre/ai";

/** The codes of errors. */
export const ERROR_CODES = [
  "invalid_request",
  "unauthorized",
  "model_not_found",
  "provider_error",
  "rate_limited",
  "context_overflow",
  "stream_not_found",
  "stream_exists",
  "session_not_found",
  "session_busy",
  "file_not_found",
  "tool_not_found",
  "version_mismatch",
  "invalid_sequence",
  "too_large",
  "too_many_streams",
  "timeout",
  "not_implemented",
  "unavailable",
  "internal_error",
] as const;

/** One of `ERROR_CODES`. */
export type ErrorCode = (typeof ERROR_CODES)[number];

const CODES: ReadonlySet<unknown> = new Set(ERROR_CODES);

export function isErrorCode(value: unknown): value is ErrorCode {
  return CODES.has(value);
}

/** An error of the protocol: `code` is for programs, `message` for people. */
export class ProtocolError extends Error {
  readonly code: ErrorCode;
  /** The id of the message that it answers, where that could be read. */
  readonly re: string | undefined;
  /** Further fields of the answer, such as the supported versions. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: ProtocolErrorOptions = {}) {
    super(message, options);
    this.name = "ProtocolError";
    this.code = code;
    this.re = options.re;
    this.details = options.details ?? {};
  }
}

type ProtocolErrorOptions = ErrorOptions & {
  re?: string;
  details?: Readonly<Record<string, unknown>>;
};

export function invalidRequest(message: string, options?: ProtocolErrorOptions): ProtocolError {
  return new ProtocolError("invalid_request", message, options);
}

/** How long a client does well to wait before it asks a server again that is full or stops. */
const RETRY_AFTER_MS = 5000;

/** The server is about to stop: the same request may succeed later, or at another one. */
export function stoppingError(): ProtocolError {
  const what = "The server is about to stop, and begins nothing new. Try again in a while.";
  return new ProtocolError("unavailable", what, { details: { retryAfterMs: RETRY_AFTER_MS } });
}

/** The server has all the connections that it may have. */
export function fullError(max: number): ProtocolError {
  const what = `This server has all of its ${max} connections. Try again later.`;
  return new ProtocolError("rate_limited", what, { details: { retryAfterMs: RETRY_AFTER_MS } });
}

/** The error in the body of an HTTP answer, `{"error": {"code", "message"}}`; undefined if it has none. */
export function parseErrorBody(body: unknown): ProtocolError | undefined {
  const error = isRecord(body) ? body["error"] : undefined;
  if (!isRecord(error) || !isErrorCode(error["code"])) return undefined;
  return new ProtocolError(error["code"], String(error["message"]));
}

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;

/**
 * A status in place of an answer of ours, as a server sends it that a handler is mounted in. One that
 * refuses the client itself is `unauthorized`: it does not try again.
 */
export function createStatusError(status: number, cause?: unknown): Error {
  const what = `The server answered with status ${status}.`;
  const isRefused = status === UNAUTHORIZED || status === FORBIDDEN;
  return isRefused
    ? new ProtocolError("unauthorized", what, { cause })
    : new Error(what, { cause });
}
