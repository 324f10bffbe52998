import { describe, expect, test } from "vitest";
import {
  MAX_LOOKED_AT_CHARS,
  MAX_SHOWN_LINES,
  nearestPlace,
  showNearPlace,
  visibleSpace,
} from "./miss.ts";
import { splitLines } from "../text/line-ends.ts";

const near = (file: string, old: string): ReturnType<typeof nearestPlace> =>
  nearestPlace(splitLines(file), splitLines(old));

describe("the nearest place", () => {
  test("has most lines in common", () => {
    const file = "start();\n}\n}\nfirst();\nother();\nlast();\n}\n";
    expect(near(file, "  first();\n  second();\n  last();\n}\n")).toEqual({ line: 3, common: 3 });
  });

  test("a bracket weighs less than a long line", () => {
    expect(near("}\n}\nreturn value;\n}\n", "return value;\nx\n")).toEqual({ line: 2, common: 1 });
  });

  test("is found by words where no line is the same", () => {
    expect(near("a b c\nconst total = sum(items);\n", "const total = sum(values);")).toEqual({
      line: 1,
      common: 0,
    });
  });

  test("is absent where nothing is in common", () => {
    expect(near("a\nb\n", "something else")).toBeUndefined();
    expect(near("", "a")).toBeUndefined();
    expect(near("a\n", "\n\n")).toBeUndefined();
  });

  test("is looked for in so much of a file", () => {
    const file = `${"x\n".repeat(MAX_LOOKED_AT_CHARS / 2)}wanted();\n`;
    expect(near(file, "wanted();")).toBeUndefined();
  });
});

describe("how it is shown", () => {
  const shown = (file: string, old: string): string => {
    const [lines, wanted] = [splitLines(file), splitLines(old)];
    const place = nearestPlace(lines, wanted);
    return place ? showNearPlace(lines, wanted, place) : "";
  };

  test("lines that differ stand one beneath the other", () => {
    expect(shown("if (a) {\n\tb();\n}\n", "if (a) {\n    b();\n}\n")).toBe(
      "2 of 3 lines are the same (→ tab, · space, ␍ carriage return):\n" +
        "  both  1 if (a) {\n" +
        "! file  2 →b();\n" +
        "! yours   ····b();   (only white space differs)\n" +
        "  both  3 }",
    );
  });

  test("a line that the file has not", () => {
    expect(shown("only this one\n", "only this one\nmore\n")).toContain(
      "! yours   more   (the file has no line here)",
    );
  });

  test("of many lines the first, and how to see the rest", () => {
    const text = shown("same line\n".repeat(100), "same line\n".repeat(99).concat("x\n"));
    expect(text.split("\n").length).toBeLessThanOrEqual(MAX_SHOWN_LINES + 3);
    expect(text).toMatch(/more lines; read the file from line \d+ on/);
  });

  test("white space is visible where it is easily mistaken", () => {
    expect(visibleSpace("\t  a b  c\t \r")).toBe("→··a b··c→·␍");
    expect(visibleSpace("a\u00a0b")).toBe("a⍽b");
    expect(visibleSpace("   ")).toBe("···");
  });
});
