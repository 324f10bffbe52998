import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasMoreParts } from "./frame-parts.ts";

function countParts(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce<number>((sum, each) => sum + countParts(each), 1);
}

describe("limits: objects and lists of a frame", () => {
  it("are counted as they are, whatever the strings say", () => {
    const aText = fc.string({ unit: fc.constantFrom("[", "{", '"', "\\", "a") });
    const aValue = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        aText,
        fc.integer(),
        fc.array(tie("value")),
        fc.dictionary(aText, tie("value")),
      ),
    })).value;
    fc.assert(
      fc.property(aValue, (value) => {
        const json = JSON.stringify(value);
        const parts = countParts(value);
        expect(hasMoreParts(json, parts)).toBe(false);
        if (parts > 0) expect(hasMoreParts(json, parts - 1)).toBe(true);
      }),
    );
  });

  it("are counted to the end of a text that is cut off", () => {
    expect(hasMoreParts('[[[["abc', 3)).toBe(true);
    expect(hasMoreParts('[["[[[[[[[[[[', 2)).toBe(false);
  });
});
