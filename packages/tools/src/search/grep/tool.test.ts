import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "@gyre/ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolEnv } from "../../contract/env.ts";
import {
  GREP_DEFAULT_LIMIT,
  GREP_MAX_BYTES,
  GREP_MAX_PATTERN_CHARS,
  GREP_TIMEOUT_MS,
  type GrepDetails,
  grepTool,
  type GrepToolOptions,
} from "./tool.ts";
import { ripgrepPath } from "../ripgrep.ts";
import { createSandbox, noSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { SeenFiles } from "../../workspace/seen.ts";
import { openWorkspace } from "../../workspace/workspace.ts";
import { countCases } from "../../../../../tests/support/cases.ts";
import { modelText } from "../../testing/model-text.ts";

let root: string;
let spool: string;
let env: ToolEnv;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "gyre-grep-"));
  spool = await mkdtemp(join(tmpdir(), "gyre-spool-"));
  env = {
    workspace: await openWorkspace(root),
    seen: new SeenFiles(),
    sandbox: () => Promise.resolve(noSandbox),
    spoolFolder: spool,
    environment: { PATH: process.env["PATH"] ?? "" },
    clock: systemClock,
  };
});

afterEach(async () => {
  await env.workspace.close();
  await rm(root, { recursive: true, force: true });
  await rm(spool, { recursive: true, force: true });
});

async function put(path: string, data: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), data);
}

type Args = Record<string, unknown>;

async function run(
  args: Args,
  options: GrepToolOptions,
): Promise<{ text: string; details: GrepDetails }> {
  const { signal } = new AbortController();
  const host = { call: () => Promise.reject(new Error("no")) };
  const result = await grepTool(env, options).execute(args, {
    id: "1",
    signal,
    update: () => {},
    host,
    messages: [],
  });
  if (typeof result === "string") throw new TypeError("a plain string");
  const text = modelText(result);
  return {
    text: text.replace(/^<\/?source [^\n]*\n?/gm, ""),
    details: result.details as GrepDetails,
  };
}

/** Runs a search both ways, expects the same, and gives it. */
async function grep(args: Args, options: GrepToolOptions = {}): Promise<string[]> {
  const quick = await run(args, options);
  const slow = await run(args, { ...options, ripgrep: null });
  expect(quick.details.engine).toBe("ripgrep");
  expect(slow.details.engine).toBe("javascript");
  expect(slow.text).toBe(quick.text);
  expect({ ...slow.details, engine: "ripgrep" }).toEqual(quick.details);
  return quick.text.trimEnd().split("\n");
}

describe("matches", () => {
  it("are shown as path:line: text, in the order of paths", async () => {
    await put("b.txt", "one\nneedle two\nthree needle\n");
    await put("a/z.txt", "needle");
    await put("a.txt", "no\r\nneedle\r\n");
    expect(await grep({ pattern: "needle" })).toEqual([
      "a/z.txt:1: needle",
      "a.txt:2: needle",
      "b.txt:2: needle two",
      "b.txt:3: three needle",
    ]);
  });

  it("can be shown by the names of their files alone", async () => {
    await put("a", "x\nx\n");
    await put("b", "y\n");
    await put("c", "x\n");
    expect(await grep({ pattern: "x", filesOnly: true })).toEqual(["a", "c"]);
  });

  it("come with the lines around them", async () => {
    await put("a", "1\n2\nx3\n4\n5\n6\n7\nx8\nx9\n");
    await put("b", "x\n");
    expect(await grep({ pattern: "x", context: 1 })).toEqual([
      "a-2- 2",
      "a:3: x3",
      "a-4- 4",
      "--",
      "a-7- 7",
      "a:8: x8",
      "a:9: x9",
      "--",
      "b:1: x",
    ]);
  });

  it("are looked for as text, or in any case, if asked to", async () => {
    await put("a", "a.b(c\nA.B(C\naxb(c\n");
    expect(await grep({ pattern: "a.b(c", literal: true })).toEqual(["a:1: a.b(c"]);
    expect(await grep({ pattern: "a.b(c", literal: true, ignoreCase: true })).toHaveLength(2);
    expect(await grep({ pattern: "A.B\\(", ignoreCase: true })).toHaveLength(3);
  });

  it("are none, and that is said", async () => {
    await put("a", "x\n");
    expect(await grep({ pattern: "y" })).toEqual(['No line matches "y" in ..']);
  });
});

describe("where", () => {
  it("a path may be a folder or a file, and a glob narrows it", async () => {
    await put("src/a.ts", "x\n");
    await put("src/deep/b.ts", "x\n");
    await put("src/c.md", "x\n");
    await put("d.ts", "x\n");
    expect(await grep({ pattern: "x", path: "src" })).toHaveLength(3);
    expect(await grep({ pattern: "x", path: "src/c.md" })).toEqual(["src/c.md:1: x"]);
    expect(await grep({ pattern: "x", glob: "*.ts" })).toHaveLength(3);
    expect(await grep({ pattern: "x", glob: "src/*.ts" })).toEqual(["src/a.ts:1: x"]);
    expect(await grep({ pattern: "x", path: "src", glob: "deep/**" })).toEqual([
      "src/deep/b.ts:1: x",
    ]);
  });

  it("ignore files count, with a glob too; hidden files are searched, .git is not", async () => {
    await put(".gitignore", "dist/\ngenerated.ts\n");
    await put("dist/a.ts", "x\n");
    await put("generated.ts", "x\n");
    await put(".git/config", "x\n");
    await put(".hidden/a.ts", "x\n");
    expect(await grep({ pattern: "x", glob: "*.ts" })).toEqual([".hidden/a.ts:1: x"]);
    expect(await grep({ pattern: "x", path: "dist" })).toEqual(["dist/a.ts:1: x"]);
    expect(await grep({ pattern: "x", path: "generated.ts" })).toEqual(["generated.ts:1: x"]);
  });

  it("links are not followed, out or in", async () => {
    await put("a", "root:\n");
    await symlink("/etc/passwd", join(root, "out"));
    await symlink("a", join(root, "in"));
    expect(await grep({ pattern: "root:" })).toEqual(["a:1: root:"]);
    await expect(run({ pattern: "root", path: "out" }, {})).rejects.toThrow("leads out");
  });

  it("names that look like options, or go over two lines, are names", async () => {
    await put("--help", "x\n");
    await put("two\nlines", "x\n");
    await put("~", "x\n");
    expect(await grep({ pattern: "x" })).toEqual(["--help:1: x", '"two\\nlines":1: x', "~:1: x"]);
    expect(await grep({ pattern: "--files" })).toHaveLength(1);
  });
});

describe("odd files", () => {
  it("binary ones are left out; a NUL far in does not make one", async () => {
    await put("a.bin", "needle\n\0\nneedle\n");
    await put("b.txt", `needle 1\n${"pad\n".repeat(40_000)}needle 2\n\0\nneedle 3\n`);
    expect(await grep({ pattern: "needle" })).toEqual([
      "b.txt:1: needle 1",
      "b.txt:40002: needle 2",
      "b.txt:40004: needle 3",
    ]);
  });

  it("huge ones are left out by their first bytes or size, which is reported", async () => {
    await put("a.img", "");
    await truncate(join(root, "a.img"), 100_000_000_000);
    await put("b.log", "needle\n");
    await truncate(join(root, "b.log"), 100_000_000_000);
    await put("b2.log", "needle pad\n".repeat(2_000));
    await truncate(join(root, "b2.log"), 100_000_000_000);
    await put("c.txt", "needle\n");
    const options = { timeoutMs: 15_000 };
    expect(await grep({ pattern: "needle", glob: "[abc].*" }, options)).toEqual([
      "c.txt:1: needle",
      "[2 files were left out, as too large to search: a.img (93 GB), b.log (93 GB).]",
    ]);
    expect(await grep({ pattern: "needle", path: "b2.log" }, options)).toEqual([
      'No line matches "needle" in b2.log.',
      "[1 file was left out, as too large to search: b2.log (93 GB).]",
    ]);
  });

  it.skipIf(process.platform === "win32")("a pipe is refused without waiting", async () => {
    execFileSync("mkfifo", [join(root, "pipe")]);
    await put("c.txt", "needle\n");
    const options = { timeoutMs: 15_000 };
    for (const ripgrep of [undefined, null]) {
      const given = { ...options, ...(ripgrep === null && { ripgrep }) };
      await expect(run({ pattern: "needle", path: "pipe" }, given)).rejects.toThrow("Name a file");
    }
    expect(await grep({ pattern: "needle" }, options)).toEqual(["c.txt:1: needle"]);
  });

  it("UTF-16, byte order marks and bytes that are no UTF-8 are searched", async () => {
    await put("le", Buffer.from("\ufeffgrüße\nneedle ä\n", "utf16le"));
    await put("be", Buffer.from("\ufeffneedle\n", "utf16le").swap16());
    await put("mark", "\ufeffneedle\nneedle\n");
    await put("latin", Buffer.from("caf\xe9 needle \xff\xff\n", "latin1"));
    expect(await grep({ pattern: "^needle|needle" })).toEqual([
      "be:1: needle",
      "latin:1: caf\ufffd needle \ufffd\ufffd",
      "le:2: needle ä",
      "mark:1: needle",
      "mark:2: needle",
    ]);
  });

  it("long lines are cut around the match", async () => {
    await put("a.js", `${"x".repeat(3000)}needle${"y".repeat(3000)}\nneedle${"z".repeat(600)}\n`);
    const [first = "", second = ""] = await grep({ pattern: "needle" });
    expect(first).toBe(
      `a.js:1: …${"x".repeat(100)}needle${"y".repeat(394)}… [cut: 6,006 characters]`,
    );
    expect(second).toBe(`a.js:2: needle${"z".repeat(494)}… [cut: 606 characters]`);
  });

  it("a line of megabytes is no problem", async () => {
    await put("a.js", `${"😀".repeat(1_000_000)}needle`);
    const [line = ""] = await grep({ pattern: "needle" });
    expect(line).toContain("😀needle [cut: 2,000,006 characters]");
    expect(Buffer.from(line).toString()).toBe(line);
  });
});

describe("limits", () => {
  it("100 matches are shown, and what to do for more is said", async () => {
    await put("a", "x\n".repeat(60));
    await put("b", "x\n".repeat(60));
    const lines = await grep({ pattern: "x" });
    expect(lines.slice(0, -1)).toHaveLength(GREP_DEFAULT_LIMIT);
    expect(lines.at(-1)).toBe(
      "[There are more matches than shown. Use a narrower pattern, path or glob, or limit up to 1000 to see them.]",
    );
    expect(await grep({ pattern: "x", limit: 120 })).toHaveLength(120);
    expect(await grep({ pattern: "x", limit: 119 })).toHaveLength(120);
    expect(await grep({ pattern: "x", limit: 1, filesOnly: true })).toEqual([
      "a",
      "[There are more files than shown. Use a narrower pattern, path or glob, or limit up to 1000 to see them.]",
    ]);
  });

  it("context is not shown for a match that is not", async () => {
    await put("a", "x1\n2\n3\n4\nx5\n");
    expect((await grep({ pattern: "x", context: 2, limit: 1 })).slice(0, -1)).toEqual([
      "a:1: x1",
      "a-2- 2",
      "a-3- 3",
    ]);
  });

  it("an answer is never longer than 50 KB", async () => {
    await put("a", `${"x".repeat(400)}\n`.repeat(500));
    const { text } = await run({ pattern: "x", limit: 500 }, {});
    expect(Buffer.byteLength(text)).toBeLessThan(GREP_MAX_BYTES + 500);
    expect(text).toContain("There are more matches than shown.");
    await grep({ pattern: "x", limit: 500 });
  });

  it("a walk that is too long ends, and that is said", async () => {
    for (const name of ["a", "b", "c"]) await put(name, "x\n");
    expect(await grep({ pattern: "x" }, { maxEntries: 2 })).toEqual([
      "a:1: x",
      "b:1: x",
      "[Stopped after 2 files: not all was searched. Give a path to search in.]",
    ]);
  });

  it("a search that takes too long ends with what it has, and that is said", async () => {
    await put("a", "x\n");
    let now = 0;
    env.clock = { ...systemClock, now: () => (now += GREP_TIMEOUT_MS / 2) };
    const { text } = await run({ pattern: "x" }, { ripgrep: null });
    expect(text).toContain("Stopped after 20 s: not all was searched.");
  });

  it.skipIf(process.platform === "win32")(
    "what the program found until then is shown",
    async () => {
      await put("a", "x\n");
      await put("b", "y\n");
      const ripgrep = join(spool, "slow");
      await writeFile(ripgrep, "#!/bin/sh\nprintf './a\\0001:1:x\\n'\nexec sleep 600\n", {
        mode: 0o755,
      });
      const { text } = await run({ pattern: "x" }, { ripgrep, timeoutMs: 500 });
      expect(text).toBe(
        "a:1: x\n[Stopped after 0.5 s: not all was searched. Give a path or glob.]",
      );
    },
  );

  it("many files are searched in bundles, in order", { tags: "long" }, async () => {
    const names = Array.from(
      { length: countCases(600, 1_500) },
      (_, index) => `d${index % 7}/f${index}`,
    );
    for (const name of names) await put(name, name.endsWith("9") ? "x\n" : "y\n");
    // However slow the machine is, the time limit is not reached.
    env.clock = { ...systemClock, now: () => 0 };
    const lines = await grep({ pattern: "x", limit: 1000, filesOnly: true });
    const wanted = names.filter((name) => name.endsWith("9"));
    expect(lines).toEqual(wanted.sort());
  });
});

describe("patterns", () => {
  const lines = [
    "const größe = 42; // naïve",
    "function f(a, b) { return a - b; }",
    "\tif (x[0] === 'y') {",
    "",
    "foo.bar_baz-qux",
    "AbC abc ABC",
    "٣٤ 34 three",
    "a\u3000b a\u00a0b",
    "${name} {1,2} [x] \\d",
    "http://example.com/a?b=c#d",
    "trailing   ",
    "ſtrange K ß ẞ",
    "x\ry",
  ];

  it.each([
    "\\w+\\s=",
    "\\bf\\(",
    "^\\s*if\\b",
    "^$",
    "\\s+$",
    "\\d+",
    "(?:foo|bar)[._]",
    "return a - b; }",
    "\\{ return",
    "{ return",
    "\\$\\{\\w+\\}",
    "a.b",
    "x(?!\\[)",
    "(?<=\\.)bar",
    "(\\w)\\1",
    "[\\]\\[]x",
    "https?://[^\\s/]+",
    "\\Bar",
    "y$",
    ".",
    "x?y*",
    "ß|ẞ",
    "[^[a]x",
    "a{0}x",
    "\\x41",
    "\\\\d",
    "\\/a",
    "(a|b)+?c",
  ])("%s means the same both ways", async (pattern) => {
    await put("a", `${lines.join("\n")}\n`);
    await put("b", `${lines.join("\r\n")}\r\n`);
    const found = await grep({ pattern });
    expect(found.length).toBeGreaterThan(0);
    await grep({ pattern, ignoreCase: true });
    await grep({ pattern, literal: true });
  });

  it("that are broken are reported with what is wrong", async () => {
    await put("a", "x\n");
    for (const options of [{}, { ripgrep: null }]) {
      await expect(run({ pattern: "a(b" }, options)).rejects.toThrow(
        /The pattern "a\(b" is no regular expression that works here: .*set literal to true/s,
      );
      await expect(run({ pattern: "a\\nb" }, options)).rejects.toThrow("one at a time");
    }
    expect(await grep({ pattern: "a(b", literal: true })).toHaveLength(1);
  });

  it("that would take for ever are stopped", async () => {
    await put("a", `${"a".repeat(60)}b\n`);
    await expect(run({ pattern: "^(a+)+$" }, { ripgrep: null })).rejects.toThrow("was stopped");
    expect((await run({ pattern: "^(a+)+$" }, {})).text).toContain("No line matches");
  });
});

describe("ripgrep", () => {
  it("that is not there, or is something else, is done without", async () => {
    await put("a", "x\n");
    for (const ripgrep of [join(root, "no-such-program"), process.execPath]) {
      const { text, details } = await run({ pattern: "x" }, { ripgrep });
      expect(text.trimEnd()).toBe("a:1: x");
      expect(details.engine).toBe("javascript");
    }
  });

  it("comes with this package, and obeys no configuration of the user", async () => {
    expect(await ripgrepPath()).toMatch(/rg/);
    await put("config", "--invert-match\n");
    await put("a", "x\ny\n");
    env.environment = { ...env.environment, RIPGREP_CONFIG_PATH: join(root, "config") };
    expect(await grep({ pattern: "x$", path: "a" })).toEqual(["a:1: x"]);
  });

  it("is run in the sandbox, with nothing to write and no network", async () => {
    await put("a", "x\n");
    const policies: unknown[] = [];
    const sandbox: Sandbox = {
      ...noSandbox,
      wrap: (program, policy) => (policies.push(policy), program),
    };
    env.sandbox = () => Promise.resolve(sandbox);
    await run({ pattern: "x" }, {});
    const readOnly = [env.workspace.root, await ripgrepPath()];
    expect(policies).toEqual([{ writable: [], readOnly, hidden: [], network: false }]);
  });

  it("works inside of the sandbox", { tags: "bubblewrap" }, async () => {
    await put("a", "x\n");
    env.sandbox = () => createSandbox();
    expect(await grep({ pattern: "x" })).toEqual(["a:1: x"]);
  });

  it("is not believed: what is shown is read through the workspace", async () => {
    await put("a", "nothing here\n");
    const liar = join(spool, "liar.mjs");
    await writeFile(
      liar,
      "process.stdout.write('./a\\0' + '1:1:secret\\n./../b\\0' + '1:1:secret\\n');",
    );
    const sandbox: Sandbox = {
      ...noSandbox,
      wrap: (program) => ({ ...program, argv: [process.execPath, liar] }),
    };
    env.sandbox = () => Promise.resolve(sandbox);
    expect((await run({ pattern: "secret" }, {})).text).toBe('No line matches "secret" in ..');
  });
});

it("stops when the call is aborted", async () => {
  await put("a", "x\n");
  const abort = new AbortController();
  abort.abort(new Error("enough"));
  const host = { call: () => Promise.reject(new Error("no")) };
  const args = { pattern: "x" };
  await expect(
    (async () =>
      grepTool(env).execute(args, {
        id: "1",
        signal: abort.signal,
        update: () => {},
        host,
        messages: [],
      }))(),
  ).rejects.toThrow("enough");
});

it("says what it would read", async () => {
  await put("src/a", "x");
  expect(await grepTool(env).access({ pattern: "x", path: "src" })).toEqual({
    kind: "read",
    targets: ["src"],
    summary: 'Search in "src"',
  });
});

it("says which arguments make no sense, and gives no more than it may", async () => {
  await put("a", "x\n".repeat(3));
  const wrong = (args: Args): Promise<unknown> => run({ pattern: "x", ...args }, {});
  await expect(wrong({ pattern: "" })).rejects.toThrow("The pattern is empty");
  await expect(wrong({ pattern: "x".repeat(GREP_MAX_PATTERN_CHARS + 1) })).rejects.toThrow(
    "The pattern has 2,001 characters; at most 2000 are taken.",
  );
  await expect(wrong({ glob: "" })).rejects.toThrow("is empty");
  await expect(wrong({ limit: 0 })).rejects.toThrow("limit has to be at least 1");
  await expect(wrong({ context: -1 })).rejects.toThrow("context has to be at least 0");
  expect(await grep({ pattern: "x", limit: 1_000_000, context: 1_000 })).toEqual([
    "a:1: x",
    "a:2: x",
    "a:3: x",
  ]);
});
