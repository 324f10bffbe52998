import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Script } from "node:vm";
import ignore from "ignore";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseGlob } from "./globs.ts";
import { walk } from "./walk.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

let root: string;
let workspace: Workspace;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "gyre-ignore-"));
  workspace = await openWorkspace(root);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await workspace.close();
  rmSync(root, { recursive: true, force: true });
});

function make(path: string, text = ""): void {
  mkdirSync(join(root, dirname(path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

async function listFiles(): Promise<string[]> {
  const { signal } = new AbortController();
  const files: string[] = [];
  for await (const entries of walk(workspace, "", { signal })) {
    files.push(...entries.filter(({ kind }) => kind === "file").map(({ path }) => path));
  }
  return files;
}

describe("rules of ignore files", () => {
  // Each has its last name in another form: only of some it can be said which names it matches.
  const texts = [
    "*.log\n!keep.log\nout/\n",
    "/a/b\na/*/x.ts\n**/*.tmp\n",
    "a/**\n!a/b/\n",
    "**/b/**\n",
    "a/#x\n#a\n",
    "a/!x\n\\!x\n",
    "[a/b]x\n",
    "x\\ \ny  \n",
    "b/ \n\t\n",
    "*\n!*/\n!*.ts\n",
    "/*\n!/b\n",
    "a//b\n/\n",
    "x.ts\r\nout/\r\n",
    "a/b*/x*\n***\n!b\n",
  ];
  const names = ["x", "y", "x ", "#x", "!x", "x.ts", "keep.log", "other.log", "c.tmp", "ax", "b"];

  it.each(texts)("hold as in git: %j", async (text) => {
    for (const folder of ["", "a/", "a/b/", "a/b/c/", "b/", "out/", "c/out/", "c/a/b/"]) {
      for (const name of names) {
        if (name !== "b" || folder === "b/" || folder.endsWith("/c/")) make(folder + name);
      }
    }
    make(".gitignore", text);
    execFileSync("git", ["init", "-q"], { cwd: root });
    const args = ["ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"];
    const listed = execFileSync("git", args, { cwd: root, encoding: "utf8" });
    const expected = listed.split("\0").filter((path) => path !== "");
    expect((await listFiles()).sort()).toEqual(expected.sort());
  });

  it("are asked about paths only where a name is that of a rule", async () => {
    for (let folder = 0; folder < 20; folder++) {
      for (let file = 0; file < 10; file++) make(`folder-${folder}/${file}.ts`);
      make(`folder-${folder}/file.log`);
    }
    make(".gitignore", "*.log\ndist/\n/folder-7/generated\n");
    const test = vi.spyOn(Object.getPrototypeOf(ignore()), "test");
    expect(await listFiles()).toHaveLength(201);
    const paths = test.mock.calls.map(String).filter((path) => path.includes("/"));
    expect(paths).toEqual(Array.from({ length: 20 }, () => expect.stringMatching(/\.log$/)));
  });
});

describe("a pattern of find", () => {
  it("starts a thread that limits its time only where a match could take long", () => {
    const run = vi.spyOn(Script.prototype, "runInContext");
    const paths = Array.from({ length: 1000 }, (_, index) => `packages/one/src/${index}.ts`);
    for (const pattern of ["*.ts", "**/*.ts", "packages/*/src/1?.ts"]) {
      expect(parseGlob(pattern, root).filter(paths)).toContain(true);
    }
    expect(run).not.toHaveBeenCalled();
    for (const pattern of ["*a*b*c*d*e*f", "{a,b}.ts"]) parseGlob(pattern, root).filter(paths);
    expect(run).toHaveBeenCalledTimes(2);
  });
});
