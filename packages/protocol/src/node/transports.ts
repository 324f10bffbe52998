import type { Connect } from "../client/client-api.ts";
import {
  buildSocketUrl,
  type ConnectUrlOptions,
  findByScheme,
  http,
} from "../client/connect-url.ts";
import { invalidRequest } from "../frames/protocol-error.ts";
import { listenHttp } from "./http/server.ts";
import { type Listener, type ListenOptions, readHostAndPort } from "./base/listen.ts";
import { tcp } from "./tcp.ts";
import type { UrlTransport } from "./base/url-transport.ts";
import { connectWebSocket } from "./websocket-client.ts";

export * from "./tcp.ts";
export * from "./websocket-client.ts";

/** WebSockets are accepted by the listener of `http:`. */
const webSocket: UrlTransport = {
  connect: (address, options) => (signal) =>
    connectWebSocket(buildSocketUrl(address), { ...options, signal }),
};

/** The transports of Node by the scheme of their addresses. A new one gets its line here. */
export const TRANSPORTS: Readonly<Record<string, UrlTransport>> = {
  "ws:": webSocket,
  "wss:": webSocket,
  "http:": {
    connect: http,
    listen: (address, options) => listenHttp({ ...readHostAndPort(address), ...options }),
  },
  "https:": { connect: http },
  "tcp:": tcp,
};

/** The way to a server by its address, for every scheme of `TRANSPORTS`. Throws for another one. */
export function connectUrl(url: string, options: ConnectUrlOptions = {}): Connect {
  const [transport, address] = findByScheme(TRANSPORTS, url);
  return transport.connect(address, options);
}

/**
 * Accepts connections at an address, for every scheme of `TRANSPORTS` that can listen. Throws
 * for another one; rejects where the address cannot be listened on.
 */
export function listenUrl(url: string, options: ListenOptions): Promise<Listener> {
  const [{ listen }, address] = findByScheme(TRANSPORTS, url);
  if (listen) return listen(address, options);
  const message = `"${url}" cannot be listened on: no listener accepts ${address.protocol} alone.`;
  throw invalidRequest(message);
}
