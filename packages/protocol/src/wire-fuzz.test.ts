import type { Context } from "@gyre/ai";
import { scriptedModelInfo } from "@gyre/ai";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAX_FRAME_BYTES, MAX_HELLO_BYTES } from "./limits.ts";
import { FuzzTarget, type RawClient } from "./testing/fuzz-target.ts";

const MIB = 1024 * 1024;
/** `GYRE_LINE_MB=1024` is the full figure. */
const LINE_MB = Number(process.env["GYRE_LINE_MB"] ?? 64);
const TINY_FRAMES = 100_000;
const RUNS = 300;
const MAX_MS = 60_000 + LINE_MB * 200;

/** Of the server's heap, for V8 to keep to; and of all its memory, for us to measure. */
const HEAP_MB = 128;
const MAX_RSS_BYTES = 384 * MIB;

const context: Context = { messages: [{ role: "user", content: "Hello", timestamp: 0 }] };

let target: FuzzTarget;

beforeAll(async () => {
  target = await FuzzTarget.start({ heapMb: HEAP_MB });
});

afterAll(() => target.stop());

/** Somebody else gets a whole response, while that goes on or after it. */
async function othersAreServed(): Promise<void> {
  const client = target.client();
  const { content, stopReason } = await client.complete(scriptedModelInfo, context);
  expect([content, stopReason]).toEqual([
    [{ type: "text", text: "Hello there, whoever you are." }],
    "stop",
  ]);
  await client.close();
}

async function memoryIsBounded(what: string): Promise<void> {
  const { maxRss } = await target.memory();
  console.log(`${what}: at most ${Math.round(maxRss / MIB)} MiB of memory`);
  expect(maxRss).toBeLessThan(MAX_RSS_BYTES);
}

/** Sends something as somebody who is known. It is answered, or the connection is closed. */
async function sendKnown(send: (client: RawClient) => Promise<unknown>): Promise<RawClient> {
  const client = await target.raw().hello();
  await send(client);
  await client.isAnswered();
  client.end();
  return client;
}

const someBytes = fc.uint8Array({ maxLength: 400 });

/** Values that somebody might believe in, or stumble over. */
const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    0,
    -1,
    1,
    2,
    1.5,
    1e308,
    -0,
    Number.MAX_SAFE_INTEGER,
    Number.MAX_SAFE_INTEGER + 1,
    "",
    "1",
    "x".repeat(129),
    "__proto__",
    "constructor",
    "\u0000",
    "\ud800",
    [],
    {},
    true,
  ),
  fc.jsonValue({ maxDepth: 3 }),
);

const TYPES = [
  "hello",
  "ping",
  "pong",
  "ready",
  "ack",
  "nack",
  "error",
  "models",
  "stream_request",
  "complete_request",
  "abort_request",
  "resume",
  "snapshot",
  "text_delta",
  "done",
  "session_create",
  "tool_result",
  "toString",
  "__proto__",
];

const aRequest = {
  model: { provider: scriptedModelInfo.provider, id: scriptedModelInfo.id },
  context,
  options: {},
};

const aPayload = fc.oneof(
  odd,
  fc.constant(aRequest),
  fc.record(
    { model: odd, context: odd, options: odd, stream: odd, after: odd, filter: odd, versions: odd },
    { requiredKeys: [] },
  ),
  fc
    .record({ messages: odd, systemPrompt: odd, tools: odd }, { requiredKeys: [] })
    .map((strange) => ({ ...aRequest, context: strange })),
  fc.constant(JSON.parse('{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}}}')),
);

const aFrame = fc.record(
  {
    v: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: odd }),
    type: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...TYPES) },
      { weight: 1, arbitrary: odd },
    ),
    id: fc.oneof(fc.constantFrom("a", "b", "__proto__"), odd),
    stream: fc.oneof(fc.constantFrom("s", "t", "__proto__"), odd),
    seq: fc.oneof(fc.constantFrom(1, 2, 3), odd),
    from: odd,
    re: fc.oneof(fc.constant("a"), odd),
    ts: odd,
    payload: aPayload,
  },
  { requiredKeys: [] },
);

describe("whatever comes in, the server answers or closes, and goes on serving others", () => {
  it("random bytes of somebody who is not known", { timeout: MAX_MS }, async () => {
    await fc.assert(
      fc.asyncProperty(someBytes, async (bytes) => {
        const client = target.raw();
        await client.write(bytes);
        await client.write("\n");
        await client.until(() => client.isClosed || client.frames.length > 0);
        expect(client.frames.every(({ type }) => type === "nack")).toBe(true);
        client.end();
      }),
      { numRuns: RUNS },
    );
    await othersAreServed();
  });

  it(
    "random bytes: a line that is not JSON gets an error, and the connection goes on",
    { timeout: MAX_MS },
    async () => {
      await fc.assert(
        fc.asyncProperty(someBytes, async (bytes) => {
          const client = await sendKnown(async (each) => {
            await each.write(bytes);
            await each.write("\n");
          });
          expect(client.frames.at(-1)).toMatchObject({ type: "pong" });
          expect(client.frames.filter(({ type }) => type === "error").length).toBeGreaterThan(0);
        }),
        { numRuns: RUNS },
      );
      await othersAreServed();
    },
  );

  it("random frames: every request is answered, none twice", { timeout: MAX_MS }, async () => {
    const frames = fc.array(aFrame, { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(frames, async (all) => {
        const client = await sendKnown((each) =>
          each.write(all.map((frame) => `${JSON.stringify(frame)}\n`).join("")),
        );
        expect(client.frames.at(-1)).toMatchObject({ type: "pong" });
        expect(client.frames.length).toBeGreaterThan(1);
      }),
      { numRuns: RUNS },
    );
    expect({}).not.toHaveProperty("isAdmin");
    await othersAreServed();
    await memoryIsBounded("random frames");
  });
});
