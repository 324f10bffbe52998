import {
  parseAddress,
  connectUrl as connectInBrowser,
  type ConnectUrlOptions,
  buildSocketUrl,
  unknownSchemeError,
} from "../client/connect-url.ts";
import type { Connect } from "../client/client-api.ts";
import { connectTcp } from "./tcp.ts";
import { connectWebSocket } from "./websocket-client.ts";

/**
 * The way to a server by its address: `ws:`, `wss:`, `http:`, `https:`, or `tcp://host:port`.
 * Throws for another kind of address.
 */
export function connectUrl(url: string, options: ConnectUrlOptions = {}): Connect {
  const address = parseAddress(url);
  const { hostname, port, protocol } = address;
  switch (protocol) {
    case "ws:":
    case "wss:":
      return (signal) => connectWebSocket(buildSocketUrl(address), { ...options, signal });
    case "http:":
    case "https:":
      return connectInBrowser(url, options);
    case "tcp:":
      // Brackets are for addresses alone, not for sockets.
      return (signal) =>
        connectTcp({
          host: hostname.replace(/^\[|\]$/g, ""),
          port: Number(port),
          ...options,
          signal,
        });
    default:
      throw unknownSchemeError(url, "ws:, wss:, http:, https: or tcp:");
  }
}
