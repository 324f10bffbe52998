import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ToolEnv } from "../../contract/env.ts";
import { LS_MAX_ENTRIES, lsTool } from "./tool.ts";
import { type TemporaryEnv, temporaryEnv } from "../../testing/temporary-env.ts";

let temporary: TemporaryEnv;
let root: string;
let env: ToolEnv;

beforeEach(async () => {
  temporary = await temporaryEnv();
  ({ env, root } = temporary);
});

afterEach(() => temporary.remove());

async function ls(args: Record<string, unknown> = {}): Promise<string> {
  const { signal } = new AbortController();
  const host = { call: () => Promise.reject(new Error("no")) };
  const result = await lsTool(env).execute(args, {
    id: "1",
    signal,
    update: () => {},
    host,
    messages: [],
  });
  const [first] = typeof result === "string" ? [] : result.content;
  return first?.type === "text" ? first.text : "";
}

it("lists a folder, sorted, with sizes, folders and links", async () => {
  await writeFile(join(root, "b.txt"), "x".repeat(1536));
  await writeFile(join(root, ".hidden"), "");
  await mkdir(join(root, "a-folder"));
  await symlink("b.txt", join(root, "c"));
  await symlink("gone", join(root, "d"));
  await symlink("/etc/passwd", join(root, "e"));
  await symlink("f", join(root, "f"));
  expect((await ls()).split("\n")).toEqual([
    ".hidden (0 B)",
    "a-folder/",
    "b.txt (1.5 KB)",
    "c -> b.txt",
    "d -> gone (missing)",
    "e -> (outside of the workspace)",
    "f -> (invalid)",
  ]);
});

it("lists a folder in it, and says that one is empty", async () => {
  await mkdir(join(root, "a/b"), { recursive: true });
  await writeFile(join(root, "a/x"), "1");
  expect(await ls({ path: "a" })).toBe("b/\nx (1 B)");
  expect(await ls({ path: "a/b" })).toBe("a/b is an empty folder.");
});

it("quotes names that would forge a line", async () => {
  await writeFile(join(root, "a\nb/".replace("/", "")), "");
  expect(await ls()).toBe('"a\\nb" (0 B)');
});

it("shows 500 entries and says how to see the rest", async () => {
  const total = LS_MAX_ENTRIES + 2;
  for (let index = 0; index < total; index += 1) {
    await writeFile(join(root, `f${String(index).padStart(4, "0")}`), "");
  }
  const first = await ls();
  expect(first.split("\n")).toHaveLength(LS_MAX_ENTRIES + 2);
  expect(first).toContain("[Entries 1-500 of 502. Use offset=501 to continue");
  expect(await ls({ offset: 501 })).toBe("f0500 (0 B)\nf0501 (0 B)");
  await expect(ls({ offset: 503 })).rejects.toThrow("past the end: . has 502 entries");
});

it("reports a file, a missing folder and what is outside", async () => {
  await writeFile(join(root, "file"), "");
  await mkdir(join(root, "source"));
  await expect(ls({ path: "file" })).rejects.toThrow("not a folder");
  await expect(ls({ path: "sourc" })).rejects.toThrow('"source"');
  await expect(ls({ path: ".." })).rejects.toThrow("leads out");
});

it("says what it would read", async () => {
  expect(await lsTool(env).access({})).toEqual({
    kind: "read",
    targets: ["."],
    summary: 'List "."',
  });
});
