import { connect } from "node:net";
import { manualClock } from "@gyre/ai/testing";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { CLOSE_GRACE_MS } from "../frames/limits.ts";
import { type HttpListener, listenHttp, type ListenHttpOptions } from "../node/http/server.ts";
import { connectWebSocket } from "../node/websocket-client.ts";
import { WEBSOCKET_PING_MS } from "../node/http/websocket-server.ts";
import { openSocketRelay } from "../testing/socket-relay.ts";
import type { Transport } from "./base/transport.ts";
import { encodeBase64Url, openWebSocket } from "./websocket.ts";

const TOKEN = "t".repeat(32);
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function listen(
  options: Partial<ListenHttpOptions> = {},
): Promise<{ url: string; listener: HttpListener; served: Promise<Transport> }> {
  let serve: (transport: Transport) => void = () => {};
  const served = new Promise<Transport>((resolve) => (serve = resolve));
  const listener = await listenHttp({ token: TOKEN, serve, ...options });
  ends.push(() => listener.close({ graceMs: 0 }));
  return { url: `ws://127.0.0.1:${listener.port}/api/ws`, listener, served };
}

function closing(transport: Transport, faults: string[] = []): Promise<Error | undefined> {
  return new Promise((resolve) =>
    transport.receive({
      onFrame: () => {},
      onFault: ({ code }) => faults.push(code),
      onClose: resolve,
    }),
  );
}

/** A client that shakes hands and then never answers anything. */
async function silent(port: number): Promise<{ ended: Promise<unknown> }> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  ends.push(() => socket.destroy());
  socket.on("error", () => {});
  const ended = new Promise((resolve) => socket.once("end", resolve).once("close", resolve));
  socket.write(
    `GET /api/ws HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${TOKEN}\r\n` +
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  await new Promise((resolve) => socket.once("data", resolve));
  socket.on("data", () => {});
  return { ended };
}

describe("WebSocket: a socket that is half open is destroyed", () => {
  it("a client that answers no ping is cut off", async () => {
    const clock = manualClock();
    const { listener, served } = await listen({ clock });
    await silent(listener.port);
    const closed = closing(await served);
    await clock.advance(WEBSOCKET_PING_MS);
    await clock.advance(WEBSOCKET_PING_MS);
    expect(await closed).toMatchObject({ message: expect.stringContaining("1006") });
    expect(clock.pending).toBe(0);
  });

  it("a client that answers stays", async () => {
    const clock = manualClock();
    const { url, served } = await listen({ clock });
    const transport = await connectWebSocket(url, { token: TOKEN });
    let isClosed = false;
    void closing(await served).then(() => (isClosed = true));
    const pings = new Promise<void>((resolve) => {
      let count = 0;
      const next = async (): Promise<void> => {
        await clock.advance(WEBSOCKET_PING_MS);
        // The pong is on a real socket: the answer to a frame of ours is behind it.
        await transport.send({ v: 1, type: "x", id: `m_${count}`, payload: {} });
        for (let turn = 0; turn < 20; turn++) await clock.turn();
        if (++count < 5) void next();
        else resolve();
      };
      void next();
    });
    await pings;
    expect(isClosed).toBe(false);
    await transport.close();
  });

  it("a client that does not close its side is cut off", async () => {
    const clock = manualClock();
    const { listener, served } = await listen({ clock });
    const { ended } = await silent(listener.port);
    const transport = await served;
    const heard = closing(transport);
    let isClosed = false;
    const closed = transport.close().then(() => (isClosed = true));
    await clock.advance(CLOSE_GRACE_MS - 1);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    await closed;
    expect(await heard).toBeUndefined();
    await ended;
  });
});

describe("WebSocket: a text frame is a frame", () => {
  it("invalid_request: a binary one is reported, and the connection goes on", async () => {
    const { url, served } = await listen();
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${TOKEN}` } });
    await new Promise((resolve) => socket.once("open", resolve));
    const faults: string[] = [];
    const closed = closing(await served, faults);
    socket.send(Buffer.from("{}"));
    socket.close();
    await closed;
    expect(faults).toEqual(["invalid_request"]);
  });

  it("too_large: the client gets the reason for the close", async () => {
    const { url, served } = await listen({ maxFrameBytes: 100 });
    const transport = await connectWebSocket(url, { token: TOKEN });
    void closing(await served);
    const closed = closing(transport);
    await transport.send({ v: 1, type: "x", id: "m", payload: { text: "x".repeat(100) } });
    expect(await closed).toMatchObject({ code: "too_large" });
  });
});

describe("WebSocket: opening", () => {
  it("says so where there is no WebSocket", async () => {
    const { WebSocket: there } = globalThis;
    Reflect.deleteProperty(globalThis, "WebSocket");
    try {
      await expect(openWebSocket("ws://127.0.0.1:1")).rejects.toThrow(/connectWebSocket/);
    } finally {
      if (there) globalThis.WebSocket = there;
    }
  });

  it("rejects where no server listens, where it is refused, and when the signal ends it", async () => {
    const { url, listener } = await listen();
    await expect(openWebSocket(url, { WebSocket })).rejects.toThrow(/401/);
    const relay = await openSocketRelay();
    ends.push(() => relay.close());
    relay.to({ port: listener.port });
    relay.stall(true);
    const controller = new AbortController();
    const { signal } = controller;
    const there = `ws://127.0.0.1:${relay.port}/api/ws`;
    const opening = openWebSocket(there, { WebSocket, signal });
    controller.abort(new Error("no more"));
    await expect(opening).rejects.toThrow("no more");
    await relay.close();
    await expect(openWebSocket(there, { WebSocket })).rejects.toThrow(/ECONNREFUSED/);
    await expect(connectWebSocket(there)).rejects.toThrow(/ECONNREFUSED/);
  });

  it("writes a token of any bytes as base64url", () => {
    for (const token of [TOKEN, "a?>~ÿ€😀", ""]) {
      expect(encodeBase64Url(token)).toBe(Buffer.from(token).toString("base64url"));
    }
  });
});
