import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findCommandFiles } from "./command-files.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-commands-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

const byText = (a: string, b: string): number => (a < b ? -1 : 1);

function find(command: string | string[], cwd?: string) {
  const found = findCommandFiles([{ command, ...(cwd !== undefined && { cwd }) }], folder);
  const names = (paths: readonly string[]) =>
    paths.map((path) => relative(folder, path)).sort(byText);
  return { files: names(found.files), missing: names(found.missing) };
}

describe("the files that a command names", () => {
  it.each<[string, Record<string, string>, string[]]>([
    [
      "sh a.sh",
      { "a.sh": ". ./lib.sh\nnode tools/x.mjs --all" },
      ["a.sh", "lib.sh", "tools/x.mjs"],
    ],
    ["sh tools/a.sh", { "tools/a.sh": '. "$(dirname "$0")/b.sh"' }, ["tools/a.sh", "tools/b.sh"]],
    ["sh tools/a.sh", { "tools/a.sh": 'source "$HERE/b.sh"' }, ["tools/a.sh", "tools/b.sh"]],
    ["sh tools/a.sh", { "tools/a.sh": "bash ${DIR}/b.sh" }, ["tools/a.sh", "tools/b.sh"]],
    [
      "sh a.sh",
      { "a.sh": "sh tools/b.sh", "tools/b.sh": "python3 helper.py" },
      ["a.sh", "helper.py", "tools/b.sh"],
    ],
    ["./run", { run: "#!/bin/bash\n./lib.sh" }, ["lib.sh", "run"]],
    [
      "make lint",
      { Makefile: "include more.mk\nlint:\n\tsh lib.sh\n", "more.mk": "" },
      ["Makefile", "lib.sh", "more.mk"],
    ],
    [
      "python3 tools/s.py",
      { "tools/s.py": "import os, near\nfrom pkg.deep import thing" },
      ["pkg/__init__.py", "pkg/deep.py", "tools/near.py", "tools/s.py"],
    ],
    [
      "python3 pkg/s.py",
      { "pkg/s.py": "from . import deep\nfrom ..helper import x" },
      ["helper.py", "pkg/deep.py", "pkg/s.py"],
    ],
    [
      "sh a.sh",
      { "a.sh": "npm run go", "package.json": '{"scripts":{"go":"sh lib.sh"}}' },
      ["a.sh", "lib.sh", "package.json"],
    ],
    // What a script only reads is the agent's to change.
    [
      "sh a.sh",
      { "a.sh": "# make sure\ncat README.md src/index.ts > out.txt", Makefile: "" },
      ["a.sh"],
    ],
    ["npx eslint .", { "eslint.config.mjs": "" }, ["eslint.config.mjs"]],
    ["prettier --write .", { ".prettierrc.cjs": "" }, [".prettierrc.cjs"]],
  ])("and what these run in turn: %s", (command, files, expected) => {
    write({
      ...{
        "lib.sh": "",
        "tools/x.mjs": "",
        "tools/b.sh": "",
        "tools/near.py": "",
        "helper.py": "",
      },
      ...{ "pkg/__init__.py": "", "pkg/deep.py": "", "README.md": "", "src/index.ts": "" },
      ...files,
    });
    expect(find(command).files).toEqual(expected);
  });

  it("knows a script that another would run if it were there", () => {
    write({ "tools/a.sh": "[ -f tools/later.sh ] && . tools/later.sh" });
    expect(find("sh tools/a.sh").missing).toContain("tools/later.sh");
  });

  it.each<[string | string[], string[]]>([
    ["sh scripts/format.sh --all", ["scripts/format.sh"]],
    ["cd scripts && ./format.sh", ["scripts/format.sh"]],
    ['sh "$GYRE_PROJECT_DIR/scripts/format.sh"', ["scripts/format.sh"]],
    ["sh 'a b/c d.sh'", ["a b/c d.sh"]],
    [["node", "./tools/server.mjs"], ["tools/server.mjs"]],
    [["node", "--import=./tools/server.mjs", "x"], ["tools/server.mjs"]],
    [["node", "tools/server2"], ["tools/server2.js"]],
    [["sh", "-c", "exec node tools/server.mjs"], ["tools/server.mjs"]],
    [["sh", "a b/c d.sh"], ["a b/c d.sh"]],
    [["python3", "-m", "pkg.server"], ["pkg/server.py"]],
    [
      ["node", "."],
      ["package.json", "tools/server2.js"],
    ],
    ["make lint", ["Makefile"]],
    ["eslint . --config /etc/passwd ../x", []],
    [["sqlite-server", "--db", "data.sqlite"], []],
  ])("%j", (command, files) => {
    write({
      "scripts/format.sh": "",
      "a b/c d.sh": "",
      "tools/server.mjs": "",
      "tools/server2.js": "",
      "pkg/server.py": "",
      "data.sqlite": "",
      Makefile: "",
      "package.json": JSON.stringify({ main: "tools/server2" }),
    });
    expect(find(command).files).toEqual(files);
  });

  it("are the manifest of a package manager, and what its script names in turn", () => {
    const scripts = { lint: "npm run -s real", real: "node scripts/lint.mjs", other: "sh no.sh" };
    write({
      "package.json": JSON.stringify({ scripts }),
      "scripts/lint.mjs": "",
      "no.sh": "",
      "node_modules/.bin/tool": "",
    });
    expect(find("npm run -s lint").files).toEqual(["package.json", "scripts/lint.mjs"]);
    expect(find("npx tool").files).toEqual(["node_modules/.bin/tool", "package.json"]);
    write({
      "node_modules/@s/t/package.json": JSON.stringify({ bin: { t: "cli.js" } }),
      "node_modules/@s/t/cli.js": "",
    });
    expect(find(["npx", "-y", "@s/t@1.0.0"]).files).toEqual([
      "node_modules/@s/t/cli.js",
      "node_modules/@s/t/package.json",
      "package.json",
    ]);
    expect(find("npm run lint").missing).toContain(".npmrc");
  });

  it("are looked for where it runs, and may be missing yet", () => {
    write({ "sub/run.sh": "", "package.json": "{" });
    expect(find("sh run.sh", join(folder, "sub")).files).toEqual(["sub/run.sh"]);
    expect(find("sh later.sh")).toEqual({ files: [], missing: ["later.sh"] });
    expect(find("npm test").files).toEqual(["package.json"]);
  });
});
