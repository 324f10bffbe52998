import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { run } from "../../scripts/shared/command.mjs";
import { type Fence, readFences, root } from "../snippets.ts";

// The files of the page, as they stand there, in a copy of the package: they are type-checked,
// and their tests are tests of this file.

const PACKAGE = "packages/protocol/";
const page = readFileSync(join(root, "docs/contributing/add-a-transport.md"), "utf8");
const blocks = readFences(page).filter(({ note }) => note.startsWith(PACKAGE));

mkdirSync(join(root, ".tmp"), { recursive: true });
const copy = mkdtempSync(join(root, ".tmp", "transport-"));
afterAll(() => rmSync(copy, { recursive: true }));
const findPath = ({ note }: Fence): string => join(copy, note.slice(PACKAGE.length));

cpSync(join(root, PACKAGE, "src"), join(copy, "src"), {
  recursive: true,
  filter: (path) => !path.endsWith(".test.ts"),
});
for (const block of blocks) {
  const path = findPath(block);
  const isChange = block.language === "diff";
  writeFileSync(path, isChange ? applyDiff(readFileSync(path, "utf8"), block.body) : block.body);
}

/** Finds each line of the context after the one before, and inserts added lines behind it. */
function applyDiff(text: string, diff: string): string {
  const lines = text.split("\n");
  let at = 0;
  for (const change of diff.trimEnd().split("\n")) {
    const line = change.slice(1);
    if (change.startsWith("+")) {
      lines.splice(at++, 0, line);
      continue;
    }
    const found = lines.indexOf(line, at);
    if (found < 0) throw new Error(`There is no line "${line}" in what the page changes.`);
    at = found + 1;
  }
  return lines.join("\n");
}

it("needs three files, of which one is there already", () => {
  const files = blocks.map(({ note }) => note.slice(`${PACKAGE}src/node/`.length));
  expect(files.slice(0, 3)).toEqual(["unix.ts", "unix.test.ts", "transports.ts"]);
  expect(blocks.filter(({ language }) => language === "diff")).toHaveLength(1);
  expect(files.slice(3)).toEqual(["message-port.ts", "message-port.test.ts"]);
});

it("type-checks as the package does", async () => {
  const config = {
    extends: "../../tsconfig.base.json",
    compilerOptions: {
      composite: false,
      incremental: false,
      noEmit: true,
      types: ["node"],
      customConditions: ["source"],
    },
    include: blocks.map((block) => findPath(block).slice(copy.length + 1)),
  };
  writeFileSync(join(copy, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { output } = await run(process.execPath, [tsc, "-p", copy], { cwd: dirname(copy) });
  expect(output).toBe("");
});

describe("the tests of the page", async () => {
  for (const block of blocks) {
    if (block.note.endsWith(".test.ts")) await import(findPath(block));
  }
});
