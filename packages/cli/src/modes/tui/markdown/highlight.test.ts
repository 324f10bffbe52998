import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createHighlighter, MAX_LINE_CHARS } from "./highlight.ts";
import { textOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";

/** The pieces that have a color, with its name. */
function highlight(language: string, ...lines: string[]): string[] {
  const highlight = createHighlighter(language, COLORS);
  const names = new Map(Object.entries(COLORS).map(([name, style]) => [style, name]));
  for (const name of ["keyword", "string", "number", "comment", "type", "call"] as const) {
    names.set(COLORS[name], name);
  }
  return lines.flatMap((line) =>
    highlight(line)
      .filter(({ style }) => style !== "")
      .map(({ text, style }) => `${names.get(style)} ${text}`),
  );
}

describe("highlighting", () => {
  it("distinguishes keywords, names, strings, numbers and comments", () => {
    expect(highlight("ts", 'const a: Map = f("x", 0x1f); // so')).toEqual([
      "keyword const",
      "type Map",
      "call f",
      'string "x"',
      "number 0x1f",
      "comment // so",
    ]);
  });

  it("goes on with a comment in the next line", () => {
    expect(highlight("c", "a /* b", "c */ return")).toEqual([
      "comment /* b",
      "comment c */",
      "keyword return",
    ]);
  });

  it("goes on with a string of several lines", () => {
    expect(highlight("python", 'x = """a', 'b"""', "pass")).toEqual([
      'string """a',
      'string b"""',
      "keyword pass",
    ]);
    expect(highlight("js", "`a ${b}", "c` + 1")).toEqual([
      "string `a ${b}",
      "string c`",
      "number 1",
    ]);
  });

  it("ends a string of one line with its line", () => {
    expect(highlight("go", 'a = "b', "return")).toEqual(['string "b', "keyword return"]);
  });

  it("does not end a string at a quote that is escaped", () => {
    expect(highlight("js", String.raw`"a\"b" c`)).toEqual([String.raw`string "a\"b"`]);
  });

  it("takes no lifetime of Rust for a string", () => {
    expect(highlight("rust", "fn f<'a>(c: 'x')")).toEqual(["keyword fn", "string 'x'"]);
  });

  it("knows the keys of data", () => {
    expect(highlight("json", '{"a": "b"}')).toEqual(['type "a"', 'string "b"']);
    expect(highlight("yaml", "key: 'v' # c")).toEqual(["type key", "string 'v'", "comment # c"]);
  });

  it("shows what a diff adds and removes", () => {
    const highlight = createHighlighter("diff", COLORS);
    const styles = ["+a", "-b", " c 1"].map((line) => highlight(line)[0]?.style);
    expect(styles).toEqual([COLORS.added, COLORS.removed, ""]);
  });

  it("leaves a language that it does not know plain", () => {
    expect(createHighlighter("klingon", COLORS)("const a")).toEqual([
      { text: "const a", style: "" },
    ]);
    expect(createHighlighter(undefined, COLORS)("const a")).toEqual([
      { text: "const a", style: "" },
    ]);
    expect(createHighlighter("ts", NO_COLORS)("const a")).toEqual([{ text: "const a", style: "" }]);
  });

  it("changes nothing of the text, in any language", () => {
    const names =
      "ts tsx js jsx mjs json jsonc python go rust zig c cpp h java kotlin swift csharp ruby php bash sh zsh shell console sql html xml svg css scss yaml toml ini markdown diff patch dockerfile lua makefile";
    const line = fc.string({
      unit: fc.constantFrom(..."ab1 .-+*/'\"`#<>[]{}()=:;@$\\é日!_&"),
      maxLength: 60,
    });
    fc.assert(
      fc.property(fc.constantFrom(...names.split(" ")), fc.array(line), (name, lines) => {
        const highlight = createHighlighter(name, COLORS);
        expect(createHighlighter(name, COLORS)("x 1").length).toBeGreaterThan(0);
        for (const each of lines) expect(textOfRow(highlight(each))).toBe(each);
      }),
      { numRuns: 300 },
    );
  });

  it("leaves a very long line plain, within a comment as well", () => {
    const highlight = createHighlighter("ts", COLORS);
    const [before] = highlight("/* begins");
    const long = "a".repeat(MAX_LINE_CHARS + 1);
    expect(highlight(long)).toEqual([{ text: long, style: "" }]);
    expect(highlight("ends */")[0]).toEqual({ text: "ends */", style: before?.style });
  });
});
