import { errorMessage, type Failure, type FailureKind, isRecord, isRetryable } from "@gyre/ai";
import { type Payload } from "../frames/envelope.ts";
import { toFailure } from "../frames/failure-kind.ts";
import { isErrorCode, ProtocolError } from "../frames/protocol-error.ts";

/** A longer message of a server is truncated, in characters. */
const MAX_MESSAGE_CHARS = 500;
/** Of an event that is not JSON, the error shows this many characters. */
const SHOWN_CHARS = 200;
const MS_PER_SECOND = 1000;

const KIND_OF_STATUS: Readonly<Record<number, FailureKind>> = {
  401: "auth",
  402: "quota",
  403: "auth",
  408: "timeout",
  429: "rate_limit",
};
const FIRST_ERROR = 400;
const TOO_LARGE = 413;
const FIRST_SERVER_ERROR = 500;

/** The part of a `Response` that the proxy client reads. */
export interface ProxyResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly type?: string;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}

/** A request through a proxy that failed: what a program acts on is in `failure`. */
export class ProxyError extends Error {
  readonly failure: Failure;

  constructor(message: string, failure: Failure, options?: ErrorOptions) {
    super(message, options);
    this.name = "ProxyError";
    this.failure = { ...failure, retryable: isRetryable(failure) };
  }
}

/**
 * Explains a response that is not a stream of events. `at.url` is where it came from, `at.now` the
 * time in milliseconds since 1970.
 */
export function explainResponse(
  { status, headers, type }: ProxyResponse,
  body: string,
  at: { url: string; now: number },
): ProxyError {
  const known = status > 0 ? { status } : {};
  if (type === "opaqueredirect" || (status >= 300 && status < FIRST_ERROR)) {
    return new ProxyError(
      `${at.url} redirects, and the token is not sent elsewhere. Give streamProxy the url that is meant.`,
      { kind: "bad_request", retryable: false, ...known },
    );
  }
  const error = parseError(body);
  const code = error["code"] ?? (status === TOO_LARGE ? "too_large" : undefined);
  if (status < FIRST_ERROR && code === undefined) {
    const what = headers.get("content-type")?.split(";", 1)[0] || "something without a type";
    return new ProxyError(
      `${at.url} answered ${status} with ${what} in place of text/event-stream. Check that url is that of a gyre server.`,
      { kind: "unknown", retryable: false, ...known },
    );
  }
  const failure: Failure = isErrorCode(code)
    ? toFailure(new ProtocolError(code, "", { details: error }))
    : { kind: classifyStatus(status) };
  const { kind, retryAfterMs = parseRetryAfter(headers, at.now) } = failure;
  const { message } = error;
  const what = typeof message === "string" ? `: ${message.slice(0, MAX_MESSAGE_CHARS)}` : ".";
  return new ProxyError(`${at.url} answered ${status}${what} ${chooseAdvice(kind, code)}`.trim(), {
    kind,
    ...known,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/** Whether a second request for the rest of a stream may succeed. */
export function isTransient({ failure: { kind, status = 0 } }: ProxyError): boolean {
  return kind === "rate_limit" || kind === "timeout" || status >= FIRST_SERVER_ERROR;
}

function classifyStatus(status: number): FailureKind {
  return KIND_OF_STATUS[status] ?? (status >= FIRST_SERVER_ERROR ? "overloaded" : "bad_request");
}

function parseError(body: string): Payload {
  try {
    const value: unknown = JSON.parse(body);
    return isRecord(value) && isRecord(value["error"]) ? value["error"] : {};
  } catch {
    // A page of a server in between: the status has to do.
    return {};
  }
}

/** `Retry-After`: seconds, or a date. */
function parseRetryAfter(headers: ProxyResponse["headers"], now: number): number | undefined {
  const given = headers.get("retry-after")?.trim();
  if (!given) return undefined;
  if (/^\d+$/.test(given)) return Number(given) * MS_PER_SECOND;
  const ms = Date.parse(given) - now;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function chooseAdvice(kind: FailureKind, code: unknown): string {
  if (code === "model_not_found") return "Ask for a model that it lists.";
  if (code === "too_large") return "Make the request smaller.";
  switch (kind) {
    case "auth":
      return "Check the token.";
    case "overflow":
      return "Shorten the conversation, or use a model with a larger context.";
    case "bad_request":
      return "Check the url and the request.";
    default:
      return "Try again in a while.";
  }
}

export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(errorMessage(error));
}

/** The error that `fetch` throws is general; its cause is specific. */
function formatReason(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return errorMessage(cause instanceof Error ? cause : error);
}

/** Any thrown value, as a failure of the server at `url`. */
export function toProxyError(error: unknown, url: string): ProxyError {
  if (error instanceof ProxyError) return error;
  return new ProxyError(
    `The answer of ${url} cannot be read: ${errorMessage(error)} Try again; if that does not help, bring both ends to one version.`,
    { kind: "incomplete" },
    { cause: error },
  );
}

export function unwritableError(error: unknown): ProxyError {
  return new ProxyError(
    `The request cannot be written as JSON: ${errorMessage(error)}`,
    { kind: "bad_request", retryable: false },
    { cause: error },
  );
}

export function abortedError(): ProxyError {
  return new ProxyError("The request was aborted.", { kind: "aborted", retryable: false });
}

export function unreachableError(url: string, error: unknown): ProxyError {
  return new ProxyError(
    `${url} cannot be reached (${formatReason(error)}). Check that the server runs there, and the network.`,
    { kind: "network" },
    { cause: error },
  );
}

export function silenceError(url: string, ms: number): ProxyError {
  return new ProxyError(
    `${url} sent nothing for ${ms / MS_PER_SECOND} s. Try again, or look whether it runs.`,
    { kind: "timeout" },
  );
}

export function brokenConnectionError(url: string, cause: Error): ProxyError {
  return new ProxyError(
    `The connection to ${url} broke before the answer was whole (${formatReason(cause)}). Try again.`,
    { kind: "network" },
    { cause },
  );
}

/** The data of an event. Throws where it is not a JSON object. */
export function parseEventData(data: string): Payload {
  const value = tryParseEventData(data);
  if (value) return value;
  throw new ProxyError(
    `The response has an event that is not a JSON object: ${data.slice(0, SHOWN_CHARS)}. Try again.`,
    { kind: "incomplete" },
  );
}

/** The data of an event, or undefined where it is not a JSON object. */
export function tryParseEventData(data: string): Payload | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    // Data that was cut off is no JSON: callers decide what that means.
    return undefined;
  }
}
