import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, systemClock } from "@gyre/ai";
import { type WebSocket, WebSocketServer } from "ws";
import { MAX_BUFFERED_BYTES, MAX_FRAME_BYTES } from "../../frames/limits.ts";
import type { Transport } from "../../transports/base/transport.ts";
import { WEBSOCKET_PROTOCOL, WebSocketTransport } from "../../transports/websocket.ts";

/** After this time without a message the server sends a ping, and after as long again it cuts the client off. */
export const WEBSOCKET_PING_MS = 30_000;

export interface WebSocketUpgradesOptions {
  maxFrameBytes?: number;
  clock?: Clock;
}

/** Turns requests for an upgrade into transports. `Guard` has accepted them before. */
export class WebSocketUpgrades {
  readonly #server: WebSocketServer;
  readonly #maxFrameBytes: number;
  readonly #clock: Clock;

  constructor({ maxFrameBytes = MAX_FRAME_BYTES, clock = systemClock }: WebSocketUpgradesOptions) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#clock = clock;
    this.#server = new WebSocketServer({
      noServer: true,
      maxPayload: maxFrameBytes,
      perMessageDeflate: false,
      clientTracking: false,
      // The subprotocol that carries the token is never sent back.
      handleProtocols: (offered) => offered.has(WEBSOCKET_PROTOCOL) && WEBSOCKET_PROTOCOL,
    });
  }

  /** Answers the upgrade; an invalid request gets an HTTP error. */
  accept(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    serve: (transport: Transport) => void,
  ): void {
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      watchConnection(webSocket, this.#clock);
      serve(createTransport(webSocket, this.#maxFrameBytes, this.#clock, socket));
    });
  }
}

/**
 * A socket of `ws` as a transport, whose `send` waits for the socket. With the stream `below` it,
 * frames that are sent in one turn are written together: a system call for each is most of the cost
 * of a small frame.
 */
export function createTransport(
  socket: WebSocket,
  maxFrameBytes: number,
  clock: Clock,
  below?: Duplex,
): WebSocketTransport {
  let isHeld = false;
  const release = (): void => {
    isHeld = false;
    below?.uncork();
  };
  const hold = (): void => {
    if (isHeld) return;
    isHeld = true;
    below?.cork();
    process.nextTick(release);
  };
  const write = (text: string): void | Promise<void> => {
    if (below) hold();
    const willWait = socket.bufferedAmount + text.length;
    if (willWait <= MAX_BUFFERED_BYTES) return socket.send(text);
    return new Promise((resolve) => socket.send(text, () => resolve()));
  };
  return new WebSocketTransport(socket, {
    write,
    cut: () => socket.terminate(),
    maxFrameBytes,
    clock,
  });
}

function watchConnection(socket: WebSocket, clock: Clock): void {
  let isAlive = true;
  const look = (): void => {
    if (!isAlive) return socket.terminate();
    isAlive = false;
    socket.ping();
    stop = clock.after(WEBSOCKET_PING_MS, look);
  };
  let stop = clock.after(WEBSOCKET_PING_MS, look);
  const heard = (): void => {
    isAlive = true;
  };
  socket.on("pong", heard).on("message", heard);
  socket.on("close", () => stop());
}
