import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Fetch, FetchedResponse, ResponseHeaders } from "../providers/wire.ts";

const FIRST_OK = 200;
const LAST_OK = 299;
/** Statuses of answers that have no body. */
const NO_BODY = new Set([101, 204, 205, 304]);

/** Connections are used again, and never keep a process alive that has nothing else to do. */
const http = new HttpAgent({ keepAlive: true });
const https = new HttpsAgent({ keepAlive: true });

/**
 * A `fetch` for the clients of this package, on Node's own `http`. The global one loads a
 * second implementation of HTTP, which costs a short-lived program a third of its time and
 * of its memory, and ends a response after 300 s of silence; here the caller's signal alone
 * decides that. Asks for no compression, and follows no redirect.
 */
export const httpFetch: Fetch = (url, { body, headers, method, signal }) =>
  new Promise((resolve, reject) => {
    const isSecure = url.startsWith("https:");
    const send = isSecure ? httpsRequest : httpRequest;
    const request = send(url, {
      method,
      headers: {
        "accept-encoding": "identity",
        ...headers,
        "content-length": String(Buffer.byteLength(body)),
      },
      agent: isSecure ? https : http,
      signal,
    });
    request.on("response", (response) => resolve(answerOf(response, signal)));
    request.on("error", (error) => {
      reject(signal.aborted ? signal.reason : new TypeError("fetch failed", { cause: error }));
    });
    request.end(body);
  });

function answerOf(response: IncomingMessage, signal: AbortSignal): FetchedResponse {
  const { statusCode: status = 0 } = response;
  if (NO_BODY.has(status)) response.resume();
  return {
    ok: status >= FIRST_OK && status <= LAST_OK,
    status,
    headers: headersOf(response.rawHeaders),
    body: NO_BODY.has(status) ? null : bodyOf(response, signal),
  };
}

/** The bytes as they come: one piece at a time is read ahead. */
function bodyOf(response: IncomingMessage, signal: AbortSignal): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        response.on("data", (piece: Buffer) => {
          controller.enqueue(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
          if ((controller.desiredSize ?? 1) <= 0) response.pause();
        });
        response.once("end", () => controller.close());
        response.once("error", (error) => {
          controller.error(
            signal.aborted ? signal.reason : new TypeError("terminated", { cause: error }),
          );
        });
      },
      pull: () => void response.resume(),
      cancel: () => void response.destroy(),
    },
    { highWaterMark: 1 },
  );
}

/** As `Headers` gives them: names in lower case, those that come twice joined by commas. */
function headersOf(raw: readonly string[]): ResponseHeaders {
  const headers = new Map<string, string>();
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = (raw[index] ?? "").toLowerCase();
    const value = raw[index + 1] ?? "";
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return {
    get: (name) => headers.get(name.toLowerCase()) ?? null,
    forEach: (take) => headers.forEach((value, name) => take(value, name)),
  };
}
