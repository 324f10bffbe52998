import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decode, encode, type Envelope, negotiate, toEnvelope, measureUtf8 } from "./envelope.ts";
import { MAX_FRAME_BYTES, MAX_ID_CHARS, MAX_STREAMS } from "./limits.ts";
import { ERROR_CODES, isErrorCode, ProtocolError } from "./protocol-error.ts";

const frame: Envelope = {
  v: 1,
  type: "text_delta",
  stream: "s_1",
  id: "m_1",
  seq: 7,
  ts: 1_760_000_000_000,
  re: "m_0",
  payload: { contentIndex: 0, delta: "a\u2028b" },
};

function refusal(value: unknown): ProtocolError {
  try {
    decode(typeof value === "string" ? value : JSON.stringify(value));
  } catch (error) {
    if (error instanceof ProtocolError) return error;
    throw error;
  }
  throw new Error("It was taken.");
}

describe("one JSON object a frame", () => {
  it("gives back what went in, on one line", () => {
    const text = encode(frame);
    expect(text).not.toContain("\n");
    expect(decode(text)).toEqual(frame);
  });

  it("takes a frame without what is optional", () => {
    expect(decode('{"v":1,"type":"ping","id":"1"}')).toEqual({
      v: 1,
      type: "ping",
      id: "1",
      payload: {},
    });
  });

  it("ignores unknown fields", () => {
    expect(decode(JSON.stringify({ ...frame, more: 1, __proto__x: {} }))).toEqual(frame);
  });

  it.each([
    ["not JSON", "nope"],
    ["an empty line", ""],
    ["a list", []],
    ["null", "null"],
    ["no type", { v: 1, id: "m_1" }],
    ["an empty type", { v: 1, id: "m_1", type: "" }],
    ["a type that is too long", { v: 1, id: "m_1", type: "t".repeat(65) }],
    ["no id", { v: 1, type: "ping" }],
    ["an id that is too long", { v: 1, type: "ping", id: "i".repeat(MAX_ID_CHARS + 1) }],
    ["a seq that is no whole number", { ...frame, seq: 1.5 }],
    ["a seq without a stream", { ...frame, stream: undefined }],
    ["a from above seq", { ...frame, from: 8 }],
    ["a from without seq", { ...frame, seq: undefined, from: 1 }],
    ["a payload that is no object", { ...frame, payload: [] }],
    ["a time that is no number", { ...frame, ts: "now" }],
    ["a stream that is no string", { ...frame, stream: 1 }],
    ["a re that is no string", { ...frame, re: {} }],
  ])("refuses %s as invalid_request", (_, value) => {
    expect(refusal(value).code).toBe("invalid_request");
  });

  it("names the message that it refuses, where the id can be read", () => {
    expect(refusal({ ...frame, payload: 1 }).re).toBe("m_1");
    expect(refusal({ ...frame, id: 1 }).re).toBeUndefined();
    expect(refusal("{").re).toBeUndefined();
  });

  it("leaves zero for the count to refuse", () => {
    expect(decode(JSON.stringify({ ...frame, seq: 0 })).seq).toBe(0);
  });

  it("refuses another version with version_mismatch and the list", () => {
    const { code, details, re } = refusal({ ...frame, v: 2 });
    expect({ code, details, re }).toEqual({
      code: "version_mismatch",
      details: { versions: [1] },
      re: "m_1",
    });
  });

  it("takes hello whatever its version: its sender cannot know ours", () => {
    expect(toEnvelope({ v: 9, type: "hello", id: "1", payload: { versions: [9, 1] } }).v).toBe(1);
  });

  it("never throws anything but a ProtocolError", () => {
    const fields = fc.record(
      {
        v: fc.oneof(fc.constant(1), fc.jsonValue()),
        type: fc.oneof(fc.string(), fc.jsonValue()),
        id: fc.oneof(fc.string(), fc.jsonValue()),
        stream: fc.oneof(fc.string(), fc.jsonValue()),
        seq: fc.oneof(fc.integer(), fc.jsonValue()),
        from: fc.oneof(fc.integer(), fc.jsonValue()),
        re: fc.jsonValue(),
        ts: fc.jsonValue(),
        payload: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fields, fc.jsonValue()), (value) => {
        try {
          const taken = decode(JSON.stringify(value));
          expect(decode(encode(taken))).toEqual(taken);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });
});

describe("limits, each a named constant", () => {
  it("has frames of 16 MiB and 100 streams", () => {
    expect([MAX_FRAME_BYTES, MAX_STREAMS]).toEqual([16 * 1024 * 1024, 100]);
  });

  it("counts bytes, not characters, on the way in and out", () => {
    const small = { v: 1, type: "x", id: "1", payload: { text: "ä".repeat(20) } };
    const bytes = Buffer.byteLength(JSON.stringify(small));
    expect(encode(small, bytes)).toBe(JSON.stringify(small));
    expect(() => encode(small, bytes - 1)).toThrow(/at most/);
    expect(() => decode(JSON.stringify(small), bytes - 1)).toThrow(/at most/);
  });

  it("knows the length of any text in UTF-8", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(measureUtf8(text)).toBe(Buffer.byteLength(text));
      }),
    );
  });
});

describe("handshake: hello {versions} -> ready {version}", () => {
  it("takes the newest version that both ends speak", () => {
    expect(negotiate([1, 2, 3], [1, 2])).toBe(2);
    expect(negotiate([1])).toBe(1);
    expect(negotiate([2, "1", null])).toBeUndefined();
    expect(negotiate([])).toBeUndefined();
  });
});

describe("error codes", () => {
  it("has those of the protocol", () => {
    expect(ERROR_CODES).toHaveLength(20);
    expect(isErrorCode("session_busy")).toBe(true);
    expect(isErrorCode("constructor")).toBe(false);
  });
});
