import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inPieces, utf8 } from "../testing/fake-service.ts";
import { checkLength, FramingError, MAX_EVENT_CHARS, Utf8Reader, type Wanted } from "./sse.ts";

function read(bytes: Uint8Array, lengths: readonly number[], wanted: Wanted): string {
  const reader = new Utf8Reader(wanted);
  let text = "";
  for (const piece of inPieces(bytes, lengths)) {
    // The reader must have no need of the bytes once it has returned.
    const chunk = piece.slice();
    text += reader.read(chunk);
    chunk.fill(0x21);
  }
  return text + reader.end();
}

describe("the reader of UTF-8", () => {
  test("reads any bytes, cut anywhere, as one decoder does the whole", () => {
    const byte = fc.oneof(
      fc.constantFrom(0x0a, 0x0d, 0x41, 0x80, 0xbf, 0xc0, 0xc3, 0xe2, 0x82, 0xac, 0xed, 0xa0),
      fc.constantFrom(0xf0, 0x9f, 0x98, 0x80, 0xf4, 0x90, 0xf5, 0xff, 0xef, 0xbb, 0xbf),
    );
    const lengths = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(
        fc.array(byte, { maxLength: 300 }),
        lengths,
        fc.constantFrom<Wanted>("at once", "by line"),
        (list, cuts, wanted) => {
          const bytes = Uint8Array.from(list);
          expect(read(bytes, cuts, wanted)).toBe(new TextDecoder().decode(bytes));
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("reads a long text in chunks of any one size", () => {
    const text = "a€b😀c\u00e9".repeat(500);
    for (const length of [1, 2, 3, 5, 63, 64, 65, 1023, 1024, 1025, 1027, 4000]) {
      expect(read(utf8(text), [length], "by line"), `${length}`).toBe(text);
      expect(read(utf8(text), [length, 1], "at once"), `${length} and 1`).toBe(text);
    }
  });

  test("leaves out one byte order mark at the front, and no other", () => {
    const bytes = utf8("\uFEFF\uFEFFa\n\uFEFFb\n");
    for (const length of [1, 2, 3, 4, 100]) {
      expect(read(bytes, [length], "by line")).toBe("\uFEFFa\n\uFEFFb\n");
    }
  });

  test("gives text at once, or small chunks only when a line ends", () => {
    expect(new Utf8Reader("at once").read(utf8("abc"))).toBe("abc");
    const byLine = new Utf8Reader("by line");
    expect(byLine.read(utf8("abc"))).toBe("");
    expect(byLine.read(utf8("d\ne"))).toBe("abcd\ne");
    expect(byLine.read(utf8("x".repeat(65)))).toBe("x".repeat(65));
  });
});

test("an error says what is wrong and where", () => {
  const error = new FramingError("The brace is missing", 17);
  expect(error.message).toBe("The brace is missing (at byte 17 of the response body)");
  expect(error).toMatchObject({ name: "FramingError", code: "framing", byte: 17 });
});

test("an event may be as long as the limit and no longer", () => {
  expect(() => checkLength(MAX_EVENT_CHARS, 1)).not.toThrow();
  expect(() => checkLength(MAX_EVENT_CHARS + 1, 1)).toThrow(FramingError);
});
