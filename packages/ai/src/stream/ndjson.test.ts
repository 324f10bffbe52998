import fc from "fast-check";
import { expect, test } from "vitest";
import { inPieces, utf8 } from "../testing/fake-service.ts";
import { FramingError, MAX_EVENT_CHARS, type Payload } from "./sse.ts";
import { LineDecoder } from "./ndjson.ts";

function decode(
  text: string,
  lengths?: readonly number[],
): { lines: string[]; rest: Payload | undefined } {
  const lines: string[] = [];
  const decoder = new LineDecoder((data) => lines.push(data));
  for (const piece of inPieces(utf8(text), lengths)) decoder.feed(piece);
  return { lines, rest: decoder.end() };
}

test("each line is a payload, and empty ones are passed over", () => {
  const text = '{"a":1}\n\r\n\n{"b":"é😀"}\r\n{"c":3}\n';
  const lines = ['{"a":1}', '{"b":"é😀"}', '{"c":3}'];
  expect(decode(text)).toEqual({ lines, rest: undefined });
  for (let at = 1; at < utf8(text).length; at++) {
    expect(decode(text, [at, 100]).lines, `cut at ${at}`).toEqual(lines);
  }
  expect(decode(text, [1]).lines).toEqual(lines);
});

test("a CR alone ends nothing", () => {
  expect(decode("a\rb\r\r\n").lines).toEqual(["a\rb\r"]);
});

test("a line is there with the byte that ends it", () => {
  const lines: string[] = [];
  const decoder = new LineDecoder((data) => lines.push(data));
  decoder.feed(utf8("{}"));
  expect(lines).toEqual([]);
  decoder.feed(utf8("\n"));
  expect(lines).toEqual(["{}"]);
});

test("the end answers with a last line that has none", () => {
  expect(decode('{"a":1}\n{"b"').rest).toEqual({ data: '{"b"' });
  expect(decode('{"a":1}\n{}\r').rest).toEqual({ data: "{}" });
  expect(decode('{"a":1}\n').rest).toBeUndefined();
  expect(decode("\r").rest).toBeUndefined();
  expect(decode("").rest).toBeUndefined();
});

test("any text gives its lines, however it is cut", () => {
  const piece = fc.constantFrom("\n", "\r\n", "\r", "a", "é", "😀", "x".repeat(80));
  const lengths = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), lengths, (pieces, cuts) => {
      const text = pieces.join("");
      const parts = text.split("\n").map((line) => line.replace(/\r$/, ""));
      const last = parts.pop() ?? "";
      expect(decode(text, cuts)).toEqual({
        lines: parts.filter((line) => line !== ""),
        rest: last === "" ? undefined : { data: last },
      });
    }),
    { numRuns: 1000 },
  );
});

test("a line without end is refused at the limit", () => {
  const decoder = new LineDecoder(() => {});
  const chunk = new Uint8Array(1024 * 1024).fill(0x78);
  for (let fed = 0; fed < MAX_EVENT_CHARS; fed += chunk.length) decoder.feed(chunk);
  expect(() => decoder.feed(chunk)).toThrow(FramingError);
});
