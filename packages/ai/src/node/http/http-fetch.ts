import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from "node:http";
import { pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type {
  Fetch,
  FetchedResponse,
  FetchRequest,
  ResponseHeaders,
} from "../../providers/http/fetch.ts";
import { readProxies } from "./proxy.ts";

const FIRST_OK = 200;
const LAST_OK = 299;
/** Statuses of answers that have no body. */
const NO_BODY = new Set([101, 204, 205, 304]);

/** Connections are used again, and never keep a process alive that has nothing else to do. */
const REUSED = { keepAlive: true };
const http = new HttpAgent(REUSED);
let https: HttpAgent | undefined;

/** TLS takes longer to load than all the rest of this, and not every program asks an address that needs it. */
const loadHttps = (): typeof import("node:https") => process.getBuiltinModule("node:https");

const isSecure = (url: string): boolean => url.startsWith("https:");

/**
 * A `fetch` for the clients of this package, on Node's own `http`. The global one loads a
 * second implementation of HTTP, which costs a short-lived program a third of its time and
 * of its memory, and ends a response after 300 s of silence; here the caller's signal alone
 * decides that. Asks for no compression, and follows no redirect.
 */
export const httpFetch: Fetch = (url, init) => {
  if (!isSecure(url)) return send(url, init, http);
  https ??= new (loadHttps().Agent)(REUSED);
  return send(url, init, https);
};

/** The same through the proxies of the environment, as `readProxies` reads them; undefined where it names none. */
export function createProxyFetch(
  env: Readonly<Record<string, string | undefined>>,
): Fetch | undefined {
  const proxies = readProxies(env);
  if (!proxies) return undefined;
  const agents = new Map<string, HttpAgent>();
  return async (url, init) => {
    const proxy = proxies.find(new URL(url));
    if (!proxy) return httpFetch(url, init);
    const { createProxyAgent } = await import("./tunnel.ts");
    const name = `${isSecure(url)} ${proxy.href}`;
    const agent = agents.get(name) ?? createProxyAgent(proxy, isSecure(url));
    agents.set(name, agent);
    return send(url, init, agent);
  };
}

function send(
  url: string,
  { body, headers, method, signal }: FetchRequest,
  agent: HttpAgent,
): Promise<FetchedResponse> {
  return new Promise((resolve, reject) => {
    const open = isSecure(url) ? loadHttps().request : httpRequest;
    const request = open(url, {
      method,
      headers: {
        "accept-encoding": "identity",
        ...headers,
        ...(body !== undefined && { "content-length": String(Buffer.byteLength(body)) }),
      },
      agent,
      signal,
    });
    request.on("response", (response) => {
      // At once: what is wrong with the body may be known in the same moment.
      try {
        resolve(createResponse(response, signal));
      } catch (error) {
        response.destroy();
        reject(error);
      }
    });
    request.on("error", (error) => {
      reject(signal.aborted ? signal.reason : new TypeError("fetch failed", { cause: error }));
    });
    request.end(body);
  });
}

/** Throws where the body is in an encoding that is not known. */
function createResponse(response: IncomingMessage, signal: AbortSignal): FetchedResponse {
  const { statusCode: status = 0 } = response;
  const isEmpty = NO_BODY.has(status);
  if (isEmpty) response.resume();
  return {
    ok: status >= FIRST_OK && status <= LAST_OK,
    status,
    headers: createHeaders(response.rawHeaders),
    body: isEmpty ? null : createBody(decoded(response), signal),
  };
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** Some gateways compress whatever they were asked for. */
function decoded(response: IncomingMessage): Readable {
  const encoding = response.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return response;
  const decoder = DECODERS[encoding]?.();
  if (!decoder)
    throw new TypeError(`fetch failed: the answer has an unknown encoding, ${encoding}`);
  // The decoder reports what is wrong with either.
  return pipeline(response, decoder, () => {});
}

/** The bytes as they come: one piece at a time is read ahead. */
function createBody(source: Readable, signal: AbortSignal): ReadableStream<Uint8Array> {
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.on("data", (piece: Buffer) => {
          if (isOver) return;
          controller.enqueue(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
          if ((controller.desiredSize ?? 1) <= 0) source.pause();
        });
        source.once("end", () => {
          if (!isOver) controller.close();
          isOver = true;
        });
        source.on("error", (error) => {
          if (isOver) return;
          isOver = true;
          controller.error(
            signal.aborted ? signal.reason : new TypeError("terminated", { cause: error }),
          );
        });
      },
      pull: () => void source.resume(),
      cancel() {
        isOver = true;
        source.destroy();
      },
    },
    { highWaterMark: 1 },
  );
}

/** As `Headers` gives them: names in lower case, those that come twice joined by commas. */
function createHeaders(raw: readonly string[]): ResponseHeaders {
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
