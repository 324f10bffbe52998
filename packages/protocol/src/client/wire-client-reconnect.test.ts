import { describe, expect, it, vi } from "vitest";
import type { Payload } from "../frames/envelope.ts";
import { follower, ofType, played, READY } from "../testing/played-server.ts";
import { echo, served } from "../testing/served-client.ts";
import { type Transport, createTransportPair } from "../transports/base/transport.ts";
import { PING_MS } from "./wire-client.ts";
import { CONNECT_TIMEOUT_MS } from "./client-connection.ts";
import type { Connect } from "./client-api.ts";

describe("reconnect: requests that were not answered are sent again", () => {
  it("under their ids, in their order, with new numbers", async () => {
    const { client, clock, got, say, hangUp } = played();
    const ask = (n: number): Promise<Payload> => client.request("echo", { n }, { stream: "s" });
    const all = [ask(1), ask(2), ask(3)];
    await say(READY);
    const sent = ofType(got.splice(0), "echo");
    await say({ type: "ack", re: sent[0]?.id ?? "" });
    await hangUp();
    all.push(ask(4));
    await clock.advance(1000);
    await say(READY);
    const again = ofType(got, "echo");
    expect(again.map(({ payload, seq }) => [payload["n"], seq])).toEqual([
      [2, 1],
      [3, 2],
      [4, 3],
    ]);
    expect(again.slice(0, 2).map(({ id }) => id)).toEqual(sent.slice(1).map(({ id }) => id));
    for (const { id } of again) await say({ type: "ack", re: id });
    expect(await Promise.all(all)).toEqual([{}, {}, {}, {}]);
  });

  it("not those that no caller waits for any more", async () => {
    const { client, clock, got, say, hangUp } = played();
    const abort = new AbortController();
    void client.request("echo", {}, { signal: abort.signal });
    await say(READY);
    await hangUp();
    abort.abort();
    got.splice(0);
    await clock.advance(1000);
    await say(READY);
    expect(ofType(got, "echo")).toEqual([]);
  });

  it("reports each change of its status", async () => {
    const { client, clock, transports, states } = served({}, { random: () => 0.5 });
    await client.connect();
    await transports[0]?.close();
    await clock.advance(1000);
    expect(states).toMatchObject([
      { type: "connecting" },
      { type: "ready" },
      { type: "waiting", attempt: 1, delayMs: 125, error: { message: "The connection broke." } },
      { type: "connecting" },
      { type: "ready" },
    ]);
  });

  it("waits longer after each attempt that fails", async () => {
    const connect = vi.fn<Connect>(() => Promise.reject(new Error("no server")));
    const { client, clock } = played({ connect, reconnect: { baseMs: 100, maxMs: 300 } });
    void client.connect();
    const counts: number[] = [];
    for (const ms of [0, 99, 1, 199, 1, 299, 1, 299, 1]) {
      await clock.advance(ms);
      counts.push(connect.mock.calls.length);
    }
    expect(counts).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5]);
  });

  it("stops retrying after so many attempts, and says why", async () => {
    const connect = vi.fn<Connect>(() => Promise.reject(new Error("no server")));
    const { client, clock } = played({ connect, reconnect: { maxAttempts: 2 } });
    const [asking, listener] = [client.request("echo", {}), follower()];
    client.listen("s", listener);
    await clock.advance(10_000);
    await expect(asking).rejects.toThrow("The server cannot be reached: no server");
    expect(connect).toHaveBeenCalledTimes(3);
    expect(listener.lostWith).toEqual(["timeout"]);
    expect(client.state.type).toBe("closed");
  });

  it("times out an attempt that hangs", async () => {
    const signals: AbortSignal[] = [];
    const connect = (signal: AbortSignal): Promise<Transport> => {
      signals.push(signal);
      return new Promise(() => {});
    };
    const { client, clock } = played({ connect });
    void client.connect();
    await clock.advance(CONNECT_TIMEOUT_MS);
    expect(signals[0]?.aborted).toBe(true);
    expect(client.state).toMatchObject({ type: "waiting", error: { code: "timeout" } });
    await clock.advance(250);
    expect(signals).toHaveLength(2);
  });

  it("times out on a server that never says ready", async () => {
    const { client, clock, attempts } = played();
    void client.connect();
    await clock.advance(CONNECT_TIMEOUT_MS + 250);
    expect(attempts()).toBe(2);
  });

  it("closes a transport that comes too late", async () => {
    const [near, far] = createTransportPair();
    const closed = vi.fn<() => void>();
    far.receive({ onFrame: () => {}, onFault: () => {}, onClose: closed });
    let arrive: ((transport: Transport) => void) | undefined;
    const connect = (): Promise<Transport> => new Promise((resolve) => (arrive = resolve));
    const { client, clock } = played({ connect, reconnect: { maxAttempts: 0 } });
    void client.connect();
    await clock.advance(CONNECT_TIMEOUT_MS);
    arrive?.(near);
    await clock.advance(0);
    expect(closed).toHaveBeenCalledOnce();
  });

  it.each(["slow_reader", "closed", "full"])("comes back after goodbye: %s", async (reason) => {
    const { client, clock, connections } = served({ echo });
    await client.connect();
    await connections[0]?.close(reason);
    const waiting = client.request("echo", { a: 1 });
    await clock.advance(0);
    expect(client.state).toMatchObject({
      type: "waiting",
      error: { message: `The server said goodbye: ${reason}.` },
    });
    await clock.advance(250);
    expect(await waiting).toEqual({ a: 1 });
  });
});

describe("ping/pong", () => {
  it("pings a connection on which nothing is heard", async () => {
    const { client, clock, got, say } = played();
    void client.connect();
    await say(READY);
    await clock.advance(PING_MS - 1);
    expect(ofType(got, "ping")).toHaveLength(0);
    await clock.advance(1);
    expect(ofType(got, "ping")).toHaveLength(1);
  });

  it("opens a new one where no pong comes", async () => {
    const { client, clock, say, attempts } = played();
    void client.connect();
    await say(READY);
    await clock.advance(2 * PING_MS - 1);
    expect(client.state.type).toBe("ready");
    await clock.advance(1);
    expect(client.state).toMatchObject({ type: "waiting", error: { code: "timeout" } });
    await clock.advance(250);
    expect(attempts()).toBe(2);
  });

  it("stays with a server that answers", async () => {
    const { client, clock, connections } = served();
    await client.connect();
    await clock.advance(20 * PING_MS);
    expect(connections).toHaveLength(1);
    expect(client.state.type).toBe("ready");
  });

  it("answers a ping with a pong that names it", async () => {
    const { client, got, say } = played();
    void client.connect();
    await say(READY);
    await say({ type: "ping", id: "p" });
    expect(got.at(-1)).toMatchObject({ type: "pong", re: "p" });
  });
});

describe("goodbye: close", () => {
  it("says it, and settles when the transport is closed", async () => {
    const onDisconnect = vi.fn<(reason: string, error?: Error) => void>();
    const { client, clock, states } = served({}, { server: { onDisconnect } });
    await client.connect();
    await client.close();
    await clock.advance(0);
    expect(onDisconnect.mock.calls).toEqual([["goodbye", undefined]]);
    expect(states.at(-1)).toEqual({ type: "closed" });
    expect(clock.pending).toBe(0);
  });

  it("rejects what waits and what comes, and notifies listeners", async () => {
    const { client, connections } = served({ hang: () => new Promise(() => {}) });
    const listener = follower(() => undefined);
    client.listen("s", listener);
    const waiting = client.request("hang", {});
    await client.connect();
    await client.close();
    await expect(waiting).rejects.toThrow("The client was closed.");
    await expect(client.request("hang", {})).rejects.toThrow("The client was closed.");
    await expect(client.connect()).rejects.toThrow("The client was closed.");
    expect(() => client.listen("t", follower())).toThrow("The client was closed.");
    expect(listener.lostWith).toEqual(["internal_error"]);
    expect(connections).toHaveLength(1);
  });

  it("ends an attempt that goes on", async () => {
    const connect = (signal: AbortSignal): Promise<Transport> =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("aborted")));
      });
    const { client, clock } = played({ connect });
    const connecting = client.connect();
    await clock.advance(0);
    await client.close();
    await expect(connecting).rejects.toThrow("The client was closed.");
    expect(clock.pending).toBe(0);
  });

  it("ends the wait for the next attempt", async () => {
    const connect = vi.fn<Connect>(() => Promise.reject(new Error("no server")));
    const { client, clock } = played({ connect });
    void client.connect();
    await clock.advance(0);
    await client.close();
    await clock.advance(60_000);
    expect(connect).toHaveBeenCalledOnce();
    expect(clock.pending).toBe(0);
  });

  it("does not wait for ever for a transport that does not close", async () => {
    const [near] = createTransportPair();
    const close = (): Promise<void> => new Promise(() => {});
    const connect = async (): Promise<Transport> => ({
      send: (frame) => near.send(frame),
      receive: (handler) => near.receive(handler),
      close,
    });
    const { client, clock } = played({ connect });
    void client.connect();
    await clock.advance(0);
    const closed = vi.fn<() => void>();
    void client.close().then(closed);
    await clock.advance(CONNECT_TIMEOUT_MS - 1);
    expect(closed).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(closed).toHaveBeenCalledOnce();
  });

  it("can be said twice, and before the first use", async () => {
    const { client, connections } = served();
    await Promise.all([client.close(), client.close()]);
    expect(connections).toHaveLength(0);
  });

  it("contains an onState that throws", async () => {
    const onError = vi.fn<(error: unknown, where: string) => void>();
    const onState = (): void => {
      throw new Error("oops");
    };
    const { client } = served({ echo }, { onState, onError });
    expect(await client.request("echo", {})).toEqual({});
    expect(onError).toHaveBeenCalledWith(new Error("oops"), "onState");
  });
});
