import type { ListenOptions as Place, Server, Socket } from "node:net";
import type { Clock } from "@gyre/ai";
import type { Transport } from "../../transports/base/transport.ts";
import type { Metrics } from "./metrics.ts";

/** The default address of a listener: only this machine can reach it. */
export const LOOPBACK = "127.0.0.1";

/** How long open connections have to end when a listener closes. */
export const LISTENER_GRACE_MS = 5000;

/** What every listener needs, whatever its transport. */
export interface ListenOptions {
  /** The secret that clients send. */
  token: string;
  /** Called for each connection that has sent the token. */
  serve: (transport: Transport) => void;
  /** Default `MAX_CONNECTIONS`. */
  maxConnections?: number;
  maxFrameBytes?: number;
  metrics?: Metrics;
  /** Errors that no answer reports. */
  onError?: (error: unknown, where: string) => void;
  clock?: Clock;
}

/** Throws where the token or `serve` is missing, which a compiler would find. */
export function checkListenOptions(options: Partial<ListenOptions> | undefined): void {
  if (typeof options?.token !== "string") {
    throw new TypeError(
      'The token is missing: write token: makeToken(), with makeToken of "@gyre/protocol/node".',
    );
  }
  if (typeof options.serve !== "function") {
    throw new TypeError(
      "Connections are served by nothing: write serve: (transport) => void server.serve(transport).",
    );
  }
}

/** A server that accepts connections. */
export interface Listener {
  /** The address for clients, as `connectUrl` takes it. */
  readonly url: string;
  /**
   * Accepts no more connections, waits up to `graceMs` (default `LISTENER_GRACE_MS`) for those
   * that are open, and cuts the rest off. It sends no `goodbye`: close the `WireServer` as well.
   */
  close(options?: { graceMs?: number }): Promise<void>;
}

/** A listener on a port of this machine. */
export interface PortListener extends Listener {
  readonly host: string;
  readonly port: number;
}

/** Settles with the port when the server listens; with 0 where the place has no port. */
export function listenOn(server: Server, place: Place): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(place, () => {
      server.off("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : 0);
    });
  });
}

/** Closes a server. Sockets that are open after `graceMs` are destroyed. */
export function closeServer(
  server: Server,
  sockets: ReadonlySet<Socket>,
  clock: Clock,
  graceMs: number = LISTENER_GRACE_MS,
): Promise<void> {
  return new Promise((resolve) => {
    const stop = clock.after(graceMs, () => {
      for (const socket of sockets) socket.destroy();
    });
    // The callback gets an error if the server is closed already: that is the goal as well.
    server.close(() => {
      stop();
      resolve();
    });
  });
}

/** The host and the port of an address, as sockets take them: without the brackets of IPv6. */
export function readHostAndPort({ hostname, port }: URL): { host: string; port: number } {
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
}

/** A host as it stands in a URL: IPv6 in brackets. */
export function formatHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
