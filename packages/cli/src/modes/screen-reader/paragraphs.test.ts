import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_PARAGRAPH_CHARS, Paragraphs } from "./paragraphs.ts";

function given(pieces: readonly string[], isOver = true): string[] {
  const shown: string[] = [];
  const paragraphs = new Paragraphs((text) => shown.push(text));
  paragraphs.begin("A: ");
  for (const piece of pieces) paragraphs.feed(piece);
  if (isOver) paragraphs.end();
  return shown;
}

describe("paragraphs", () => {
  it("one is given when it is whole, and not before", () => {
    expect(given(["One\n", "two.\n", "\nThr", "ee."], false)).toEqual(["A: One\ntwo."]);
  });

  it("empty lines come with what follows them", () => {
    expect(given(["One.\n\n\nTwo.\n\n"])).toEqual(["A: One.", "\n\nTwo."]);
  });

  it("of nothing but empty lines nothing is given", () => {
    expect(given(["\n", " \n\n"])).toEqual([]);
  });

  it("a long one is given in parts, between two lines", () => {
    const line = "x".repeat(MAX_PARAGRAPH_CHARS);
    expect(given([`${line}\ny\nz`], false)).toEqual([`A: ${line}\ny`]);
  });

  it("however a text is cut, the same is given", () => {
    const letters = fc.constantFrom("a", "b", " ", "\n", "\n\n");
    const text = fc.array(letters, { maxLength: 60 }).map((all) => all.join(""));
    fc.assert(
      fc.property(text, fc.array(fc.nat(60)), (whole, cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), whole.length];
        const pieces = places.map((place, index) => whole.slice(places[index - 1] ?? 0, place));
        expect(given(pieces)).toEqual(given([whole]));
        const words = given([whole]).join("\n").slice("A: ".length).replaceAll(/\s/g, "");
        expect(words).toBe(whole.replaceAll(/\s/g, ""));
      }),
    );
  });
});
