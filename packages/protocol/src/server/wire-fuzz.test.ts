import { type Context } from "@gyre/ai";
import { scriptedModelInfo } from "@gyre/ai/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toEnvelope } from "../frames/envelope.ts";
import {
  ANSWERS,
  errorCode,
  FuzzTarget,
  GREETING,
  MAX_SERVER_MIB,
} from "../testing/fuzz-target.ts";
import { countCases } from "../../../../tests/support/cases.ts";

const MIB = 1024 * 1024;
const RUNS = countCases(60, 300);

const context: Context = { messages: [{ role: "user", content: "Hello", timestamp: 0 }] };

let target: FuzzTarget;

beforeAll(async () => {
  target = await FuzzTarget.start();
});

afterAll(() => target.stop());

const someBytes = fc.uint8Array({ maxLength: 400 });

/** Values that a reader might trust, or stumble over. */
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

function isAnswerFrame(frame: unknown): boolean {
  try {
    return ANSWERS.has(toEnvelope(frame).type);
  } catch {
    return false;
  }
}

describe("whatever comes in, the server answers or closes, and goes on serving others", () => {
  it("random bytes: who has no token is refused", { tags: "long" }, async () => {
    await fc.assert(
      fc.asyncProperty(someBytes, async (bytes) => {
        const client = target.raw();
        await client.write(Buffer.concat([bytes, Buffer.from("\n")]));
        await client.until(() => client.isClosed);
        expect(client.frames.map(errorCode)).toEqual(["unauthorized"]);
      }),
      { numRuns: RUNS },
    );
    expect(await target.greetOther()).toBe(GREETING);
  });

  it("random bytes: no line is a frame, and the connection goes on", { tags: "long" }, async () => {
    const client = await target.raw().hello();
    await fc.assert(
      fc.asyncProperty(someBytes, async (bytes) => {
        await client.write(Buffer.concat([bytes, Buffer.from("\n")]));
        expect(await client.isAlive()).toBe(true);
        expect(client.frames.at(-2)).toMatchObject({ type: "error" });
      }),
      { numRuns: RUNS },
    );
    client.end();
    expect(await target.greetOther()).toBe(GREETING);
  });

  it("random frames: each has one answer, and an answer has none", { tags: "long" }, async () => {
    const some = fc.array(aFrame, { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(some, async (frames) => {
        const client = await target.raw().hello();
        const lines = frames.map((frame) => JSON.stringify(frame));
        const due = lines.filter((line) => !isAnswerFrame(JSON.parse(line))).length;
        await client.write(`${lines.join("\n")}\n`);
        await client.until(() => client.answers.length >= due || client.isClosed);
        expect(await client.isAlive()).toBe(true);
        expect(client.answers.length).toBe(due + 1);
        client.end();
      }),
      { numRuns: RUNS },
    );
    expect(await target.greetOther()).toBe(GREETING);
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });
});

describe("hostile sequences change nothing", () => {
  const request = { stream: "s", payload: aRequest };

  it.each<[unknown, string]>([
    [0, "invalid_sequence"],
    [2, "invalid_sequence"],
    [-1, "invalid_sequence"],
    [Number.MAX_SAFE_INTEGER, "invalid_sequence"],
    [undefined, "invalid_sequence"],
    [1e300, "invalid_request"],
    [1.5, "invalid_request"],
    ["1", "invalid_request"],
    [null, "invalid_request"],
  ])("seq %s is refused, and 1 is still the next", async (seq, code) => {
    const client = await target.raw().hello();
    expect(errorCode(await client.ask("abort_request", { stream: "s", seq }))).toBe(code);
    expect(await client.ask("abort_request", { stream: "s", seq: 1 })).toMatchObject({
      type: "ack",
    });
    client.end();
  });

  it("an id that was used gets the first answer, and with another payload a nack", async () => {
    const client = await target.raw().hello();
    const asked = { v: 1, type: "models", id: "x", payload: { filter: { id: "scripted" } } };
    for (const frame of [asked, asked, { ...asked, payload: {} }]) {
      await client.frame(frame);
      expect(await client.isAlive()).toBe(true);
    }
    const [one, again, other] = client.frames.filter(({ re }) => re === "x");
    expect(again?.["payload"]).toEqual(one?.["payload"]);
    expect(errorCode(other ?? {})).toBe("invalid_request");
    client.end();
  });

  it("answers to nothing are passed over", async () => {
    const client = await target.raw().hello();
    for (const type of ANSWERS) await client.frame({ v: 1, type, id: "y", re: "nothing" });
    expect(await client.isAlive()).toBe(true);
    expect(client.frames.length).toBe(2);
    client.end();
  });

  it("names of prototypes are names like any other", async () => {
    // A server of its own: random frames may have used these names for streams on the other one.
    const fresh = await FuzzTarget.start();
    const client = await fresh.raw().hello();
    for (const name of ["__proto__", "constructor", "toString"]) {
      expect(
        await client.ask("stream_request", { ...request, stream: name, seq: 1 }),
      ).toMatchObject({
        type: "ack",
      });
      expect(await client.ask(name)).toMatchObject({ type: "error" });
      const nothing = await client.ask("resume", { payload: { stream: `${name}x`, after: 0 } });
      expect(errorCode(nothing)).toBe("stream_not_found");
    }
    client.end();
    expect(await target.greetOther()).toBe(GREETING);
  });

  it.each([
    ["[", "1", "]"],
    ['{"a":', "1", "}"],
  ])("a frame that is nested 100,000 deep by %s is answered", async (open, leaf, close) => {
    const deep = open.repeat(100_000) + leaf + close.repeat(100_000);
    const client = await target.raw().hello();
    const payload = `{"model":{"provider":"scripted","id":"scripted"},"context":${deep},"versions":${deep}}`;
    for (const type of ["models", "stream_request", "complete_request", "nosuch", "hello"]) {
      await client.write(`{"v":1,"type":"${type}","id":"deep_${type}","payload":${payload}}\n`);
    }
    await client.until(() => client.answers.length >= 5 || client.isClosed);
    expect(await client.isAlive()).toBe(true);
    client.end();
    expect(await target.greetOther()).toBe(GREETING);
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });

  const wide: [string, string][] = [
    ["[[…]]", "[".repeat(7 * MIB) + "]".repeat(7 * MIB)],
    ["[],", `[${"[],".repeat(5 * MIB)}0]`],
    ["{},", `[${"{},".repeat(5 * MIB)}0]`],
  ];

  it.each(wide)("15 MiB of %s are refused before they fill the memory", async (_, list) => {
    const client = await target.raw().hello();
    await client.write(`{"v":1,"type":"models","id":"wide","payload":{"filter":${list}}}\n`);
    expect(await client.isAlive()).toBe(true);
    expect(client.answers.map(errorCode)).toEqual(["too_large", undefined]);
    client.end();
    const { status } = await fetch(`http://127.0.0.1:${target.ports.http}/api/stream`, {
      method: "POST",
      headers: { authorization: `Bearer ${target.token}` },
      body: `{"context":${list}}`,
    });
    expect(status).toBe(413);
    expect(await target.greetOther()).toBe(GREETING);
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });

  it("a connection has at most 100 streams, however many are asked for", async () => {
    const client = await target.raw().hello();
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, at) =>
        client.ask("stream_request", { payload: aRequest, stream: `many_${at}`, seq: 1 }),
      ),
    );
    const refused = answers.filter((answer) => errorCode(answer) === "too_many_streams");
    const granted = answers.filter(({ type }) => type === "ack");
    expect(refused.length + granted.length).toBe(1000);
    expect(await client.isAlive()).toBe(true);
    client.end();
  });
});
