import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findLinkedFolders, parseGitIndex } from "./index-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-index-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function git(args: string[], input?: string): string {
  return execFileSync("git", args, { cwd: folder, encoding: "utf8", ...(input && { input }) });
}

describe("the folders that an index has as repositories", () => {
  it.each([
    ["sha1", 2],
    ["sha1", 4],
    ["sha256", 2],
    ["sha256", 4],
  ])("are found with %s in version %i", (format, version) => {
    git(["init", "-q", `--object-format=${format}`]);
    const id = "1".repeat(format === "sha1" ? 40 : 64);
    const lines = Array.from({ length: 300 }, (_, at) => {
      const mode = at % 100 === 7 ? "160000" : "100644";
      return `${mode} ${id} 0\tsome/folder-${at % 7}/${"x".repeat(at)}${at}`;
    });
    git(["update-index", "--index-info"], `${lines.join("\n")}\n`);
    git(["update-index", "--index-version", String(version)]);
    const expected = lines
      .filter((line) => line.startsWith("16"))
      .map((line) => line.split("\t")[1]);
    const found = findLinkedFolders(readFileSync(join(folder, ".git/index")));
    expect(new Set(found.names)).toEqual(new Set(expected));
    expect(found.nameless).toEqual([]);
  });

  it("are none in what is no index", () => {
    for (const text of ["DIRC", "DIRC\0\0\0\u0002\0\0\0\u0009 and no entries"]) {
      expect(findLinkedFolders(Buffer.from(text))).toEqual({ names: [], nameless: [] });
    }
  });
});

/** Files with names of all kinds, and a link. */
function makeRepository(format: string): void {
  git(["init", "-q", `--object-format=${format}`]);
  mkdirSync(join(folder, "folder/deeper"), { recursive: true });
  for (const name of ["a", "folder/b.txt", "folder/deeper/c with space.txt", "folder/ü.txt"]) {
    writeFileSync(join(folder, name), `the content of ${name}\n`);
  }
  writeFileSync(join(folder, "empty"), "");
  symlinkSync("a", join(folder, "link"));
  git(["add", "."]);
}

describe("an index of git", () => {
  it.each([
    ["sha1", 2],
    ["sha1", 3],
    ["sha1", 4],
    ["sha256", 2],
    ["sha256", 4],
  ])("with %s in version %i gives the regular files with their contents", (format, version) => {
    makeRepository(format);
    if (version === 3) git(["update-index", "--skip-worktree", "a"]);
    git(["update-index", "--index-version", String(version)]);
    const entries = parseGitIndex(readFileSync(join(folder, ".git/index")));
    const listed = git(["ls-files", "-s", "-z"]).split("\0").filter(Boolean);
    const regular = listed.flatMap((line) => {
      const [, mode, oid = "", path = ""] = /^(\d+) (\w+) \d\t(.*)$/s.exec(line) ?? [];
      const isLeftOut = version === 3 && path === "a";
      return mode === "120000" || isLeftOut ? [] : [[path, oid]];
    });
    expect([...(entries ?? [])].map(([path, { oid }]) => [path, oid])).toEqual(regular);
  });

  it("that is cut off, or something else, is not used", () => {
    makeRepository("sha1");
    const whole = readFileSync(join(folder, ".git/index"));
    expect(parseGitIndex(whole.subarray(0, 100))).toBeUndefined();
    expect(parseGitIndex(Buffer.from("something else"))).toBeUndefined();
    expect(parseGitIndex(Buffer.alloc(0))).toBeUndefined();
  });
});
