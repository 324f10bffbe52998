import { describe, expect, it } from "vitest";
import { EXIT } from "./exit-codes.ts";
import { EXIT_MEANINGS, helpText, RUN_GROUPS, typedCommands } from "./help.ts";
import { COMMANDS, OPTIONS } from "./options.ts";

const COLUMNS = 80;
const names = typedCommands().map(([name]) => name);

describe("the help", () => {
  it("shows every option of a run once", () => {
    const shown = RUN_GROUPS.flatMap(({ options }) => options);
    expect([...shown].sort()).toEqual([...COMMANDS.run.options].sort());
    for (const name of shown) expect(helpText()).toContain(`--${name}`);
  });

  it("names the commands to type, and a run as the way without one", () => {
    for (const name of names) expect(helpText()).toMatch(new RegExp(`^  ${name} +\\w`, "m"));
    expect(helpText()).toContain('gyre -p "PROMPT"');
    expect(helpText()).not.toMatch(/gyre run\b|^  run /m);
    expect(helpText("run")).toBe(helpText());
  });

  it("tells what every exit code means", () => {
    const help = helpText().replaceAll("\n", " ");
    for (const [name, code] of Object.entries(EXIT)) {
      expect(Object.keys(EXIT_MEANINGS)).toContain(name);
      expect(help).toMatch(new RegExp(`[ ;:]${code} \\w`));
    }
  });

  it.each([undefined, ...names])("fits into 80 columns, plain, for %s", (name) => {
    const help = helpText(name);
    for (const line of help.split("\n")) expect(line.length, line).toBeLessThanOrEqual(COLUMNS);
    expect(help).toMatch(/^Usage: gyre /);
    expect(help).toMatch(/[^\n]\n$/);
    expect(help).not.toMatch(/ \n|undefined/);
  });

  it.each(names)("of %s has its options and no others", (name) => {
    const shown = [...helpText(name).matchAll(/^ {2}(?:-\w, | {4})--([\w-]+)/gm)].map(
      ([, option]) => option,
    );
    expect(shown).toEqual([...COMMANDS[name].options, "help", "version"]);
    for (const option of shown) expect(Object.keys(OPTIONS)).toContain(option);
  });
});
