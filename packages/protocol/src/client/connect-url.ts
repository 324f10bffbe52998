import { ProtocolError } from "../frames/protocol-error.ts";
import type { Connect } from "./client-api.ts";
import { openWebSocket } from "../transports/websocket.ts";

export interface ConnectUrlOptions {
  /** What the server lets us in by. */
  token?: string;
}

/**
 * The way to a server by its address: `ws:` and `wss:` (with the path `/api/ws`, unless it has
 * one), or `http:` and `https:` for frames over HTTP where a WebSocket does not get through.
 * Runs in browsers, and in Node where there is a global WebSocket; `@gyre/protocol/node` has
 * one for all of Node, which knows `tcp:` too. Throws for another kind of address.
 */
export function connectUrl(url: string, options: ConnectUrlOptions = {}): Connect {
  const address = parseAddress(url);
  switch (address.protocol) {
    case "ws:":
    case "wss:":
      return (signal) => openWebSocket(buildSocketUrl(address), { ...options, signal });
    case "http:":
    case "https:":
      return async (signal) => {
        // Few need it, and it brings a decoder along.
        const { openHttp } = await import("../transports/http.ts");
        return openHttp(address.href, { ...options, signal });
      };
    default:
      throw unknownSchemeError(url, "ws:, wss:, http: or https:");
  }
}

/** Throws where it is no address at all. */
export function parseAddress(url: string): URL {
  try {
    return new URL(url);
  } catch (error) {
    const message = `"${url}" is no address: ws://127.0.0.1:7420 is one.`;
    throw new ProtocolError("invalid_request", message, { cause: error });
  }
}

/** Where a server has its WebSocket. */
export function buildSocketUrl(address: URL): string {
  if (address.pathname !== "/") return address.href;
  const whole = new URL(address);
  whole.pathname = "/api/ws";
  return whole.href;
}

export function unknownSchemeError(url: string, known: string): ProtocolError {
  return new ProtocolError("invalid_request", `"${url}" does not begin with ${known}.`);
}
