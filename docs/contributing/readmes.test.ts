import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../snippets.ts";

it.each(["ai", "agent", "tools", "mcp", "coding", "cli"])(
  "the README of %s has a row for each of its folders",
  (name) => {
    const page = readFileSync(join(root, "packages", name, "README.md"), "utf8");
    const [, section = ""] = page.split(/^## Folders$/m);
    const [, table = ""] = /\n\|---\|---\|\n((?:\|.*\n)+)/.exec(section) ?? [];
    const rows = [...table.matchAll(/^\| `([\w-]+)` \|/gm)].map((match) => match[1] ?? "");
    const folders = readdirSync(join(root, "packages", name, "src"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
    expect(rows.toSorted()).toEqual(folders.toSorted());
  },
);

it("CONTRIBUTING.md says where each thing is", () => {
  const page = readFileSync(join(root, "CONTRIBUTING.md"), "utf8");
  const rows = [...page.matchAll(/^\| .* \| `(\w+)` \| \[[\w.-]+\]\(([^)]+)\).* \|$/gm)];
  expect(rows.length).toBeGreaterThan(10);
  const missing = rows.filter(
    ([, name = "", file = ""]) => !readFileSync(join(root, file), "utf8").includes(name),
  );
  expect(missing.map(([row]) => row)).toEqual([]);
});
