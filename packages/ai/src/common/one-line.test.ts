import { describe, expect, it } from "vitest";
import { oneLine } from "./one-line.ts";

describe("oneLine", () => {
  it.each([
    ["a\n\n  b\tc\r\n", undefined, "a b c"],
    ["abc", 3, "abc"],
    ["abcd", 3, "ab…"],
    ["a   b", 3, "a b"],
    ["a      b", 3, "a…"],
    ["a😀b", 3, "a…"],
    ["", 3, ""],
  ])("%j within %s is %j", (text, maxChars, line) => {
    expect(oneLine(text, maxChars)).toBe(line);
  });

  it("is no longer than allowed, and always well-formed", () => {
    const text = "😀 ".repeat(50);
    for (let maxChars = 1; maxChars < 60; maxChars++) {
      const line = oneLine(text, maxChars);
      expect(line.length).toBeLessThanOrEqual(maxChars);
      expect(encodeURIComponent(line)).toContain("%");
    }
  });
});
