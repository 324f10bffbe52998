import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_KEYS, parseKey, PROGRAM_KEYS, PROMPT_KEYS } from "./key-actions.ts";
import { keyProblems } from "./key-problems.ts";

describe("a key", () => {
  it.each([
    ["ctrl+x", "ctrl+x"],
    ["Ctrl+X", "ctrl+x"],
    ["shift+alt+Enter", "alt+shift+enter"],
    ["control+space", "ctrl+ "],
    ["Esc", "escape"],
    ["PageUp", "pageUp"],
    ["F5", "f5"],
    ["ctrl++", "ctrl++"],
    ["alt+<", "alt+<"],
    ["option+é", "alt+é"],
    ["tab", "tab"],
    ["x", undefined],
    ["shift+x", undefined],
    ["+", undefined],
    ["", undefined],
    ["ctrl+", undefined],
    ["ctrl+xx", undefined],
    ["hyper+x", undefined],
    ["f13", undefined],
    ["__proto__", undefined],
    ["ctrl+constructor", undefined],
  ])("%j is %j", (text, key) => {
    expect(parseKey(text)).toBe(key);
  });

  it("of each action is written as it is parsed, and has one meaning at most in each place", () => {
    for (const keys of [PROMPT_KEYS, PROGRAM_KEYS].map((place) => Object.values(place))) {
      const all = keys.flatMap((each) => each.split(" ")).filter((key) => key !== "");
      expect(all.map(parseKey)).toEqual(all);
      expect(new Set(all).size).toBe(all.length);
    }
  });
});

describe("keys that are set", () => {
  it.each([
    [{ expand: "ctrl+x", suspend: [], wordLeft: ["alt+h", "ctrl+left"] }, []],
    [{ exit: "ctrl+x", left: "ctrl+x" }, []],
    [{ expnd: "ctrl+x" }, ['nothing is called "expnd"; may "expand" be meant']],
    [{ quux: "ctrl+x" }, [expect.stringMatching(/^nothing is called "quux"; there are submit, /)]],
    [{ expand: 5 }, ['expand must be a key such as "ctrl+x", or a list of keys; [] for none']],
    [
      { expand: "x" },
      [
        'expand is "x", which is typed as text: a key is written as "ctrl+x", "alt+enter", "shift+tab" or "f5"',
      ],
    ],
    [{ expand: "ctrl+xx" }, [expect.stringMatching(/^expand is "ctrl\+xx", which is no key: /)]],
    [
      { expand: "ctrl+x", suspend: ["f2", "Ctrl+X"] },
      ['"Ctrl+X" is set for both expand and suspend'],
    ],
    [
      { suspend: "ctrl+c" },
      ['suspend is "ctrl+c", which always clears the prompt, interrupts and leaves'],
    ],
  ])("%j", (value, problems) => {
    expect(keyProblems(value)).toEqual(problems);
  });

  it("of any form are checked without an exception", () => {
    const names = fc.oneof(fc.constantFrom(...Object.keys(DEFAULT_KEYS)), fc.string());
    fc.assert(
      fc.property(fc.dictionary(names, fc.jsonValue()), (value) => {
        expect(Array.isArray(keyProblems(value))).toBe(true);
      }),
    );
  });
});
