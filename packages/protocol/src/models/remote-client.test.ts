import {
  type AssistantMessage,
  type AssistantMessageEvent,
  type Context,
  isDelta,
  isSameBlock,
  type StreamOptions,
} from "@gyre/ai";
import {
  call,
  fail,
  say,
  type ScriptAnswer,
  type ScriptStep,
  serviceTool,
  stall,
  think,
  unfinished,
} from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ORPHAN_TTL_MS } from "../frames/limits.ts";
import { createRemoteClient } from "./remote-client.ts";
import { ModelWire, type ModelWireOptions } from "../testing/model-wire.ts";

const context: Context = { messages: [{ role: "user", content: "Go", timestamp: 1 }] };
/** Longer than any script, and than the waits before a new connection. */
const LONG_MS = 50_000;

interface Heard {
  events: AssistantMessageEvent[];
  /** What the message was at each event. */
  copies: AssistantMessage[];
  signal: AbortController;
}

/** Asks, and notes what comes. */
function ask(wire: ModelWire, options: StreamOptions = {}, by = wire.client): Heard {
  const signal = new AbortController();
  const heard: Heard = { events: [], copies: [], signal };
  const asked = { ...options, clock: wire.clock, signal: signal.signal };
  const stream = by.stream(wire.model.model, context, asked);
  void (async () => {
    for await (const event of stream) {
      heard.events.push(event);
      heard.copies.push(structuredClone("partial" in event ? event.partial : finalMessage(event)));
    }
  })();
  return heard;
}

function finalMessage(event: AssistantMessageEvent | undefined): AssistantMessage {
  if (event?.type === "done") return event.message;
  if (event?.type === "error") return event.error;
  throw new Error("It has not ended.");
}

/** Adjacent deltas joined, and without the live message. */
function joined(events: readonly AssistantMessageEvent[]): unknown[] {
  const all: AssistantMessageEvent[] = [];
  for (const event of events) {
    const last = all.at(-1);
    if (last && isDelta(last) && isDelta(event) && isSameBlock(last, event)) {
      all[all.length - 1] = { ...event, delta: last.delta + event.delta };
    } else all.push(event);
  }
  return all.map((event) => ({ ...event, partial: undefined }));
}

async function inProcess(script: readonly ScriptStep[], chunkSize: number): Promise<unknown[]> {
  const wire = new ModelWire({ script, scripted: { chunkSize, betweenMs: 10 } });
  const events: AssistantMessageEvent[] = [];
  void (async () => {
    const stream = await wire.model.stream(wire.model.model, context, { clock: wire.clock });
    for await (const event of stream) events.push(event);
  })();
  await wire.clock.advance(LONG_MS);
  return withoutTimes(joined(events));
}

/** As JSON has it, and whenever it was. */
function withoutTimes(events: readonly unknown[]): unknown[] {
  return JSON.parse(JSON.stringify(events, (key, value) => (key === "timestamp" ? 0 : value)));
}

const parts: ScriptAnswer = [
  think("Hm, well", { signature: "sig" }),
  say("Hello 😀 you"),
  serviceTool("search", { id: "st", output: ["found"] }),
  call("read", { path: "a", deep: [{ n: 1 }] }, "c1"),
  call("read", '{"broken', "c2"),
];

describe("the remote client is a ProtocolClient", () => {
  it("gives the events of a client in process, with a live partial", async () => {
    const wire = new ModelWire({ script: [parts], scripted: { chunkSize: 3, betweenMs: 10 } });
    const { events, copies } = ask(wire);
    await wire.clock.advance(LONG_MS);
    expect(withoutTimes(joined(events))).toEqual(await inProcess([parts], 3));
    const texts = copies.map(({ content }) => content[1]).flatMap((block) => block ?? []);
    expect(texts.slice(0, 3)).toMatchObject([{ text: "" }, { text: "Hel" }, { text: "Hello " }]);
    const partials = events.flatMap((event) => ("partial" in event ? [event.partial] : []));
    expect(new Set(partials).size).toBe(1);
  });

  it("kind, retryable and retryAfterMs of a service's error arrive", async () => {
    const failure = { kind: "rate_limit", retryable: true, retryAfterMs: 7 } as const;
    const wire = new ModelWire({ script: [[say("Hel"), fail("Busy", failure)]] });
    const { events } = ask(wire);
    await wire.clock.advance(LONG_MS);
    expect(finalMessage(events.at(-1))).toMatchObject({
      content: [{ text: "Hel" }],
      stopReason: "error",
      errorMessage: "Busy",
      failure,
    });
  });

  it("what the server refuses is one error event, and says why", async () => {
    const wire = new ModelWire({ script: [], models: [] });
    const { events } = ask(wire);
    await wire.clock.advance(0);
    expect(events.map(({ type }) => type)).toEqual(["error"]);
    expect(finalMessage(events[0])).toMatchObject({
      errorMessage: expect.stringContaining('no model "scripted/scripted"'),
      failure: { kind: "bad_request" },
    });
  });

  it("drops credential headers and addresses: no key is in any frame", async () => {
    const wire = new ModelWire({ script: ["Hi"] });
    const key = "sk-secret-0123456789";
    const model = {
      ...wire.model.model,
      baseUrl: `https://${key}@x.test`,
      headers: { "x-api-key": key },
    };
    const tools = [
      { name: "t", description: "", parameters: { type: "object" }, execute: () => key },
    ];
    const message = wire.client.complete(
      model,
      { ...context, tools },
      {
        headers: { authorization: key },
        onPayload: () => key,
        temperature: 1,
        clock: wire.clock,
      },
    );
    await wire.clock.advance(0);
    expect((await message).content).toMatchObject([{ text: "Hi" }]);
    expect(JSON.stringify(wire.frames)).not.toContain(key);
    expect(wire.model.calls[0]?.options).toMatchObject({ temperature: 1 });
    expect(wire.model.calls[0]?.tools).toEqual([
      { name: "t", description: "", parameters: { type: "object" } },
    ]);
  });

  it("what only the application sees of a message stays here", async () => {
    const wire = new ModelWire({ script: ["Hi"] });
    const usage = {};
    const made = { api: "a", provider: "p", model: "m", usage, timestamp: 1 } as const;
    const messages: Context["messages"] = [
      ...context.messages,
      {
        role: "assistant",
        ...made,
        stopReason: "toolUse",
        report: { events: 1 },
        content: [{ type: "toolCall", id: "c", name: "t", arguments: {} }],
      },
      {
        role: "toolResult",
        toolCallId: "c",
        toolName: "t",
        content: [{ type: "text", text: "ok" }],
        details: { secret: 10n },
        isError: false,
        timestamp: 1,
      },
    ];
    const done = wire.client.complete(wire.model.model, { messages });
    await wire.clock.advance(0);
    expect((await done).stopReason).toBe("stop");
    expect(wire.model.calls[0]?.messages[1]).not.toHaveProperty("report");
    expect(wire.model.calls[0]?.messages[2]).not.toHaveProperty("details");
  });

  it("lists models, by a filter", async () => {
    const wire = new ModelWire({ script: [] });
    const all = wire.client.models();
    const none = wire.client.models({ provider: "other" });
    await wire.clock.advance(0);
    expect(await all).toMatchObject([{ id: "scripted", provider: "scripted" }]);
    expect(await none).toEqual([]);
  });

  it("close ends what runs, here and there, and a connection of its own", async () => {
    const wire = new ModelWire({ script: [[say("Hel"), stall()]] });
    const own = createRemoteClient({ connect: async () => wire.wire(), clock: wire.clock });
    const { events } = ask(wire, {}, own);
    await wire.clock.advance(0);
    const closed = own.close();
    await wire.clock.advance(0);
    await closed;
    expect(finalMessage(events.at(-1))).toMatchObject({ stopReason: "aborted" });
    expect(wire.model.calls[0]?.options.signal?.aborted).toBe(true);
    expect(wire.server.connections).toBe(0);
    const after = ask(wire, {}, own);
    await wire.clock.advance(0);
    expect(after.events).toMatchObject([{ type: "error" }]);
  });
});

describe("abort", () => {
  it("before the start makes no request", async () => {
    const wire = new ModelWire({ script: ["Hi"] });
    const stream = wire.client.stream(wire.model.model, context, { signal: AbortSignal.abort() });
    expect(await stream.result()).toMatchObject({ stopReason: "aborted" });
    expect(wire.frames).toEqual([]);
  });

  it("really cancels the service's request, and keeps what came", async () => {
    const wire = new ModelWire({ script: [[say("Hel"), stall()]] });
    const { events, signal } = ask(wire);
    await wire.clock.advance(0);
    signal.abort();
    signal.abort();
    await wire.clock.advance(0);
    expect(wire.model.calls[0]?.options.signal?.aborted).toBe(true);
    expect(finalMessage(events.at(-1))).toMatchObject({
      stopReason: "aborted",
      content: [{ text: "Hel" }],
      failure: { kind: "aborted" },
    });
    expect(wire.count("abort_request")).toBe(1);
    expect(events.filter(({ type }) => type === "error")).toHaveLength(1);
  });

  it("while disconnected ends the stream here at once, and there on reconnect", async () => {
    const wire = new ModelWire({ script: [[say("Hel"), stall()]] });
    const { events, signal } = ask(wire);
    await wire.clock.advance(0);
    wire.isReachable = false;
    wire.cut();
    await wire.clock.advance(20_000);
    signal.abort();
    await wire.clock.advance(0);
    expect(finalMessage(events.at(-1))).toMatchObject({
      stopReason: "aborted",
      content: [{ text: "Hel" }],
    });
    expect(wire.model.calls[0]?.options.signal?.aborted).toBe(false);
    wire.isReachable = true;
    await wire.clock.advance(15_000);
    expect(wire.model.calls[0]?.options.signal?.aborted).toBe(true);
  });

  it("does not wait for a server that says nothing", async () => {
    const wire = new ModelWire({ script: [[say("Hel"), stall()]] });
    const { events, signal } = ask(wire);
    await wire.clock.advance(0);
    wire.alter = () => undefined;
    signal.abort();
    await wire.clock.advance(2_000);
    expect(finalMessage(events.at(-1)).stopReason).toBe("aborted");
  });
});

describe("resume on every connection: nothing lost, nothing doubled", () => {
  it("takes a stream up where it was", async () => {
    const wire = new ModelWire({ script: [parts], scripted: { chunkSize: 2, betweenMs: 10 } });
    const { events } = ask(wire);
    for (let at = 0; at < 4; at++) {
      await wire.clock.advance(35);
      wire.cut();
    }
    await wire.clock.advance(LONG_MS);
    expect(withoutTimes(joined(events))).toEqual(await inProcess([parts], 2));
    expect(wire.count("resume")).toBeGreaterThan(0);
    expect(wire.count("snapshot")).toBe(0);
  });

  it("goes on from a snapshot where the tail is gone", async () => {
    const wire = new ModelWire({
      script: [parts],
      scripted: { chunkSize: 2, betweenMs: 10 },
      service: { limits: { tailEvents: 2 } },
    });
    const { events } = ask(wire);
    await wire.clock.advance(35);
    wire.cut();
    await wire.clock.advance(LONG_MS);
    expect(withoutTimes(joined(events))).toEqual(await inProcess([parts], 2));
    expect(wire.count("snapshot")).toBe(1);
  });

  it("a stream that is gone ends with an error of kind network, and keeps what came", async () => {
    const wire = new ModelWire({ script: [[say("Hel"), stall()]] });
    const { events } = ask(wire);
    await wire.clock.advance(0);
    wire.isReachable = false;
    wire.cut();
    await wire.clock.advance(3 * ORPHAN_TTL_MS);
    wire.isReachable = true;
    await wire.clock.advance(LONG_MS);
    expect(finalMessage(events.at(-1))).toMatchObject({
      content: [{ text: "Hel" }],
      stopReason: "error",
      failure: { kind: "network", retryable: true },
    });
  });

  it("a block of another length than was sent is an error", async () => {
    const wire = new ModelWire({
      script: [{ parts: [say("Hello")], chunkSize: 1, betweenMs: 10 }],
    });
    const { events } = ask(wire);
    await wire.clock.advance(0);
    wire.alter = (frame) => {
      const blocks = [{ index: 0, length: 4 }];
      return frame.type === "done" ? { ...frame, payload: { ...frame.payload, blocks } } : frame;
    };
    await wire.clock.advance(LONG_MS);
    expect(finalMessage(events.at(-1))).toMatchObject({
      stopReason: "error",
      errorMessage: expect.stringContaining("length"),
      failure: { kind: "network" },
    });
    expect(events.filter(({ type }) => type === "error" || type === "done")).toHaveLength(1);
  });

  const aPart = fc.oneof(
    fc.string({ maxLength: 12, unit: "binary" }).map((text) => say(text)),
    fc.string({ maxLength: 8 }).map((text) => think(text, { signature: "s" })),
    fc.jsonValue({ maxDepth: 2 }).map((value) => call("read", { value })),
    fc.constantFrom("{", "", "null", "[1]").map((text) => call("read", text)),
    fc.constant(serviceTool("search", { output: ["x"] })),
  );
  const aResponse = fc
    .record({
      parts: fc.array(aPart, { maxLength: 5 }),
      isCut: fc.boolean(),
      end: fc.constantFrom<object>({}, {}, {}, fail("Busy", { kind: "overloaded" }), { end: true }),
    })
    .map(({ parts: made, isCut, end }) => {
      const last = made.at(-1);
      return { parts: isCut && last ? [...made.slice(0, -1), unfinished(last)] : made, ...end };
    });

  it("whatever is cut wherever, the message that arrives is the one that was sent", async () => {
    await fc.assert(
      fc.asyncProperty(
        aResponse,
        fc.record({
          chunkSize: fc.integer({ min: 1, max: 5 }),
          cuts: fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 6 }),
          tailEvents: fc.constantFrom(1, 3, 4096),
        }),
        async (response, { chunkSize, cuts, tailEvents }) => {
          const options: ModelWireOptions = {
            script: [response],
            scripted: { chunkSize, betweenMs: 10 },
            service: { limits: { tailEvents } },
            cuts,
          };
          const wire = new ModelWire(options);
          const { events } = ask(wire);
          await wire.clock.advance(LONG_MS);
          const wanted = await inProcess([response], chunkSize);
          const ended = events.filter(({ type }) => type === "done" || type === "error");
          expect(ended).toHaveLength(1);
          expect(wire.model.requests).toBe(1);
          const got = withoutTimes(joined(events));
          // In process a stream may end without an end; over the wire it has one.
          if ("end" in response) expect(got.slice(0, -1)).toEqual(wanted);
          else expect(got).toEqual(wanted);
          expect(wire.errors).toEqual([]);
        },
      ),
      { numRuns: 150 },
    );
  });
});
