import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect as connectTo, isIP, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { errorMessage } from "@gyre/ai";
import { addressRefusal } from "@gyre/ai/network";
import { formatTarget, parseAuthority, type Target } from "./domains.ts";

const MAX_CONNECTIONS = 256;
const MAX_SOCKET_PATH = 107;
const SOCKET_NAME_BYTES = 12;
const CONNECT_TIMEOUT_MS = 30_000;
/** Of what was denied, reported. */
const MAX_DENIALS = 10;
const HTTP_PORT = 80;
const STATUS = { badRequest: 400, forbidden: 403, badGateway: 502 } as const;
const REASON: Readonly<Record<number, string>> = {
  400: "Bad Request",
  403: "Forbidden",
  502: "Bad Gateway",
};

export interface ProxyOptions {
  /** A folder of ours alone for the Unix socket that it listens on. */
  folder: string;
  /** Whether a program may connect to a host, as it is normalized. May ask a person. */
  decide: (host: string, port: number) => Promise<boolean>;
  /** Whether no answer lets a program connect to a host. Default: for none. */
  isForbidden?: (host: string, port: number) => boolean;
  /** Whether an address that is not of the public internet may be connected to. Default: none. */
  allowsAddress?: (address: string, port: number) => boolean;
  /** The addresses of a host. Default: as the system looks them up. */
  resolve?: (host: string) => Promise<readonly string[]>;
  /** Opens a connection to an address. Default: TCP. */
  connect?: (address: string, port: number) => Promise<Socket>;
}

/** A proxy for HTTP and for tunnels (CONNECT), by which a program reaches the hosts that are allowed. */
export interface DomainProxy {
  readonly path: string;
  /** Sentences on what was denied so far. No more of a request than host and port is in them. */
  denials(): string[];
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Why there is no connection; `status` for the answer. */
class RefusedError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function openProxy(options: ProxyOptions): Promise<DomainProxy> {
  const path = socketPath(options.folder);
  const denials = new Set<string>();
  const sockets = new Set<Duplex>();
  const track = <T extends Duplex>(socket: T): T => {
    sockets.add(socket);
    return socket.once("close", () => sockets.delete(socket));
  };
  const open = async (target: Target): Promise<Socket> => {
    try {
      return track(await openConnection(target, options));
    } catch (error) {
      const isDenied = error instanceof RefusedError && error.status === STATUS.forbidden;
      if (isDenied && denials.size < MAX_DENIALS) denials.add(error.message);
      throw error;
    }
  };
  const server = createServer((incoming, response) => {
    forward(incoming, response, open).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else respond(response, error);
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  // An upload may take its time.
  server.requestTimeout = 0;
  server.on("connection", track);
  server.on("connect", (incoming: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on("error", () => client.destroy());
    tunnel(incoming, client, head, open).catch((error: unknown) => {
      client.end(formatResponse(error));
    });
  });
  // Web sockets go through a tunnel.
  server.on("upgrade", (_incoming: IncomingMessage, client: Duplex) => {
    client.on("error", () => client.destroy());
    client.end(formatResponse(badRequest("There are no upgrades here: use CONNECT.")));
  });
  server.on("clientError", (_error, client) => {
    if (client.writable) client.end(formatResponse(badRequest("This is no request.")));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, resolve);
  });
  return {
    path,
    denials: () => [...denials],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** The kernel takes no long path for a socket. */
function socketPath(folder: string): string {
  const name = `proxy-${randomBytes(SOCKET_NAME_BYTES).toString("hex")}`;
  const path = join(folder, name);
  return Buffer.byteLength(path) <= MAX_SOCKET_PATH ? path : join(tmpdir(), name);
}

async function tunnel(
  { url = "" }: IncomingMessage,
  client: Duplex,
  head: Buffer,
  open: (target: Target) => Promise<Socket>,
): Promise<void> {
  const target = parseAuthority(url);
  if (!target) throw badRequest("CONNECT needs a host and a port.");
  const upstream = await open(target);
  if (client.destroyed) {
    upstream.destroy();
    return;
  }
  client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
  upstream.write(head);
  joinStreams(client, upstream);
}

function joinStreams(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.pipe(to);
    from.on("error", () => to.destroy());
    from.on("close", () => {
      if (!from.readableEnded) to.destroy();
    });
  }
}

/** Each request is decided on by itself, also the second one of a connection. */
async function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  open: (target: Target) => Promise<Socket>,
): Promise<void> {
  const { authority, path, target } = parseRequest(incoming);
  const upstream = await open(target);
  const outgoing = request({
    createConnection: () => upstream,
    method: incoming.method ?? "GET",
    path,
    headers: { ...endToEndHeaders(incoming), host: authority },
    setHost: false,
  });
  response.once("close", () => upstream.destroy());
  await new Promise<void>((resolve, reject) => {
    const fail = (error: Error): void => reject(new RefusedError(STATUS.badGateway, error.message));
    outgoing.once("error", fail);
    outgoing.once("upgrade", () => fail(new Error("The server changed the protocol.")));
    outgoing.once("response", (answer) => {
      answer.once("error", fail);
      answer.once("end", resolve);
      response.writeHead(answer.statusCode ?? STATUS.badGateway, endToEndHeaders(answer));
      answer.pipe(response);
    });
    incoming.once("error", fail);
    incoming.pipe(outgoing);
  });
}

interface ParsedRequest {
  authority: string;
  path: string;
  target: Target;
}

/** Throws where a request for a proxy is not written plainly, or contradicts itself. */
function parseRequest({ url = "", rawHeaders }: IncomingMessage): ParsedRequest {
  const [, authority = "", rest = ""] = /^http:\/\/([^/?#\\@]+)([/?][^#]*)?$/i.exec(url) ?? [];
  const target = parseAuthority(authority, HTTP_PORT);
  if (!target) throw badRequest("This is a proxy: it takes http:// addresses, and CONNECT.");
  const hosts = rawHeaders.filter(
    (_, n) => n % 2 === 1 && rawHeaders[n - 1]?.toLowerCase() === "host",
  );
  const named = hosts.length === 1 ? parseAuthority(hosts[0] ?? "", HTTP_PORT) : undefined;
  if (named?.host !== target.host || named.port !== target.port) {
    throw badRequest("The header Host names another host than the address.");
  }
  return { authority, path: rest.startsWith("/") ? rest : `/${rest}`, target };
}

/** For one connection alone, or for the proxy itself. */
const HOP_HEADERS = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
  "host",
]);

function endToEndHeaders({ headers, headersDistinct }: IncomingMessage): Record<string, string[]> {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  return Object.fromEntries(
    Object.entries(headersDistinct).flatMap(([name, values]) =>
      values === undefined || HOP_HEADERS.has(name) || named.includes(name) ? [] : [[name, values]],
    ),
  );
}

/** The address that was checked is the one that is connected to: no second lookup comes between. */
async function openConnection(target: Target, options: ProxyOptions): Promise<Socket> {
  const { decide, isForbidden = () => false, allowsAddress = () => false } = options;
  const { resolve = lookUp, connect = connectByTcp } = options;
  const { host, port } = target;
  if (isForbidden(host, port)) {
    throw denied(target, "the policy of the administrator does not have it");
  }
  if (!(await decide(host, port))) {
    throw denied(target, "the user can allow it with the setting `domains`");
  }
  const found = isIP(host) ? [host] : await resolve(host).catch(asUnreachable);
  const refusals = new Map(found.map((address) => [address, addressRefusal(address)]));
  const usable = found.filter(
    (address) => refusals.get(address) === undefined || allowsAddress(address, port),
  );
  const [refused] = found;
  if (usable.length === 0 && refused !== undefined) {
    throw denied(
      target,
      `it is at ${refused} (${refusals.get(refused)}); the user can list that address itself in the setting \`domains\``,
    );
  }
  let failure: unknown = new Error("It has no address.");
  for (const address of usable) {
    try {
      return await connect(address, port);
    } catch (error) {
      failure = error;
    }
  }
  return asUnreachable(failure);
}

function denied(target: Target, why: string): RefusedError {
  return new RefusedError(
    STATUS.forbidden,
    `The sandbox denied a connection to ${formatTarget(target)}: ${why}.`,
  );
}

function badRequest(message: string): RefusedError {
  return new RefusedError(STATUS.badRequest, message);
}

function asUnreachable(error: unknown): never {
  throw new RefusedError(STATUS.badGateway, errorMessage(error));
}

async function lookUp(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function connectByTcp(address: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectTo({ host: address, port });
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => {
      socket.destroy(new Error(`${address} did not answer within ${CONNECT_TIMEOUT_MS / 1000} s.`));
    });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.off("error", reject);
      // "close" follows, which readers get.
      socket.on("error", () => socket.destroy());
      resolve(socket);
    });
  });
}

function respond(response: ServerResponse, error: unknown): void {
  const { status, text } = describeRefusal(error);
  response.writeHead(status, { "content-type": "text/plain", connection: "close" });
  response.end(text);
}

function formatResponse(error: unknown): string {
  const { status, text } = describeRefusal(error);
  return (
    `HTTP/1.1 ${status} ${REASON[status] ?? "Error"}\r\nContent-Type: text/plain\r\nConnection: close\r\n` +
    `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

function describeRefusal(error: unknown): { status: number; text: string } {
  const status = error instanceof RefusedError ? error.status : STATUS.badGateway;
  return { status, text: `${errorMessage(error)}\n` };
}
