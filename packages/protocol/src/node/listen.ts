import type { Server, Socket } from "node:net";
import type { Clock } from "@gyre/ai";

/** Where a server listens unless told otherwise: this machine alone reaches it. */
export const LOOPBACK = "127.0.0.1";

/** How long those who are there have to leave when a listener closes. */
export const LISTENER_GRACE_MS = 5000;

/** A server that others can come to. */
export interface Listener {
  readonly host: string;
  readonly port: number;
  /**
   * Lets nobody in any more, waits up to `graceMs` (default `LISTENER_GRACE_MS`) for those
   * who are there, and cuts the rest off. It says no goodbye: close the `WireServer` along.
   */
  close(options?: { graceMs?: number }): Promise<void>;
}

/** Settles with the port when the server listens. */
export function listenOn(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : port);
    });
  });
}

/** Closes a server; what is left of its sockets after `graceMs` is destroyed. */
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
    // It is an error to close one that is closed, and then there is nothing to do.
    server.close(() => {
      stop();
      resolve();
    });
  });
}
