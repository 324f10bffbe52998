import type { AssistantMessage, Context, StreamOptions } from "@gyre/ai";
import { fail } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { ModelWire, type ModelWireOptions } from "../testing/model-wire.ts";
import { createRemoteClient } from "./remote-client.ts";

// Keys that a client sends with its requests: where they go, and where they never are.

const KEY = "a-key-of-the-client-0123456789";
const context: Context = { messages: [{ role: "user", content: "Go", timestamp: 1 }] };

async function ask(
  options: Partial<ModelWireOptions>,
  asked: StreamOptions = { apiKey: KEY },
  clientKeys = true,
): Promise<{ wire: ModelWire; message: AssistantMessage }> {
  const wire = new ModelWire({ script: ["Hi"], ...options });
  const client = createRemoteClient({ peer: wire.peer, clientKeys });
  const answered = client.complete(wire.model.model, context, { ...asked, clock: wire.clock });
  await wire.clock.advance(0);
  return { wire, message: await answered };
}

describe("the key of a client", () => {
  it("is used for its request, and is in a field of its own of that frame alone", async () => {
    const { wire, message } = await ask({ service: { clientKeys: true } });
    expect(message.content).toMatchObject([{ text: "Hi" }]);
    expect(wire.model.calls[0]?.options.apiKey).toBe(KEY);
    const holders = wire.frames.filter((frame) => JSON.stringify(frame).includes(KEY));
    expect(holders.map(({ type }) => type)).toEqual(["stream_request"]);
    const { credentials, ...rest } = holders[0]?.payload ?? {};
    expect(credentials).toEqual({ apiKey: KEY });
    expect(JSON.stringify(rest)).not.toContain(KEY);
  });

  it("is refused by a server that does not allow it, with what to do and without the key", async () => {
    const { wire, message } = await ask({});
    expect(message.failure).toMatchObject({ kind: "auth" });
    expect(message.errorMessage).toMatch(/takes no keys of clients.*--client-keys/);
    expect(message.errorMessage).not.toContain(KEY);
    expect(wire.model.calls).toEqual([]);
  });

  it("is not sent by a client that does not say so, and the request fails", async () => {
    const { wire, message } = await ask({ service: { clientKeys: true } }, { apiKey: KEY }, false);
    expect(message.failure).toEqual({ kind: "auth", retryable: false });
    expect(message.errorMessage).toMatch(/clientKeys: true/);
    expect(JSON.stringify([wire.frames, message])).not.toContain(KEY);
  });

  it("may be missing: the server uses its own", async () => {
    const { wire, message } = await ask({ service: { clientKeys: true } }, {});
    expect(message.stopReason).toBe("stop");
    expect(wire.model.calls[0]?.options).not.toHaveProperty("apiKey");
  });

  it("is in no event, snapshot or error, also where the service repeats it", async () => {
    const failing = fail(`The key ${KEY} is wrong.`, { kind: "auth", retryable: false });
    const { wire, message } = await ask({
      script: [["Hel", failing]],
      service: { clientKeys: true },
    });
    expect(message.errorMessage).toBe("The key [redacted] is wrong.");
    const sent = wire.frames.filter(({ type }) => type !== "stream_request");
    expect(JSON.stringify([sent, wire.errors])).not.toContain(KEY);
  });

  it("is not sent again when a response is resumed", async () => {
    const wire = new ModelWire({
      script: ["Hello, world"],
      scripted: { chunkSize: 3, betweenMs: 10 },
      service: { clientKeys: true },
    });
    const client = createRemoteClient({ peer: wire.peer, clientKeys: true });
    const asked = { apiKey: KEY, clock: wire.clock };
    const answered = client.complete(wire.model.model, context, asked);
    await wire.clock.advance(15);
    const before = wire.frames.length;
    wire.cut();
    await wire.clock.advance(50_000);
    expect((await answered).content).toMatchObject([{ text: "Hello, world" }]);
    expect(wire.count("resume")).toBe(1);
    expect(JSON.stringify(wire.frames.slice(before))).not.toContain(KEY);
  });

  it("reaches models that the server itself has no key for", async () => {
    const { wire, message } = await ask({
      models: [],
      service: { clientKeys: true, modelsForClientKeys: () => [wanted.model.model] },
    });
    expect(message.stopReason).toBe("stop");
    expect(wire.model.calls).toHaveLength(1);
    const without = await ask({ models: [], service: { clientKeys: true } }, {});
    expect(without.message.errorMessage).toContain("There is no model");
  });

  it("has to be a text", async () => {
    const wire = new ModelWire({ script: ["Hi"], service: { clientKeys: true } });
    const { id, provider } = wire.model.model;
    const request = { model: { id, provider }, context, credentials: { key: KEY } };
    await expect(wire.service.open(request)).rejects.toThrow('"credentials" is {apiKey}');
    await expect(wire.service.open(request)).rejects.not.toThrow(KEY);
  });

  it("goes only to addresses of this machine, or with TLS", () => {
    for (const url of [
      "http://127.0.0.1:1",
      "ws://localhost:1",
      "http://[::1]:1",
      "https://a.test",
      "wss://a.test",
    ]) {
      expect(() => createRemoteClient({ url, clientKeys: true })).not.toThrow();
    }
    for (const url of ["http://a.test", "ws://192.0.2.1:1", "http://127.0.0.1.a.test"]) {
      expect(() => createRemoteClient({ url, clientKeys: true })).toThrow(
        /Keys are not sent to .*TLS/,
      );
      expect(() => createRemoteClient({ url })).not.toThrow();
    }
  });
});

const wanted = new ModelWire({ script: [] });
