import { type Model } from "@gyre/ai";
import {
  call,
  fail,
  manualClock,
  say,
  scriptedModel,
  type ScriptStep,
  stall,
  think,
} from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Envelope, Payload } from "../frames/envelope.ts";
import { IDLE_STREAM_MS, ORPHAN_TTL_MS, REQUEST_TIMEOUT_MS } from "../frames/limits.ts";
import { ABORT_GRACE_MS } from "./model-stream.ts";
import { serveModels } from "./models-service.ts";
import type { StreamSource } from "../http/stream-route.ts";
import { FrameClient, ModelWire, type ModelWireOptions } from "../testing/model-wire.ts";
import { createTransportPair } from "../transports/base/transport.ts";

const KEY = "sk-secret-0123456789abcdef";
const secretModel: Model = {
  id: "m",
  name: "The Model",
  api: "scripted",
  provider: "p",
  baseUrl: `https://user:${KEY}@example.test`,
  headers: { authorization: `Bearer ${KEY}` },
  quirks: { extra: { token: KEY } },
  reasoning: true,
  contextWindow: 10,
  price: { input: 1 },
};

const context = { messages: [{ role: "user", content: "Go", timestamp: 1 }] };
const request: Payload = { model: { provider: "p", id: "m" }, context };

interface Rig extends ModelWire {
  one: FrameClient;
  /** Another connection. */
  another: () => Promise<FrameClient>;
}

async function rig(
  script: ModelWireOptions["script"],
  more: Partial<ModelWireOptions> = {},
): Promise<Rig> {
  const wire = new ModelWire({ script, models: [secretModel], ...more });
  const another = (): Promise<FrameClient> => new FrameClient(wire.wire(), wire.clock).hello();
  return Object.assign(wire, { one: await another(), another });
}

function listTypes(frames: readonly Envelope[]): string[] {
  return frames.map(({ type }) => type);
}

function findPayload(frames: readonly Envelope[], type: string): Payload {
  return frames.find((frame) => frame.type === type)?.payload ?? {};
}

/** A hello, letter by letter, one each ten milliseconds. */
const slowly: ScriptStep = { parts: [say("Hello")], chunkSize: 1, betweenMs: 10 };

describe("models: list, filter", () => {
  const models = [secretModel, { ...secretModel, id: "other", name: "Älteres", provider: "q" }];

  it("reports public facts only", async () => {
    const { one } = await rig([]);
    const [ack] = await one.ask("models");
    expect(ack?.payload["models"]).toEqual([
      {
        id: "m",
        name: "The Model",
        api: "scripted",
        provider: "p",
        reasoning: true,
        contextWindow: 10,
        price: { input: 1 },
      },
    ]);
  });

  it.each([
    [{ provider: "q" }, ["other"]],
    [{ search: "MODEL" }, ["m"]],
    [{ search: "ält" }, ["other"]],
    [{ provider: "q", search: "model" }, []],
    [{}, ["m", "other"]],
  ])("filter %j lists %j", async (filter, ids) => {
    const { one } = await rig([], { models });
    const { models: listed } = findPayload(await one.ask("models", { filter }), "ack");
    expect(listed).toMatchObject(ids.map((id) => ({ id })));
  });

  it("refuses an invalid filter", async () => {
    const { one } = await rig([]);
    for (const filter of [1, null, [], { provider: 1 }, { search: {} }]) {
      const [nack] = await one.ask("models", { filter });
      expect(nack).toMatchObject({ type: "nack", payload: { code: "invalid_request" } });
    }
  });
});

describe("stream_request", () => {
  it("ack comes before the first event; seq counts from 1 by 1; one terminal ends it", async () => {
    const { one } = await rig([[think("Hm"), say("Hello"), call("read", { path: "a" }, "c1")]]);
    const [ack, ...events] = await one.ask("stream_request", request, { stream: "s" });
    expect(ack).toMatchObject({ type: "ack", re: "m_2", stream: "s" });
    expect(listTypes(events)).toEqual([
      "start",
      "thinking_start",
      "thinking_delta",
      "thinking_end",
      "text_start",
      "text_delta",
      "text_end",
      "toolcall_start",
      "toolcall_delta",
      "toolcall_end",
      "done",
    ]);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
    expect(findPayload(events, "text_delta")).toEqual({ contentIndex: 1, delta: "Hello" });
  });

  it("error carries kind, retryable, retryAfterMs", async () => {
    const busy = fail("Busy", { kind: "overloaded", retryable: true, retryAfterMs: 7 });
    const { one } = await rig([[say("Hel"), busy]]);
    const frames = await one.ask("stream_request", request, { stream: "s" });
    expect(frames.at(-1)).toMatchObject({
      type: "error",
      payload: { reason: "error", kind: "overloaded", retryable: true, retryAfterMs: 7 },
    });
  });

  it("a service that throws, breaks or ends early is one error event", async () => {
    const broken = new Error("broken");
    const script = [{ throws: broken }, { rejects: broken }, { breaks: broken }, { end: true }];
    const { one } = await rig(script.map((step) => ({ parts: [say("a")], ...step })));
    const ends: unknown[] = [];
    for (const stream of ["a", "b", "c", "d"]) {
      const frames = await one.ask("stream_request", request, { stream });
      expect(frames.filter(({ type }) => type === "error" || type === "done")).toHaveLength(1);
      ends.push(frames.at(-1)?.payload["kind"]);
    }
    expect(ends).toEqual(["hook", "hook", "hook", "incomplete"]);
  });

  it("stream_exists: a name that is taken is refused, on whichever connection", async () => {
    const { one, another } = await rig([stall()]);
    await one.ask("stream_request", request, { stream: "s" });
    const [nack] = await (
      await another()
    ).ask("stream_request", request, {
      stream: "s",
      id: "mine",
    });
    expect(nack).toMatchObject({ type: "nack", payload: { code: "stream_exists" } });
  });

  it("a name is taken while its model is looked up", async () => {
    let found: (models: Model[]) => void = () => {};
    const models = (): Promise<Model[]> => new Promise((resolve) => (found = resolve));
    const { one, another } = await rig(["Hi"], { service: { models } });
    const other = await another();
    await one.ask("stream_request", request, { stream: "s" });
    const [nack] = await other.ask("stream_request", request, { stream: "s", id: "mine" });
    expect(nack?.payload).toMatchObject({ code: "stream_exists" });
    found([secretModel]);
    expect(listTypes(await one.ask("ping"))).toContain("done");
  });

  it("an id is an idempotency key: sent again elsewhere, it gets the first answer", async () => {
    const { one, another, model } = await rig(["Hi", "No"]);
    await one.ask("stream_request", request, { stream: "s", id: "mine" });
    const again = await (
      await another()
    ).ask("stream_request", request, {
      stream: "s",
      id: "mine",
    });
    expect(listTypes(again)).toEqual(["ack"]);
    expect(model.requests).toBe(1);
  });

  it("model_not_found: what is not listed is not asked", async () => {
    const { one, model } = await rig(["Hi"]);
    for (const named of [
      { provider: "p", id: "x" },
      { provider: "x", id: "m" },
    ]) {
      const [nack] = await one.ask("stream_request", { model: named, context }, { stream: "s" });
      expect(nack?.payload["code"]).toBe("model_not_found");
    }
    expect(model.requests).toBe(0);
  });

  it("takes no address, header or key from a client", async () => {
    const { one, model } = await rig(["Hi"]);
    const evil = { baseUrl: "https://evil.test", headers: { a: "b" }, api: "other" };
    const options = { apiKey: "theirs", headers: { "x-evil": "1" }, fetch: 1, temperature: 0.5 };
    const asked = { model: { provider: "p", id: "m", ...evil }, context, options };
    await one.ask("stream_request", asked, { stream: "s" });
    expect(model.calls[0]?.model).toBe(secretModel);
    expect(Object.keys(model.calls[0]?.options ?? {}).sort()).toEqual([
      "clock",
      "signal",
      "temperature",
    ]);
  });

  it("too_many_streams: a connection has so many at a time, and any number in all", async () => {
    const quick: ScriptStep[] = Array.from({ length: 12 }, () => "Hi");
    const { one } = await rig([...quick, stall(), stall(), stall()], {
      service: { limits: { streams: 2 } },
    });
    for (const [at] of quick.entries()) {
      const frames = await one.ask("stream_request", request, { stream: `q${at}` });
      expect(listTypes(frames)).toContain("done");
    }
    await one.ask("stream_request", request, { stream: "a" });
    await one.ask("stream_request", request, { stream: "b" });
    const [nack] = await one.ask("stream_request", request, { stream: "c" });
    expect(nack?.payload["code"]).toBe("too_many_streams");
  });

  it("requests that are refused take no place", async () => {
    const { one } = await rig(["Hi"], { service: { limits: { streams: 3 } } });
    for (let at = 0; at < 9; at++) await one.ask("stream_request", {}, { stream: `r${at}` });
    for (let at = 0; at < 9; at++) await one.ask("resume", { after: 0 }, { stream: `n${at}` });
    const frames = await one.ask("stream_request", request, { stream: "s" });
    expect(listTypes(frames)).toContain("done");
  });

  it("timeout: a stream on which nothing happens is ended, and keeps what came", async () => {
    const { one, clock, model } = await rig([[say("Hel"), stall()]]);
    await one.ask("stream_request", request, { stream: "s" });
    await clock.advance(IDLE_STREAM_MS - 1);
    expect(one.events("s").at(-1)?.type).toBe("text_end");
    await clock.advance(1);
    expect(one.events("s").at(-1)).toMatchObject({
      type: "error",
      payload: { kind: "timeout", retryable: false, blocks: [{ index: 0, length: 3 }] },
    });
    expect(model.calls[0]?.options.signal?.aborted).toBe(true);
  });
});

describe("abort_request is idempotent", () => {
  it("really cancels the request, and the stream ends aborted, once", async () => {
    const { one, model } = await rig([[say("Hel"), stall()]]);
    await one.ask("stream_request", request, { stream: "s" });
    const first = await one.ask("abort_request", {}, { stream: "s" });
    const again = await one.ask("abort_request", {}, { stream: "s" });
    expect(listTypes(first)).toEqual(["ack", "error"]);
    expect(findPayload(first, "error")).toMatchObject({ reason: "aborted", kind: "aborted" });
    expect(listTypes(again)).toEqual(["ack"]);
    expect(model.calls[0]?.options.signal?.aborted).toBe(true);
  });

  it("is acknowledged for a stream that ended, and for one that never was", async () => {
    const { one } = await rig(["Hi"]);
    await one.ask("stream_request", request, { stream: "s" });
    expect(listTypes(await one.ask("abort_request", {}, { stream: "s" }))).toEqual(["ack"]);
    expect(listTypes(await one.ask("abort_request", { stream: "none" }))).toEqual(["ack"]);
  });

  it("ends a stream whose provider does not listen", async () => {
    const deaf = new ModelWire({ script: [stall()] }).model;
    const client = {
      stream: (...[model, asked]: Parameters<typeof deaf.stream>) => deaf.stream(model, asked, {}),
    };
    const { one, clock } = await rig([], { service: { client } });
    await one.ask("stream_request", request, { stream: "s" });
    await one.ask("abort_request", {}, { stream: "s" });
    await clock.advance(ABORT_GRACE_MS);
    expect(one.events("s").at(-1)).toMatchObject({ type: "error", payload: { kind: "aborted" } });
  });

  it("holds before the model was asked", async () => {
    let found: (models: Model[]) => void = () => {};
    const models = (): Promise<Model[]> => new Promise((resolve) => (found = resolve));
    const { one } = await rig(["Hi"], { service: { models } });
    await one.ask("stream_request", request, { stream: "s" });
    await one.ask("abort_request", { stream: "s" });
    found([secretModel]);
    await one.ask("ping");
    expect(listTypes(one.events("s"))).toEqual(["error"]);
  });
});

describe("complete_request", () => {
  it("answers with the message when it is whole", async () => {
    const { one } = await rig([[say("Hello")]]);
    const frames = await one.ask("complete_request", request);
    expect(listTypes(frames)).toEqual(["ack"]);
    expect(frames[0]?.payload["message"]).toMatchObject({
      role: "assistant",
      stopReason: "stop",
      content: [{ type: "text", text: "Hello" }],
    });
  });

  it("has the time that a response takes: silence alone ends it", async () => {
    const { one, clock } = await rig([{ parts: [say("Hello")], chunkSize: 1, betweenMs: 100_000 }]);
    await one.ask("complete_request", request);
    await clock.advance(REQUEST_TIMEOUT_MS);
    expect(one.frames.at(-1)?.type).toBe("ready");
    await clock.advance(400_000);
    expect(one.frames.at(-1)).toMatchObject({
      type: "ack",
      payload: { message: { content: [{ text: "Hello" }] } },
    });
  });

  it("is asked once, though it is sent again elsewhere", async () => {
    const { one, another, clock, model } = await rig([slowly, "No"]);
    await one.ask("complete_request", request, { stream: "s", id: "mine" });
    await one.close();
    const other = await another();
    await other.ask("complete_request", request, { stream: "s", id: "mine" });
    await clock.advance(100);
    expect(other.frames.at(-1)?.payload).toMatchObject({
      message: { content: [{ text: "Hello" }] },
    });
    expect(model.requests).toBe(1);
  });

  it("is aborted by the name of its stream", async () => {
    const { one } = await rig([[say("Hel"), stall()]]);
    await one.ask("complete_request", request, { stream: "s" });
    const frames = await one.ask("abort_request", { stream: "s" });
    expect(frames).toContainEqual(
      expect.objectContaining({
        payload: { message: expect.objectContaining({ stopReason: "aborted" }) },
      }),
    );
  });
});

describe("resume", () => {
  it("sends what is missing, and then what follows", async () => {
    const { one, another, clock } = await rig([slowly]);
    await one.ask("stream_request", request, { stream: "s" });
    await clock.advance(10);
    await one.close();
    await clock.advance(10);
    const other = await another();
    const frames = await other.ask("resume", { stream: "s", after: 3 });
    expect(frames.map(({ type, seq }) => [type, seq])).toEqual([
      ["ack", undefined],
      ["text_delta", 4],
      ["text_delta", 5],
    ]);
    await clock.advance(20);
    expect(other.events("s").map(({ seq }) => seq)).toEqual([4, 5, 6, 7, 8, 9]);
    expect(other.events("s").at(-1)?.type).toBe("done");
  });

  it("sends a snapshot of the partial where that is gone, and then what follows", async () => {
    const { one, another, clock } = await rig([slowly], {
      service: { limits: { tailEvents: 2 } },
    });
    await one.ask("stream_request", request, { stream: "s" });
    await clock.advance(20);
    const other = await another();
    const [ack, snapshot] = await other.ask("resume", { after: 1 }, { stream: "s" });
    expect(ack?.type).toBe("ack");
    expect(snapshot).toMatchObject({
      type: "snapshot",
      payload: {
        seq: 5,
        message: { role: "assistant" },
        events: [{ type: "text_start" }, { type: "text_delta", delta: "Hel" }],
      },
    });
    await clock.advance(20);
    expect(other.events("s").map(({ type, seq }) => [type, seq])).toEqual([
      ["text_delta", 6],
      ["text_delta", 7],
      ["text_end", 8],
      ["done", 9],
    ]);
  });

  it("the tail is so many bytes at most", async () => {
    const { one, another, clock } = await rig([slowly], { service: { limits: { tailBytes: 99 } } });
    await one.ask("stream_request", request, { stream: "s" });
    await clock.advance(20);
    const other = await another();
    expect(listTypes(await other.ask("resume", { stream: "s", after: 4 }))).toEqual([
      "ack",
      "text_delta",
    ]);
    expect(listTypes(await other.ask("resume", { stream: "s", after: 3 }))).toEqual([
      "ack",
      "snapshot",
    ]);
  });

  it("a stream that ended is there for a while: its end follows the snapshot", async () => {
    const { one, another, clock } = await rig([slowly], {
      service: { limits: { tailEvents: 2 } },
    });
    await one.ask("stream_request", request, { stream: "s" });
    await clock.advance(100);
    const other = await another();
    expect(listTypes(await other.ask("resume", { stream: "s", after: 0 }))).toEqual([
      "ack",
      "snapshot",
      "done",
    ]);
    expect(listTypes(await other.ask("resume", { stream: "s", after: 9 }))).toEqual(["ack"]);
    await clock.advance(ORPHAN_TTL_MS);
    const [nack] = await other.ask("resume", { stream: "s", after: 0 });
    expect(nack?.payload["code"]).toBe("stream_not_found");
  });

  it.each([-1, 1.5, 99, "1", undefined, null])("refuses to go on after %j", async (after) => {
    const { one } = await rig(["Hi"]);
    await one.ask("stream_request", request, { stream: "s" });
    const [nack] = await one.ask("resume", { stream: "s", after });
    expect(nack).toMatchObject({ type: "nack", payload: { code: "invalid_request" } });
  });

  it("a stream with no client runs on for orphanTtlMs, and is then aborted", async () => {
    const { one, clock, model } = await rig([[say("Hel"), stall()]]);
    await one.ask("stream_request", request, { stream: "s" });
    await one.close();
    await clock.advance(ORPHAN_TTL_MS - 1);
    expect(model.calls[0]?.options.signal?.aborted).toBe(false);
    await clock.advance(1);
    expect(model.calls[0]?.options.signal?.aborted).toBe(true);
  });

  it("who comes back in time keeps it running", async () => {
    const { one, another, clock, model } = await rig([[say("Hel"), stall()]]);
    await one.ask("stream_request", request, { stream: "s" });
    await one.close();
    await clock.advance(ORPHAN_TTL_MS - 1);
    await (await another()).ask("resume", { stream: "s", after: 0 });
    await clock.advance(ORPHAN_TTL_MS);
    expect(model.calls[0]?.options.signal?.aborted).toBe(false);
  });

  it("leaves nothing behind: no timer, no stream", async () => {
    const { one, clock, service } = await rig(["Hi", [say("Hel"), stall()]]);
    await one.ask("stream_request", request, { stream: "a" });
    await one.ask("stream_request", request, { stream: "b" });
    await one.close();
    await clock.advance(3 * ORPHAN_TTL_MS);
    expect([service.find("a"), service.find("b"), service.running]).toEqual([
      undefined,
      undefined,
      0,
    ]);
    expect(clock.pending).toBe(0);
  });
});

describe("close", () => {
  it("ends what runs, and reports how it ended", async () => {
    const { one, server, clock } = await rig([[say("Hel"), stall()]]);
    await one.ask("stream_request", request, { stream: "s" });
    await server.close();
    await clock.advance(0);
    expect(listTypes(one.frames).slice(-2)).toEqual(["error", "goodbye"]);
    expect(clock.pending).toBe(0);
  });
});

describe("serveModels", () => {
  it("serves one transport, and says who it is", async () => {
    const clock = manualClock();
    const client = scriptedModel(["Hi"], { clock });
    const [near, far] = createTransportPair();
    const server = { name: "mine", version: "1" };
    const served = serveModels(far, { client, models: () => [secretModel], clock, server });
    const one = await new FrameClient(near, clock).hello();
    expect(findPayload(one.frames, "ready")).toMatchObject({ server });
    expect(listTypes(await one.ask("stream_request", request, { stream: "s" }))).toContain("done");
    await served.close();
  });
});

describe("without a connection", () => {
  it("opens a stream that is attached to, and drops one without a reader", async () => {
    const { service, clock, model } = await rig(["Hi", stall()]);
    const source: StreamSource = service;
    const stream = await source.open(request);
    const types: string[] = [];
    const detach = stream.attach(0, ({ type }) => types.push(type));
    await clock.advance(0);
    detach();
    expect(types).toEqual(["start", "text_start", "text_delta", "text_end", "done"]);
    await service.open(request);
    await clock.advance(ORPHAN_TTL_MS);
    expect(model.calls[1]?.options.signal?.aborted).toBe(true);
    await expect(service.open({})).rejects.toMatchObject({ code: "invalid_request" });
  });
});

describe("no secrets on the wire", () => {
  it("no key is in any frame, whatever a service says", async () => {
    const failed = fail(`401 for key ${KEY} at https://user:${KEY}@example.test`, { kind: "auth" });
    const thrown = { throws: new Error(`Bearer ${KEY} was refused`) };
    const wire = await rig([failed, thrown, { rejects: new Error(KEY) }, [say("a"), failed]]);
    for (const stream of ["a", "b", "c"]) {
      await wire.one.ask("stream_request", request, { stream });
    }
    await wire.one.ask("complete_request", request);
    await wire.one.ask("models");
    expect(wire.count("error")).toBe(3);
    expect(JSON.stringify(wire.frames)).not.toContain(KEY);
    expect(JSON.stringify(wire.frames)).toContain("[redacted]");
  });

  it("not where the list of models cannot be had either", async () => {
    const models = (): Promise<Model[]> => Promise.reject(new Error(`no list for ${KEY}`));
    const { one } = await rig([], { service: { models } });
    const [nack] = await one.ask("models");
    expect(nack?.payload).toMatchObject({ code: "internal_error" });
    expect(JSON.stringify(nack)).not.toContain(KEY);
  });
});

describe("hostile requests", () => {
  it("whatever comes, each is answered once, and others are served", async () => {
    const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(null, 1, "s", [], {}));
    const frame = fc.record({
      type: fc.constantFrom(
        "models",
        "stream_request",
        "complete_request",
        "abort_request",
        "resume",
      ),
      payload: fc.oneof(
        fc.dictionary(
          fc.constantFrom("model", "context", "options", "after", "stream", "filter"),
          anything,
        ),
        fc.record({
          model: fc.constant(request["model"]),
          context: fc.record({ messages: anything, tools: anything }),
          options: anything,
          after: fc.integer({ min: -2, max: 9 }),
          stream: fc.constantFrom("a", "b"),
        }),
        fc.constant(request),
      ),
      stream: fc.option(fc.constantFrom("a", "b", "c"), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 12 }), async (frames) => {
        const { one, another, errors } = await rig(() => "Hi");
        for (const { type, payload, stream } of frames) {
          await one.ask(type, payload, stream === undefined ? {} : { stream });
        }
        for (const [at] of frames.entries()) {
          expect(one.frames.filter(({ re }) => re === `m_${at + 2}`)).toHaveLength(1);
        }
        const served = await (await another()).ask("stream_request", request, { stream: "z" });
        expect(listTypes(served)).toContain("done");
        expect(errors).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });
});
