import { describe, expect, it } from "vitest";
import { splitCommand } from "./command-words.ts";
import { UsageError } from "../core/exit-codes.ts";

describe("splitCommand", () => {
  it.each([
    ["op read op://keys/one", ["op", "read", "op://keys/one"]],
    ["  pass   show\tkey ", ["pass", "show", "key"]],
    [`sh -c 'cat "$HOME/key" | head -1'`, ["sh", "-c", `cat "$HOME/key" | head -1`]],
    [`a "b c"d e\\ f`, ["a", "b cd", "e f"]],
    [`a "q \\" b" 'c \\ d' "e \\n f"`, ["a", 'q " b', "c \\ d", "e \\n f"]],
    [`a '' ""`, ["a", "", ""]],
    [`a $B *`, ["a", "$B", "*"]],
    ["a\\", ["a\\"]],
    ["", []],
  ])("splits %j", (line, words) => {
    expect(splitCommand(line)).toEqual(words);
  });

  it.each([`a "b`, `a 'b\\'c'`])("refuses %j, where a quote has no end", (line) => {
    expect(() => splitCommand(line)).toThrow(UsageError);
  });
});
