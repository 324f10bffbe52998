import { toResult } from "@gyre/agent";
import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { modelText } from "../testing/model-text.ts";
import { openToolset, type Toolset } from "../toolset.ts";

const page = readFileSync(new URL("../../../../docs/workspace-tools.md", import.meta.url), "utf8");
const section = page.split("### Commands that work in it\n")[1]?.split("\n#")[0] ?? "";
const rows = [...section.matchAll(/^\| (\w+) \| `([^`]+)` \|/gm)].map(
  ([, program = "", command = ""]) => ({ program, command }),
);

const FILES = {
  "package.json": '{"name":"whole","version":"1.0.0","scripts":{"test":"node --test"}}',
  "part/package.json": '{"name":"part","version":"1.0.0","bin":"part.js"}',
  "part/part.js": "#!/usr/bin/env node\nconsole.log(1);\n",
  "a.test.js": 'require("node:test").test("a", () => {});\n',
  "test_a.py": "import unittest\nclass A(unittest.TestCase):\n  def test_a(self): pass\n",
  Makefile: "all:\n\techo built > built\n",
  "crate/Cargo.toml": '[package]\nname = "crate"\nversion = "1.0.0"\n',
  "crate/src/main.rs": 'fn main() { println!("1"); }\n',
};
const TIMEOUT_MS = 120_000;

let folder: string;
let tools: Toolset;

beforeAll(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "gyre-commands-")));
  const root = join(folder, "work");
  for (const [name, text] of Object.entries(FILES)) {
    await mkdir(join(root, name, ".."), { recursive: true });
    await writeFile(join(root, name), text);
  }
  tools = await openToolset({ root, tools: ["shell"], stateFolder: join(folder, "state") });
});
afterAll(async () => {
  await tools.close();
  await rm(folder, { recursive: true, force: true });
});

function isAtHand(program: string): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    // Not installed: its rows are for machines that have it.
    return false;
  }
}

describe("commands of developers in the sandbox", { tags: "bubblewrap" }, () => {
  it("are at least 20, of at least three kinds", () => {
    expect(rows.length).toBeGreaterThanOrEqual(20);
    expect(new Set(rows.map(({ program }) => program)).size).toBeGreaterThanOrEqual(3);
  });

  // In the order of the table: later ones use what earlier ones made.
  for (const { program, command } of rows) {
    it.runIf(isAtHand(program))(`runs ${command}`, { timeout: TIMEOUT_MS }, async () => {
      const result = await tools.registry.get("shell").execute(
        { command },
        {
          id: "1",
          signal: new AbortController().signal,
          update: () => {},
          host: { call: () => Promise.reject(new Error("not here")) },
          messages: [],
        },
      );
      if (typeof result === "string") throw new Error("a plain string");
      expect(modelText(toResult("shell", result))).toMatch(/^Exit code 0\./);
    });
  }
});
