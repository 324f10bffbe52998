import fc from "fast-check";
import { expect, test } from "vitest";
import { commonEnd, readIndent, joinLines, lineAt, splitLines, trimLineEnd } from "./line-ends.ts";

const text = fc
  .array(fc.constantFrom("a", " ", "\t", "\r", "\n", "\r\n"))
  .map((parts) => parts.join(""));

test("lines come together to the text that they were", () => {
  fc.assert(
    fc.property(text, (text) => {
      const lines = splitLines(text);
      expect(joinLines(lines)).toBe(text);
      for (const [index, line] of lines.entries()) {
        expect(lineAt(lines, line.start)).toBe(index);
        expect(line.end === "" && index < lines.length - 1).toBe(false);
      }
    }),
  );
});

test("a carriage return alone is no line end", () => {
  expect(splitLines("a\rb\r\nc")).toEqual([
    { start: 0, text: "a\rb", end: "\r\n" },
    { start: 5, text: "c", end: "" },
  ]);
});

test("the line end that most lines have", () => {
  expect(commonEnd(splitLines("a\r\nb\r\nc\n"))).toBe("\r\n");
  expect(commonEnd(splitLines("a\nb\r\n"))).toBe("\n");
  expect(commonEnd(splitLines("a"))).toBe("");
});

test("white space around a line", () => {
  expect(trimLineEnd("\ta \t")).toBe("\ta");
  expect(trimLineEnd(" \t")).toBe("");
  expect(readIndent("\t a ")).toBe("\t ");
});
