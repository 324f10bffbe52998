import { describe, expect, it } from "vitest";
import { parseRace, type RaceRequest } from "./parse.ts";

const MODELS = ["sonnet", "opus", "gpt-5", "large"];

function parse(rest: string): Promise<RaceRequest> {
  return parseRace(rest, (name) =>
    MODELS.includes(name)
      ? Promise.resolve(name)
      : Promise.reject(new Error(`No model fits ${name}.`)),
  );
}

const NONE = [undefined, undefined, undefined];

describe("what follows /race", () => {
  it.each<[string, RaceRequest]>([
    ["3 fix the flaky test", { models: NONE, prompt: "fix the flaky test", withIgnored: false }],
    ["fix it", { models: NONE, prompt: "fix it", withIgnored: false }],
    ["3", { models: NONE, withIgnored: false }],
    [
      "2 large files are slow",
      { models: NONE.slice(1), prompt: "large files are slow", withIgnored: false },
    ],
    ["3 sonnet opus gpt-5", { models: ["sonnet", "opus", "gpt-5"], withIgnored: false }],
    ["sonnet opus -- fix it", { models: ["sonnet", "opus"], prompt: "fix it", withIgnored: false }],
    [
      "4 sonnet opus -- a -- b",
      { models: ["sonnet", "opus", "sonnet", "opus"], prompt: "a -- b", withIgnored: false },
    ],
    ["2 -- sonnet", { models: NONE.slice(1), prompt: "sonnet", withIgnored: false }],
    ["2 sonnet --", { models: ["sonnet", "sonnet"], withIgnored: false }],
    [
      "1 --test 'npm test' --with-ignored do\nit",
      { models: [undefined], prompt: "do\nit", test: "npm test", withIgnored: true },
    ],
    [
      '2 --test "a b" opus -- x',
      { models: ["opus", "opus"], prompt: "x", test: "a b", withIgnored: false },
    ],
    ["2 --test=make", { models: NONE.slice(1), test: "make", withIgnored: false }],
  ])("%s", async (rest, request) => {
    expect(await parse(rest)).toEqual(request);
  });

  it.each([
    ["", "/race [NUMBER]"],
    ["0 x", "1 to 8 rivals, not 0"],
    ["9 x", "1 to 8 rivals, not 9"],
    ["1 sonnet opus -- x", "2 models for 1 rivals"],
    ["3 sonet -- fix it", "No model fits sonet."],
    ["3 --tests x", "There is no option --tests"],
    ["3 --test '' x", "--test needs a command"],
  ])("%j is refused", async (rest, why) => {
    await expect(parse(rest)).rejects.toThrow(why);
  });
});
