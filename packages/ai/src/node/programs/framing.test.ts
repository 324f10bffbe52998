import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HEADERS, LINES, type Framing } from "./framing.ts";

const MAX_BYTES = 1_000;

/** Reads the messages, in pieces that end anywhere. */
function readAll(framing: Framing, bytes: Buffer, ends: readonly number[]): string[] {
  const read: string[] = [];
  const reader = framing.createReader(MAX_BYTES, (text) => read.push(text));
  const places = [...ends.map((end) => end % (bytes.length + 1)), bytes.length].sort(
    (a, b) => a - b,
  );
  let from = 0;
  for (const to of places) {
    expect(reader.feed(bytes.subarray(from, to))).toBe(true);
    from = to;
  }
  return read;
}

describe.each([
  ["lines", LINES],
  ["headers", HEADERS],
])("messages with %s", (_, framing) => {
  it("are read as they were written, wherever the pieces end", () => {
    const message = fc
      .json({ maxDepth: 2, stringUnit: "grapheme" })
      .filter((text) => text.length < 200);
    fc.assert(
      fc.property(fc.array(message), fc.array(fc.nat()), (messages, ends) => {
        const bytes = Buffer.from(messages.map((text) => framing.wrap(text)).join(""));
        expect(readAll(framing, bytes, ends)).toEqual(messages);
      }),
    );
  });

  it("that are too long end the reading", () => {
    const read: string[] = [];
    const reader = framing.createReader(MAX_BYTES, (text) => read.push(text));
    expect(reader.feed(Buffer.from(framing.wrap("x".repeat(MAX_BYTES))))).toBe(true);
    expect(reader.feed(Buffer.from(framing.wrap("x".repeat(MAX_BYTES + 1))))).toBe(false);
    expect(read).toHaveLength(1);
  });
});

describe("a header", () => {
  it("may have other fields, in any case", () => {
    const text = "Content-Type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    expect(readAll(HEADERS, Buffer.from(text), [])).toEqual(["{}"]);
  });

  it("without a length, or without an end, ends the reading", () => {
    const make = () => HEADERS.createReader(MAX_BYTES, () => expect.unreachable());
    expect(make().feed(Buffer.from("Error: no such option\r\n\r\n"))).toBe(false);
    expect(make().feed(Buffer.from("x".repeat(10_000)))).toBe(false);
  });
});
