import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { makeToken } from "./base/token.ts";
import { Metrics } from "./base/metrics.ts";
import { systemClock } from "@gyre/ai";
import { listenHttp } from "./http/server.ts";
import { connectTcp, listenTcp } from "./tcp.ts";

const token = makeToken();
const MAX = 3;
const SILENT = 40;
let closes: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closes.toReversed()) await close();
  closes = [];
});

/** Sockets that say nothing. */
async function crowd(port: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let each = 0; each < SILENT; each++) {
    const socket = connect({ port, host: "127.0.0.1" }).on("error", () => {});
    closes.push(() => socket.destroy());
    await once(socket, "connect");
    sockets.push(socket);
  }
  return sockets;
}

describe("sockets that have not sent the token", () => {
  it("HTTP: do not keep out a client that has it", async () => {
    const listener = await listenHttp({ token, serve: () => {}, maxConnections: MAX });
    closes.push(() => listener.close({ graceMs: 0 }));
    const authorization = `Bearer ${token}`;
    const ask = async (path: string): Promise<number> =>
      (await fetch(`${listener.url}${path}`, { headers: { authorization } })).status;
    await crowd(listener.port);
    expect([await ask("/metrics"), await ask("/healthz")]).toEqual([200, 200]);
    await crowd(listener.port);
    expect([await ask("/metrics"), await ask("/healthz")]).toEqual([200, 200]);
  });

  it("TCP: do not keep out a client that has it, nor cut off one that came before", async () => {
    const served: unknown[] = [];
    const metrics = new Metrics(systemClock);
    const listener = await listenTcp({
      token,
      metrics,
      maxConnections: MAX,
      serve: (transport) => {
        served.push(transport);
        transport.receive({ onFrame: () => {}, onFault: () => {}, onClose: () => {} });
      },
    });
    closes.push(() => listener.close({ graceMs: 0 }));
    const { port } = listener;
    let closed = 0;
    const come = async (): Promise<void> => {
      const transport = await connectTcp({ port, token });
      closes.push(() => transport.close());
      transport.receive({ onFrame: () => {}, onFault: () => {}, onClose: () => closed++ });
      const before = served.length;
      await transport.send({ v: 1, type: "hello", id: "m_1", payload: { versions: [1] } });
      await expect.poll(() => served.length).toBe(before + 1);
    };
    await come();
    await crowd(port);
    await come();
    await crowd(port);
    await come();
    expect(closed).toBe(0);
  });
});
