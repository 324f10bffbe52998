import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  promptLine,
  promptOf,
  ranByOf,
  ranCallId,
  ranText,
  withOutputText,
} from "./ran-command.ts";

const RAN = { command: "npm test", ended: "exit code 1", said: "1 failed" };

describe("what the user ran", () => {
  it("is told to the model with the command and how it ended", () => {
    expect(ranText(RAN)).toBe(
      '[I ran this command myself (exit code 1): "npm test", characters: 8]\n1 failed',
    );
  });

  it("is told apart from the prompt that it was sent with, whatever both say", () => {
    const word = fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc.constantFrom("\n\n", "a\n\nb", ranText(RAN), `\n\n${ranText(RAN)}`),
    );
    const ran = fc.record({ command: word, ended: fc.constant("exit code 0"), said: word });
    fc.assert(
      fc.property(fc.string(), fc.array(ran, { minLength: 1, maxLength: 4 }), (prompt, all) => {
        const text = [prompt, ...all.map(ranText)].join("\n\n");
        const commands = all.map(({ command }) => command);
        expect(promptOf(text)).toEqual({ prompt, commands });
      }),
    );
  });

  it("is part of the prompt where something else follows it", () => {
    const text = `Why?\n\n${ranText(RAN)}, and then?`;
    expect(promptOf(text)).toEqual({ prompt: text, commands: [] });
  });

  it("is left out of a prompt that was made one line and cut", () => {
    const text = `Why? ${ranText(RAN).replaceAll("\n", " ").slice(0, 50)}…`;
    expect(promptLine(text)).toBe("Why?");
  });

  it("is named in a few words", () => {
    expect(withOutputText(["a", "b"])).toBe("with the output of `a`, `b`");
    expect(withOutputText([])).toBe("");
  });
});

describe("a call", () => {
  it("is known for the user's own by its id", () => {
    expect(ranByOf(ranCallId("1", false))).toBe("user");
    expect(ranByOf(ranCallId("1", true))).toBe("user, aside");
    expect(ranByOf("toolu_1")).toBeUndefined();
  });
});
