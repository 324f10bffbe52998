import type { Clock } from "@gyre/ai";
import type { IdempotencyCache } from "./idempotency-cache.ts";
import { Connection, type RequestHandler } from "./connection.ts";
import type { Identity } from "./identity.ts";
import type { Envelope } from "../frames/envelope.ts";
import { type Limits, MAX_CONNECTIONS } from "../frames/limits.ts";
import type { Transport } from "../transports/base/transport.ts";

/** The part of a service that handles one connection. */
export interface ServedConnection {
  /** The handlers by the type of the request. */
  readonly handlers: ReadonlyMap<string, RequestHandler>;
  /** The cache for the answer to a request; undefined: that of the connection. */
  findCache?(frame: Envelope): IdempotencyCache | undefined;
  /** The timeout of a request; undefined: that of the limits. `Infinity`: none. */
  findTimeoutMs?(frame: Envelope): number | undefined;
  /** The connection is over; called once. */
  onClose?(reason: string, error?: Error): void;
}

/** Answers requests on any number of connections: models, sessions. */
export interface WireService {
  /** Called once for each connection, before its first frame. Call `connection` in handlers only. */
  connect(connection: () => Connection): ServedConnection;
  /** Ends everything that runs. Connections are closed after it. */
  close(): Promise<void>;
}

export interface WireServerOptions {
  /** Sent to clients in `ready`. */
  server?: { name: string; version: string };
  limits?: Partial<Limits>;
  /** Default `MAX_CONNECTIONS`. */
  maxConnections?: number;
  maxWaitingBytes?: number;
  onConnect?: (connection: Connection) => void;
  onDisconnect?: (reason: string, error?: Error) => void;
  /** Errors that no answer reports. */
  onError?: (error: unknown, where: string) => void;
  clock?: Clock;
}

/** Serves several services on each of its connections. */
export class WireServer {
  readonly #services: readonly WireService[];
  readonly #options: WireServerOptions;
  readonly #connections = new Set<Connection>();
  #isClosed = false;

  constructor(services: readonly WireService[], options: WireServerOptions = {}) {
    this.#services = services;
    this.#options = options;
  }

  /** How many connections there are. */
  get connections(): number {
    return this.#connections.size;
  }

  /**
   * Serves a transport until it ends. One connection too many gets `goodbye` and is closed. Services
   * find `identity` in the connection: who the client is.
   */
  serve(transport: Transport, identity?: Identity): Connection {
    const { maxConnections = MAX_CONNECTIONS, onConnect, onDisconnect, ...options } = this.#options;
    const served = this.#services.map((service) => service.connect(() => connection));
    const connection: Connection = new Connection(transport, {
      ...options,
      identity,
      handlers: new Map(served.flatMap(({ handlers }) => [...handlers])),
      findCache: (frame) => findFirst(served, (each) => each.findCache?.(frame)),
      findTimeoutMs: (frame) => findFirst(served, (each) => each.findTimeoutMs?.(frame)),
      onClose: (reason, error) => {
        this.#connections.delete(connection);
        for (const each of served) each.onClose?.(reason, error);
        onDisconnect?.(reason, error);
      },
    });
    this.#connections.add(connection);
    if (this.#connections.size > maxConnections || this.#isClosed) void connection.close("full");
    else onConnect?.(connection);
    return connection;
  }

  /** Accepts no more connections, closes every service and then every connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#services.map((service) => service.close()));
    await Promise.all([...this.#connections].map((connection) => connection.close("closed")));
  }
}

function findFirst<T, R>(all: readonly T[], find: (each: T) => R | undefined): R | undefined {
  for (const each of all) {
    const found = find(each);
    if (found !== undefined) return found;
  }
  return undefined;
}
