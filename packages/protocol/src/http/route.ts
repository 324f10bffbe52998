import { errorMessage } from "@gyre/ai";
import { type ErrorCode, ProtocolError } from "../frames/protocol-error.ts";
import type { Identity } from "../server/identity.ts";
import type { HttpHeaders, HttpReply, HttpRequest } from "./exchange.ts";

/** A route of a server over HTTP. Requests that are not authorized were rejected before. */
export interface Route {
  readonly method: string;
  /** The whole path, or a pattern for it whose groups `handle` gets. */
  readonly path: string | RegExp;
  /**
   * Answers a request. `match` has the groups of the pattern, `identity` says who asks, where the
   * server knows. An error that it throws before it has answered goes to `answerError`.
   */
  handle(
    request: HttpRequest,
    reply: HttpReply,
    match: readonly string[],
    identity?: Identity,
  ): void | Promise<void>;
}

/** The route of a request, or the methods that its path has; an empty list for an unknown path. */
export type FoundRoute =
  | { route: Route; match: readonly string[] }
  | { route: undefined; allowed: readonly string[] };

/** Finds the route for a method and a path (without its query). */
export function findRoute(routes: readonly Route[], method: string, path: string): FoundRoute {
  const allowed: string[] = [];
  for (const route of routes) {
    const match = matchPath(route.path, path);
    if (!match) continue;
    if (route.method === method) return { route, match };
    allowed.push(route.method);
  }
  return { route: undefined, allowed };
}

function matchPath(wanted: string | RegExp, path: string): readonly string[] | undefined {
  if (typeof wanted === "string") return wanted === path ? [] : undefined;
  const found = wanted.exec(path);
  return found?.[0] === path ? found.slice(1).map((group) => group ?? "") : undefined;
}

const STATUS_OF: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  unauthorized: 401,
  model_not_found: 404,
  provider_error: 502,
  rate_limited: 429,
  context_overflow: 400,
  stream_not_found: 404,
  stream_exists: 409,
  session_not_found: 404,
  session_busy: 409,
  file_not_found: 404,
  tool_not_found: 404,
  version_mismatch: 400,
  invalid_sequence: 409,
  too_large: 413,
  too_many_streams: 429,
  timeout: 408,
  not_implemented: 501,
  unavailable: 503,
  internal_error: 500,
};

const MS_PER_SECOND = 1000;

/** The HTTP status of an error code. */
export function httpStatus(code: ErrorCode): number {
  return STATUS_OF[code];
}

/** The value of `Retry-After`, if the server knows how long to wait. */
function formatRetryAfter({ details }: ProtocolError): string | undefined {
  const { retryAfterMs: waitMs } = details;
  return typeof waitMs === "number" ? String(Math.ceil(waitMs / MS_PER_SECOND)) : undefined;
}

/** The answer to a request that is refused. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** `{"error": {"code", "message", …}}` */
  readonly body: string;
}

/** An error as an answer. The message of one that is not a `ProtocolError` is left out. */
export function describeError(error: unknown, status?: number): ErrorAnswer {
  const isPublic = error instanceof ProtocolError;
  const code = isPublic ? error.code : "internal_error";
  const message = isPublic ? errorMessage(error) : "Something went wrong in the server.";
  const details = isPublic ? error.details : {};
  const wait = isPublic ? formatRetryAfter(error) : undefined;
  return {
    status: status ?? httpStatus(code),
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      ...(wait !== undefined && { "retry-after": wait }),
    },
    body: JSON.stringify({ error: { ...details, code, message } }),
  };
}

/**
 * Answers with an error: its status, and `{"error": {"code", "message", …}}`. The message of an
 * error that is not a `ProtocolError` is not sent. A response that has begun is cut off instead.
 */
export function answerError(
  reply: HttpReply,
  error: unknown,
  status?: number,
  headers: HttpHeaders = {},
): void {
  if (reply.hasBegun) return reply.cut();
  const answer = describeError(error, status);
  reply.begin(answer.status, { ...answer.headers, ...headers });
  reply.end(answer.body);
}
