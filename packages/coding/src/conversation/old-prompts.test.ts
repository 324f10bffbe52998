import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readOldPrompt, readOldPromptLine } from "./old-prompts.ts";

interface Ran {
  command: string;
  output: string;
}

const RAN: Ran = { command: "npm test", output: "1 failed" };

/** As early versions wrote it. */
function header({ command, output }: Ran): string {
  return `[I ran this command myself (exit code 1): ${JSON.stringify(command)}, characters: ${output.length}]\n${output}`;
}

describe("a prompt of an early version", () => {
  it("is distinguished from the output of commands, whatever both say", () => {
    const word = fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc.constantFrom("\n\n", "a\n\nb", header(RAN), `\n\n${header(RAN)}`),
    );
    const ran = fc.record({ command: word, output: word });
    fc.assert(
      fc.property(fc.string(), fc.array(ran, { minLength: 1, maxLength: 4 }), (prompt, all) => {
        const text = [prompt, ...all.map(header)].join("\n\n");
        const commands = all.map(({ command }) => command);
        expect(readOldPrompt(text)).toEqual({ prompt, commands });
      }),
    );
  });

  it("is all text where something else follows the output", () => {
    const text = `Why?\n\n${header(RAN)}, and then?`;
    expect(readOldPrompt(text)).toEqual({ prompt: text, commands: [] });
  });

  it("is found in a line that was cut", () => {
    const text = `Why? ${header(RAN).replaceAll("\n", " ").slice(0, 50)}…`;
    expect(readOldPromptLine(text)).toBe("Why?");
  });
});
