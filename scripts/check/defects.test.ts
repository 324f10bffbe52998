import { expect, it } from "vitest";
import { checkDefects, readDefects } from "./defects.mjs";
import { plant } from "../shared/tree.ts";

const HEAD = ["| defect | test | red at | test of | seen red |", "|---|---|---|---|---|"];
const TEST = '[a.test.ts](../../packages/a/a.test.ts): "works"';

const plantRows = (...rows: readonly string[]): string =>
  plant({
    "docs/contributing/defects.md": [...HEAD, "| **Commands** | | | | |", ...rows, ""].join("\n"),
    "packages/a/a.test.ts": 'it("works", () => {});\n',
  });

it("reads commits, and how a fix was taken out", () => {
  const root = plantRows(
    `| It broke | ${TEST} | 1234567 | 89abcde | yes |`,
    `| It broke again | ${TEST}, with \`x\` | 1234567 | the same | yes, without \`y\` |`,
  );
  const shared = { file: "packages/a/a.test.ts", title: "works", redAt: "1234567" };
  expect(readDefects(root)).toEqual({
    defects: [
      { ...shared, defect: "It broke", testOf: "89abcde" },
      { ...shared, defect: "It broke again", testOf: "1234567", change: "without `y`" },
    ],
    unread: [],
  });
  expect(checkDefects(root).problems).toEqual([]);
});

it("reports tests that do not exist, and rows without a commit at which a test was seen to fail", () => {
  const root = plantRows(
    `| One | ${TEST.replace("works", "wins")} | 1234567 | the same | yes |`,
    `| Two | ${TEST.replaceAll("a.test", "b.test")} | 1234567 | the same | yes |`,
    `| Three | ${TEST} | 1234567 | the same | no |`,
  );
  expect(checkDefects(root).problems).toEqual([
    expect.stringContaining("this is no row of a defect: | Three |"),
    'docs/contributing/defects.md: packages/a/a.test.ts has no test "wins".',
    "docs/contributing/defects.md: packages/a/b.test.ts does not exist (Two).",
  ]);
});

it("reports a page without rows", () => {
  expect(checkDefects(plantRows()).problems).toEqual(["docs/contributing/defects.md has no rows."]);
});
