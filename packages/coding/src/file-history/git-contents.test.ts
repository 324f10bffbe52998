import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { parseGitIndex } from "@gyre/tools";
import { isClean, readGitContents } from "./git-contents.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function git(root: string, ...args: string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8" });
}

async function repository(): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "gyre-index-"));
  folders.push(root);
  git(root, "init", "-q");
  await mkdir(join(root, "folder/deeper"), { recursive: true });
  for (const name of ["a", "folder/b.txt", "folder/deeper/c with space.txt", "folder/ü.txt"]) {
    writeFileSync(join(root, name), `the content of ${name}\n`);
  }
  writeFileSync(join(root, "empty"), "");
  symlinkSync("a", join(root, "link"));
  git(root, "add", ".");
  return root;
}

describe("an index of git", () => {
  it("finds which files are as they were", async () => {
    const root = await repository();
    const entry = parseGitIndex(readFileSync(join(root, ".git/index")))?.get("a");
    const later = BigInt(Date.now() + 1_000) * 1_000_000n;
    const statFile = () => statSync(join(root, "a"), { bigint: true });
    expect(entry && isClean(entry, statFile(), later)).toBe(true);
    expect(entry && isClean(entry, statFile(), entry.mtimeNs)).toBe(false);
    writeFileSync(join(root, "a"), "something else");
    expect(entry && isClean(entry, statFile(), later)).toBe(false);
  });
});

describe("contents in git", () => {
  it("are given byte for byte, and those that are not there are missing", async () => {
    const root = await repository();
    const bytes = Buffer.from([0, 255, 10, 13, 10, 128]);
    writeFileSync(join(root, "binary"), bytes);
    const oid = git(root, "hash-object", "-w", "binary").trim();
    const empty = git(root, "hash-object", "-w", "empty").trim();
    const nothing = "0".repeat(40);
    const found = await readGitContents(join(root, ".git"), [oid, nothing, empty]);
    expect([...found]).toEqual([
      [oid, bytes],
      [empty, Buffer.alloc(0)],
    ]);
  });

  it("are missing where there is no repository", async () => {
    const found = await readGitContents(join(tmpdir(), "gyre-no-repository"), ["0".repeat(40)]);
    expect(found.size).toBe(0);
  });
});
