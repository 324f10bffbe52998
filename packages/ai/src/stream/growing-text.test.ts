import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FLAT_CHUNK_CHARS, GrowingText } from "./growing-text.ts";

describe("GrowingText", () => {
  test("is empty at first", () => {
    expect(new GrowingText().value).toBe("");
    expect(new GrowingText().end()).toBe("");
  });

  test("answers the whole text after every append", () => {
    const delta = fc.oneof(fc.string(), fc.string({ unit: "binary", size: "large" }));
    fc.assert(
      fc.property(fc.array(delta), (deltas) => {
        const text = new GrowingText();
        let expected = "";
        for (const delta of deltas) {
          expected += delta;
          expect(text.append(delta)).toBe(expected);
          expect(text.value).toBe(expected);
        }
        expect(text.end()).toBe(expected);
        expect(text.append("more")).toBe(`${expected}more`);
      }),
    );
  });

  test.each([-1, 0, 1])("keeps every unit when a delta ends %i off a chunk's border", (off) => {
    const first = "a".repeat(FLAT_CHUNK_CHARS + off);
    const text = new GrowingText();
    text.append(first);
    expect(text.append("bc")).toBe(`${first}bc`);
  });

  test("takes about the memory of the text, not of its deltas", () => {
    const deltas = 200_000;
    const heapBefore = usedHeap();
    const text = new GrowingText();
    const block = { text: "" };
    for (let index = 0; index < deltas; index++) block.text = text.append(fiveChars(index));
    const grown = usedHeap() - heapBefore;
    expect(block.text.length).toBe(deltas * 5);
    // The text is 1 MB; as a chain of all its deltas it would be about 11 MB.
    expect(grown).toBeLessThan(3_000_000);
  });
});

function fiveChars(index: number): string {
  return String(10_000 + (index % 90_000));
}

function usedHeap(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect !== "function") throw new Error("This engine offers no gc().");
  collect();
  return process.memoryUsage().heapUsed;
}
