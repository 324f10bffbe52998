import { ProtocolError } from "../../frames/protocol-error.ts";
import type { HttpRequest } from "../../http/exchange.ts";
import { PlaceCheck } from "../../http/place.ts";
import type { Refusal } from "../../http/router.ts";
import { findSentToken } from "../../http/sent-token.ts";
import { createTokenCheck } from "../base/token.ts";

export { makeToken, readOrMakeToken, createTokenCheck } from "../base/token.ts";

const UNAUTHORIZED = 401;
const HTTP_PORT = 80;

const LOOPBACK_NAMES: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

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

/** Decides which requests over HTTP and WebSocket a listener accepts. */
export class Guard {
  /** By the host and the origin. */
  readonly place: PlaceCheck;
  readonly #isToken: (given: string) => boolean;
  readonly #port: () => number;
  readonly #hosts: readonly string[];

  constructor({ token, port, hosts = [], origins = [] }: GuardOptions) {
    this.#isToken = createTokenCheck(token);
    this.#port = port;
    this.#hosts = [...LOOPBACK_NAMES, ...hosts.map((host) => host.toLowerCase())];
    this.place = new PlaceCheck({ origins, findHostProblem: (host) => this.#findProblem(host) });
  }

  /** Why a request is rejected by its token; undefined if it is accepted. */
  checkToken(request: HttpRequest): Refusal | undefined {
    const given = findSentToken((name) => request.header(name));
    if (given !== undefined && this.#isToken(given)) return undefined;
    const what =
      given === undefined
        ? 'A token is needed: "Authorization: Bearer …".'
        : "This is not the token of this server.";
    const error = new ProtocolError("unauthorized", what);
    return { reason: "token", status: UNAUTHORIZED, error };
  }

  #findProblem(host: string): string | undefined {
    if (this.#isOurHost(host.toLowerCase())) return undefined;
    return `This server is not called "${host}". Allow that host: hosts: [${JSON.stringify(host)}] of listenHttp, or gyre serve --allow-host. Or call the server by another name.`;
  }

  #isOurHost(host: string): boolean {
    const port = this.#port();
    return this.#hosts.some((name, at) => {
      if (host === `${name}:${port}`) return true;
      // Loopback without a port means port 80; another name may be that of a proxy.
      return host === name && (at >= LOOPBACK_NAMES.length || port === HTTP_PORT);
    });
  }
}
