import { type Failure, type FailureKind, errorMessage, isRecord } from "@gyre/ai";
import { type FetchedResponse, ProviderError } from "@gyre/ai/providers";
import { type Payload } from "../frames/envelope.ts";
import { toFailure } from "../frames/failure-kind.ts";
import { isErrorCode, ProtocolError } from "../frames/protocol-error.ts";

/** The words of a server are cut here, in characters. */
const MAX_WORDS = 500;
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

/** Why a response is no stream of events. `url`: of whom it came; `now`: milliseconds since 1970. */
export function explainResponse(
  { status, headers, type }: FetchedResponse,
  body: string,
  at: { url: string; now: number },
): ProviderError {
  const told = status > 0 ? { status } : {};
  if (type === "opaqueredirect" || (status >= 300 && status < FIRST_ERROR)) {
    return new ProviderError(
      `${at.url} redirects, and the token is not sent elsewhere. Give streamProxy the url that is meant.`,
      { kind: "bad_request", retryable: false, ...told },
    );
  }
  const error = parseError(body);
  const code = error["code"] ?? (status === TOO_LARGE ? "too_large" : undefined);
  if (status < FIRST_ERROR && code === undefined) {
    const what = headers.get("content-type")?.split(";", 1)[0] || "something without a type";
    return new ProviderError(
      `${at.url} answered ${status} with ${what} in place of text/event-stream. Check that url is that of a gyre server.`,
      { kind: "unknown", retryable: false, ...told },
    );
  }
  const failure: Failure = isErrorCode(code)
    ? toFailure(new ProtocolError(code, "", { details: error }))
    : { kind: classifyStatus(status) };
  const { kind, retryAfterMs = parseRetryAfter(headers, at.now) } = failure;
  const words =
    typeof error["message"] === "string" ? `: ${error["message"].slice(0, MAX_WORDS)}` : ".";
  return new ProviderError(
    `${at.url} answered ${status}${words} ${chooseAdvice(kind, code)}`.trim(),
    {
      kind,
      ...told,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    },
  );
}

/** Whether who asks for the rest of a stream may get it by asking once more. */
export function isTransient({ kind, status = 0 }: ProviderError): boolean {
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
    // A page, or the words of something in between: the status says what there is to say.
    return {};
  }
}

/** `Retry-After`: seconds, or a date. */
function parseRetryAfter(headers: FetchedResponse["headers"], now: number): number | undefined {
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

/** What a `fetch` throws says little; its cause says more. */
function formatReason(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return errorMessage(cause instanceof Error ? cause : error);
}

/** What was thrown, as trouble with the server at `url`. */
export function toProviderError(error: unknown, url: string): ProviderError {
  if (error instanceof ProviderError) return error;
  return new ProviderError(
    `The answer of ${url} cannot be read: ${errorMessage(error)} Try again; if that does not help, bring both ends to one version.`,
    { kind: "incomplete" },
    { cause: error },
  );
}

export function unwritableError(error: unknown): ProviderError {
  return new ProviderError(
    `The request cannot be written as JSON: ${errorMessage(error)}`,
    { kind: "bad_request", retryable: false },
    { cause: error },
  );
}

export function abortedError(): ProviderError {
  return new ProviderError("The request was aborted.", { kind: "aborted", retryable: false });
}

export function unreachableError(url: string, error: unknown): ProviderError {
  return new ProviderError(
    `${url} cannot be reached (${formatReason(error)}). Check that the server runs there, and the network.`,
    { kind: "network" },
    { cause: error },
  );
}

export function silenceError(url: string, ms: number): ProviderError {
  return new ProviderError(
    `${url} sent nothing for ${ms / MS_PER_SECOND} s. Try again, or look whether it runs.`,
    { kind: "timeout" },
  );
}

export function brokenConnectionError(url: string, trouble: Error): ProviderError {
  return new ProviderError(
    `The connection to ${url} broke before the answer was whole (${formatReason(trouble)}). Try again.`,
    { kind: "network" },
    { cause: trouble },
  );
}
