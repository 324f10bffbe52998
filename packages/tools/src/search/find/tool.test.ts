import { mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolEnv } from "../../contract/env.ts";
import { FIND_DEFAULT_LIMIT, findTool } from "./tool.ts";
import { MAX_GLOB_CHARS } from "../../workspace/globs.ts";
import { type TemporaryEnv, temporaryEnv } from "../../testing/temporary-env.ts";

let temporary: TemporaryEnv;
let root: string;
let env: ToolEnv;
let files: number;

beforeEach(async () => {
  files = 0;
  temporary = await temporaryEnv();
  ({ env, root } = temporary);
});

afterEach(() => temporary.remove());

/** Makes files, each a second older than the one before. */
async function make(...paths: (string | [path: string, text: string])[]): Promise<void> {
  for (const given of paths) {
    const [path, text] = typeof given === "string" ? [given, ""] : given;
    const absolute = join(root, path);
    await mkdir(dirname(absolute), { recursive: true });
    await writeFile(absolute, text);
    const time = 2_000_000_000 - files++;
    await utimes(absolute, time, time);
  }
}

async function find(args: Record<string, unknown>, maxEntries?: number): Promise<string> {
  const { signal } = new AbortController();
  const host = { call: () => Promise.reject(new Error("no")) };
  const tool = findTool(env, maxEntries === undefined ? {} : { maxEntries });
  const result = await tool.execute(args, {
    id: "1",
    signal,
    update: () => {},
    host,
    messages: [],
  });
  const [first] = typeof result === "string" ? [] : result.content;
  return first?.type === "text" ? first.text : "";
}

const found = async (args: Record<string, unknown>): Promise<string[]> =>
  (await find(args)).split("\n");

describe("patterns", () => {
  it("without a slash match names in all folders, newest first", async () => {
    await make("z.ts", "a/b/y.ts", "a/x.js", "b.ts");
    expect(await found({ pattern: "*.ts" })).toEqual(["z.ts", "a/b/y.ts", "b.ts"]);
  });

  it("give the newest alone, those of the same time in the order of their names", async () => {
    await make("d", "b", "c", "a", "new");
    for (const name of ["b", "c", "d"])
      await utimes(join(root, name), 1_900_000_000, 1_900_000_000);
    await utimes(join(root, "new"), 2_100_000_000, 2_100_000_000);
    const [first, second, third, ...rest] = await found({ pattern: "?*", limit: 3 });
    expect([first, second, third]).toEqual(["new", "a", "b"]);
    expect(rest.join("")).toContain("3 of 5 matches shown");
  });

  it("with a slash match the path, from the workspace or the folder that is given", async () => {
    await make("src/a.ts", "src/deep/er/b.ts", "test/src/c.ts");
    expect(await found({ pattern: "src/**/*.ts" })).toEqual(["src/a.ts", "src/deep/er/b.ts"]);
    expect(await found({ pattern: "src/*.ts" })).toEqual(["src/a.ts"]);
    expect(await found({ pattern: "./src/*.ts", path: "test" })).toEqual(["test/src/c.ts"]);
    expect(await found({ pattern: `${env.workspace.root}/src/*.ts` })).toEqual(["src/a.ts"]);
    expect(await found({ pattern: "src/a.ts" })).toEqual(["src/a.ts"]);
    expect(await found({ pattern: "deep/**", path: "src" })).toEqual(["src/deep/er/b.ts"]);
  });

  it("know braces, sets, and hidden files", async () => {
    await make(".env", "a.ts", "a.tsx", "b.md", ".github/ci.yml");
    expect(await found({ pattern: "*.{ts,tsx}" })).toEqual(["a.ts", "a.tsx"]);
    expect(await found({ pattern: "[ab].*" })).toEqual(["a.ts", "a.tsx", "b.md"]);
    expect(await found({ pattern: ".*" })).toEqual([".env"]);
    expect(await found({ pattern: "**/*.yml" })).toEqual([".github/ci.yml"]);
  });

  it("find folders when written with a slash at the end, or when no file is found", async () => {
    await make("a/fixtures/x", "fixtures/y");
    expect((await found({ pattern: "fixtures/" })).sort()).toEqual(["a/fixtures/", "fixtures/"]);
    expect((await found({ pattern: "fixtures" })).sort()).toEqual(["a/fixtures/", "fixtures/"]);
  });

  it("that lead out or nowhere are reported", async () => {
    await make("source/a.ts", "app/[id]/page.tsx");
    await expect(find({ pattern: "../*" })).rejects.toThrow('has ".." in it');
    await expect(find({ pattern: "/etc/*" })).rejects.toThrow("is absolute");
    await expect(find({ pattern: "sourc/*.ts" })).rejects.toThrow('"source"');
    expect(await find({ pattern: "*.rs" })).toBe('Nothing matches "*.rs" in ..');
    expect(await find({ pattern: "[id]/page.tsx" })).toContain("written as \\[");
    expect(await find({ pattern: "app/\\[id\\]/*" })).toBe("app/[id]/page.tsx");
  });

  it("that would take for ever are stopped", async () => {
    await make("a".repeat(200));
    await expect(find({ pattern: `${"*a".repeat(30)}*b` })).rejects.toThrow("was stopped");
  });
});

describe("ignore files", () => {
  it("of all folders count, and .git is never looked into", async () => {
    await make(
      [".gitignore", "dist/\n*.log\n!keep.log\n/only-here\n"],
      [".git/info/exclude", "secret.txt\n"],
      ["sub/.gitignore", "/local\n!wanted.log\n"],
      ["sub/.ignore", "noise\n"],
    );
    await make("dist/x", "a.log", "keep.log", "only-here", "secret.txt", ".git/HEAD");
    await make("sub/local", "sub/wanted.log", "sub/other.log", "sub/noise", "sub/only-here");
    await make("sub/deep/local", "sub/deep/dist/x", "sub/deep/noise");
    const names = (await found({ pattern: "**" })).filter((path) => !path.includes("ignore"));
    expect(names.sort()).toEqual(["keep.log", "sub/deep/local", "sub/only-here", "sub/wanted.log"]);
  });

  it("of outer folders count where the search begins further in", async () => {
    await make([".gitignore", "*.log\n/sub/deep/gone\n"]);
    await make("sub/deep/a.log", "sub/deep/gone", "sub/deep/b");
    expect(await found({ pattern: "*", path: "sub/deep" })).toEqual(["sub/deep/b"]);
  });

  it("do not hide a folder that is asked for by name", async () => {
    await make([".gitignore", "node_modules/\n"], "node_modules/x/index.d.ts");
    expect(await found({ pattern: "*.d.ts" })).toEqual(['Nothing matches "*.d.ts" in ..']);
    expect(await found({ pattern: "*.d.ts", path: "node_modules" })).toEqual([
      "node_modules/x/index.d.ts",
    ]);
    expect(await found({ pattern: "node_modules/**/*.d.ts" })).toEqual([
      "node_modules/x/index.d.ts",
    ]);
  });

  it("further in can take a folder back, with what is in it", async () => {
    await make([".gitignore", "generated/\n"], ["a/.gitignore", "!generated/\n"]);
    await make("a/generated/x.ts", "b/generated/y.ts");
    expect(await found({ pattern: "*.ts" })).toEqual(["a/generated/x.ts"]);
  });

  it("made to run for ever are stopped, and named", async () => {
    await make([".gitignore", `${"**/a/".repeat(12)}b\n`], `${"a/".repeat(60)}c/b`);
    await expect(find({ pattern: "*" })).rejects.toThrow('An ignore file for "a/a/a/');
  });
});

describe("limits", () => {
  it("show 200 matches and say how to see others", async () => {
    const paths = Array.from({ length: FIND_DEFAULT_LIMIT + 5 }, (_, index) => `f${index}`);
    await make(...paths);
    const lines = await found({ pattern: "f*" });
    expect(lines.slice(0, FIND_DEFAULT_LIMIT)).toEqual(paths.slice(0, FIND_DEFAULT_LIMIT));
    expect(lines.at(-1)).toBe(
      "[200 of 205 matches shown. Use a narrower pattern or path, or a larger limit, to see the others.]",
    );
    expect(await found({ pattern: "f*", limit: 1000 })).toEqual(paths);
  });

  it("end a walk that is too long, and say so", async () => {
    await make("a", "b", "c", "d");
    const text = await find({ pattern: "*" }, 3);
    expect(text).toContain("Stopped after 3 files: not all was looked at.");
    expect(text.split("\n").slice(0, 3)).toEqual(["a", "b", "c"]);
  });
});

describe("links", () => {
  it("are named and never followed", async () => {
    await make("real/x.ts");
    await symlink("/etc", join(root, "out.ts"));
    await symlink("real", join(root, "again"));
    await symlink(".", join(root, "real/loop"));
    expect((await found({ pattern: "**/*.ts" })).sort()).toEqual(["out.ts", "real/x.ts"]);
    await expect(find({ pattern: "*", path: "out.ts" })).rejects.toThrow("leads out");
    expect(await found({ pattern: "*.ts", path: "again" })).toEqual(["real/x.ts"]);
  });
});

it("says what it would read", async () => {
  await make("src/a");
  expect(await findTool(env).access({ pattern: "*", path: "src" })).toEqual({
    kind: "read",
    targets: ["src"],
    summary: 'Look for files in "src"',
  });
});

it("takes a limit within limits, and a pattern of a sensible length", async () => {
  await make("a", "b");
  await expect(find({ pattern: "*", limit: 0 })).rejects.toThrow("limit has to be at least 1");
  expect(await found({ pattern: "*", limit: 1_000_000 })).toEqual(["a", "b"]);
  await expect(find({ pattern: "" })).rejects.toThrow("is empty");
  await expect(find({ pattern: "a".repeat(MAX_GLOB_CHARS + 1) })).rejects.toThrow(
    "A pattern of 1,001 characters is too long",
  );
});
