import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { ProtocolError } from "../../frames/protocol-error.ts";
import { TOKEN_PROTOCOL_PREFIX } from "../../transports/websocket.ts";
import { createTokenCheck } from "../base/token.ts";

export { makeToken, readOrMakeToken, createTokenCheck } from "../base/token.ts";

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const TOO_MANY = 429;
const HTTP_PORT = 80;

const LOOPBACK_NAMES: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];
const BEARER = /^Bearer +([\x21-\x7e]+)$/i;

/** Why somebody was turned away: these are counted. */
export type RefusalReason = "host" | "origin" | "token" | "connections";

/** Why somebody is turned away, and what is answered. */
export interface Refusal {
  reason: RefusalReason;
  status: number;
  error: ProtocolError;
}

/** Whom a server lets in. */
export interface GuardOptions {
  token: string;
  /** The port that the server listens on, once it does. */
  port: () => number;
  /**
   * Names that the server is called by beside those of loopback: `name:port`, or a name for
   * the port that it listens on or for none, as behind a proxy.
   */
  hosts?: readonly string[];
  /** Pages of other origins that may come: `https://example.org`. */
  origins?: readonly string[];
}

/** Who may come in over HTTP and WebSocket. */
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

  /** What is wrong with a request; nothing: it may come in. */
  check(request: IncomingMessage): Refusal | undefined {
    return this.checkPlace(request) ?? this.#checkToken(request);
  }

  /**
   * The same without the token. A page that had its own name point here (DNS rebinding) has
   * that name as the host; a page of another site tells its origin.
   */
  checkPlace({ headers: { host = "", origin } }: IncomingMessage): Refusal | undefined {
    if (!this.#isOurHost(host.toLowerCase())) {
      const what = `This server is not called "${host}". Allow that host, or call it by another.`;
      return forbid("host", what);
    }
    if (origin === undefined || isSameOrigin(origin, host)) return undefined;
    if (this.#origins.has(origin.toLowerCase())) return undefined;
    return forbid("origin", `Pages of "${origin}" may not use this server. Allow that origin.`);
  }

  /** For pages of another origin that is allowed: that they may read the answer. */
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
      // Loopback without a port means port 80; another name may stand before a proxy.
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

/** For one connection too many. */
export function refuseTooMany(max: number): Refusal {
  const what = `This server has all of its ${max} connections. Try again later.`;
  return {
    reason: "connections",
    status: TOO_MANY,
    error: new ProtocolError("rate_limited", what),
  };
}

function forbid(reason: RefusalReason, what: string): Refusal {
  return { reason, status: FORBIDDEN, error: new ProtocolError("unauthorized", what) };
}

function isSameOrigin(origin: string, host: string): boolean {
  const lower = origin.toLowerCase();
  // Behind a proxy that does the encryption, the page is one of https.
  return [`http://${host.toLowerCase()}`, `https://${host.toLowerCase()}`].includes(lower);
}

/** Browsers can give a WebSocket no header: there the token is one of the subprotocols. */
function findTokenInProtocols(headers: IncomingMessage["headers"]): string | undefined {
  const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((each) => each.trim());
  const found = offered.find((each) => each.startsWith(TOKEN_PROTOCOL_PREFIX));
  if (found === undefined) return undefined;
  return Buffer.from(found.slice(TOKEN_PROTOCOL_PREFIX.length), "base64url").toString();
}
