import {
  fullError,
  invalidRequest,
  ProtocolError,
  stoppingError,
} from "../frames/protocol-error.ts";
import type { Identity } from "../server/identity.ts";
import type { Transport } from "../transports/base/transport.ts";
import type { HttpReply, HttpRequest } from "./exchange.ts";
import type { PlaceCheck } from "./place.ts";
import { answerError, describeError, type ErrorAnswer, findRoute, type Route } from "./route.ts";

const NO_CONTENT = 204;
const NOT_FOUND = 404;
const NOT_ALLOWED = 405;
const TOO_MANY = 429;

/** Where a server has its WebSocket. */
export const WEBSOCKET_PATH = "/api/ws";

/** Why a request was rejected. Each reason is counted. */
export type RefusalReason = "host" | "origin" | "token" | "connections" | "memory";

/** Why a request is rejected, and its answer. */
export interface Refusal {
  reason: RefusalReason;
  status: number;
  error: ProtocolError;
}

/** What becomes of a request: it is let in, rejected, or answered with a response of the application. */
export type Admission =
  | { type: "admitted"; identity?: Identity | undefined }
  | { type: "refused"; refusal: Refusal }
  | { type: "answered"; response: Response };

/** What becomes of a request for a WebSocket: a function that serves it, or the answer in its place. */
export type SocketDecision =
  | { type: "admitted"; serve: (transport: Transport) => void }
  | { type: "refused"; answer: ErrorAnswer }
  | { type: "answered"; response: Response };

export interface HttpRouterOptions<R extends HttpRequest> {
  routes: readonly Route[];
  place: PlaceCheck;
  /** Decides about a request whose place is allowed. What it throws is answered with 500, and reported. */
  admit: (request: R) => Admission | Promise<Admission>;
  isClosing?: () => boolean;
  onRefused?: (request: R, refusal: Refusal) => void;
  /** Errors whose message no client gets. */
  onError?: ((error: unknown, where: string) => void) | undefined;
}

/**
 * Answers requests, whatever server has received them and however the answer gets out: checks of
 * host and origin, who may come in, CORS, routes, errors. What is asked of it is the same for
 * `listenHttp` and for a handler that is mounted elsewhere.
 */
export class HttpRouter<R extends HttpRequest = HttpRequest> {
  readonly #options: HttpRouterOptions<R>;

  constructor(options: HttpRouterOptions<R>) {
    this.#options = options;
  }

  /** Settles when the answer has begun, or the route has done its work. Never rejects. */
  async answer(request: R, reply: HttpReply): Promise<void> {
    const { isClosing, place } = this.#options;
    if (isClosing?.()) {
      return answerError(reply, stoppingError(), undefined, { connection: "close" });
    }
    const cors = place.buildCorsHeaders(request);
    if (cors) reply.addHeaders(cors);
    try {
      // A browser asks without the token whether it may send it (preflight).
      const isPreflight = request.method === "OPTIONS" && request.header("origin") !== undefined;
      const decided = isPreflight ? this.#checkPlace(request) : this.#admit(request);
      const admission = decided instanceof Promise ? await decided : decided;
      if (admission.type === "refused") return this.#refuse(reply, admission.refusal);
      if (admission.type === "answered") return await sendResponse(reply, admission.response);
      if (!isPreflight) return await this.#route(request, reply, admission.identity);
      reply.begin(NO_CONTENT);
      reply.end();
    } catch (error) {
      this.#fail(request, reply, error);
    }
  }

  /**
   * Decides about a request for a WebSocket, before that is accepted. `serve` gets its transport,
   * and who asks. Never rejects.
   */
  async admitSocket(
    request: R,
    serve: (transport: Transport, identity?: Identity) => void,
  ): Promise<SocketDecision> {
    try {
      const admission = await this.#admit(request);
      if (admission.type === "answered") return admission;
      if (admission.type === "refused") return refuseSocket(admission.refusal);
      if (request.path !== WEBSOCKET_PATH) {
        return refuseSocket({ error: notFoundError(request.path), status: NOT_FOUND });
      }
      if (this.#options.isClosing?.()) return refuseSocket({ error: stoppingError() });
      return { type: "admitted", serve: (transport) => serve(transport, admission.identity) };
    } catch (error) {
      this.#report(request, error);
      return refuseSocket({ error });
    }
  }

  #admit(request: R): Admission | Promise<Admission> {
    const placed = this.#checkPlace(request);
    if (placed.type !== "admitted") return placed;
    const decided = this.#options.admit(request);
    if (!(decided instanceof Promise)) return this.#note(request, decided);
    return decided.then((admission) => this.#note(request, admission));
  }

  #checkPlace(request: R): Admission {
    const refusal = this.#options.place.check(request);
    return this.#note(request, refusal ? { type: "refused", refusal } : { type: "admitted" });
  }

  #note(request: R, admission: Admission): Admission {
    if (admission.type === "refused") this.#options.onRefused?.(request, admission.refusal);
    return admission;
  }

  #refuse(reply: HttpReply, { error, status }: Refusal): void {
    answerError(reply, error, status, { connection: "close" });
  }

  async #route(request: R, reply: HttpReply, identity: Identity | undefined): Promise<void> {
    const { method, path } = request;
    const found = findRoute(this.#options.routes, method, path);
    if (found.route) return found.route.handle(request, reply, found.match, identity);
    const allowed = found.allowed.join(", ");
    if (allowed === "") return answerError(reply, notFoundError(path), NOT_FOUND);
    const error = invalidRequest(`${path} is asked with ${allowed}.`);
    answerError(reply, error, NOT_ALLOWED, { allow: allowed });
  }

  #fail(request: R, reply: HttpReply, error: unknown): void {
    this.#report(request, error);
    answerError(reply, error, undefined, { connection: "close" });
  }

  #report({ method, path }: R, error: unknown): void {
    if (!(error instanceof ProtocolError)) this.#options.onError?.(error, `${method} ${path}`);
  }
}

/** The answer to one connection too many. */
export function refuseTooMany(max: number): Refusal {
  return { reason: "connections", status: TOO_MANY, error: fullError(max) };
}

function notFoundError(path: string): ProtocolError {
  return invalidRequest(`There is nothing at ${path}.`);
}

function refuseSocket({ error, status }: { error: unknown; status?: number }): SocketDecision {
  return { type: "refused", answer: describeError(error, status) };
}

/** A response of the application, as it is. */
async function sendResponse(reply: HttpReply, response: Response): Promise<void> {
  const { headers, status } = response;
  const cookies = headers.getSetCookie();
  const sent = {
    ...Object.fromEntries(headers),
    ...(cookies.length > 0 && { "set-cookie": cookies }),
  };
  reply.begin(status, sent);
  const reader = response.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    if (reply.isOver) return reader?.cancel();
    reply.write(part.value);
  }
  reply.end();
}
