import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findCommonParts, splitParts } from "./line-diff.ts";

describe("commonParts", () => {
  it("gives equal parts only, in the order of both sides", () => {
    const parts = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 12 });
    fc.assert(
      fc.property(parts, parts, (old, next) => {
        const common = [...findCommonParts(old, next)];
        const taken = common.filter((index) => index >= 0);
        expect(taken).toEqual([...new Set(taken)].sort((a, b) => a - b));
        for (const [index, at] of common.entries()) if (at >= 0) expect(old[at]).toBe(next[index]);
      }),
    );
  });

  it("finds as many as there are", () => {
    expect(
      [...findCommonParts([..."abcbdab"], [..."bdcaba"])].filter((at) => at >= 0),
    ).toHaveLength(4);
  });

  it("compares nothing where that would take long, but for beginning and end", () => {
    const lines = (name: string): string[] => Array.from({ length: 2_000 }, (_, at) => name + at);
    const common = findCommonParts(["x", ...lines("a"), "y"], ["x", ...lines("b"), "y"]);
    expect([...common].filter((at) => at >= 0)).toHaveLength(2);
  });
});

describe("commonParts of many lines", () => {
  it("finds what stays between the first change and the last", () => {
    const lines = Array.from({ length: 3_000 }, (_, at) => `line ${at}`);
    const common = findCommonParts(["a", ...lines, "b"], ["c", ...lines, "d"]);
    expect([...common].filter((at) => at >= 0)).toHaveLength(3_000);
  });
});

describe("partsOf", () => {
  it("finds the words that the other line does not have", () => {
    expect(splitParts("const port = 80;", "const port = 8080;")).toEqual([
      { text: "const port = ", isCommon: true },
      { text: "80", isCommon: false },
      { text: ";", isCommon: true },
    ]);
  });

  it("takes lines with little in common for different ones", () => {
    expect(splitParts("return sum(all);", "import fs from 'node:fs'")).toBeUndefined();
  });

  it("does not look at the words of a line that has very many", () => {
    const line = "a ".repeat(500);
    expect(splitParts(line, line)).toBeUndefined();
  });
});
