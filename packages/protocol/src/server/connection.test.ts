import { type ManualClock, manualClock } from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Connection, type ConnectionOptions, type RequestHandler } from "./connection.ts";
import type { Envelope, Payload } from "../frames/envelope.ts";
import { MAX_WAITING_REQUESTS, REQUEST_TIMEOUT_MS } from "../frames/limits.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import { REQUEST_TYPES } from "../frames/request-types.ts";
import { type Transport, createTransportPair } from "../transports/base/transport.ts";

interface Line {
  say(type: string, payload?: Payload, more?: Partial<Envelope>): Promise<Envelope[]>;
  /** What came since the last look. */
  heard(): Promise<Envelope[]>;
  transport: Transport;
  connection: Connection;
  clock: ManualClock;
  calls: Envelope[];
  closed: string[];
  errors: unknown[];
}

function connect(
  handlers: Record<string, RequestHandler> = {},
  more: Partial<ConnectionOptions> = {},
): Line {
  const [near, far] = createTransportPair();
  const clock = manualClock(5);
  const calls: Envelope[] = [];
  const closed: string[] = [];
  const errors: unknown[] = [];
  const counted = Object.entries(handlers).map(([type, handler]): [string, RequestHandler] => [
    type,
    (frame, ack) => {
      calls.push(frame);
      return handler(frame, ack);
    },
  ]);
  const connection = new Connection(far, {
    handlers: new Map(counted),
    server: { name: "test", version: "1" },
    clock,
    onClose: (reason) => closed.push(reason),
    onError: (error) => errors.push(error),
    ...more,
  });
  const came: Envelope[] = [];
  near.receive({
    onFrame: (frame) => came.push(frame),
    onFault: (error) => errors.push(error),
    onClose: () => {},
  });
  let made = 0;
  const heard = async (): Promise<Envelope[]> => {
    await clock.advance(0);
    return came.splice(0);
  };
  return {
    transport: near,
    connection,
    clock,
    calls,
    closed,
    errors,
    heard,
    say(type, payload = {}, fields = {}) {
      const id = fields.id ?? `m_${++made}`;
      void near.send({ v: 1, type, payload, ...fields, id });
      return heard();
    },
  };
}

async function ready(
  handlers: Record<string, RequestHandler> = {},
  more: Partial<ConnectionOptions> = {},
): Promise<Line> {
  const line = connect(handlers, more);
  await line.say("hello", { versions: [1] }, { id: "hello" });
  return line;
}

const brief = (frames: readonly Envelope[]): unknown[] =>
  frames.map(({ type, re, payload }) => [type, re, payload["code"] ?? payload]);

describe("handshake: hello {versions} -> ready {version, server, limits}", () => {
  it("answers with the version, the server and the limits", async () => {
    const [answer] = await connect().say("hello", { versions: [3, 1] });
    expect(answer).toMatchObject({
      v: 1,
      type: "ready",
      re: "m_1",
      ts: 5,
      payload: {
        version: 1,
        server: { name: "test", version: "1" },
        limits: { frameBytes: 16 * 1024 * 1024, streams: 100 },
      },
    });
    expect(answer).not.toHaveProperty("stream");
    expect(answer).not.toHaveProperty("seq");
  });

  it("no common version -> nack version_mismatch with the list", async () => {
    const [answer] = await connect().say("hello", { versions: [2] });
    expect(answer).toMatchObject({
      type: "nack",
      re: "m_1",
      payload: { code: "version_mismatch", versions: [1] },
    });
  });

  it("takes another hello after a mismatch, and none after ready", async () => {
    const line = connect();
    await line.say("hello", { versions: [2] });
    expect(await line.say("hello", { versions: [1] })).toMatchObject([
      { type: "ready", re: "m_2" },
    ]);
    expect(brief(await line.say("hello", { versions: [1] }))).toEqual([
      ["nack", "m_3", "invalid_request"],
    ]);
  });

  it("does nothing before hello", async () => {
    const line = connect({ go: () => ({}) });
    expect(brief(await line.say("go"))).toEqual([["nack", "m_1", "invalid_request"]]);
    expect(line.calls).toEqual([]);
  });
});

describe("ping/pong (pong names the ping), goodbye", () => {
  it("answers a ping, before hello as well", async () => {
    expect(brief(await connect().say("ping"))).toEqual([["pong", "m_1", {}]]);
  });

  it("says goodbye and ends when the other end does", async () => {
    const line = await ready();
    expect(brief(await line.say("goodbye"))).toEqual([["goodbye", "m_1", { reason: "goodbye" }]]);
    expect(line.closed).toEqual(["goodbye"]);
    expect(await line.say("ping")).toEqual([]);
  });

  it("answers what was asked before goodbye first, and takes nothing after it", async () => {
    let answer: (payload: Payload) => void = () => {};
    const line = await ready({ ask: () => new Promise<Payload>((resolve) => (answer = resolve)) });
    expect(await line.say("ask")).toEqual([]);
    expect(await line.say("goodbye")).toEqual([]);
    expect(brief(await line.say("ask"))).toEqual([["nack", "m_3", "invalid_request"]]);
    answer({ n: 1 });
    expect(brief(await line.heard())).toEqual([
      ["ack", "m_1", { n: 1 }],
      ["goodbye", "m_2", { reason: "goodbye" }],
    ]);
    expect(line.closed).toEqual(["goodbye"]);
  });

  it("ends once when the transport does", async () => {
    const line = await ready();
    await line.transport.close();
    await line.heard();
    expect(line.closed).toEqual(["closed"]);
    await line.connection.close();
    expect(line.closed).toEqual(["closed"]);
  });
});

describe("an unknown type gets an error frame, and the connection goes on", () => {
  it("is reported, also for names that every object has", async () => {
    const line = await ready({ go: () => ({ n: 1 }) });
    expect(brief(await line.say("constructor"))).toEqual([["error", "m_1", "invalid_request"]]);
    expect(brief(await line.say("go"))).toEqual([["ack", "m_2", { n: 1 }]]);
  });

  it("never answers an answer", async () => {
    const answers: string[] = [];
    const line = await ready({}, { onAnswer: ({ type }) => answers.push(type) });
    for (const type of ["ack", "nack", "error", "pong", "ready"]) {
      expect(await line.say(type)).toEqual([]);
    }
    expect(answers).toEqual(["ack", "nack", "error", "pong", "ready"]);
  });

  it.each([...REQUEST_TYPES])("says not_implemented to %s", async (type) => {
    const line = await ready();
    expect(brief(await line.say(type))).toEqual([["nack", "m_1", "not_implemented"]]);
  });
});

describe("a message's id is its idempotency key: sent again, it gets the first answer", () => {
  it("is not done twice", async () => {
    let n = 0;
    const line = await ready({ go: () => ({ n: ++n }) });
    expect(brief(await line.say("go", {}, { id: "a" }))).toEqual([["ack", "a", { n: 1 }]]);
    expect(brief(await line.say("go", {}, { id: "a" }))).toEqual([["ack", "a", { n: 1 }]]);
    expect(brief(await line.say("go", {}, { id: "b" }))).toEqual([["ack", "b", { n: 2 }]]);
    expect(line.calls).toHaveLength(2);
  });

  it("gets the first answer when there is one", async () => {
    let settle: (payload: Payload) => void = () => {};
    const line = await ready({ go: () => new Promise<Payload>((resolve) => (settle = resolve)) });
    await line.say("go", {}, { id: "a" });
    expect(await line.say("go", {}, { id: "a" })).toEqual([]);
    settle({ n: 1 });
    expect(brief(await line.heard())).toEqual([
      ["ack", "a", { n: 1 }],
      ["ack", "a", { n: 1 }],
    ]);
  });

  it("gets a refusal again as well", async () => {
    const line = await ready({
      go: () => {
        throw new ProtocolError("session_busy", "no");
      },
    });
    for (let i = 0; i < 2; i++) {
      expect(brief(await line.say("go", {}, { id: "a" }))).toEqual([["nack", "a", "session_busy"]]);
    }
    expect(line.calls).toHaveLength(1);
  });

  it("refuses another message that has its id", async () => {
    const line = await ready({ go: () => ({}) });
    await line.say("go", { n: 1 }, { id: "a" });
    expect(brief(await line.say("go", { n: 2 }, { id: "a" }))).toEqual([
      ["nack", "a", "invalid_request"],
    ]);
  });

  it("does not need the next number, and takes it where it has it", async () => {
    const line = await ready({ go: () => ({}) });
    await line.say("go", {}, { id: "a", stream: "s", seq: 1 });
    expect(brief(await line.say("go", {}, { id: "a", stream: "s", seq: 1 }))).toEqual([
      ["ack", "a", {}],
    ]);
    await line.say("go", {}, { id: "a", stream: "s", seq: 2 });
    expect(brief(await line.say("go", {}, { id: "b", stream: "s", seq: 3 }))).toEqual([
      ["ack", "b", {}],
    ]);
  });
});

describe("zero, a repeat or a gap is answered with nack and changes nothing", () => {
  it.each([0, 1, 3, undefined])("refuses %s after 1", async (seq) => {
    const line = await ready({ go: () => ({}) });
    await line.say("go", {}, { stream: "s", seq: 1 });
    const odd = { id: "odd", stream: "s", ...(seq !== undefined && { seq }) };
    expect(brief(await line.say("go", {}, odd))).toEqual([["nack", "odd", "invalid_sequence"]]);
    expect(line.calls).toHaveLength(1);
    // The same message, numbered right, is done: the refusal was not its answer.
    expect(brief(await line.say("go", {}, { id: "odd", stream: "s", seq: 2 }))).toEqual([
      ["ack", "odd", {}],
    ]);
  });

  it("has at most 100 streams a connection", async () => {
    const line = await ready({ go: () => ({}) });
    for (let i = 0; i < 100; i++) await line.say("go", {}, { stream: `s${i}`, seq: 1 });
    expect(brief(await line.say("go", {}, { id: "x", stream: "one more", seq: 1 }))).toEqual([
      ["nack", "x", "too_many_streams"],
    ]);
  });
});

describe("requests", () => {
  it("of one stream wait for one another; others do not wait", async () => {
    const settle: (() => void)[] = [];
    const line = await ready({
      slow: () => new Promise<void>((resolve) => settle.push(resolve)),
      quick: () => ({}),
    });
    await line.say("slow", {}, { id: "1", stream: "a", seq: 1 });
    await line.say("quick", {}, { id: "2", stream: "a", seq: 2 });
    expect(brief(await line.say("quick", {}, { id: "3", stream: "b", seq: 1 }))).toEqual([
      ["ack", "3", {}],
    ]);
    settle[0]?.();
    expect(brief(await line.heard())).toEqual([
      ["ack", "1", {}],
      ["ack", "2", {}],
    ]);
  });

  it("are answered once, by ack() before anything else that is sent", async () => {
    const line: Line = await ready({
      go: (_frame, ack) => {
        ack({ n: 1 });
        line.connection.send({ type: "event", payload: {} });
        return { n: 2 };
      },
    });
    expect(brief(await line.say("go"))).toEqual([
      ["ack", "m_1", { n: 1 }],
      ["event", undefined, {}],
    ]);
  });

  it("that throw are internal_error, and reported", async () => {
    const line = await ready({ go: () => Promise.reject(new Error("boom")) });
    expect(brief(await line.say("go"))).toEqual([["nack", "m_1", "internal_error"]]);
    expect(line.errors).toEqual([new Error("boom")]);
  });

  it("that throw reveal no key", async () => {
    const key = "sk-ant-api03-0123456789abcdefghijklmnop";
    const line = await ready({ go: () => Promise.reject(new Error(`refused: ${key}`)) });
    expect(JSON.stringify(await line.say("go"))).not.toContain(key);
  });

  it("30 s request timeout: timeout", async () => {
    const line = await ready({ go: () => new Promise(() => {}) });
    expect(await line.say("go")).toEqual([]);
    await line.clock.advance(REQUEST_TIMEOUT_MS - 1);
    expect(await line.heard()).toEqual([]);
    await line.clock.advance(1);
    expect(brief(await line.heard())).toEqual([["nack", "m_1", "timeout"]]);
  });

  it("that wait are limited in number", async () => {
    const line = await ready({ go: () => new Promise(() => {}) });
    for (let i = 0; i < MAX_WAITING_REQUESTS; i++) await line.say("go");
    expect(brief(await line.say("go", {}, { id: "x" }))).toEqual([["nack", "x", "rate_limited"]]);
  });
});

/** A transport whose reader takes a frame only when the test lets it. */
function slowTransport(): { transport: Transport; sent: Envelope[]; take: () => void } {
  const sent: Envelope[] = [];
  let take: () => void = () => {};
  const transport: Transport = {
    send(envelope) {
      sent.push(envelope);
      return new Promise<void>((resolve) => (take = resolve));
    },
    receive: () => {},
    close: () => Promise.resolve(),
  };
  return { transport, sent, take: () => take() };
}

describe("a slow reader is not fed without end", () => {
  const delta = (seq: number, text: string): Parameters<Connection["send"]>[0] => ({
    type: "message_update",
    stream: "s",
    seq,
    payload: { event: { type: "text_delta", contentIndex: 0, delta: text } },
  });

  it("waiting deltas of one block are joined", async () => {
    const clock = manualClock();
    const { transport, sent, take } = slowTransport();
    const connection = new Connection(transport, { handlers: new Map(), clock });
    connection.send(delta(1, "a"));
    for (let seq = 2; seq <= 1000; seq++) connection.send(delta(seq, "b"));
    connection.send({ type: "done", stream: "s", seq: 1001, payload: {} });
    for (let i = 0; i < 3; i++) {
      take();
      await clock.advance(0);
    }
    expect(sent.map(({ from, seq }) => [from, seq])).toEqual([
      [undefined, 1],
      [2, 1000],
      [undefined, 1001],
    ]);
    expect(sent[1]?.payload).toEqual({
      event: { type: "text_delta", contentIndex: 0, delta: "b".repeat(999) },
    });
  });

  it("past a limit the connection is closed with a reason", async () => {
    const closed: string[] = [];
    const { transport, sent } = slowTransport();
    const connection = new Connection(transport, {
      handlers: new Map(),
      maxWaitingBytes: 10_000,
      onClose: (reason) => closed.push(reason),
    });
    for (let seq = 1; seq < 1000; seq++) {
      connection.send({ type: "turn_start", stream: "s", seq, payload: {} }, 100);
    }
    expect(closed).toEqual(["slow_reader"]);
    expect(sent.at(-1)).toMatchObject({ type: "goodbye", payload: { reason: "slow_reader" } });
    expect(sent).toHaveLength(2);
  });

  it("says of an event that cannot travel that it is missing", async () => {
    const sent: Envelope[] = [];
    const transport: Transport = {
      send(envelope) {
        if (envelope.payload["big"]) throw new ProtocolError("too_large", "too much");
        sent.push(envelope);
      },
      receive: () => {},
      close: () => Promise.resolve(),
    };
    const connection = new Connection(transport, { handlers: new Map() });
    connection.send({ type: "message_end", stream: "s", seq: 1, payload: { big: true } });
    connection.send({ type: "ack", re: "m", payload: { big: true } });
    expect(sent.map(({ type, seq, payload }) => [type, seq, payload["code"]])).toEqual([
      ["message_end", 1, "too_large"],
      ["nack", undefined, "too_large"],
    ]);
  });
});

describe("whatever comes in", () => {
  it("hostile frames never throw and never stop the service", async () => {
    const name = fc.oneof(
      fc.constantFrom("go", "wait", "boom", "hello", "ping", "ack", "models", "__proto__"),
      fc.string({ minLength: 1, maxLength: 64 }),
    );
    const hostile = fc.record(
      {
        type: name,
        id: fc.constantFrom("a", "b", "c", "d"),
        stream: fc.constantFrom("s", "t", "__proto__"),
        seq: fc.integer({ min: -1, max: 4 }),
        from: fc.integer({ min: -1, max: 4 }),
        payload: fc.dictionary(fc.string(), fc.jsonValue()),
      },
      { requiredKeys: ["type", "id", "payload"] },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(hostile, { maxLength: 30 }), async (frames) => {
        const line = await ready({
          go: () => ({}),
          wait: () => Promise.resolve({}),
          boom: () => {
            throw new Error("boom");
          },
        });
        for (const frame of frames) await line.say(frame.type, frame.payload, frame);
        expect(brief(await line.say("ping", {}, { id: "last" }))).toEqual([["pong", "last", {}]]);
        expect(brief(await line.say("go", {}, { id: "end" }))).toEqual([["ack", "end", {}]]);
      }),
      { numRuns: 50 },
    );
  });
});
