import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../snippets.ts";

it("every defect has a test of that title, and commits", () => {
  const page = readFileSync(join(root, "docs/contributing/defects.md"), "utf8");
  const [, table = ""] = page.split("|---|---|---|---|---|\n");
  const rows = table.split("\n").filter((line) => line !== "" && !line.startsWith("| **"));
  expect(rows.length).toBeGreaterThan(140);
  const wrong = rows.filter((line) => {
    const row =
      /^\| .+ \| \[[\w./-]+\]\(\.\.\/\.\.\/([^)]+)\): "(.+?)"(?:, with `.+`)? \| \w{7,} \| (?:\w{7,}|the same) \| (?:yes|by construction) \|$/.exec(
        line,
      );
    const [, file = "", title = ""] = row ?? [];
    const path = join(root, file);
    return !row || !existsSync(path) || !readFileSync(path, "utf8").includes(title);
  });
  expect(wrong).toEqual([]);
});
