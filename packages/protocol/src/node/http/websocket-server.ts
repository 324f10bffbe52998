import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, systemClock } from "@gyre/ai";
import { type WebSocket, WebSocketServer } from "ws";
import { MAX_BUFFERED_BYTES, MAX_FRAME_BYTES } from "../../frames/limits.ts";
import type { Transport } from "../../transports/base/transport.ts";
import { WEBSOCKET_PROTOCOL, WebSocketTransport } from "../../transports/websocket.ts";

/** A client that was quiet for so long is asked, and cut off if it stays so for as long again. */
export const WEBSOCKET_PING_MS = 30_000;

export interface WebSocketUpgradesOptions {
  maxFrameBytes?: number;
  clock?: Clock;
}

/** Turns requests for an upgrade into transports. Who may come in was decided before. */
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
      // The one that carries the token is never sent back.
      handleProtocols: (offered) => offered.has(WEBSOCKET_PROTOCOL) && WEBSOCKET_PROTOCOL,
    });
  }

  /** Answers the upgrade; a request that is not a proper one gets an HTTP error. */
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
 * A socket of `ws` as a transport: it tells when what was sent has gone out. With the stream
 * `below` it, what is sent in one turn goes out as one: a call of the system for each frame
 * is most of what a small one costs.
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
