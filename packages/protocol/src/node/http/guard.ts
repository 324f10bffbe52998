import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { fullError, ProtocolError } from "../../frames/protocol-error.ts";
import { TOKEN_PROTOCOL_PREFIX } from "../../transports/websocket.ts";
import { createTokenCheck } from "../base/token.ts";

export { makeToken, readOrMakeToken, createTokenCheck } from "../base/token.ts";

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const TOO_MANY = 429;
const HTTP_PORT = 80;

const LOOPBACK_NAMES: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];
const BEARER = /^Bearer +([\x21-\x7e]+)$/i;

/** Why a request was rejected. Each reason is counted. */
export type RefusalReason = "host" | "origin" | "token" | "connections";

/** Why a request is rejected, and its answer. */
export interface Refusal {
  reason: RefusalReason;
  status: number;
  error: ProtocolError;
}

/** Which requests a server accepts. */
export interface GuardOptions {
  token: string;
  /** The port that the server listens on, once it does. */
  port: () => number;
  /**
   * Names of the server beside those of loopback: `name:port`, or a name for the port that it
   * listens on and for no port, as behind a proxy.
   */
  hosts?: readonly string[];
  /** Origins of other sites whose pages may use the server: `https://example.org`. */
  origins?: readonly string[];
}

/** Decides which requests over HTTP and WebSocket are accepted. */
export class Guard {
  readonly #isToken: (given: string) => boolean;
  readonly #port: () => number;
  readonly #hosts: readonly string[];
  readonly #origins: ReadonlySet<string>;

  constructor({ token, port, hosts = [], origins = [] }: GuardOptions) {
    this.#isToken = createTokenCheck(token);
    this.#port = port;
    this.#hosts = [...LOOPBACK_NAMES, ...hosts.map((host) => host.toLowerCase())];
    this.#origins = new Set(origins.map((origin) => origin.toLowerCase()));
  }

  /** Why a request is rejected; undefined if it is accepted. */
  check(request: IncomingMessage): Refusal | undefined {
    return this.checkPlace(request) ?? this.#checkToken(request);
  }

  /**
   * The same without the token. A page whose own name points here (DNS rebinding) sends that name
   * as the host; a page of another site sends its origin.
   */
  checkPlace({ headers: { host = "", origin } }: IncomingMessage): Refusal | undefined {
    if (!this.#isOurHost(host.toLowerCase())) {
      const what = `This server is not called "${host}". Allow that host: hosts: [${JSON.stringify(host)}] of listenHttp, or gyre serve --allow-host. Or call the server by another name.`;
      return forbid("host", what);
    }
    if (origin === undefined || isSameOrigin(origin, host)) return undefined;
    if (this.#origins.has(origin.toLowerCase())) return undefined;
    return forbid("origin", `Pages of "${origin}" may not use this server. Allow that origin.`);
  }

  /** The headers that let pages of an allowed origin read the answer. */
  buildCorsHeaders({ headers: { host = "", origin } }: IncomingMessage): OutgoingHttpHeaders {
    if (origin === undefined || !this.#origins.has(origin.toLowerCase())) return {};
    if (isSameOrigin(origin, host)) return {};
    return {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST, DELETE",
      "access-control-allow-headers": "authorization, content-type, last-event-id",
      "access-control-expose-headers": "gyre-stream, retry-after",
      "access-control-max-age": "600",
      vary: "origin",
    };
  }

  #isOurHost(host: string): boolean {
    const port = this.#port();
    return this.#hosts.some((name, at) => {
      if (host === `${name}:${port}`) return true;
      // Loopback without a port means port 80; another name may be that of a proxy.
      return host === name && (at >= LOOPBACK_NAMES.length || port === HTTP_PORT);
    });
  }

  #checkToken({ headers }: IncomingMessage): Refusal | undefined {
    const given = BEARER.exec(headers.authorization ?? "")?.[1] ?? findTokenInProtocols(headers);
    if (given !== undefined && this.#isToken(given)) return undefined;
    const what =
      given === undefined
        ? 'A token is needed: "Authorization: Bearer …".'
        : "This is not the token of this server.";
    const error = new ProtocolError("unauthorized", what);
    return { reason: "token", status: UNAUTHORIZED, error };
  }
}

/** The answer to one connection too many. */
export function refuseTooMany(max: number): Refusal {
  return { reason: "connections", status: TOO_MANY, error: fullError(max) };
}

function forbid(reason: RefusalReason, what: string): Refusal {
  return { reason, status: FORBIDDEN, error: new ProtocolError("unauthorized", what) };
}

function isSameOrigin(origin: string, host: string): boolean {
  const lower = origin.toLowerCase();
  // Behind a proxy with TLS, the page has https.
  return [`http://${host.toLowerCase()}`, `https://${host.toLowerCase()}`].includes(lower);
}

/** Browsers set no headers on a WebSocket: the token is one of the subprotocols. */
function findTokenInProtocols(headers: IncomingMessage["headers"]): string | undefined {
  const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((each) => each.trim());
  const found = offered.find((each) => each.startsWith(TOKEN_PROTOCOL_PREFIX));
  if (found === undefined) return undefined;
  return Buffer.from(found.slice(TOKEN_PROTOCOL_PREFIX.length), "base64url").toString();
}
