import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, systemClock } from "@gyre/ai";
import { MAX_CONNECTIONS } from "../../frames/limits.ts";
import { invalidRequest, ProtocolError, stoppingError } from "../../frames/protocol-error.ts";
import type { Transport } from "../../transports/base/transport.ts";
import { Guard, type Refusal, refuseTooMany } from "./guard.ts";
import { HttpConnections } from "./connections.ts";
import {
  checkListenOptions,
  closeServer,
  formatHost,
  listenOn,
  type ListenOptions,
  LOOPBACK,
  type PortListener,
} from "../base/listen.ts";
import { Metrics } from "../base/metrics.ts";
import { Newcomers } from "../base/newcomers.ts";
import { answerError, findRoute, formatRetryAfter, type Route } from "./route.ts";
import { WebSocketUpgrades } from "./websocket-server.ts";

/** The timeout of the headers of a request. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** The timeout of a whole request. */
export const BODY_TIMEOUT_MS = 60_000;
/** How often these timeouts are checked. */
const LOOK_MS = 1000;
/** A connection over HTTP has an event stream, requests, and a stream that is being resumed. */
const SOCKETS_A_CONNECTION = 4;

const OK = 200;
const NO_CONTENT = 204;
const NOT_FOUND = 404;
const NOT_ALLOWED = 405;
const UNAVAILABLE = 503;

const WEBSOCKET_PATH = "/api/ws";
/** Paths whose requests open a connection. */
const CONNECTING_PATHS: ReadonlySet<string> = new Set([WEBSOCKET_PATH, "/api/connect"]);

/** One line of the log, without queries, headers and bodies. */
export type LogEntry =
  | { type: "request"; method: string; path: string; status: number; durationMs: number }
  | { type: "refused"; reason: string; method: string; path: string; status: number }
  | { type: "connected" | "disconnected"; transport: "websocket" | "http" };

export interface ListenHttpOptions extends ListenOptions {
  /** Default loopback. */
  host?: string;
  /** Default: a free one. */
  port?: number;
  /** Further routes, for requests with the token. */
  routes?: readonly Route[];
  /** Origins of other sites whose pages may use the server. */
  origins?: readonly string[];
  /** Names that clients call the server by, beside those of loopback. */
  hosts?: readonly string[];
  maxBodyBytes?: number;
  headersTimeoutMs?: number;
  bodyTimeoutMs?: number;
  log?: (entry: LogEntry) => void;
}

/** A listener for HTTP and WebSockets, with its counters. */
export interface HttpListener extends PortListener {
  readonly metrics: Metrics;
}

/**
 * Serves the wire over HTTP: WebSockets at `/api/ws`, connections of requests and events at
 * `/api/connect`, `/healthz` for everybody, `/metrics` and further routes. A token always;
 * `Host` and `Origin` are checked before it.
 */
export async function listenHttp(options: ListenHttpOptions): Promise<HttpListener> {
  checkListenOptions(options);
  const { host = LOOPBACK, port = 0 } = options;
  const server = new HttpServer(options);
  const bound = await server.listen(host, port);
  return {
    host,
    port: bound,
    url: `http://${formatHost(host)}:${bound}`,
    metrics: server.metrics,
    close: ({ graceMs } = {}) => server.close(graceMs),
  };
}

class HttpServer {
  readonly metrics: Metrics;
  readonly #options: ListenHttpOptions;
  readonly #clock: Clock;
  readonly #server: Server;
  readonly #guard: Guard;
  readonly #upgrades: WebSocketUpgrades;
  readonly #connections: HttpConnections;
  readonly #routes: readonly Route[];
  readonly #maxConnections: number;
  readonly #sockets = new Set<Socket>();
  readonly #newcomers: Newcomers;
  #port = 0;
  #open = 0;
  #isClosing = false;

  constructor(options: ListenHttpOptions) {
    const { clock = systemClock, token, origins, hosts = [], host, maxFrameBytes } = options;
    this.#options = options;
    this.#clock = clock;
    this.metrics = options.metrics ?? new Metrics(clock);
    this.#maxConnections = options.maxConnections ?? MAX_CONNECTIONS;
    this.#newcomers = new Newcomers(this.#maxConnections, () =>
      this.metrics.countRefusal("sockets"),
    );
    this.#guard = new Guard({
      token,
      port: () => this.#port,
      hosts: [...hosts, ...listOwnNames(host)],
      ...(origins && { origins }),
    });
    const shared = { clock, ...(maxFrameBytes !== undefined && { maxFrameBytes }) };
    this.#upgrades = new WebSocketUpgrades(shared);
    this.#connections = new HttpConnections({
      ...shared,
      ...(options.maxBodyBytes !== undefined && { maxBodyBytes: options.maxBodyBytes }),
      serve: (transport) => this.#serve(transport, "http"),
    });
    this.#routes = [
      ...this.#connections.routes,
      { method: "GET", path: "/metrics", handle: (_, response) => this.#sendMetrics(response) },
      ...(options.routes ?? []),
    ];
    this.#server = createServer(
      {
        headersTimeout: options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS,
        requestTimeout: options.bodyTimeoutMs ?? BODY_TIMEOUT_MS,
        connectionsCheckingInterval: LOOK_MS,
      },
      (request, response) => void this.#answer(request, response),
    );
    // Those that have not sent the token have a limit of their own.
    this.#server.maxConnections = this.#maxConnections * (SOCKETS_A_CONNECTION + 1) + 1;
    this.#server.on("connection", (socket) => this.#watch(socket));
    this.#server.on("drop", () => this.metrics.countRefusal("sockets"));
    this.#server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  async listen(host: string, port: number): Promise<number> {
    this.#port = await listenOn(this.#server, { host, port });
    this.#server.on("error", (error) => this.#options.onError?.(error, "listening"));
    return this.#port;
  }

  async close(graceMs?: number): Promise<void> {
    this.#isClosing = true;
    await closeServer(this.#server, this.#sockets, this.#clock, graceMs);
    this.#connections.close();
  }

  #watch(socket: Socket): void {
    this.#sockets.add(socket);
    this.#newcomers.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    this.metrics.countSocket(socket);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? "";
    const path = readPath(request);
    if (method === "GET" && path === "/healthz") {
      response.writeHead(OK, { "content-type": "application/json" }).end('{"ok":true}');
      return;
    }
    this.#logAnswer(request, response, path);
    if (this.#isClosing) {
      return answerError(response, stoppingError(), undefined, { connection: "close" });
    }
    for (const [name, value] of Object.entries(this.#guard.buildCorsHeaders(request))) {
      if (value !== undefined) response.setHeader(name, value);
    }
    // A browser asks without the token whether it may send it (preflight).
    const isPreflight = method === "OPTIONS" && request.headers.origin !== undefined;
    const refusal = isPreflight ? this.#guard.checkPlace(request) : this.#check(request, path);
    if (refusal) {
      this.#noteRefusal(request, path, refusal);
      return answerError(response, refusal.error, refusal.status, { connection: "close" });
    }
    if (isPreflight) {
      response.writeHead(NO_CONTENT).end();
      return;
    }
    await this.#route(request, response, path);
  }

  async #route(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const method = request.method ?? "";
    const found = findRoute(this.#routes, method, path);
    if (!found.route) {
      const allowed = found.allowed.join(", ");
      if (allowed === "") return answerError(response, notFoundError(path), NOT_FOUND);
      const error = invalidRequest(`${path} is asked with ${allowed}.`);
      return answerError(response, error, NOT_ALLOWED, { allow: allowed });
    }
    try {
      await found.route.handle(request, response, found.match);
    } catch (error) {
      if (!(error instanceof ProtocolError)) this.#options.onError?.(error, `${method} ${path}`);
      answerError(response, error, undefined, { connection: "close" });
    }
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // A client that leaves during the upgrade is gone.
    socket.on("error", () => socket.destroy());
    const path = readPath(request);
    const refusal = this.#check(request, path);
    if (refusal) this.#noteRefusal(request, path, refusal);
    if (refusal) return refuseUpgrade(socket, refusal.status, refusal.error);
    if (path !== WEBSOCKET_PATH) return refuseUpgrade(socket, NOT_FOUND, notFoundError(path));
    if (this.#isClosing) return refuseUpgrade(socket, UNAVAILABLE, stoppingError());
    this.#upgrades.accept(request, socket, head, (transport) =>
      this.#serve(transport, "websocket"),
    );
  }

  #check(request: IncomingMessage, path: string): Refusal | undefined {
    const refusal = this.#guard.check(request);
    if (refusal) return refusal;
    this.#newcomers.accept(request.socket);
    const isFull = this.#open >= this.#maxConnections;
    return isFull && CONNECTING_PATHS.has(path) ? refuseTooMany(this.#maxConnections) : undefined;
  }

  #serve(transport: Transport, kind: "websocket" | "http"): void {
    const { serve, log, onError } = this.#options;
    this.#open++;
    log?.({ type: "connected", transport: kind });
    const onClosed = (): void => {
      this.#open--;
      log?.({ type: "disconnected", transport: kind });
    };
    try {
      serve(this.metrics.countFrames(transport, kind, onClosed));
    } catch (error) {
      onError?.(error, `serving a connection over ${kind}`);
      void transport.close();
    }
  }

  #noteRefusal({ method = "" }: IncomingMessage, path: string, refusal: Refusal): void {
    const { reason, status } = refusal;
    this.metrics.countRefusal(reason);
    this.#options.log?.({ type: "refused", reason, method, path, status });
  }

  #logAnswer({ method = "" }: IncomingMessage, response: ServerResponse, path: string): void {
    const from = this.#clock.now();
    response.once("close", () => {
      const durationMs = this.#clock.now() - from;
      const { statusCode: status } = response;
      this.#options.log?.({ type: "request", method, path, status, durationMs });
    });
    // While the server closes, a socket has no use after its answer.
    response.once("finish", () => {
      if (this.#isClosing) setImmediate(() => this.#server.closeIdleConnections());
    });
  }

  async #sendMetrics(response: ServerResponse): Promise<void> {
    const report = (error: unknown): void => this.#options.onError?.(error, "GET /metrics");
    const text = await this.metrics.collect(report);
    response
      .writeHead(OK, { "content-type": "text/plain; version=0.0.4", "cache-control": "no-store" })
      .end(text);
  }
}

/** The address that it listens on is one of its names, unless it stands for all addresses. */
function listOwnNames(host: string = LOOPBACK): string[] {
  if (host === LOOPBACK || host === "0.0.0.0" || host === "::") return [];
  return [formatHost(host)];
}

/** The path of a request without its query, which must not be logged. */
function readPath({ url = "/" }: IncomingMessage): string {
  return url.split("?", 1)[0] ?? "/";
}

function notFoundError(path: string): ProtocolError {
  return invalidRequest(`There is nothing at ${path}.`);
}

function refuseUpgrade(socket: Duplex, status: number, error: ProtocolError): void {
  const { code, message, details } = error;
  const body = JSON.stringify({ error: { ...details, code, message } });
  const wait = formatRetryAfter(error);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    ...(wait === undefined ? [] : [`retry-after: ${wait}`]),
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
