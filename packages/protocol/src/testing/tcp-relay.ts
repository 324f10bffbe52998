import { connect, createServer, type Socket } from "node:net";

/** A way over TCP that a test can stall and cut. */
export interface TcpRelay {
  readonly port: number;
  /** Where it leads to. */
  to(port: number): void;
  /** While it is stalled nothing is read, on either side. */
  stall(isStalled: boolean): void;
  /** Adds bytes to what the first that came sends. */
  inject(text: string): void;
  /** Breaks what is open, and lets nobody through any more unless told so. */
  cut(options?: { staysOpen?: boolean }): void;
  close(): Promise<void>;
}

export async function tcpRelay(): Promise<TcpRelay> {
  const sockets = new Set<Socket>();
  const ways: Socket[] = [];
  let target = 0;
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
    const far = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true });
    ways.push(far);
    join(near, far);
    join(far, near);
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : 0);
    });
  });
  return {
    port,
    to(wanted) {
      target = wanted;
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
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
