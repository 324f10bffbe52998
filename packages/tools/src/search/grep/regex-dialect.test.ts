import { describe, expect, it } from "vitest";
import { checkPattern, PatternError, toRegExp } from "./regex-dialect.ts";

const matched = (pattern: string, text: string, ignoreCase = false): string | undefined =>
  toRegExp(pattern, { ignoreCase }).exec(text)?.[0];

describe("toRegExp", () => {
  it("means by letters, digits and spaces those of all scripts", () => {
    expect(matched("\\w+", "«größe_1»")).toBe("größe_1");
    expect(matched("\\d+", "x٣٤")).toBe("٣٤");
    expect(matched("a\\sb", "a\u3000b")).toBe("a\u3000b");
    expect(matched("\\bße\\b", "größe ße")).toBe("ße");
    expect(matched("[\\W\\d]+", "ä-1b")).toBe("-1");
  });

  it("takes braces, brackets and slashes that mean nothing as they are", () => {
    expect(matched("function f() {", "function f() {")).toBeUndefined();
    expect(matched("function f\\(\\) {", "function f() {")).toBe("function f() {");
    expect(matched("a{2}", "aaa")).toBe("aa");
    expect(matched("a{,2}", "aaa")).toBe("aa");
    expect(matched("${x}", "${x}")).toBeUndefined();
    expect(matched("\\${x}", "${x}")).toBe("${x}");
    expect(matched("a/b]", "a/b]")).toBe("a/b]");
    expect(matched("[]a]+", "]a")).toBe("]a");
    expect(matched("[[(&]+", "[(&")).toBe("[(&");
    expect(matched("[a-]+", "-a")).toBe("-a");
    expect(matched('\\-\\_\\"\\#', '-_"#')).toBe('-_"#');
  });

  it("knows names of sets, properties and code points", () => {
    expect(matched("[[:alpha:]_]+", "1ab_2")).toBe("ab_");
    expect(matched("[[:^digit:]]+", "1ab2")).toBe("ab");
    expect(matched("\\p{Greek}+", "abγδ")).toBe("γδ");
    expect(matched("\\pL+", "1ä2")).toBe("ä");
    expect(matched("\\P{L}+", "ä12")).toBe("12");
    expect(matched("\\x41\\x{42}\\u0043", "ABC")).toBe("ABC");
  });

  it("knows groups, names, look-around and references", () => {
    expect(matched("(?P<a>x)(?:y)", "xy")).toBe("xy");
    expect(matched("(?<=a)b(?!c)", "abc ab")).toBe("b");
    expect(matched("(\\w)\\1", "abba")).toBe("bb");
    expect(matched("\\Ab\\z", "b")).toBe("b");
    expect(matched("\\<ab\\>", "xab ab")).toBe("ab");
  });

  it("takes flags at the start", () => {
    expect(matched("(?i)ABC", "abc")).toBe("abc");
    expect(matched("ÄB", "äb", true)).toBe("äb");
    expect(() => toRegExp("(?x) a b")).toThrow(PatternError);
    expect(() => toRegExp("a(?i:b)")).toThrow(PatternError);
  });

  it("knows start and end of a line", () => {
    expect(matched("^b$", "b")).toBe("b");
    expect(matched("a.c", "a\u2028c")).toBe("a\u2028c");
  });

  it("looks for text as it is when asked to", () => {
    const regExp = toRegExp("a.b*[c]", { literal: true, ignoreCase: true });
    expect(regExp.exec("xA.B*[C]")?.index).toBe(1);
    expect(regExp.test("aXb*[c]")).toBe(false);
  });

  it("reports what is wrong with a pattern", () => {
    expect(() => toRegExp("a(b")).toThrow(/"a\(b" is no regular expression.*Unterminated group/);
    expect(() => toRegExp("[a")).toThrow("a [ has no ].");
    expect(() => toRegExp("[z-a]")).toThrow("wrong way round");
    expect(() => toRegExp("a\\")).toThrow("ends with a \\");
    expect(() => toRegExp("\\y")).toThrow("the escape \\y is not known");
    expect(() => toRegExp("[a-z&&x]")).toThrow("&&");
    expect(() => toRegExp("[a[bc]]")).toThrow("can mean two things");
    expect(() => toRegExp("\\p{Nothing}")).toThrow("property Nothing");
  });
});

it("checkPattern refuses line ends, not what looks like one", () => {
  for (const pattern of ["a\\nb", "a\nb", "x\\\\\\n", "a\\r"]) {
    expect(() => checkPattern(pattern, false)).toThrow("lines are searched one at a time");
  }
  for (const pattern of ["C:\\\\new", "\\w", "n"]) checkPattern(pattern, false);
  checkPattern("a\\nb", true);
  expect(() => checkPattern("a\nb", true)).toThrow(PatternError);
});
