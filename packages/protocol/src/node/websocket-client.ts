import type { IncomingMessage } from "node:http";
import { type Clock, systemClock } from "@gyre/ai";
import { WebSocket } from "ws";
import { MAX_FRAME_BYTES } from "../frames/limits.ts";
import { createStatusError, parseErrorBody } from "../frames/protocol-error.ts";
import type { Transport } from "../transports/base/transport.ts";
import { waitForOpen, WEBSOCKET_PROTOCOL } from "../transports/websocket.ts";
import { createTransport } from "./http/websocket-server.ts";

/** How much of a refusal is read, in bytes. */
const MAX_REFUSAL_BYTES = 65_536;

export interface ConnectWebSocketOptions {
  /** Sent as `Authorization: Bearer`. */
  token?: string;
  /** Aborts opening; an open connection ignores it. */
  signal?: AbortSignal;
  maxFrameBytes?: number;
  clock?: Clock;
}

/**
 * Opens a WebSocket from Node. Rejects with the `ProtocolError` of a server that refuses, such as
 * `unauthorized`.
 */
export async function connectWebSocket(
  url: string,
  { token, signal, maxFrameBytes = MAX_FRAME_BYTES, clock }: ConnectWebSocketOptions = {},
): Promise<Transport> {
  signal?.throwIfAborted();
  const socket = new WebSocket(url, [WEBSOCKET_PROTOCOL], {
    maxPayload: maxFrameBytes,
    perMessageDeflate: false,
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
  });
  const transport = createTransport(socket, maxFrameBytes, clock ?? systemClock);
  const refused = new Promise<never>((_, reject) => {
    socket.on("unexpected-response", (_request, response) => {
      void readRefusal(response).then((error) => {
        reject(error);
        socket.terminate();
      });
    });
  });
  await Promise.race([waitForOpen(socket, signal), refused]);
  return transport;
}

async function readRefusal(response: IncomingMessage): Promise<Error> {
  const status = response.statusCode ?? 0;
  let body = "";
  try {
    for await (const chunk of response.setEncoding("utf8")) {
      body += String(chunk);
      if (body.length > MAX_REFUSAL_BYTES) break;
    }
    return parseErrorBody(JSON.parse(body)) ?? createStatusError(status);
  } catch (cause) {
    return createStatusError(status, cause);
  }
}
