import { estimateTokens } from "@gyre/ai";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutText, humanSize } from "@gyre/ai/text";
import { LineWindow, linesWithin, listedName } from "./truncate.ts";

const limits = { maxLines: 3, maxBytes: 20, maxTokens: 100, maxLineChars: 8 };

function feedWindow(text: string, first = 1, pieceChars = text.length || 1) {
  const window = new LineWindow(first, limits);
  for (let at = 0; at < text.length; at += pieceChars) window.feed(text.slice(at, at + pieceChars));
  return window.end();
}

describe("a page", () => {
  it("has no more tokens than its limit, whatever is on its lines", () => {
    const line = fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.string({ unit: "grapheme" }),
      fc.lorem(),
    );
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 300 }), (texts) => {
        const lines = texts.map((text) => text.replaceAll(/[\r\n]/g, " "));
        const page = { maxBytes: 50 * 1024, maxTokens: 600 };
        const shown = linesWithin(lines, page);
        expect(estimateTokens(shown.join("\n"))).toBeLessThanOrEqual(600);
        const window = new LineWindow(1, { ...page, maxLines: 2_000, maxLineChars: 2_000 });
        window.feed(`${lines.join("\n")}\n`);
        expect(window.end().lines).toEqual(shown.length > 0 ? shown : lines.slice(0, 1));
      }),
    );
  });
});

describe("LineWindow", () => {
  it("keeps a text that fits, and counts a last line without line end", () => {
    expect(feedWindow("a\nb")).toEqual({ lines: ["a", "b"], total: 2, cut: 0 });
    expect(feedWindow("a\nb\n")).toEqual({ lines: ["a", "b"], total: 2, cut: 0 });
    expect(feedWindow("")).toEqual({ lines: [], total: 0, cut: 0 });
    expect(feedWindow("\n")).toEqual({ lines: [""], total: 1, cut: 0 });
  });

  it("ends after the lines it may have, and names the next one", () => {
    expect(feedWindow("1\n2\n3\n4\n5\n")).toEqual({
      lines: ["1", "2", "3"],
      total: 5,
      cut: 0,
      next: 4,
    });
    expect(feedWindow("1\n2\n3\n4\n5\n", 4)).toEqual({ lines: ["4", "5"], total: 5, cut: 0 });
  });

  it("ends before the bytes it may have are passed, counted in UTF-8", () => {
    // Seven euro signs are 21 bytes, eight letters 8.
    expect(feedWindow("12345678\n12345678\n12345678\n").next).toBe(3);
    expect(feedWindow("€€€\n€€€\n€€€\n")).toMatchObject({ lines: ["€€€", "€€€"], next: 3 });
  });

  it("shows the first line whatever its size, so that reading always moves on", () => {
    expect(feedWindow("€€€€€€€\nb\n")).toMatchObject({ lines: ["€€€€€€€"], next: 2 });
  });

  it("cuts a long line, marks it, and leaves no half of a character", () => {
    expect(feedWindow("1234567890\nb\n", 1)).toMatchObject({
      lines: ["12345678 [cut: 10 characters]"],
      cut: 1,
    });
    expect(feedWindow("1234567😀9\n").lines).toEqual(["1234567 [cut: 10 characters]"]);
  });

  it("gives the same for any pieces", () => {
    const text = "one\r\ntwo 😀 is longer\n\nfour\nfive";
    for (const first of [1, 2, 4, 9]) {
      const whole = feedWindow(text, first);
      for (let size = 1; size < text.length; size += 1) {
        expect(feedWindow(text, first, size)).toEqual(whole);
      }
    }
  });
});

it("cutText leaves no half of a surrogate pair", () => {
  expect(cutText("abc", 3)).toBe("abc");
  expect(cutText("abcd", 3)).toBe("abc");
  expect(cutText("ab😀", 3)).toBe("ab");
});

it("linesWithin takes lines as long as they fit", () => {
  expect(linesWithin(["aa", "bb", "cc"], { maxBytes: 6, maxTokens: 100 })).toEqual(["aa", "bb"]);
  expect(linesWithin(["aa"], { maxBytes: 2, maxTokens: 100 })).toEqual([]);
});

it("humanSize is short", () => {
  expect([0, 1023, 1024, 1536, 20 * 1024 ** 2, 5.5 * 1024 ** 3].map(humanSize)).toEqual([
    "0 B",
    "1023 B",
    "1.0 KB",
    "1.5 KB",
    "20 MB",
    "5.5 GB",
  ]);
});

it("listedName quotes what could forge a line or hide", () => {
  expect(listedName("a b.ts")).toBe("a b.ts");
  expect(listedName("ä😀.ts")).toBe("ä😀.ts");
  expect(listedName("a\nb")).toBe('"a\\nb"');
  expect(listedName("a\u202eb")).toBe('"a\\u{202e}b"');
  expect(listedName("a\u001b[31m")).toBe('"a\\u001b[31m"');
});
