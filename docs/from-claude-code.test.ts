import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { CLAUDE_OPTIONS } from "../packages/cli/src/core/claude-code/options.ts";
import { builtinCommands } from "../packages/cli/src/slash-commands/builtin.ts";
import { INSTEAD } from "../packages/cli/src/slash-commands/familiar/instead.ts";
import { translateRule } from "../packages/coding/src/settings/claude/rules.ts";
import { root } from "./snippets.ts";

let page: string;
beforeAll(async () => {
  page = await readFile(join(root, "docs/from-claude-code.md"), "utf8");
});

/** The rows of a table that the program decides on. */
function listRows(name: string): readonly string[] {
  const [, part = ""] = page.split(`<!-- generated: ${name} -->\n`);
  const [table = ""] = part.split("<!-- end -->");
  const [, , ...rows] = table.trimEnd().split("\n");
  return rows;
}

it("the rules of the page become what it says", () => {
  const rows = listRows("rules");
  expect(rows.length).toBeGreaterThan(5);
  for (const row of rows) {
    const [rule = "", ...became] = [...row.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? "");
    expect([rule, translateRule("deny", rule, { cwd: "/p", home: "/home/me" })]).toEqual([
      rule,
      became,
    ]);
  }
});

it("the options of the page are those that are known, with what they are here", () => {
  const expected = Object.entries(CLAUDE_OPTIONS).map(([name, { as, isLeftOut, instead }]) => {
    const taken = as ? `\`--${as}\`` : isLeftOut ? "left out" : "";
    return `| \`--${name}\` | ${[taken, instead ?? ""].filter((text) => text !== "").join("; ")} |`;
  });
  expect(listRows("options")).toEqual(expected);
});

it("the commands of the page are those that are known by other names, and those that there are none for", () => {
  const aliases = builtinCommands.flatMap(({ name, aliases: others = [] }) =>
    others.map((other) => [other, `\`/${name}\``] as const),
  );
  const none = Object.entries(INSTEAD);
  const expected = [...aliases, ...none]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, here]) => `| \`/${name}\` | ${here} |`);
  expect(listRows("commands")).toEqual(expected);
});
