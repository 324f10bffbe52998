import type { WebSocketLike } from "@gyre/protocol/http";

/** A WebSocket that was accepted, and the response that says so. */
export interface UpgradedSocket {
  readonly socket: WebSocketLike;
  readonly response: Response;
}

/**
 * Accepts a WebSocket: called once the client is authorized. `protocol` is the subprotocol to answer
 * with. `Deno.upgradeWebSocket` is such a function.
 */
export type UpgradeWebSocket = (
  request: Request,
  options: { protocol?: string },
) => UpgradedSocket | Promise<UpgradedSocket>;

const SWITCHING_PROTOCOLS = 101;

/** The `WebSocketPair` of Cloudflare Workers. */
export type WebSocketPairConstructor = new () => {
  readonly 0: object;
  readonly 1: WebSocketLike & { accept(): void };
};

/** What the response of a runtime with `WebSocketPair` takes, beside what every response does. */
interface PairResponseInit extends ResponseInit {
  webSocket: object;
}

/** Where the classes of the runtime are, in place of the global ones; for tests. */
export interface PairRuntime {
  WebSocketPair?: WebSocketPairConstructor;
  Response: new (body: null, init: PairResponseInit) => Response;
}

/**
 * Accepts a WebSocket where the runtime has `WebSocketPair`, as Cloudflare Workers do:
 * `handler(request, { upgrade: upgradeWebSocketPair })`.
 */
export const upgradeWebSocketPair: UpgradeWebSocket = (_request, options) =>
  acceptPair(options, globalThis);

/** Throws where the runtime has no `WebSocketPair`. */
export function acceptPair(
  { protocol }: { protocol?: string },
  runtime: PairRuntime,
): UpgradedSocket {
  const { WebSocketPair, Response: RuntimeResponse } = runtime;
  if (!WebSocketPair)
    throw new Error("There is no WebSocketPair here: it is of Cloudflare Workers.");
  const { 0: client, 1: socket } = new WebSocketPair();
  socket.accept();
  const headers = { ...(protocol !== undefined && { "sec-websocket-protocol": protocol }) };
  const init = { status: SWITCHING_PROTOCOLS, headers, webSocket: client };
  return { socket, response: new RuntimeResponse(null, init) };
}
