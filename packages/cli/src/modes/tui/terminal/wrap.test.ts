import { expect, test } from "vitest";
import fc from "fast-check";
import { span, textOfRow, widthOfRow } from "./row.ts";
import { wrapSpans, wrapText } from "./wrap.ts";

const texts = (text: string, columns: number): string[] =>
  wrapText(text, columns).map((row) => textOfRow(row));

test("breaks between words and drops the spaces there", () => {
  expect(texts("one two  three four", 9)).toEqual(["one two", "three", "four"]);
});

test("a line end begins a row, spaces at its beginning stay", () => {
  expect(texts("ab cd   ", 6)).toEqual(["ab cd"]);
  expect(texts("a\n  b\n\nc", 9)).toEqual(["a", "  b", "", "c"]);
});

test("a word that no row can hold is broken", () => {
  expect(texts("ab abcdefghij k", 4)).toEqual(["ab", "abcd", "efgh", "ij k"]);
});

test("scripts without spaces are broken between characters, no mark begins a row", () => {
  expect(texts("日本語のテキスト。です", 8)).toEqual(["日本語の", "テキス", "ト。です"]);
});

test("indents the first row and the others, and returns where each begins", () => {
  const wrapped = wrapSpans([span("one two "), span("three", "1")], 7, {
    first: [span("- ")],
    rest: [span("  ")],
  });
  expect(wrapped.map(({ row, start }) => [textOfRow(row), start])).toEqual([
    ["- one", 0],
    ["  two", 4],
    ["  three", 8],
  ]);
});

test("property: no row is too wide, and no character is lost but spaces", () => {
  const text = fc
    .array(fc.constantFrom(..."abcxyz ", "日", "本", "\u{1F469}\u200D\u{1F680}", "é", "\n"))
    .map((letters) => letters.join(""));
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 12 }), (given, columns) => {
      const rows = wrapText(given, columns);
      for (const row of rows) expect(widthOfRow(row)).toBeLessThanOrEqual(columns);
      const kept = rows.map((row) => textOfRow(row)).join("");
      expect(kept.replace(/ /g, "")).toBe(given.replace(/[ \n]/g, ""));
    }),
  );
});

test("property: the rows begin where they say", () => {
  const text = fc.stringMatching(/^[a-z 日\n]*$/u);
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 12 }), (given, columns) => {
      for (const { row, start } of wrapSpans([span(given)], columns)) {
        const shown = textOfRow(row);
        expect(given.slice(start, start + shown.length)).toBe(shown);
      }
    }),
  );
});
