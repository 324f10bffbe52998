import { type Clock, systemClock } from "@gyre/ai";
import { MAX_BODY_BYTES, MAX_FRAME_BYTES } from "../frames/limits.ts";
import { FrameLines } from "../transports/base/frame-lines.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import type { Identity } from "../server/identity.ts";
import type { Transport } from "../transports/base/transport.ts";
import { HttpConnection } from "./connection.ts";
import type { HttpReply, HttpRequest } from "./exchange.ts";
import type { Route } from "./route.ts";

const ID_BYTES = 18;
const CREATED = 201;
const NO_CONTENT = 204;

export interface HttpConnectionsOptions {
  serve: (transport: Transport, identity?: Identity) => void;
  maxFrameBytes?: number;
  maxBodyBytes?: number;
  clock?: Clock;
}

/** Connections over plain HTTP: frames come in requests and go out as server-sent events. */
export class HttpConnections {
  readonly #options: HttpConnectionsOptions;
  readonly #connections = new Map<string, HttpConnection>();

  constructor(options: HttpConnectionsOptions) {
    this.#options = options;
  }

  readonly routes: readonly Route[] = [
    {
      method: "POST",
      path: "/api/connect",
      handle: (_request, reply, _match, identity) => this.#connect(reply, identity),
    },
    {
      method: "GET",
      path: /\/api\/connections\/([\w-]+)\/events/,
      handle: (request, reply, [id], identity) => {
        const after = Number(request.header("last-event-id") ?? 0);
        this.#find(id, identity).attach(reply, after);
      },
    },
    {
      method: "POST",
      path: /\/api\/connections\/([\w-]+)\/frames/,
      handle: (request, reply, [id], identity) =>
        this.#take(this.#find(id, identity), request, reply),
    },
    {
      method: "DELETE",
      path: /\/api\/connections\/([\w-]+)/,
      handle: (_request, reply, [id = ""], identity) => {
        // Deleting twice does no harm.
        const connection = this.#connections.get(id);
        if (connection?.belongsTo(identity)) connection.end();
        reply.begin(NO_CONTENT);
        reply.end();
      },
    },
  ];

  /** Ends connections that have no event stream, and others with theirs. */
  closeUnread(): void {
    for (const connection of this.#connections.values()) connection.endUnread();
  }

  /** Ends all connections. */
  close(): void {
    for (const connection of this.#connections.values()) connection.end();
  }

  #connect(reply: HttpReply, identity: Identity | undefined): void {
    const { serve, maxFrameBytes = MAX_FRAME_BYTES, clock = systemClock } = this.#options;
    const id = `h_${createId()}`;
    const connection = new HttpConnection({
      maxFrameBytes,
      clock,
      identity,
      onEnd: () => this.#connections.delete(id),
    });
    this.#connections.set(id, connection);
    serve(connection, identity);
    reply.begin(CREATED, { "content-type": "application/json", "cache-control": "no-store" });
    reply.end(JSON.stringify({ connection: id }));
  }

  async #take(connection: HttpConnection, request: HttpRequest, reply: HttpReply): Promise<void> {
    const { maxFrameBytes = MAX_FRAME_BYTES, maxBodyBytes = MAX_BODY_BYTES } = this.#options;
    const finish = connection.beginRequest();
    const lines = new FrameLines(connection.inbox, { maxFrameBytes });
    try {
      await request.readBody(maxBodyBytes, (piece) => lines.feed(piece));
    } catch (error) {
      // Frames before the break were read; later ones would leave a gap.
      connection.end(new Error("A request with frames broke off.", { cause: error }));
      throw error;
    } finally {
      finish();
    }
    lines.end();
    reply.begin(NO_CONTENT);
    reply.end();
  }

  /** The connection of another user is one that there is not. */
  #find(id = "", identity?: Identity): HttpConnection {
    const connection = this.#connections.get(id);
    if (connection?.belongsTo(identity)) return connection;
    const what = `There is no connection "${id}", or not any more. Connect again.`;
    throw new ProtocolError("stream_not_found", what);
  }
}

/** Too long to be guessed, of characters that a path can have. */
function createId(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(ID_BYTES));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_");
}
