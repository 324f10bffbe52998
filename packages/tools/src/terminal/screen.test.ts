import { describe, expect, it } from "vitest";
import { createRandom } from "../testing/command-lines.ts";
import { charWidth } from "./char-width.ts";
import { Screen, SCREEN_COLUMNS, SCREEN_ROWS } from "./screen.ts";

/** What a small screen shows after this. */
function show(text: string, columns = 10, rows = 4): string[] {
  const screen = new Screen(columns, rows);
  screen.write(text);
  return screen.rows;
}

describe("a screen", () => {
  it.each([
    ["what a carriage return writes over", "loading 1%\rloading 99", ["loading 99"]],
    ["what a progress bar leaves", "10%\r50%\r\x1b[Kdone\r\n", ["done"]],
    [
      "text without colors, titles and links",
      "\x1b[1;31ma\x1b]0;t\x07\x1b]8;;u\x1b\\b\x1b[0m",
      ["ab"],
    ],
    ["what is erased as blank", "one\r\ntwo\x1b[1;2H\x1b[K", ["o", "two"]],
    ["rows that scroll", "1\r\n2\r\n3\r\n4\r\n5", ["2", "3", "4", "5"]],
    ["a long line in rows", "0123456789ab", ["0123456789", "ab"]],
    ["wide characters in two columns", "\u5b57\x1b[1;3Hx\x1b[1;2Hy", [" yx"]],
    ["a mark with its letter", "e\u0301\x1b[1;2Hx", ["e\u0301x"]],
    ["boxes that letters draw", "\x1b(0lqk\x1b(B", ["\u250c\u2500\u2510"]],
    ["rows relative to a region", "\x1b[2;3r\x1b[?6h\x1b[9;1Ha\x1b[1;1Hb", ["", "b", "a"]],
    ["nothing above what is erased", "a\r\nb\r\nc\x1b[2;1H\x1b[1J", ["", "", "c"]],
    ["what fills it for a test", "\x1b#8\x1b[2J\x1b[Hx", ["x"]],
    ["nothing of before a reset", "abc\x1b[2;3r\x1bcx", ["x"]],
  ])("shows %s", (_, text, rows) => {
    expect(show(text)).toEqual(rows);
  });

  it("has another one for programs that fill it, and is as before when they end", () => {
    const screen = new Screen(10, 4);
    screen.write("$ vi\r\n\x1b[?1049h\x1b[H\x1b[2Jtext\r\n~");
    expect([screen.isAlternate, screen.rows]).toEqual([true, ["text", "~"]]);
    screen.write("\x1b[?1049l$ ");
    expect([screen.isAlternate, screen.rows]).toEqual([false, ["$ vi", "$"]]);
  });

  it("gives lines that leave it as they were written, and the rest at the end", () => {
    const screen = new Screen(5, 2);
    let text = "";
    for (const piece of ["1234567 ", "9\r\n", "two\r\n\r\nfour\r\n", "five"]) {
      text += screen.write(piece).left;
    }
    expect(text + screen.end()).toBe("1234567 9\ntwo\n\nfour\nfive\n");
    expect(screen.rows).toEqual([]);
  });

  it("gives what was on both at the end of a program that was ended", () => {
    const screen = new Screen(10, 4);
    screen.write("$ top\r\n\x1b[?1049h\x1b[Hload 1");
    expect(screen.end()).toBe("$ top\nload 1\n");
  });

  it("answers what programs ask a terminal", () => {
    const screen = new Screen(10, 4);
    expect(screen.write("ab\r\nc\x1b[6n\x1b[5n").reply).toBe("\x1b[2;2R\x1b[0n");
    expect(screen.write("\x1b[c").reply).toBe("\x1b[?1;2c");
    // Nothing that text itself could be.
    expect(screen.write("\x1b[21t\x1b]11;?\x07\x1bP$qm\x1b\\").reply).toBe("");
  });

  it("knows whether a program has asked for application keys", () => {
    const screen = new Screen();
    screen.write("\x1b[?1h");
    expect(screen.hasApplicationKeys).toBe(true);
    screen.write("\x1b[?1l");
    expect(screen.hasApplicationKeys).toBe(false);
  });

  it("has nothing on it that a terminal would obey, whatever comes", () => {
    const seed = 7;
    const random = createRandom(seed);
    const screen = new Screen();
    let left = "";
    for (let nth = 0; nth < 2_000; nth++) {
      const chars = Array.from({ length: 40 }, () =>
        random() < 0.4
          ? String.fromCharCode(Math.floor(random() * 0xa0))
          : random() < 0.5
            ? "\x1b["
            : String.fromCodePoint(Math.floor(random() * 0xd7ff)),
      );
      left += screen.write(chars.join("")).left;
    }
    const { row, column } = screen.cursor;
    expect(row).toBeLessThan(SCREEN_ROWS);
    expect(column).toBeLessThan(SCREEN_COLUMNS);
    expect(screen.rows.length).toBeLessThanOrEqual(SCREEN_ROWS);
    // eslint-disable-next-line no-control-regex -- what it must not have
    expect(left + screen.end()).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  });

  it("takes numbers that no screen has", () => {
    const huge = "99999999999999999999";
    const parts = [..."ABCDEFGHIJKLMPSTXZ@abdefgr`"].map(
      (final) => `x\x1b[${huge};${huge}${final}`,
    );
    expect(() => show(parts.join(""))).not.toThrow();
    expect(show(`\x1b[${"1;".repeat(1_000)}mok`)).toEqual(["ok"]);
  });
});

describe("the width of a character", () => {
  it.each([
    ["a", 1],
    ["ä", 1],
    ["\u0301", 0],
    ["\u200d", 0],
    ["字", 2],
    ["가", 2],
    ["Ａ", 2],
    ["😀", 2],
    ["☃", 1],
    ["─", 1],
  ])("%s is %i", (char, width) => {
    expect(charWidth(char)).toBe(width);
  });
});
