import { isRecord } from "@gyre/ai";

/** The largest body of a request that is read. */
export const DEFAULT_MAX_BODY_BYTES: number = 8 * 1024 * 1024;

/** A request that is refused: `status`, and a sentence that says why. */
export class RequestError extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = "RequestError";
    this.status = status;
    this.code = code;
  }
}

/** The refusal as a response: JSON with `code` and `message`. */
export function toErrorResponse({ status, code, message }: RequestError): Response {
  return Response.json({ error: { code, message } }, { status });
}

/** The JSON object of a body. Throws `RequestError`; reads no more than `maxBytes`. */
export async function readJsonBody(
  request: Request,
  maxBytes: number = DEFAULT_MAX_BODY_BYTES,
): Promise<Record<string, unknown>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    size += part.value.length;
    if (size > maxBytes) {
      await reader?.cancel();
      throw new RequestError(413, "too_large", `The body has more than ${maxBytes} bytes.`);
    }
    chunks.push(part.value);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  const value = parse(new TextDecoder().decode(bytes));
  if (!isRecord(value)) {
    throw new RequestError(400, "invalid_request", "The body is not a JSON object.");
  }
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Pages of other origins that may use a route. */
export interface CorsOptions {
  /** Origins such as `https://shop.example`; `"*"` for all, which get no cookies. */
  origins: readonly string[] | "*";
  /** Whether cookies are accepted; not with `"*"`. */
  credentials?: boolean;
  /** Headers that a page may send beside `content-type`. */
  headers?: readonly string[];
}

const PREFLIGHT_SECONDS = 600;

/** The route for pages of other origins: answers preflight requests, and marks its responses. */
export function withCors(
  route: (request: Request) => Promise<Response>,
  { origins, credentials = false, headers = [] }: CorsOptions,
): (request: Request) => Promise<Response> {
  if (origins === "*" && credentials) {
    throw new TypeError('Cookies of all origins cannot be accepted: list the `origins`, not "*".');
  }
  return async (request) => {
    const origin = request.headers.get("origin");
    const isAllowed = origin !== null && (origins === "*" || origins.includes(origin));
    const isPreflight =
      request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    const response = isPreflight ? new Response(undefined, { status: 204 }) : await route(request);
    if (!isAllowed) return response;
    const marked = new Headers(response.headers);
    marked.set("access-control-allow-origin", origins === "*" ? "*" : origin);
    marked.append("vary", "origin");
    if (credentials) marked.set("access-control-allow-credentials", "true");
    if (isPreflight) {
      marked.set("access-control-allow-methods", "GET, POST, OPTIONS");
      marked.set(
        "access-control-allow-headers",
        ["content-type", "last-event-id", ...headers].join(", "),
      );
      marked.set("access-control-max-age", String(PREFLIGHT_SECONDS));
    }
    const { status, statusText } = response;
    return new Response(response.body, { status, statusText, headers: marked });
  };
}
