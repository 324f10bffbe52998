import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { manualClock } from "@gyre/ai/testing";
import { afterEach, describe, expect, it } from "vitest";
import { CLOSE_GRACE_MS, MAX_HELLO_BYTES } from "../frames/limits.ts";
import { WireServer } from "../server/service.ts";
import type { Transport } from "../transports/base/transport.ts";
import type { PortListener } from "./base/listen.ts";
import { Metrics } from "./base/metrics.ts";
import { connectTcp, listenTcp, type ListenTcpOptions } from "./tcp.ts";

const TOKEN = "t".repeat(32);
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function listen(options: Partial<ListenTcpOptions> = {}): Promise<PortListener> {
  const wire = new WireServer([]);
  const listener = await listenTcp({ token: TOKEN, serve: (each) => wire.serve(each), ...options });
  ends.push(() => listener.close({ graceMs: 0 }));
  return listener;
}

/** A client that knows nothing but bytes. */
async function raw(port: number): Promise<{ socket: Socket; next: () => Promise<unknown> }> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  ends.push(() => socket.destroy());
  socket.on("error", () => {});
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  await new Promise((resolve) => socket.once("connect", resolve));
  return {
    socket,
    next: async () => {
      const { done, value } = await lines.next();
      return done ? "end" : JSON.parse(value);
    },
  };
}

const hello = (token?: string): string =>
  `${JSON.stringify({ v: 1, type: "hello", id: "c_1", payload: { versions: [1], token } })}\n`;

describe("TCP: a token always, in hello", () => {
  it("answers ready to the right one", async () => {
    const { port } = await listen();
    const { socket, next } = await raw(port);
    socket.write(hello(TOKEN));
    expect(await next()).toMatchObject({ type: "ready", re: "c_1" });
  });

  it.each([
    ["a wrong token", hello("w".repeat(32))],
    ["no token", hello()],
    ["what is not JSON", "GET / HTTP/1.1\r\n"],
    ["a first line that is too long", `${"x".repeat(MAX_HELLO_BYTES + 2)}\n`],
  ])("unauthorized: %s gets a nack, and the connection is closed", async (_, first) => {
    const metrics = new Metrics();
    const { port } = await listen({ metrics, serve: () => expect.unreachable() });
    const { socket, next } = await raw(port);
    socket.write(first);
    expect(await next()).toMatchObject({ type: "nack", payload: { code: "unauthorized" } });
    expect(await next()).toBe("end");
    expect(metrics.format()).toContain('gyre_refused_total{reason="token"} 1');
  });

  it("puts the token of connectTcp into hello", async () => {
    const { port } = await listen();
    const transport = await connectTcp({ port, token: TOKEN });
    const answer = new Promise((resolve) =>
      transport.receive({
        onFrame: ({ type }) => resolve(type),
        onFault: resolve,
        onClose: resolve,
      }),
    );
    await transport.send({ v: 1, type: "hello", id: "c_1", payload: { versions: [1] } });
    expect(await answer).toBe("ready");
    await transport.close();
  });
});

describe("TCP: limits", () => {
  it("connections: one too many gets goodbye, and is counted", async () => {
    const metrics = new Metrics();
    const { port } = await listen({ maxConnections: 1, metrics });
    const first = await raw(port);
    first.socket.write(hello(TOKEN));
    await first.next();
    const { next } = await raw(port);
    expect(await next()).toMatchObject({ type: "goodbye", payload: { reason: "full" } });
    expect(await next()).toBe("end");
    expect(metrics.format()).toContain('gyre_refused_total{reason="connections"} 1');
    first.socket.write('{"v":1,"type":"ping","id":"c_2"}\n');
    expect(await first.next()).toMatchObject({ type: "pong", re: "c_2" });
  });

  it("a socket that stays half open after a close is destroyed", async () => {
    const clock = manualClock();
    let serve: (transport: Transport) => void = () => {};
    const served = new Promise<Transport>((resolve) => (serve = resolve));
    const { port } = await listen({ clock, serve });
    const { socket } = await raw(port);
    const ended = new Promise((resolve) => socket.once("end", resolve));
    socket.write(hello(TOKEN));
    const transport = await served;
    let isClosed = false;
    const closed = transport.close().then(() => (isClosed = true));
    await ended;
    await clock.advance(CLOSE_GRACE_MS - 1);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    await closed;
  });

  it("listens on loopback unless configured otherwise", async () => {
    expect((await listen()).host).toBe("127.0.0.1");
  });
});

describe("TCP: the end", () => {
  it("close: waits for who is there, and cuts off who stays", async () => {
    const clock = manualClock();
    const listener = await listen({ clock });
    const { socket, next } = await raw(listener.port);
    socket.write(hello(TOKEN));
    await next();
    let isClosed = false;
    const closed = listener.close({ graceMs: 1000 }).then(() => (isClosed = true));
    await clock.advance(999);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    await closed;
    await listener.close();
  });

  it("connecting ends with the signal, and rejects where no server listens", async () => {
    const listener = await listen();
    const { port } = listener;
    const given = AbortSignal.abort(new Error("no more"));
    await expect(connectTcp({ port, signal: given })).rejects.toThrow("no more");
    await listener.close();
    await expect(connectTcp({ port })).rejects.toThrow(/ECONNREFUSED/);
  });

  it("an open connection is not touched by the signal that opened it", async () => {
    const { port } = await listen();
    const controller = new AbortController();
    const transport = await connectTcp({ port, token: TOKEN, signal: controller.signal });
    controller.abort();
    const answer = new Promise((resolve) =>
      transport.receive({
        onFrame: ({ type }) => resolve(type),
        onFault: resolve,
        onClose: resolve,
      }),
    );
    await transport.send({ v: 1, type: "hello", id: "c_1", payload: { versions: [1] } });
    expect(await answer).toBe("ready");
    await transport.close();
  });
});
