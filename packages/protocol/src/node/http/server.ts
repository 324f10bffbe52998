import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Clock, systemClock } from "@gyre/ai";
import { MAX_CONNECTIONS } from "../../frames/limits.ts";
import { HttpConnections } from "../../http/connections.ts";
import type { HttpReply } from "../../http/exchange.ts";
import type { Route } from "../../http/route.ts";
import {
  type Admission,
  HttpRouter,
  type Refusal,
  refuseTooMany,
  WEBSOCKET_PATH,
} from "../../http/router.ts";
import type { Transport } from "../../transports/base/transport.ts";
import { NodeReply, NodeRequest } from "./exchange.ts";
import { Guard } from "./guard.ts";
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
  readonly #router: HttpRouter<NodeRequest>;
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
    this.#router = new HttpRouter({
      routes: [
        ...this.#connections.routes,
        { method: "GET", path: "/metrics", handle: (_, reply) => this.#sendMetrics(reply) },
        ...(options.routes ?? []),
      ],
      place: this.#guard.place,
      admit: (request) => this.#admit(request),
      isClosing: () => this.#isClosing,
      onRefused: (request, refusal) => this.#noteRefusal(request, refusal),
      onError: options.onError,
    });
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
    this.#server.on("upgrade", (request, socket, head) => {
      const decided = this.#router.admitSocket(new NodeRequest(request), (transport) =>
        this.#serve(transport, "websocket"),
      );
      void this.#upgrades.answer(request, socket, head, decided);
    });
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

  async #answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = new NodeRequest(message);
    if (request.method === "GET" && request.path === "/healthz") {
      response.writeHead(OK, { "content-type": "application/json" }).end('{"ok":true}');
      return;
    }
    this.#logAnswer(request, response);
    await this.#router.answer(request, new NodeReply(response));
  }

  #admit(request: NodeRequest): Admission {
    const refusal = this.#check(request);
    return refusal ? { type: "refused", refusal } : { type: "admitted" };
  }

  #check(request: NodeRequest): Refusal | undefined {
    const refusal = this.#guard.checkToken(request);
    if (refusal) return refusal;
    this.#newcomers.accept(request.message.socket);
    const isFull = this.#open >= this.#maxConnections;
    return isFull && CONNECTING_PATHS.has(request.path)
      ? refuseTooMany(this.#maxConnections)
      : undefined;
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

  #noteRefusal({ method, path }: NodeRequest, { reason, status }: Refusal): void {
    this.metrics.countRefusal(reason);
    this.#options.log?.({ type: "refused", reason, method, path, status });
  }

  #logAnswer({ method, path }: NodeRequest, response: ServerResponse): void {
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

  async #sendMetrics(reply: HttpReply): Promise<void> {
    const report = (error: unknown): void => this.#options.onError?.(error, "GET /metrics");
    const text = await this.metrics.collect(report);
    reply.begin(OK, {
      "content-type": "text/plain; version=0.0.4",
      "cache-control": "no-store",
    });
    reply.end(text);
  }
}

/** The address that it listens on is one of its names, unless it stands for all addresses. */
function listOwnNames(host: string = LOOPBACK): string[] {
  if (host === LOOPBACK || host === "0.0.0.0" || host === "::") return [];
  return [formatHost(host)];
}
