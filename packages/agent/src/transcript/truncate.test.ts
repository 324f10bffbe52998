import { estimateTokens } from "@gyre/ai";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { truncateMiddle, oneLine } from "./truncate.ts";

const NOTE = "[...]";
const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

describe("a text that is cut", () => {
  it("is the same where it fits", () => {
    expect(truncateMiddle("short", 10, NOTE)).toBe("short");
  });

  it("keeps whole lines of its beginning and its end", () => {
    const lines = Array.from({ length: 100 }, (_, i) => `This is line number ${i}`);
    const cut = truncateMiddle(lines.join("\n"), 100, NOTE).split("\n");
    const at = cut.indexOf(NOTE);
    expect(cut.slice(0, at)).toEqual(lines.slice(0, at));
    expect(cut.slice(at + 1)).toEqual(lines.slice(at + 1 - cut.length));
    expect(at).toBeGreaterThan(cut.length / 2);
  });

  it("has at most about as many tokens as it may, and no half of a character", () => {
    const texts = fc.string({ unit: "binary", maxLength: 2_000 });
    fc.assert(
      fc.property(texts, fc.integer({ min: 0, max: 500 }), (text, tokens) => {
        const cut = truncateMiddle(text, tokens, NOTE);
        expect(estimateTokens(cut)).toBeLessThanOrEqual(tokens + estimateTokens(NOTE) + 4);
        if (!HALF.test(text)) expect(cut).not.toMatch(HALF);
      }),
    );
  });

  it("as one line is as short as it may be, and the same when cut again", () => {
    expect(oneLine("  a\n b\tc ", 10)).toBe("a b c");
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), fc.integer({ min: 2, max: 100 }), (text, most) => {
        const line = oneLine(text, most);
        expect(line.length).toBeLessThanOrEqual(most + 1);
        expect(oneLine(line, most + 1)).toBe(line);
        expect(line).not.toMatch(/[\n\t]/);
      }),
    );
  });
});
