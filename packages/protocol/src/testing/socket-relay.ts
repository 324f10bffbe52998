import { connect, createServer, type NetConnectOpts, type Socket } from "node:net";
import { systemClock } from "@gyre/ai";
import { closeServer, listenOn } from "../node/base/listen.ts";

/** A port of this machine, or the path of a Unix socket. */
export type SocketPlace = { port: number } | { path: string };

/** A connection over sockets that a test can stall and cut. */
export interface SocketRelay {
  /** Of a relay on a path: 0. */
  readonly port: number;
  /** Sets where the relay connects to. */
  to(place: SocketPlace): void;
  /** While it is stalled nothing is read, on either side. */
  stall(isStalled: boolean): void;
  /** Adds bytes to those that the first client sends. */
  inject(text: string): void;
  /** Breaks every connection. Accepts none after that, unless `staysOpen` is set. */
  cut(options?: { staysOpen?: boolean }): void;
  close(): Promise<void>;
}

/** Opens a relay at a place; by default at a free port. */
export async function openSocketRelay(at: SocketPlace = { port: 0 }): Promise<SocketRelay> {
  const sockets = new Set<Socket>();
  const ways: Socket[] = [];
  let target: SocketPlace = { port: 0 };
  let isStalled = false;
  let isOpen = true;
  const join = (from: Socket, into: Socket): void => {
    sockets.add(from);
    from.on("data", (chunk) => {
      if (into.write(chunk)) return;
      from.pause();
      into.once("drain", () => {
        if (!isStalled) from.resume();
      });
    });
    from.on("end", () => into.end());
    from.on("error", () => into.destroy());
    from.on("close", () => {
      sockets.delete(from);
      into.destroy();
    });
    if (isStalled) from.pause();
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    near.on("error", () => near.destroy());
    if (!isOpen) return void near.destroy();
    const far = connect({ ...onThisMachine(target), allowHalfOpen: true });
    ways.push(far);
    join(near, far);
    join(far, near);
  });
  const port = await listenOn(server, onThisMachine(at));
  return {
    port,
    to(place) {
      target = place;
    },
    stall(wanted) {
      isStalled = wanted;
      for (const socket of sockets) {
        if (isStalled) socket.pause();
        else socket.resume();
      }
    },
    inject(text) {
      ways[0]?.write(text);
    },
    cut({ staysOpen = false } = {}) {
      isOpen = staysOpen;
      for (const socket of sockets) {
        // Only TCP has a reset.
        if ("port" in at) socket.resetAndDestroy();
        else socket.destroy();
      }
    },
    close: () => closeServer(server, sockets, systemClock, 0),
  };
}

function onThisMachine(place: SocketPlace): NetConnectOpts {
  return "port" in place ? { ...place, host: "127.0.0.1" } : place;
}
