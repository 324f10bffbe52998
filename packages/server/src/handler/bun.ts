import { MAX_FRAME_BYTES } from "@gyre/protocol";
import type { WebSocketLike } from "@gyre/protocol/http";
import type { Handler } from "./handler.ts";

/** The part of Bun's `ServerWebSocket` that is used. */
export interface BunSocket {
  readonly data: BunSocketEnd;
  readonly readyState: number;
  getBufferedAmount(): number;
  send(text: string): number;
  close(code?: number, reason?: string): void;
}

/** The part of Bun's `Server` that is used. */
export interface BunServer {
  upgrade(
    request: Request,
    options: { data: BunSocketEnd; headers: Record<string, string> },
  ): boolean;
}

/** Options for `Bun.serve`. */
export interface BunServeOptions {
  /** Undefined: the request became a WebSocket. */
  fetch(request: Request, server: BunServer): Promise<Response | undefined>;
  readonly websocket: {
    readonly maxPayloadLength: number;
    /** 0: Bun drops no frame. How much waits is limited by what reads from a session. */
    readonly backpressureLimit: number;
    open(socket: BunSocket): void;
    message(socket: BunSocket, message: string | Uint8Array): void;
    close(socket: BunSocket, code: number, reason: string): void;
  };
}

/** A handler with WebSockets for Bun: `Bun.serve(toBunServer(handler))`. */
export function toBunServer(handler: Handler): BunServeOptions {
  return {
    async fetch(request, server) {
      let isUpgraded = false;
      const response = await handler(request, {
        upgrade: (_request, { protocol }) => {
          const data = new BunSocketEnd();
          const headers = { ...(protocol !== undefined && { "sec-websocket-protocol": protocol }) };
          isUpgraded = server.upgrade(request, { data, headers });
          if (!isUpgraded) throw new Error("Bun did not accept the WebSocket.");
          return { socket: data, response: new Response() };
        },
      });
      return isUpgraded ? undefined : response;
    },
    websocket: {
      maxPayloadLength: MAX_FRAME_BYTES,
      backpressureLimit: 0,
      open: (socket) => socket.data.open(socket),
      message: (socket, message) => socket.data.onMessage(message),
      close: (socket, code, reason) => socket.data.onClose(code, reason),
    },
  };
}

const CONNECTING = 0;
const CLOSED = 3;

/** A socket of Bun, whose events come to functions of the server, with events of its own. */
export class BunSocketEnd implements WebSocketLike {
  #socket: BunSocket | undefined;
  #isClosed = false;
  readonly #listeners: { type: string; listener: (event: never) => void }[] = [];

  get readyState(): number {
    if (this.#isClosed) return CLOSED;
    return this.#socket?.readyState ?? CONNECTING;
  }

  get bufferedAmount(): number {
    return this.#socket?.getBufferedAmount() ?? 0;
  }

  send(text: string): void {
    this.#socket?.send(text);
  }

  close(code?: number, reason?: string): void {
    this.#socket?.close(code, reason);
  }

  addEventListener(type: string, listener: (event: never) => void): void {
    this.#listeners.push({ type, listener });
  }

  /** Called by Bun. */
  open(socket: BunSocket): void {
    this.#socket = socket;
    this.#dispatch("open", {});
  }

  /** Called by Bun. */
  onMessage(data: string | Uint8Array): void {
    this.#dispatch("message", { data });
  }

  /** Called by Bun. */
  onClose(code: number, reason: string): void {
    this.#isClosed = true;
    this.#dispatch("close", { code, reason });
  }

  #dispatch(type: string, event: object): void {
    for (const each of this.#listeners) if (each.type === type) each.listener(event as never);
  }
}
