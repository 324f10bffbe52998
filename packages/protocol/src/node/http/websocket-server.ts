import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, systemClock } from "@gyre/ai";
import { type WebSocket, WebSocketServer } from "ws";
import { MAX_BUFFERED_BYTES, MAX_FRAME_BYTES } from "../../frames/limits.ts";
import type { SocketDecision } from "../../http/router.ts";
import { WEBSOCKET_PROTOCOL, WebSocketTransport } from "../../transports/websocket.ts";

/** After this time without a message the server sends a ping, and after as long again it cuts the client off. */
export const WEBSOCKET_PING_MS = 30_000;

export interface WebSocketUpgradesOptions {
  maxFrameBytes?: number;
  clock?: Clock;
}

/** Turns requests for an upgrade into transports. */
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

  /** Answers the upgrade once it is decided on: before that, no WebSocket is accepted. */
  async answer(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    decided: Promise<SocketDecision>,
  ): Promise<void> {
    // A client that leaves during the upgrade is gone.
    socket.on("error", () => socket.destroy());
    const decision = await decided;
    if (decision.type === "refused") {
      const { body, headers, status } = decision.answer;
      return refuseUpgrade(socket, status, Object.entries(headers), Buffer.from(body));
    }
    if (decision.type === "answered") {
      const { headers, status } = decision.response;
      const body = Buffer.from(await decision.response.arrayBuffer());
      return refuseUpgrade(socket, status, [...headers], body);
    }
    // An invalid request gets an error over HTTP.
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      watchConnection(webSocket, this.#clock);
      decision.serve(createTransport(webSocket, this.#maxFrameBytes, this.#clock, socket));
    });
  }
}

/** Headers that are set here, whatever the application has. */
const OWN_HEADERS: ReadonlySet<string> = new Set(["content-length", "connection"]);

/** Answers over HTTP in place of a WebSocket. */
function refuseUpgrade(
  socket: Duplex,
  status: number,
  headers: readonly (readonly [string, string])[],
  body: Buffer,
): void {
  const sent = headers.filter(([name]) => !OWN_HEADERS.has(name));
  const own = [["content-length", String(body.length)] as const, ["connection", "close"] as const];
  const lines = [...sent, ...own].map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`, ...lines].join("\r\n");
  socket.end(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]), () => socket.destroy());
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
