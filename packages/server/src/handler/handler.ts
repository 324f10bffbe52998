import { type Clock, systemClock } from "@gyre/ai";
import {
  CLOSE_GRACE_MS,
  type Identity,
  type Limits,
  MAX_CONNECTIONS,
  ProtocolError,
  type Transport,
  WireServer,
  type WireService,
} from "@gyre/protocol";
import {
  type Admission,
  answerRequest,
  createFileRoutes,
  createSocketTransport,
  describeError,
  type ErrorAnswer,
  HttpConnections,
  type HttpReply,
  type HttpRequest,
  HttpRouter,
  PlaceCheck,
  refuseTooMany,
  type SocketDecision,
  WEBSOCKET_PATH,
  WEBSOCKET_PROTOCOL,
  WebRequest,
} from "@gyre/protocol/http";
import type { SessionStorage } from "@gyre/sessions";
import { MemorySessions } from "@gyre/sessions/memory";
import type { SessionHost } from "../sessions/session-host.ts";
import { type SessionRequest, SessionService } from "../sessions/session-service.ts";
import type { AgentFactories } from "./agents.ts";
import { type Authorize, checkAuthorized } from "./authorize.ts";
import { detectMemory, findMemoryProblem, type ServerMemory } from "./memory.ts";
import type { UpgradeWebSocket } from "./sockets.ts";
import { StoredHost } from "./stored-host.ts";

const UPGRADE_REQUIRED = 426;
const NOT_IMPLEMENTED = 501;

/** Paths whose requests open a connection. */
const CONNECTING_PATHS: ReadonlySet<string> = new Set([WEBSOCKET_PATH, "/api/connect"]);

/** What a session service needs, wherever it is mounted. */
export interface HandlerOptions {
  /** Makes the agent of a session; or several by name, of which clients choose one. */
  agents?: AgentFactories;
  /** Where sessions are stored: files, SQLite, Postgres. Default: in the memory of this process. */
  storage?: SessionStorage;
  /** In place of `agents` and `storage`: sessions of your own, or those of durable workers. */
  host?: SessionHost;
  /** Further services on each connection, such as a `ModelService`. The application closes them. */
  services?: readonly WireService[];
  /** Says who sends a request, or answers it. */
  authorize: Authorize;
  /** Called before each request of a client is done: who may do what, and a record of who did it. */
  onRequest?: (request: SessionRequest) => void | Promise<void>;
  /** Origins of other sites whose pages may use the service: `https://shop.example`. */
  origins?: readonly string[];
  /** Default 64 MiB a request with frames. */
  maxBodyBytes?: number;
  /** Default `MAX_CONNECTIONS`. */
  maxConnections?: number;
  limits?: Partial<Limits>;
  /** Sessions that are idle for this time are closed; a client that attaches opens them again. Default: never. */
  idleMs?: number;
  /**
   * Whether requests share memory. Default: what the runtime is known to do. Where they do not, a
   * session lives in the request of its WebSocket, and ends with it.
   */
  memory?: ServerMemory;
  /** Errors whose message no client gets. Default: `console.error`. */
  onError?: (error: unknown, where: string) => void;
  clock?: Clock;
}

/** How one request is answered. */
export interface HandleOptions {
  /**
   * Accepts a WebSocket by the means of the runtime: `Deno.upgradeWebSocket`, or
   * `upgradeWebSocketPair` of this package. Absent: clients use HTTP.
   */
  upgrade?: UpgradeWebSocket;
}

/**
 * The session service as a function of web requests. It finds its routes behind any path that it is
 * mounted at: `connectUrl("https://shop.example/api/gyre", …)` asks `/api/gyre/api/connect`.
 */
export interface Handler {
  (request: Request, options?: HandleOptions): Promise<Response>;
  /** For adapters: answers a request of a server that has no `Request`, straight to its socket. */
  answer(request: HandlerRequest, reply: HttpReply): Promise<void>;
  /**
   * For adapters: decides about a request for a WebSocket before that is accepted. Never rejects.
   */
  admitSocket(request: HandlerRequest): Promise<SocketDecision>;
  /** Begins nothing new, aborts all runs, stores every session and says goodbye to every client. */
  close(): Promise<void>;
}

/** A request of any server, for `authorize` as a web request. */
export interface HandlerRequest extends HttpRequest {
  /** Its method, address and headers. */
  toRequest(): Request;
}

/**
 * The whole session service as one function: `RemoteAgent` with `connectUrl` works against it, and
 * so does every other client of the protocol. Throws where an option is missing that decides who may
 * come in, or what answers.
 */
export function createHandler(options: HandlerOptions): Handler {
  const service = new HandledService(options);
  const handle = (request: Request, given?: HandleOptions): Promise<Response> =>
    service.handle(request, given);
  return Object.assign(handle, {
    answer: (request: HandlerRequest, reply: HttpReply) => service.answer(request, reply),
    admitSocket: (request: HandlerRequest) => service.admitSocket(request),
    close: () => service.close(),
  });
}

/** The path of a route, behind whatever the handler is mounted at. */
export function findApiPath(path: string): string {
  const at = path.lastIndexOf("/api/");
  return at > 0 ? path.slice(at) : path;
}

class HandledRequest extends WebRequest implements HandlerRequest {
  constructor(request: Request) {
    super(request, findApiPath);
  }

  toRequest(): Request {
    return this.request;
  }
}

/** Sessions, and the server that clients talk to them through. */
interface SessionServer {
  readonly sessions: SessionService;
  readonly wire: WireServer;
}

class HandledService {
  readonly #options: HandlerOptions;
  readonly #host: SessionHost;
  readonly #memory: ServerMemory;
  readonly #connections: HttpConnections;
  readonly #router: HttpRouter<HandlerRequest>;
  readonly #onError: (error: unknown, where: string) => void;
  /** For all requests, where these share memory. */
  readonly #shared: SessionServer;
  /** Of requests that share none, each for one WebSocket. */
  readonly #isolated = new Set<SessionServer>();
  #open = 0;
  #isClosing = false;

  constructor(options: HandlerOptions) {
    checkOptions(options);
    const { clock = systemClock, limits, maxBodyBytes, onError = writeError, origins } = options;
    this.#options = options;
    this.#onError = onError;
    this.#memory = options.memory ?? detectMemory();
    this.#host = createHost(options, onError);
    this.#shared = this.#createServer();
    this.#connections = new HttpConnections({
      clock,
      ...(limits?.frameBytes !== undefined && { maxFrameBytes: limits.frameBytes }),
      ...(maxBodyBytes !== undefined && { maxBodyBytes }),
      serve: (transport, identity) => this.#serve(transport, identity),
    });
    this.#router = new HttpRouter({
      routes: [...this.#connections.routes, ...createFileRoutes(this.#shared.sessions)],
      place: new PlaceCheck(origins ? { origins } : {}),
      admit: (request) => this.#admit(request),
      isClosing: () => this.#isClosing,
      onError,
    });
  }

  handle(request: Request, { upgrade }: HandleOptions = {}): Promise<Response> {
    const handled = new HandledRequest(request);
    const isUpgrade = handled.header("upgrade")?.toLowerCase() === "websocket";
    if (isUpgrade) return this.#upgrade(handled, upgrade);
    return answerRequest(this.#router, handled);
  }

  answer(request: HandlerRequest, reply: HttpReply): Promise<void> {
    return this.#router.answer(request, reply);
  }

  admitSocket(request: HandlerRequest): Promise<SocketDecision> {
    return this.#router.admitSocket(request, (transport, identity) =>
      this.#serve(transport, identity),
    );
  }

  async close(): Promise<void> {
    const { clock = systemClock } = this.#options;
    this.#isClosing = true;
    this.#connections.closeUnread();
    const stop = clock.after(CLOSE_GRACE_MS, () => this.#connections.close());
    await Promise.all([this.#shared, ...this.#isolated].map(({ wire }) => wire.close()));
    stop();
    this.#connections.close();
  }

  #createServer(): SessionServer {
    const { clock = systemClock, services = [] } = this.#options;
    const { idleMs, limits, maxConnections, onRequest } = this.#options;
    const common = { clock, onError: this.#onError, ...(limits && { limits }) };
    const sessions = new SessionService(this.#host, {
      ...common,
      ...(idleMs !== undefined && { idleMs }),
      ...(onRequest && { onRequest }),
    });
    const wire = new WireServer([sessions, ...services.map(withoutClose)], {
      ...common,
      ...(maxConnections !== undefined && { maxConnections }),
    });
    return { sessions, wire };
  }

  async #upgrade(request: HandledRequest, upgrade?: UpgradeWebSocket): Promise<Response> {
    const decision = await this.admitSocket(request);
    if (decision.type === "answered") return decision.response;
    if (decision.type === "refused") return toResponse(decision.answer);
    if (!upgrade) return toResponse(describeError(noSocketsError(), UPGRADE_REQUIRED));
    try {
      const { clock = systemClock, limits } = this.#options;
      const { response, socket } = await upgrade(request.request, chooseProtocol(request));
      const maxFrameBytes = limits?.frameBytes;
      const options = { clock, ...(maxFrameBytes !== undefined && { maxFrameBytes }) };
      decision.serve(createSocketTransport(socket, options));
      return response;
    } catch (error) {
      this.#onError(error, "accepting a WebSocket");
      return toResponse(describeError(error));
    }
  }

  async #admit(request: HandlerRequest): Promise<Admission> {
    const authorized = checkAuthorized(await this.#options.authorize(request.toRequest()));
    if (authorized instanceof Response) return { type: "answered", response: authorized };
    const problem = this.#memory === "isolated" && findMemoryProblem(request.path, this.#options);
    if (problem) {
      const error = new ProtocolError("not_implemented", problem);
      return { type: "refused", refusal: { reason: "memory", status: NOT_IMPLEMENTED, error } };
    }
    const { maxConnections = MAX_CONNECTIONS } = this.#options;
    const isFull = this.#open >= maxConnections && CONNECTING_PATHS.has(request.path);
    if (isFull) return { type: "refused", refusal: refuseTooMany(maxConnections) };
    return { type: "admitted", identity: authorized };
  }

  #serve(transport: Transport, identity: Identity | undefined): void {
    const isIsolated = this.#memory === "isolated";
    const server = isIsolated ? this.#createServer() : this.#shared;
    if (isIsolated) this.#isolated.add(server);
    this.#open++;
    const onClosed = (): void => {
      this.#open--;
      if (!this.#isolated.delete(server)) return;
      // The next request may come to another place: what runs here ends, and is stored.
      server.wire.close().catch((error: unknown) => this.#onError(error, "closing sessions"));
    };
    server.wire.serve(whenClosed(transport, onClosed), identity);
  }
}

function createHost(
  { agents, host, storage = new MemorySessions() }: HandlerOptions,
  onError: (error: unknown, where: string) => void,
): SessionHost {
  return host ?? new StoredHost({ agents: agents ?? {}, storage, onError });
}

/** The subprotocol that carries the token is never sent back. */
function chooseProtocol(request: HttpRequest): { protocol?: string } {
  const offered = (request.header("sec-websocket-protocol") ?? "").split(",");
  const isOffered = offered.some((each) => each.trim() === WEBSOCKET_PROTOCOL);
  return isOffered ? { protocol: WEBSOCKET_PROTOCOL } : {};
}

function toResponse({ body, headers, status }: ErrorAnswer): Response {
  return new Response(body, { headers, status });
}

function noSocketsError(): ProtocolError {
  return new ProtocolError(
    "not_implemented",
    "This server was mounted without WebSockets. Connect with http: or https:, or pass upgrade to the handler.",
  );
}

/** Throws what a compiler would find. */
function checkOptions(options: Partial<HandlerOptions> | undefined): void {
  if (typeof options?.authorize === "function") return;
  throw new TypeError(
    'Anybody could come in: write authorize: (request) => …, or authorize: authorizeByToken({ [token]: { user: "ada" } }).',
  );
}

function writeError(error: unknown, where: string): void {
  console.error(`gyre: ${where}:`, error);
}

function withoutClose(service: WireService): WireService {
  return { connect: (connection) => service.connect(connection), close: async () => {} };
}

/** The same transport; `closed` is called when it is over. */
function whenClosed(transport: Transport, closed: () => void): Transport {
  return {
    send: (envelope) => transport.send(envelope),
    receive: (handler) =>
      transport.receive({
        onFrame: (envelope) => handler.onFrame(envelope),
        onFault: (error) => handler.onFault(error),
        onClose: (error) => {
          handler.onClose(error);
          closed();
        },
      }),
    close: () => transport.close(),
  };
}
