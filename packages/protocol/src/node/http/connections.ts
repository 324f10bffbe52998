import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, systemClock } from "@gyre/ai";
import { tooLargeError } from "../../frames/envelope.ts";
import { MAX_BODY_BYTES, MAX_FRAME_BYTES } from "../../frames/limits.ts";
import { FrameLines } from "../../transports/base/frame-lines.ts";
import { invalidRequest, ProtocolError } from "../../frames/protocol-error.ts";
import type { Transport } from "../../transports/base/transport.ts";
import { HttpConnection } from "./connection.ts";
import type { Route } from "./route.ts";

const ID_BYTES = 18;
const CREATED = 201;
const NO_CONTENT = 204;

export interface HttpConnectionsOptions {
  serve: (transport: Transport) => void;
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
    { method: "POST", path: "/api/connect", handle: (_, response) => this.#connect(response) },
    {
      method: "GET",
      path: /\/api\/connections\/([\w-]+)\/events/,
      handle: ({ headers }, response, [id]) => {
        const after = Number(headers["last-event-id"] ?? 0);
        this.#find(id).attach(response, after);
      },
    },
    {
      method: "POST",
      path: /\/api\/connections\/([\w-]+)\/frames/,
      handle: (request, response, [id]) => this.#take(this.#find(id), request, response),
    },
    {
      method: "DELETE",
      path: /\/api\/connections\/([\w-]+)/,
      handle: (_, response, [id = ""]) => {
        // Deleting twice does no harm.
        this.#connections.get(id)?.end();
        response.writeHead(NO_CONTENT).end();
      },
    },
  ];

  /** Ends all connections. */
  close(): void {
    for (const connection of this.#connections.values()) connection.end();
  }

  #connect(response: ServerResponse): void {
    const { serve, maxFrameBytes = MAX_FRAME_BYTES, clock = systemClock } = this.#options;
    const id = `h_${randomBytes(ID_BYTES).toString("base64url")}`;
    const connection = new HttpConnection({
      maxFrameBytes,
      clock,
      onEnd: () => this.#connections.delete(id),
    });
    this.#connections.set(id, connection);
    serve(connection);
    response
      .writeHead(CREATED, { "content-type": "application/json", "cache-control": "no-store" })
      .end(JSON.stringify({ connection: id }));
  }

  async #take(
    connection: HttpConnection,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { maxFrameBytes = MAX_FRAME_BYTES, maxBodyBytes = MAX_BODY_BYTES } = this.#options;
    const finish = connection.beginRequest();
    const lines = new FrameLines(connection.inbox, { maxFrameBytes });
    try {
      await readBody(request, maxBodyBytes, (chunk) => lines.feed(chunk));
    } catch (error) {
      // Frames before the break were read; later ones would leave a gap.
      connection.end(new Error("A request with frames broke off.", { cause: error }));
      throw error;
    } finally {
      finish();
    }
    lines.end();
    response.writeHead(NO_CONTENT).end();
  }

  #find(id = ""): HttpConnection {
    const connection = this.#connections.get(id);
    if (connection) return connection;
    const what = `There is no connection "${id}", or not any more. Connect again.`;
    throw new ProtocolError("stream_not_found", what);
  }
}

/** Reads a body piece by piece. The rest of one that is too long is not read. */
function readBody(
  request: IncomingMessage,
  maxBytes: number,
  take: (chunk: Uint8Array) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let length = 0;
    const broken = (): void => reject(invalidRequest("The request broke off."));
    request.on("data", (chunk: Uint8Array) => {
      length += chunk.length;
      if (length <= maxBytes) return take(chunk);
      request.removeAllListeners("data").pause();
      reject(tooLargeError(maxBytes));
    });
    request.once("end", resolve);
    request.once("error", broken);
    request.once("close", broken);
  });
}
