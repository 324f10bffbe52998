import { describe, expect, it } from "vitest";
import { labelInWords, markdownInWords, timeInWords } from "./format.ts";

describe("words in place of signs", () => {
  it.each([
    [0, "0.0 seconds"],
    [1_240, "1.2 seconds"],
    [61_000, "1 minute 1 second"],
    [125_000, "2 minutes 5 seconds"],
  ])("%i ms is %s", (ms, text) => {
    expect(timeInWords(ms)).toBe(text);
  });

  it("a table is its rows, cell after cell", () => {
    const table = "| | part | share |\n| --- | --- | --- |\n| █ | a\\|b | - |\n| · | `x y` | 5 % |";
    expect(markdownInWords(table)).toBe("part, share\na|b, none\nx y, 5 %");
  });

  it("what only draws is left out, and code stays", () => {
    const text = "So:\n\n```sh\ngyre login x\n```\n\n```\n███···\n```\n\nEnd.";
    expect(markdownInWords(text)).toBe("So:\n\ngyre login x\n\nEnd.");
  });

  it("a choice that is on or off says so", () => {
    expect(["[x] read", "[ ] ls", "a · b"].map(labelInWords)).toEqual([
      "on: read",
      "off: ls",
      "a, b",
    ]);
  });
});
