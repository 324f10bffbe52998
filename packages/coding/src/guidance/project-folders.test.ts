import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { projectFolders, untrustedReason } from "./project-folders.ts";

const ANYBODY = 12_345;
/** A folder of root. */
const ROOTS = "/";

let world: string;

beforeEach(() => {
  world = mkdtempSync(join(realpathSync(tmpdir()), "gyre-folders-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(world, { recursive: true, force: true });
});

describe("the folders of a project", () => {
  it.each([
    ["in a repository", ["home/a/.git"], "home/a/b/c", ["home/a", "home/a/b", "home/a/b/c"]],
    ["in a worktree, whose .git is a file", [], "work/b", ["work", "work/b"]],
    ["at the root of one", ["home/a/.git"], "home/a", ["home/a"]],
    ["below the home folder", [], "home/a/b", ["home/a", "home/a/b"]],
    ["in the home folder", ["home/.git"], "home", ["home"]],
    ["below a home folder that is a repository", ["home/.git"], "home/a", ["home/a"]],
    ["elsewhere", [], "else/b", ["else/b"]],
  ])("%s", (_where, folders, cwd, expected) => {
    for (const folder of ["home", ...folders, cwd]) {
      mkdirSync(join(world, folder), { recursive: true });
    }
    if (cwd.startsWith("work")) writeFileSync(join(world, "work/.git"), "gitdir: elsewhere\n");
    const found = projectFolders(join(world, cwd), join(world, "home"));
    expect(found).toEqual(expected.map((folder) => join(world, folder)));
  });
});

describe("a file of a project", () => {
  it("is of the user, of root or of the owner of the folder", () => {
    const file = join(world, "AGENTS.md");
    writeFileSync(file, "");
    expect(untrustedReason(file, world, world)).toBeUndefined();
    // Only root can give files away; another user takes the place of the owner for a while.
    const user = statSync(file).uid;
    if (user === 0) chownSync(file, ANYBODY, ANYBODY);
    else vi.spyOn(process, "getuid").mockReturnValue(user + 1);
    expect(untrustedReason(file, world, ROOTS)).toBe("belongs to another user");
    if (user === 0) chownSync(world, ANYBODY, ANYBODY);
    expect(untrustedReason(file, world, world)).toBeUndefined();
  });

  it("is inside of it", () => {
    expect(untrustedReason(`${world}-other/AGENTS.md`, world, world)).toBe(
      "is a link that leads out of the project",
    );
  });
});
