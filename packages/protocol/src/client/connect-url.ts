import { invalidRequest } from "../frames/protocol-error.ts";
import { openWebSocket } from "../transports/websocket.ts";
import type { Connect } from "./client-api.ts";

export interface ConnectUrlOptions {
  /** The secret that the server accepts. */
  token?: string;
  /** Default `MAX_FRAME_BYTES`. */
  maxFrameBytes?: number;
}

/** Opens connections to the addresses of one scheme. Called once for each `connectUrl`. */
export type Opener = (address: URL, options: ConnectUrlOptions) => Connect;

/** Openers by the scheme of an address, with its colon: `ws:`. */
export type Openers = Readonly<Record<string, Opener>>;

/** Opens the WebSocket of a server, at `/api/ws` unless the address has a path. */
const webSocket: Opener = (address, options) => (signal) =>
  openWebSocket(buildSocketUrl(address), { ...options, signal });

/** Opens a connection over HTTP. Loaded when it is used: few need it, and it brings a decoder along. */
export const http: Opener = (address, options) => async (signal) => {
  const { openHttp } = await import("../transports/http.ts");
  return openHttp(address.href, { ...options, signal });
};

/** The transports that run in browsers. A new one gets its line here. */
export const OPENERS: Openers = {
  "ws:": webSocket,
  "wss:": webSocket,
  "http:": http,
  "https:": http,
};

/**
 * The way to a server by its address: `ws:` and `wss:` (with the path `/api/ws`, unless it has
 * one), or `http:` and `https:` for frames over HTTP where a WebSocket does not get through. In a
 * page also a path of its own server, `/api/gyre`, over HTTP.
 * Runs in browsers, and in Node where there is a global WebSocket; `@gyre/protocol/node` has
 * one for all of Node, with more schemes. Throws for an address of another scheme.
 */
export function connectUrl(url: string, options: ConnectUrlOptions = {}): Connect {
  // Where the page is from is known when it connects, and not where it is rendered before, on a server.
  if (url.startsWith("/")) return async (signal) => http(resolveInPage(url), options)(signal);
  const [open, address] = findByScheme(OPENERS, url);
  return open(address, options);
}

/** What a page has, and Node has not. */
interface PageGlobals {
  readonly location?: { readonly origin: string };
  readonly fetch: unknown;
}

function resolveInPage(path: string, { location: page }: PageGlobals = globalThis): URL {
  const { origin } = page ?? {};
  const address = URL.canParse(path, origin) ? new URL(path, origin) : undefined;
  if (address && address.origin === origin) return address;
  const why = page
    ? "does not stay on the server of this page"
    : "is a path, and there is no page here";
  throw invalidRequest(
    `"${path}" ${why}. Write a whole address, like https://shop.example/api/gyre.`,
  );
}

/** Throws `invalid_request` for a text that is not a URL. */
function parseAddress(url: string): URL {
  try {
    return new URL(url);
  } catch (error) {
    const message = `"${url}" is not an address. Write one like ws://127.0.0.1:7420.`;
    throw invalidRequest(message, { cause: error });
  }
}

/**
 * What a table has for the scheme of a URL, and the URL as an address. Throws `invalid_request`
 * for a scheme that it does not have, and lists those that it has.
 */
export function findByScheme<T>(table: Readonly<Record<string, T>>, url: string): [T, URL] {
  const address = parseAddress(url);
  const found = Object.hasOwn(table, address.protocol) ? table[address.protocol] : undefined;
  if (found !== undefined) return [found, address];
  const schemes = Object.keys(table);
  const known = `${schemes.slice(0, -1).join(", ")} or ${schemes.at(-1)}`;
  throw invalidRequest(`"${url}" does not begin with ${known}.`);
}

/** Where a server has its WebSocket. */
export function buildSocketUrl(address: URL): string {
  if (address.pathname !== "/") return address.href;
  const whole = new URL(address);
  whole.pathname = "/api/ws";
  return whole.href;
}
