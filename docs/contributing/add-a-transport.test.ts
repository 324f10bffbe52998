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
  if (block.language !== "diff") {
    writeFileSync(findPath(block), block.body);
    continue;
  }
  writeFileSync(join(copy, "page.diff"), block.body);
  // Where git finds no repository, paths are those of the folder that it runs in.
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(copy) };
  const { code, output } = await run("git", ["apply", "-p3", "page.diff"], { cwd: copy, env });
  if (code !== 0) throw new Error(`The change of the page does not apply:\n${output}`);
}

it("needs three files, of which one is there already", () => {
  const files = blocks.map(({ note }) => note.slice(`${PACKAGE}src/node/`.length));
  expect(files.slice(0, 3)).toEqual(["unix.ts", "unix.test.ts", "transports.ts"]);
  expect(blocks.filter(({ language }) => language === "diff")).toHaveLength(1);
  expect(files.slice(3)).toEqual(["message-port.ts", "message-port.test.ts"]);
  expect(readFileSync(join(copy, "src/node/transports.ts"), "utf8")).toContain(
    '  "unix:": unix,\n',
  );
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
