import { connect } from "node:net";
import type { Transport } from "../transports/base/transport.ts";
import {
  checkListenOptions,
  formatHost,
  type ListenOptions,
  LOOPBACK,
  type PortListener,
  readHostAndPort,
} from "./base/listen.ts";
import { openSocket, type OpenSocketOptions, SocketServer } from "./socket.ts";
import type { UrlTransport } from "./base/url-transport.ts";

export interface ConnectTcpOptions extends OpenSocketOptions {
  /** Default loopback. */
  host?: string;
  port: number;
}

export interface ListenTcpOptions extends ListenOptions {
  /** Default loopback. */
  host?: string;
  /** Default: a free one. */
  port?: number;
}

/** Connects over TCP: one frame a line. Rejects where no server listens. */
export async function connectTcp(options: ConnectTcpOptions): Promise<Transport> {
  const { host = LOOPBACK, port, signal } = options;
  signal?.throwIfAborted();
  return openSocket(connect({ host, port }), options);
}

/** Listens for connections over TCP. */
export async function listenTcp(options: ListenTcpOptions): Promise<PortListener> {
  checkListenOptions(options);
  const { host = LOOPBACK, port: wanted = 0 } = options;
  const server = new SocketServer("tcp", options);
  const port = await server.listen({ host, port: wanted });
  return { host, port, url: `tcp://${formatHost(host)}:${port}`, close: server.close };
}

/** `tcp://host:port` */
export const tcp: UrlTransport = {
  connect: (address, options) => (signal) =>
    connectTcp({ ...readHostAndPort(address), ...options, signal }),
  listen: (address, options) => listenTcp({ ...readHostAndPort(address), ...options }),
};
