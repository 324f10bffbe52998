import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { filesThatRun } from "./files-that-run.ts";
import type { Settings } from "./settings.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-files-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

function names(settings: Settings): string[] {
  return filesThatRun(settings, folder)
    .map(({ name }) => name)
    .sort();
}

const plugin = (path: string): Settings => ({ plugins: [join(folder, path)] });

describe("what is trusted with a plugin", () => {
  it("is the file and all that it imports by a path, and those in turn", () => {
    write({
      ".gyre/mine.mjs": `
        import { a } from "./lib/a.mjs";
        import './side.mjs';
        export * from "../shared/b.js";
        const c = await import("./c.mjs");
        const d = require('./d');
        const data = readFileSync(new URL("./data.json", import.meta.url));
        const gone = "./gone.mjs";
      `,
      ".gyre/lib/a.mjs": `import"./../lib/deep.mjs"; import "./a.mjs"; import "../mine.mjs"`,
      ".gyre/lib/deep.mjs": "",
      ".gyre/side.mjs": "",
      "shared/b.js": "",
      ".gyre/c.mjs": "",
      ".gyre/d.cjs": "",
      ".gyre/data.json": `{"file": "./not-code.mjs"}`,
      ".gyre/not-code.mjs": "",
      ".gyre/unused.mjs": "",
    });
    expect(names(plugin(".gyre/mine.mjs"))).toEqual([
      ".gyre/c.mjs",
      ".gyre/d.cjs",
      ".gyre/data.json",
      ".gyre/lib/a.mjs",
      ".gyre/lib/deep.mjs",
      ".gyre/mine.mjs",
      ".gyre/side.mjs",
      "shared/b.js",
    ]);
  });

  it.each([
    ['import "./h.mjs?x=1"', "h.mjs"],
    ['import "./h.mjs#x"', "h.mjs"],
    ['import "./%68.mjs"', "h.mjs"],
    ['require(".")', "index.js"],
    ['require("./lib")', "lib/foo.js"],
    ['require("./addon")', "addon.node"],
    ['import "ROOT/h.mjs"', "h.mjs"],
    ['import "file://ROOT/h.mjs?x"', "h.mjs"],
    ["import(`dep`)", "node_modules/dep/package.json"],
    ['require.resolve("dep")', "node_modules/dep/package.json"],
  ])("is what Node takes %s for", (text, file) => {
    write({
      "mine.mjs": text.replace("ROOT", folder),
      "h.mjs": "",
      "index.js": "",
      "lib/package.json": `{"main": "foo"}`,
      "lib/foo.js": "",
      "addon.node": "",
      "node_modules/dep/package.json": "{}",
    });
    expect(names(plugin("mine.mjs"))).toContain(file);
  });

  it("is each package that it imports by name, whole, with what those need", () => {
    write({
      "mine.mjs": `import fs from "node:fs"; import path from "path"; import x from "x/sub.js";
        const y = await import(/* later */ '@y/y'); import z from "not-installed";`,
      "node_modules/x/package.json": `{"name": "x", "dependencies": {"z": "1"}}`,
      "node_modules/x/sub.js": "",
      "node_modules/x/deep/other.js": `require("undeclared")`,
      "node_modules/@y/y/package.json": `{"name": "@y/y"}`,
      "node_modules/z/package.json": `{"name": "z"}`,
      "node_modules/undeclared/package.json": "{}",
      "node_modules/unused/package.json": "{}",
    });
    expect(names(plugin("mine.mjs"))).toEqual([
      "mine.mjs",
      "node_modules/@y/y/package.json",
      "node_modules/undeclared/package.json",
      "node_modules/x/deep/other.js",
      "node_modules/x/package.json",
      "node_modules/x/sub.js",
      "node_modules/z/package.json",
    ]);
  });

  it("of a package is all that is in it, used or not", () => {
    write({
      "node_modules/p/package.json": `{"name": "p", "main": "main.js"}`,
      "node_modules/p/main.js": "",
      "node_modules/p/other.txt": "",
      "node_modules/p/node_modules/inner/package.json": "{}",
    });
    expect(names(plugin(".gyre/node_modules/p"))).toEqual([
      "node_modules/p/main.js",
      "node_modules/p/other.txt",
      "node_modules/p/package.json",
    ]);
  });

  it("behind a link is what Node would load", () => {
    write({ "real/mine.mjs": `import "./beside.mjs"`, "real/beside.mjs": "", "beside.mjs": "" });
    symlinkSync(join(folder, "real/mine.mjs"), join(folder, "mine.mjs"));
    expect(names(plugin("mine.mjs"))).toEqual(["real/beside.mjs", "real/mine.mjs"]);
  });

  it("is nothing where it is not there", () => {
    expect(names(plugin("gone.mjs"))).toEqual([]);
  });

  it("cannot be found where imports go through a table, a pipe or a folder elsewhere", () => {
    write({
      "table.mjs": `import x from "#x"`,
      "p/package.json": `{"main": "m.js"}`,
      "p/m.js": "",
    });
    expect(() => names(plugin("table.mjs"))).toThrow('imports "#x", which is not followed');
    write({
      "own/package.json": `{"name": "own", "exports": {"./h.mjs": "./h.mjs"}}`,
      "own/h.mjs": "",
      "own/mine.mjs": `import "own/h.mjs"`,
    });
    expect(() => names(plugin("own/mine.mjs"))).toThrow('imports its own package "own"');
    execFileSync("mkfifo", [join(folder, "pipe.mjs")]);
    expect(() => names(plugin("pipe.mjs"))).toThrow("is not a file");
    symlinkSync(tmpdir(), join(folder, "p/elsewhere"));
    expect(() => names(plugin("p"))).toThrow("neither a file nor a folder");
  });
});

describe("what is trusted with a hook", () => {
  it.each([
    [".gyre/hooks/check.sh --all"],
    ['"$GYRE_PROJECT_DIR"/.gyre/hooks/check.sh'],
    ['sh "${CLAUDE_PROJECT_DIR}/.gyre/hooks/check.sh" && echo done'],
    [["sh", ".gyre/hooks/check.sh"]],
  ])("is the script in .gyre that it names: %j", (command) => {
    write({ ".gyre/hooks/check.sh": "exit 0", "src/main.ts": "" });
    expect(names({ hooks: { Stop: [{ command }] } })).toEqual([".gyre/hooks/check.sh"]);
  });

  it("is each file of the project that it names, with the modules that those import", () => {
    write({
      "scripts/a.mjs": `import "./b.mjs"; import "dep"; import "#x"`,
      "scripts/b.mjs": `import "./a.mjs"`,
      "scripts/c.mjs": "",
      "node_modules/dep/package.json": "{}",
    });
    const command = "node scripts/a.mjs";
    expect(names({ hooks: { Stop: [{ command }] } })).toEqual(["scripts/a.mjs", "scripts/b.mjs"]);
  });
});

describe("what is trusted with a server", () => {
  it("is each file that its program, arguments and variables name", () => {
    write({ "tools/server.mjs": "", "tools/hook.cjs": "", "sub/x.mjs": "" });
    const args = ["./tools/server.mjs"];
    const env = { NODE_OPTIONS: "--require ./tools/hook.cjs" };
    expect(names({ mcp: { a: { command: "node", args, env } } })).toEqual([
      "tools/hook.cjs",
      "tools/server.mjs",
    ]);
    expect(names({ mcp: { a: { command: "node", args: ["x.mjs"], cwd: "sub" } } })).toEqual([
      "sub/x.mjs",
    ]);
    expect(names({ mcp: { a: { type: "http", url: "https://x.test/tools/server.mjs" } } })).toEqual(
      [],
    );
  });
});
