import fc from "fast-check";
import { expect, test } from "vitest";
import { measureWidth } from "../../../text/width.ts";
import { signAt, TextRows } from "./editor-rows.ts";

function layoutRows(line: string, columns: number, label = ""): string[] {
  const rows = new TextRows(() => label);
  rows.columns = columns;
  return rows.starts([line], 0).map((_, row) =>
    rows
      .readRow([line], { line: 0, row })
      .map(({ text }) => text)
      .join(""),
  );
}

test("a row ends between words, and a word that no row can hold is broken", () => {
  expect(layoutRows("one two three", 8)).toEqual(["one two ", "three"]);
  expect(layoutRows("one abcdefghijkl", 8)).toEqual(["one ", "abcdefgh", "ijkl"]);
});

test("spaces that have no room hang behind the end of their row", () => {
  expect(layoutRows("one   two", 3)).toEqual(["one", "two"]);
});

test("wide characters take two columns, and a row may end behind any of them", () => {
  expect(layoutRows("ab漢字漢字", 5)).toEqual(["ab漢", "字漢", "字"]);
});

test("a sign is shown as its label, cut where it is too wide", () => {
  expect(layoutRows(`a ${signAt(3)} b`, 12, "[pasted #1]")).toEqual(["a ", "[pasted #1] ", "b"]);
  expect(layoutRows(signAt(3), 6, "[pasted #1]")).toEqual(["[past…"]);
});

const words = fc.array(
  fc.constantFrom("a", " ", "  ", "word", "漢", "👨‍👩‍👧", "e\u0301", "longerword", "。"),
);

test("no row is too wide, none is lost, and every place has its row and column", () => {
  fc.assert(
    fc.property(words, fc.integer({ min: 2, max: 20 }), (parts, columns) => {
      const line = parts.join("");
      const rows = new TextRows(() => "");
      rows.columns = columns;
      const starts = rows.starts([line], 0);
      expect([...starts].sort((a, b) => a - b)).toEqual([...new Set(starts)]);
      for (const shown of layoutRows(line, columns))
        expect(measureWidth(shown)).toBeLessThanOrEqual(columns);
      for (const [row, start] of starts.entries()) {
        const place = { line: 0, row };
        const position = rows.findPosition([line], place, 3);
        expect(rows.findRow([line], position)).toEqual(place);
        expect(rows.findColumn([line], position)).toBeLessThanOrEqual(3);
        expect(position.column).toBeGreaterThanOrEqual(start);
      }
    }),
  );
});

test("a long line that is edited has the rows of one that is new", () => {
  const long = fc.array(fc.constantFrom("a", " ", "word", "漢", "e\u0301", "longerword"), {
    minLength: 900,
    maxLength: 1_200,
  });
  fc.assert(
    fc.property(long, fc.nat(3_000), words, (parts, at, inserted) => {
      const line = parts.join("").padEnd(1_001, "x");
      const edited = line.slice(0, at) + inserted.join("") + line.slice(at + 2);
      const rows = new TextRows(() => "");
      rows.columns = 17;
      rows.starts([line], 0);
      const fresh = new TextRows(() => "");
      fresh.columns = 17;
      expect(rows.starts([edited], 0)).toEqual(fresh.starts([edited], 0));
    }),
  );
});
