import { describe, expect, it } from "vitest";
import { EXIT } from "../core/exit-codes.ts";
import { EXIT_MEANINGS, helpText, RUN_GROUPS, typedCommands } from "./help.ts";
import { COMMANDS, OPTIONS } from "../core/options.ts";
import { DEFAULT_TOOLS, OTHER_TOOLS } from "@gyre/coding/internal/core/tool-lists";

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

  it("says what every exit code means", () => {
    const help = helpText().replaceAll("\n", " ");
    for (const [name, code] of Object.entries(EXIT)) {
      expect(Object.keys(EXIT_MEANINGS)).toContain(name);
      expect(help).toMatch(new RegExp(`[ ;:]${code} \\w`));
    }
  });

  it("lists the tools, and says when nothing is asked", () => {
    const help = helpText().replaceAll("\n", " ");
    expect(help).toContain(`Without --tools it has ${DEFAULT_TOOLS.join(", ")}`);
    for (const tool of OTHER_TOOLS) expect(help).toContain(tool);
    expect(help).toContain("With -p, --output or --schema, and in a pipe, there are no questions");
  });

  it("says of an option what it does for that very command", () => {
    expect(helpText("sessions")).toMatch(/--all +those of all folders/);
    expect(helpText("models")).toMatch(/--all +also those of services without a key/);
  });

  it.each(["sessions", "mcp"] as const)("explains each word that %s takes", (name) => {
    const { takes, verbs } = COMMANDS[name];
    expect(Object.keys(verbs)).toEqual(takes.match(/\b[a-z]+\b/g));
    for (const [verb, { about }] of Object.entries(verbs)) {
      expect(helpText(name)).toMatch(new RegExp(`^ {2}${verb}\\b.* ${about.slice(0, 20)}`, "m"));
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
