import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { createRandom, pick, type Random } from "../testing/file-places.ts";
import { Repository } from "./repository.ts";
import { makeWorkCopies, removeWorkCopy, type WorkCopy } from "./work-copy.ts";

let home = "";
let work = "";
let folders: string[] = [];
const env = (): Record<string, string | undefined> => ({
  PATH: process.env["PATH"],
  HOME: home,
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@localhost",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@localhost",
});

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "gyre-copies-")));
  work = join(home, "shop");
  mkdirSync(work);
  folders = [join(home, "state", "1"), join(home, "state", "2")];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: work, env: env(), encoding: "utf8", stdio: "pipe" });
}

function put(path: string, content: string, root = work): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  rmSync(join(root, path), { recursive: true, force: true });
  writeFileSync(join(root, path), content);
}

/** All files below a folder but git's own: modes and contents, targets of links. */
function listFiles(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(root, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(root.length + 1);
    if (name.split("/")[0] === ".git" || entry.isDirectory()) continue;
    const isRunnable = (lstatSync(path).mode & 0o100) !== 0;
    found[name] = entry.isSymbolicLink()
      ? `-> ${readlinkSync(path)}`
      : `${isRunnable ? "x " : ""}${readFileSync(path, "latin1")}`;
  }
  return found;
}

function make(options: { withIgnored?: boolean } = {}) {
  return makeWorkCopies(work, folders, { env: env(), ...options });
}

async function remove(copies: readonly WorkCopy[]): Promise<void> {
  for (const copy of copies) await removeWorkCopy(copy, env());
}

describe("in a git repository", () => {
  beforeEach(() => {
    git("init", "-q", "-b", "main");
    put(".gitignore", "node_modules/\n*.log\n");
    put("a.txt", "green");
    put("d/b.txt", "black");
    git("add", "-A");
    git("commit", "-qm", "Tea");
  });

  it("copies are worktrees with all that is not committed, and without what is ignored", async () => {
    put("a.txt", "changed");
    put("new.txt", "new");
    put("staged.txt", "staged");
    git("add", "staged.txt");
    rmSync(join(work, "d/b.txt"));
    put("node_modules/x/index.js", "x");
    put("a.log", "log");
    const { copies, missing } = await make();
    expect(copies.map(({ kind }) => kind)).toEqual(["worktree", "worktree"]);
    for (const { cwd } of copies) {
      expect(listFiles(cwd)).toEqual({
        ".gitignore": "node_modules/\n*.log\n",
        "a.txt": "changed",
        "new.txt": "new",
        "staged.txt": "staged",
      });
    }
    expect([...missing].sort()).toEqual(["a.log", "node_modules/"]);
    await remove(copies);
    expect(copies.some(({ folder }) => existsSync(folder))).toBe(false);
    expect(git("worktree", "list").trim().split("\n")).toHaveLength(1);
    expect(git("status", "--porcelain").trim().split("\n")).toHaveLength(4);
  });

  it("copies have what is ignored where that is wanted", async () => {
    put("node_modules/x/index.js", "x");
    const { copies, missing } = await make({ withIgnored: true });
    expect(missing).toEqual([]);
    expect(listFiles(copies[0]?.cwd ?? "")).toHaveProperty("node_modules/x/index.js", "x");
    await remove(copies);
  });

  it("a folder in it is worked in at the same place of the copy", async () => {
    put("d/c.txt", "white");
    const { copies } = await makeWorkCopies(join(work, "d"), folders, { env: env() });
    expect(listFiles(copies[1]?.cwd ?? "")).toEqual({ "b.txt": "black", "c.txt": "white" });
    await remove(copies);
  });

  it("runs no hook of the repository", async () => {
    put(".git/hooks/post-checkout", `#!/bin/sh\ntouch ${home}/ran\n`);
    chmodSync(join(work, ".git/hooks/post-checkout"), 0o755);
    await remove((await make()).copies);
    expect(existsSync(join(home, "ran"))).toBe(false);
  });

  it("what was removed already, or is of a repository that is gone, is no error", async () => {
    const { copies } = await make();
    const [one, other] = copies;
    if (!one || !other) throw new Error("There are two.");
    rmSync(one.folder, { recursive: true });
    await removeWorkCopy(one, env());
    expect(git("worktree", "list").trim().split("\n")).toHaveLength(2);
    rmSync(work, { recursive: true });
    await removeWorkCopy(other, env());
    expect(existsSync(other.folder)).toBe(false);
  });

  it("leaves nothing where one of the copies cannot be made", async () => {
    mkdirSync(folders[1] ?? "", { recursive: true });
    put("shop/there", "something", folders[1]);
    await expect(make()).rejects.toThrow("already exists");
    expect(folders.some((folder) => existsSync(folder))).toBe(false);
    expect(git("worktree", "list").trim().split("\n")).toHaveLength(1);
  });

  it(
    "copies have exactly the files of any state that git knows",
    { tags: "long", timeout: 600_000 },
    async () => {
      const seed = pickSeed();
      const cases = countCases(4, 40, "GYRE_COPY_CASES");
      for (let number = 0; number < cases; number++) {
        const random = createRandom(seed + number);
        for (let count = 0; count < 12; count++) disturb(random);
        const { copies } = await make();
        const how = `GYRE_SEED=${seed + number} GYRE_COPY_CASES=1`;
        for (const { cwd } of copies) expect(listFiles(cwd), how).toEqual(listFiles(work));
        await remove(copies);
      }
    },
  );
});

const NAMES = ["a.txt", "d/b.txt", "d/e/f", "g", "sp ace/ü", "-x", "n\newline"];

/** Does one of many things to the working tree, the index and the commits. */
function disturb(random: Random): void {
  const path = pick(random, NAMES);
  const at = join(work, path);
  switch (random(9)) {
    case 0:
      return rmSync(at, { force: true, recursive: true });
    case 1:
      return void git("add", "-A");
    case 2:
      return void git("commit", "-qm", "More", "--allow-empty");
    case 3:
      mkdirSync(dirname(at), { recursive: true });
      rmSync(at, { force: true, recursive: true });
      return symlinkSync(pick(random, ["a.txt", "../nowhere"]), at);
    case 4:
      if (existsSync(at) && lstatSync(at).isFile()) chmodSync(at, pick(random, [0o644, 0o755]));
      return undefined;
    case 5:
      // A file becomes a folder.
      rmSync(at, { force: true, recursive: true });
      return put(`${path}/inside`, String(random(10)));
    default:
      try {
        return put(path, String(random(1_000)));
      } catch {
        // A file or a link stands in the way: the next one does something else.
        return undefined;
      }
  }
}

describe("elsewhere", () => {
  it("copies are whole, links and modes included", async () => {
    put("a.txt", "green");
    put("d/run.sh", "true");
    chmodSync(join(work, "d/run.sh"), 0o755);
    symlinkSync("../nowhere", join(work, "link"));
    const { copies, missing } = await make();
    expect(copies.map(({ kind }) => kind)).toEqual(["copy", "copy"]);
    for (const { cwd } of copies) expect(listFiles(cwd)).toEqual(listFiles(work));
    expect(missing).toEqual([]);
    await remove(copies);
    expect(listFiles(work)).toHaveProperty("link", "-> ../nowhere");
  });

  it("a repository without a commit is copied", async () => {
    git("init", "-q");
    put("a.txt", "green");
    const { copies } = await make();
    expect(copies[0]?.kind).toBe("copy");
    expect(existsSync(join(copies[0]?.cwd ?? "", ".git/HEAD"))).toBe(true);
    await remove(copies);
  });

  it("a folder that holds the copies is refused", async () => {
    const made = makeWorkCopies(home, folders, { env: env() });
    await expect(made).rejects.toThrow("the copies would be in it");
    expect(existsSync(folders[0] ?? "")).toBe(false);
  });

  it("has no repository to find", async () => {
    await expect(Repository.find(work, env())).rejects.toThrow("not a git repository");
  });
});
