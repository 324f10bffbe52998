import { describe, expect, it, vi } from "vitest";
import type { Payload } from "../frames/envelope.ts";
import { REQUEST_TIMEOUT_MS } from "../frames/limits.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import { ofType, played, READY } from "../testing/played-server.ts";
import { echo, served } from "../testing/served-client.ts";
import { ANSWER_GRACE_MS } from "./wire-client.ts";
import type { Connect } from "./client-api.ts";

describe("handshake: hello {versions} -> ready", () => {
  it("connects at the first request, and not before", async () => {
    const { client, connections } = served({ echo });
    expect(connections).toHaveLength(0);
    expect(await client.request("echo", { a: 1 })).toEqual({ a: 1 });
    expect(connections).toHaveLength(1);
  });

  it("keeps what the server reports about itself and its limits", async () => {
    const server = { server: { name: "test", version: "2" }, limits: { streams: 7 } };
    const { client } = served({}, { server });
    await client.connect();
    expect(client.state).toMatchObject({
      type: "ready",
      server: { name: "test", version: "2" },
      limits: { streams: 7, frameBytes: 16 * 1024 * 1024 },
    });
  });

  it("says who it is", async () => {
    const { client, clock, got } = played({ client: { name: "page", version: "3" } });
    void client.connect();
    await clock.advance(0);
    expect(got).toMatchObject([
      { type: "hello", payload: { versions: [1], client: { name: "page", version: "3" } } },
    ]);
    expect(got[0]).not.toHaveProperty("seq");
  });

  it.each(["version_mismatch", "unauthorized"])("is not tried again after %s", async (code) => {
    const { client, clock, say, attempts } = played();
    const waiting = client.request("echo", {});
    await say({ type: "nack", payload: { code, message: "No.", versions: [2] } });
    await expect(waiting).rejects.toMatchObject({ code, details: { versions: [2] } });
    await expect(client.connect()).rejects.toMatchObject({ code });
    expect(client.state).toMatchObject({ type: "closed", error: { code } });
    await clock.advance(60_000);
    expect(attempts()).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it("is not tried again where the way in is refused", async () => {
    const connect = vi.fn<Connect>(() =>
      Promise.reject(new ProtocolError("unauthorized", "No token.")),
    );
    const { client } = played({ connect });
    await expect(client.request("echo", {})).rejects.toMatchObject({ code: "unauthorized" });
    expect(connect).toHaveBeenCalledOnce();
  });

  it("refuses a version that it did not offer", async () => {
    const { client, say } = played();
    const waiting = client.connect();
    await say({ type: "ready", payload: { version: 2 } });
    await expect(waiting).rejects.toMatchObject({ code: "version_mismatch" });
  });
});

describe("requests: one answer each", () => {
  it("settles with the payload of the ack, each with its own", async () => {
    const { client } = served({ echo });
    const all = [1, 2, 3].map((n) => client.request("echo", { n }, n > 1 ? { stream: "s" } : {}));
    expect(await Promise.all(all)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });

  it("numbers the requests of a stream from 1 by 1, and gives each an id of its own", async () => {
    const { client, asked } = served({ echo });
    const ask = (stream: string): Promise<Payload> => client.request("echo", {}, { stream });
    await Promise.all([ask("a"), ask("b"), ask("a"), client.request("echo", {}), ask("a")]);
    expect(asked.map(({ stream, seq }) => [stream, seq])).toEqual([
      ["a", 1],
      ["b", 1],
      ["a", 2],
      [undefined, undefined],
      ["a", 3],
    ]);
    expect(new Set(asked.map(({ id }) => id)).size).toBe(5);
    for (const { id } of asked) expect(id).toMatch(/^c_[0-9a-f]{24}_\d+$/);
  });

  it("rejects with the code and the details of the nack", async () => {
    const { client } = served({
      refuse: () => {
        throw new ProtocolError("session_busy", "Not now.", { details: { run: 4 } });
      },
    });
    await expect(client.request("refuse", {})).rejects.toMatchObject({
      name: "ProtocolError",
      code: "session_busy",
      message: "Not now.",
      details: { run: 4 },
    });
  });

  it("rejects with the error that answers an unknown type", async () => {
    const { client } = served();
    await expect(client.request("no_such", {})).rejects.toMatchObject({ code: "invalid_request" });
  });

  it("ignores a second answer, and an answer to nothing", async () => {
    const { client, say, got } = played();
    const waiting = client.request("echo", {});
    await say(READY);
    const re = got.at(-1)?.id ?? "";
    await say({ type: "ack", re: "unknown" });
    await say({ type: "ack", re, payload: { first: true } });
    await say({ type: "nack", re, payload: { code: "timeout", message: "" } });
    expect(await waiting).toEqual({ first: true });
    expect(client.state.type).toBe("ready");
  });

  it("refuses a second request under an id that waits", async () => {
    const { client } = served({ echo });
    const first = client.request("echo", {}, { id: "mine" });
    await expect(client.request("echo", {}, { id: "mine" })).rejects.toMatchObject({
      code: "invalid_request",
    });
    expect(await first).toEqual({});
  });

  it("too_large: keeps a frame back that the server would not take", async () => {
    const { client, asked } = served({ echo }, { server: { limits: { frameBytes: 500 } } });
    const text = "x".repeat(500);
    const large = client.request("echo", { text }, { stream: "s" });
    const small = client.request("echo", { a: 1 }, { stream: "s" });
    await expect(large).rejects.toMatchObject({ code: "too_large" });
    expect(await small).toEqual({ a: 1 });
    expect(asked).toMatchObject([{ seq: 1, payload: { a: 1 } }]);
  });

  it("refuses a payload that is not JSON, and goes on", async () => {
    const { client } = served({ echo });
    await expect(client.request("echo", { a: 1n })).rejects.toMatchObject({
      code: "invalid_request",
    });
    expect(await client.request("echo", {})).toEqual({});
  });

  it("invalid_sequence: sends again with the number that is expected", async () => {
    const { client, asked, connections } = served({ echo });
    await client.request("echo", { n: 1 }, { stream: "s" });
    connections[0]?.forget("s");
    const [two, three] = [2, 3].map((n) => client.request("echo", { n }, { stream: "s" }));
    expect(await Promise.all([two, three])).toEqual([{ n: 2 }, { n: 3 }]);
    expect(asked.map(({ seq }) => seq)).toEqual([1, 1, 2]);
  });

  it("invalid_sequence: fails where every number is refused", async () => {
    const { client, say, got } = played();
    const waiting = client.request("echo", {}, { stream: "s" });
    await say(READY);
    const payload = { code: "invalid_sequence", message: "No.", expected: 9 };
    for (let at = 0; at < 4; at++) await say({ type: "nack", re: got.at(-1)?.id ?? "", payload });
    await expect(waiting).rejects.toMatchObject({ code: "invalid_sequence" });
    expect(ofType(got, "echo").map(({ seq }) => seq)).toEqual([1, 9, 9, 9]);
  });

  it("an abort ends the waiting, and its answer is ignored", async () => {
    const { client, say, got } = played();
    const abort = new AbortController();
    const waiting = client.request("echo", {}, { signal: abort.signal });
    await say(READY);
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await say({ type: "ack", re: got.at(-1)?.id ?? "" });
    expect(client.state.type).toBe("ready");
  });

  it("asks nothing where the signal is aborted already", async () => {
    const { client, connections } = served({ echo });
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(client.request("echo", {}, { signal })).rejects.toThrow("enough");
    expect(connections).toHaveLength(0);
  });

  it("timeout: fails a little later than the server would", async () => {
    const { client, clock, say } = played({ pingMs: Infinity });
    const waiting = client.request("echo", {});
    const seen = vi.fn<(error: unknown) => void>();
    waiting.catch(seen);
    await say(READY);
    await clock.advance(REQUEST_TIMEOUT_MS + ANSWER_GRACE_MS - 1);
    expect(seen).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(seen.mock.calls).toMatchObject([[{ code: "timeout" }]]);
  });

  it("timeout: does not count the time without a connection", async () => {
    const { client, clock, say, hangUp } = played({ pingMs: Infinity, requestTimeoutMs: 100 });
    const seen = vi.fn<(error: unknown) => void>();
    client.request("echo", {}).catch(seen);
    await say(READY);
    await clock.advance(60);
    await hangUp();
    await clock.advance(5000);
    await say(READY);
    await clock.advance(39);
    expect(seen).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(seen.mock.calls).toMatchObject([[{ code: "timeout" }]]);
  });

  it("timeout: counts from when the request before it on its stream is answered", async () => {
    const { client, clock, say, got } = played({ pingMs: Infinity, requestTimeoutMs: 100 });
    const [first, second] = [1, 2].map((n) => client.request("echo", { n }, { stream: "s" }));
    await say(READY);
    await clock.advance(90);
    const [one, two] = ofType(got, "echo");
    await say({ type: "ack", re: one?.id ?? "" });
    await clock.advance(90);
    await say({ type: "ack", re: two?.id ?? "", payload: { late: true } });
    expect(await Promise.all([first, second])).toEqual([{}, { late: true }]);
  });

  it("reports an error that answers nothing", async () => {
    const onError = vi.fn<(error: unknown, where: string) => void>();
    const { client, say } = played({ onError });
    void client.connect();
    await say(READY);
    await say({ type: "error", payload: { code: "invalid_request", message: "What?" } });
    expect(onError.mock.calls).toMatchObject([[{ code: "invalid_request", message: "What?" }, {}]]);
  });
});
