import { describe, expect, it } from "vitest";
import { COMMANDS, OPTIONS, type OptionName } from "../options.ts";
import { CLAUDE_OPTIONS, translateOptions } from "./options.ts";

const RUN: readonly OptionName[] = COMMANDS.run.options;
const translate = (...args: string[]): readonly string[] => translateOptions(args, RUN);

describe("options of Claude Code", () => {
  it.each<[string[], string[]]>([
    [
      ["-p", "Go", "--output-format", "stream-json"],
      ["-p", "Go", "--output=claude"],
    ],
    [
      ["--output-format=text", "x"],
      ["--output=text", "x"],
    ],
    [["--permission-mode", "acceptEdits"], ["--mode=acceptEdits"]],
    [
      ["--fork-session", "-c"],
      ["--fork", "-c"],
    ],
    [["--max-budget-usd", "2"], ["--max-cost=2"]],
    [["--input-format", "text", "-p"], ["-p"]],
    [
      ["--", "--effort", "high"],
      ["--", "--effort", "high"],
    ],
    [
      [
        "--allowedTools",
        "Bash(git log:*) Read",
        "Edit(src/**),WebFetch(domain:a.org)",
        "Say hello.",
      ],
      [
        "--allow=Bash(git log:*)",
        "--allow=Read",
        "--allow=Edit(src/**)",
        "--allow=WebFetch(domain:a.org)",
        "Say hello.",
      ],
    ],
    [["--disallowed-tools", "shell(rm *)"], ["--deny=shell(rm *)"]],
  ])("%j are %j", (given, expected) => {
    expect(translate(...given)).toEqual(expected);
  });

  it.each([
    [["--dangerously-skip-permissions"], "`--mode full`"],
    [["--output-format", "json"], "`--output claude`"],
    [["--settings", "x.json"], "`--config FILE`"],
    [["--json-schema", "{}"], "`--schema FILE`"],
    [["--input-format", "stream-json"], "`gyre rpc`"],
    [["--debug"], "`--verbose`"],
    [["--allowedTools"], "needs a value"],
  ])("%j says what to do instead", (given, hint) => {
    expect(() => translate(...given)).toThrow(hint);
  });

  it("have hints that name no option which the command refuses", () => {
    for (const [name, { isBare }] of Object.entries(CLAUDE_OPTIONS)) {
      for (const { options } of Object.values(COMMANDS)) {
        const known: readonly OptionName[] = options;
        let message = "";
        try {
          translateOptions([`--${name}`, ...(isBare ? [] : ["?"])], known);
        } catch (error) {
          message = error instanceof Error ? error.message : "";
        }
        const named = [...message.matchAll(/`--([a-z-]+)/g)].map(([, each]) => each);
        for (const each of named) expect(known).toContain(each);
      }
      expect(Object.keys(OPTIONS)).not.toContain(name);
    }
  });
});
