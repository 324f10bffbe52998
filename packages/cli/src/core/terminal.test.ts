import { describe, expect, it } from "vitest";
import { plainText } from "@gyre/coding/internal/text/plain-text";
import { fit, openTerminal, wrap, Wrapper } from "./terminal.ts";
import { measureWidth } from "../text/width.ts";

const output = { write: () => true };

describe("openTerminal", () => {
  const painted = (isTTY: boolean, env: Record<string, string>): boolean =>
    openTerminal({ ...output, isTTY }, env).style.red("x") !== "x";

  it("has colors on a terminal only", () => {
    expect(painted(true, {})).toBe(true);
    expect(painted(false, {})).toBe(false);
    expect(painted(true, { TERM: "dumb" })).toBe(false);
  });

  it("honors NO_COLOR, unless it is empty", () => {
    expect(painted(true, { NO_COLOR: "1" })).toBe(false);
    expect(painted(true, { NO_COLOR: "" })).toBe(true);
  });

  it("honors FORCE_COLOR, before NO_COLOR", () => {
    expect(painted(false, { FORCE_COLOR: "1" })).toBe(true);
    expect(painted(false, { FORCE_COLOR: "1", NO_COLOR: "1" })).toBe(true);
    expect(painted(true, { FORCE_COLOR: "0" })).toBe(false);
  });

  it("takes a width between 40 and 120, and 80 where there is none", () => {
    const columns = (given?: number): number =>
      openTerminal({ ...output, columns: given }, {}).columns;
    expect([columns(), columns(0), columns(10), columns(50), columns(500)]).toEqual([
      80, 80, 40, 50, 120,
    ]);
  });

  it("writes a line again on a terminal only", () => {
    expect(openTerminal({ ...output, isTTY: true }, {}).live).toBe(true);
    expect(openTerminal({ ...output, isTTY: true }, { TERM: "dumb" }).live).toBe(false);
    expect(openTerminal(output, { FORCE_COLOR: "1" }).live).toBe(false);
  });

  it("puts no codes around nothing", () => {
    expect(openTerminal(output, { FORCE_COLOR: "1" }).style.bold("")).toBe("");
  });
});

describe("plainText", () => {
  it.each([
    ["colors", "\x1b[1;31mred\x1b[0m", "red"],
    ["cursor movements", "a\x1b[2K\x1b[1;1Hb\x1b[?25l", "ab"],
    ["a title", "\x1b]0;evil\x07text", "text"],
    ["a link", "\x1b]8;;https://x.test\x1b\\link\x1b]8;;\x1b\\", "link"],
    ["a device string", "\x1bPq#0\x1b\\x", "x"],
    ["codes of eight bits", "\x9b31mred\x9d0;t\x9c!", "red!"],
    ["a reset", "\x1bcx\x1b(Bx", "xx"],
    ["a sequence that is cut off", "x\x1b[31", "x"],
    ["a title without an end, to the end of its line", "\x1b]0;evil\nnext", "\nnext"],
    ["bells and backspaces", "a\x07\b\x00\x7fb", "ab"],
    ["marks that turn the direction of writing", "a\u202eb\u2066c", "abc"],
  ])("takes out %s", (_what, dirty, clean) => {
    expect(plainText(dirty)).toBe(clean);
  });

  it("keeps lines, and makes spaces of tabs and lines of carriage returns", () => {
    expect(plainText("a\r\nb\n\tc\rd")).toBe("a\nb\n    c\nd");
  });

  it("keeps letters, accents and emoji", () => {
    expect(plainText("Crème brûlée 日本 👩‍🍳")).toBe("Crème brûlée 日本 👩‍🍳");
  });

  it("is linear in long hostile text", () => {
    // If it were quadratic, it would not end within the limit of a test.
    const hostile = "\x1b]".repeat(500_000) + "\x1b[".repeat(500_000);
    expect(plainText(hostile)).toBe("");
  });
});

describe("widthOf and fit", () => {
  it("counts columns, not characters", () => {
    expect(["abc", "✔ é", "日本", "👍", "e\u0301"].map(measureWidth)).toEqual([3, 3, 4, 2, 1]);
  });

  it("cuts with an ellipsis, and never in the middle of a wide character", () => {
    expect(fit("hello", 5)).toBe("hello");
    expect(fit("hello!", 5)).toBe("hell…");
    expect(fit("日本語", 4)).toBe("日…");
  });
});

describe("Wrapper", () => {
  it("breaks between words and indents each line", () => {
    expect(wrap("one two three four", 12, "  ")).toBe("  one two\n  three four");
  });

  it("gives the same whatever pieces the text comes in", () => {
    const text = "The shares now add up,\n\nand no two differ. Averyverylongwordindeed  end";
    const whole = wrap(text, 20, "  ");
    for (const size of [1, 2, 3, 7]) {
      const wrapper = new Wrapper(20, "  ");
      let out = "";
      for (let at = 0; at < text.length; at += size) out += wrapper.feed(text.slice(at, at + size));
      expect(out + wrapper.end()).toBe(whole);
    }
  });

  it("never makes a line too long, even of a word that does not fit", () => {
    const lines = wrap(`a ${"x".repeat(30)} 日本語日本語 b`, 10, "  ").split("\n");
    expect(lines.every((line) => measureWidth(line) <= 10)).toBe(true);
    expect(lines.join("").replaceAll(" ", "")).toBe(`a${"x".repeat(30)}日本語日本語b`);
  });

  it("keeps empty lines and drops spaces at the end of a line", () => {
    expect(wrap("a \n\nb", 10, "> ")).toBe("> a\n\n> b");
  });
});
