import { ProtocolError } from "../frames/protocol-error.ts";
import type { HttpHeaders, HttpRequest } from "./exchange.ts";
import type { Refusal, RefusalReason } from "./router.ts";

const FORBIDDEN = 403;

export interface PlaceCheckOptions {
  /** Origins of other sites whose pages may use the server: `https://example.org`. */
  origins?: readonly string[];
  /** Why a server is not called by this name, a sentence; undefined: it is. Default: it has any name. */
  findHostProblem?: (host: string) => string | undefined;
}

/** Decides from where requests may come: by the name that they call the server, and the page that sends them. */
export class PlaceCheck {
  readonly #origins: ReadonlySet<string>;
  readonly #findHostProblem: (host: string) => string | undefined;

  constructor({ origins = [], findHostProblem = () => undefined }: PlaceCheckOptions) {
    this.#origins = new Set(origins.map((origin) => origin.toLowerCase()));
    this.#findHostProblem = findHostProblem;
  }

  /**
   * Why a request is rejected; undefined if it is accepted. A page whose own name points here (DNS
   * rebinding) sends that name as the host; a page of another site sends its origin.
   */
  check(request: HttpRequest): Refusal | undefined {
    const host = request.header("host") ?? "";
    const problem = this.#findHostProblem(host);
    if (problem !== undefined) return forbid("host", problem);
    const origin = request.header("origin");
    if (origin === undefined || isSameOrigin(origin, host)) return undefined;
    if (this.#origins.has(origin.toLowerCase())) return undefined;
    return forbid("origin", `Pages of "${origin}" may not use this server. Allow that origin.`);
  }

  /** The headers that let pages of an allowed origin read the answer; undefined: it needs none. */
  buildCorsHeaders(request: HttpRequest): HttpHeaders | undefined {
    const origin = request.header("origin");
    if (origin === undefined || !this.#origins.has(origin.toLowerCase())) return undefined;
    if (isSameOrigin(origin, request.header("host") ?? "")) return undefined;
    return {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST, DELETE",
      "access-control-allow-headers": "authorization, content-type, last-event-id",
      "access-control-expose-headers": "gyre-stream, retry-after",
      "access-control-max-age": "600",
      vary: "origin",
    };
  }
}

function forbid(reason: RefusalReason, what: string): Refusal {
  return { reason, status: FORBIDDEN, error: new ProtocolError("unauthorized", what) };
}

function isSameOrigin(origin: string, host: string): boolean {
  const lower = origin.toLowerCase();
  // Behind a proxy with TLS, the page has https.
  return [`http://${host.toLowerCase()}`, `https://${host.toLowerCase()}`].includes(lower);
}
