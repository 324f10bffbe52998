import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
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
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { AgentToolResult } from "@gyre/agent";
import { systemClock } from "@gyre/ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GuardedTool } from "../contract/access.ts";
import type { ToolEnv } from "../contract/env.ts";
import { gitTool } from "./tool.ts";
import { MAX_GIT_LINES } from "./read.ts";
import type { GitOptions } from "./program.ts";
import { createSandbox, noSandbox } from "../sandbox/sandbox.ts";
import { SeenFiles } from "../workspace/seen.ts";
import { openWorkspace } from "../workspace/workspace.ts";
import { modelText } from "../testing/model-text.ts";

let base: string;
let root: string;
let env: ToolEnv;

beforeEach(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-git-")));
  root = join(base, "work");
  for (const folder of ["work", "home", "spool"]) mkdirSync(join(base, folder));
  writeFileSync(
    join(base, "home", ".gitconfig"),
    "[user]\n\tname = Ada\n\temail = ada@example.org\n",
  );
  env = {
    workspace: await openWorkspace(root),
    seen: new SeenFiles(),
    sandbox: () => Promise.resolve(noSandbox),
    spoolFolder: join(base, "spool"),
    environment: { PATH: process.env["PATH"] ?? "", HOME: join(base, "home") },
    clock: systemClock,
  };
});

afterEach(async () => {
  await env.workspace.close();
  rmSync(base, { recursive: true, force: true });
});

/** git as its user runs it, to set things up and to look. */
function git(...args: string[]): string {
  return execFileSync("git", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: join(base, "home"),
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_TERMINAL_PROMPT: "0",
    },
  }).trimEnd();
}

function write(path: string, text: string | Uint8Array, mode?: number): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  if (mode !== undefined) chmodSync(file, mode);
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** A repository with one commit of `a.txt`. */
function repository(): void {
  git("init", "--quiet", "--initial-branch=main");
  write("a.txt", "one\ntwo\n");
  git("add", ".");
  git("commit", "--quiet", "-m", "First");
}

function joinText(result: AgentToolResult): string {
  return modelText(result);
}

async function call(args: Record<string, unknown>, options: GitOptions = {}): Promise<string> {
  return joinText(await result(args, options));
}

async function result(
  args: Record<string, unknown>,
  options: GitOptions = {},
): Promise<AgentToolResult> {
  const tool = gitTool(env, options);
  const given = await tool.execute(args, {
    id: "c1",
    signal: new AbortController().signal,
    update: () => {},
    host: {
      call: () => Promise.reject(new Error("not here")),
    },
    messages: [],
  });
  return typeof given === "string" ? { content: [{ type: "text", text: given }] } : given;
}

function access(
  args: Record<string, unknown>,
  options: GitOptions = {},
): ReturnType<GuardedTool["access"]> {
  return gitTool(env, options).access(args);
}

/** Every file with its content and mode, the repository's own left out. */
function tree(folder = root, prefix = ""): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(folder).sort()) {
    if (name === ".git") continue;
    const path = join(folder, name);
    const info = lstatSync(path);
    if (info.isDirectory()) Object.assign(found, tree(path, `${prefix}${name}/`));
    else if (info.isSymbolicLink()) found[prefix + name] = `-> ${readlinkSync(path)}`;
    else {
      const isExecutable = (info.mode & 0o100) !== 0;
      found[prefix + name] = `${isExecutable ? "x" : "-"} ${readFileSync(path).toString("hex")}`;
    }
  }
  return found;
}

describe("git", () => {
  describe("looking", () => {
    it("reports the status", async () => {
      repository();
      write("a.txt", "one\nthree\n");
      write("b.txt", "new\n");
      write("c d\n.txt", "odd name\n");
      git("add", "b.txt");
      expect(await call({ action: "status" })).toMatch(
        /^On branch main at [0-9a-f]{8}\.\nStaged \(1\):\n {2}A b\.txt\nNot staged \(1\):\n {2}M a\.txt\nUntracked \(1\):\n {2}"c d\\n\.txt"$/,
      );
      git("mv", "-f", "b.txt", "e.txt");
      expect(await call({ action: "status", paths: ["e.txt"] })).toMatch(/A e\.txt/);
    });

    it("reports that nothing has changed, renames, and a detached head", async () => {
      repository();
      expect(await call({ action: "status" })).toMatch(/Nothing has changed\.$/);
      git("mv", "a.txt", "b.txt");
      expect(await call({ action: "status" })).toMatch(/R a\.txt -> b\.txt/);
      git("reset", "--hard", "--quiet");
      git("checkout", "--quiet", "--detach");
      expect(await call({ action: "status" })).toMatch(/^HEAD is detached at [0-9a-f]{8}\./);
    });

    it("reports a branch without a commit", async () => {
      git("init", "--quiet", "--initial-branch=main");
      write("a.txt", "one\n");
      expect(await call({ action: "status" })).toMatch(
        /^On branch main, which has no commit yet\.\nUntracked \(1\):/,
      );
      expect(await call({ action: "log" })).toBe("There is no commit yet.");
      expect(await call({ action: "branch" })).toBe("There is no branch with a commit yet.");
    });

    it("reports conflicts in a merge, and can finish it", async () => {
      repository();
      git("checkout", "--quiet", "-b", "side");
      write("a.txt", "one\nside\n");
      git("commit", "--quiet", "-am", "Side");
      git("checkout", "--quiet", "main");
      write("a.txt", "one\nmain\n");
      git("commit", "--quiet", "-am", "Main");
      expect(() => git("merge", "side")).toThrow(/failed/);
      expect(await call({ action: "status" })).toMatch(
        /Under way: a merge\.\nConflicts \(1\):\n {2}UU a\.txt/,
      );
      await expect(call({ action: "commit", message: "No" })).rejects.toThrow(/unmerged/);
      expect(await call({ action: "diff" })).toMatch(/<<<<<<</);
      write("a.txt", "one\nboth\n");
      await call({ action: "add", paths: ["a.txt"] });
      await call({ action: "commit", message: "Merge" });
      expect(git("log", "-1", "--format=%P").split(" ")).toHaveLength(2);
    });

    it("shows differences: of files, staged, between commits, in numbers", async () => {
      repository();
      write("a.txt", "one\n2\n");
      write("b/c.txt", "new\n");
      git("add", "b");
      expect(await call({ action: "diff" })).toMatch(/-two\n\+2\n/);
      expect(await call({ action: "diff" })).not.toMatch(/b\/c\.txt/);
      expect(await call({ action: "diff", staged: true })).toMatch(/\+new/);
      expect(await call({ action: "diff", ref: "HEAD", stat: true })).toMatch(
        /a\.txt +\| 2 \+-\n b\/c\.txt \| 1 \+/,
      );
      expect(await call({ action: "diff", ref: "HEAD", paths: ["b"] })).not.toMatch(/a\.txt/);
      git("commit", "--quiet", "-am", "Second");
      expect(await call({ action: "diff" })).toBe("Nothing to show.");
      expect(await call({ action: "diff", ref: "HEAD~1", to: "HEAD", context: 0 })).toMatch(
        /@@ -2 \+2 @@/,
      );
    });

    it("caps a huge difference, and goes on where it ended", async () => {
      repository();
      const lines = Array.from({ length: 30_000 }, (_, n) => `line ${n}\n`);
      write("a.txt", lines.join(""));
      const first = await call({ action: "diff" });
      expect(first.length).toBeLessThan(60_000);
      const next = /Go on with offset=(\d+)/.exec(first)?.[1];
      expect(Number(next)).toBeLessThanOrEqual(MAX_GIT_LINES + 1);
      const second = await call({ action: "diff", offset: Number(next) });
      const [, last] = /\+line (\d+)\n<\/source/.exec(first) ?? [];
      expect(second).toMatch(new RegExp(`mark="\\w+">\n\\+line ${Number(last) + 1}\n`));
      expect(await call({ action: "diff", offset: 90_000 })).toMatch(/only 30,?\d+ lines/);
    });

    it("shows the log, page by page", async () => {
      repository();
      for (const n of [2, 3, 4]) {
        write("b.txt", `${n}\n`);
        git("add", ".");
        git("commit", "--quiet", "-m", `Number ${n}\n\nMore words.`);
      }
      const log = await call({ action: "log", limit: 2 });
      expect(log).toMatch(
        /\n[0-9a-f]{7,} \d{4}-\d\d-\d\d Ada \(HEAD -> main\): Number 4\n[0-9a-f]{7,} \d{4}-\d\d-\d\d Ada: Number 3\n<\/source[^]*offset=3/,
      );
      const rest = await call({ action: "log", limit: 2, offset: 3 });
      expect(rest).toMatch(/Number 2\n.*First\n<\/source/);
      expect(rest).not.toMatch(/There are more/);
      expect(await call({ action: "log", paths: ["a.txt"] })).not.toMatch(/Number/);
      expect(await call({ action: "log", ref: "HEAD~2" })).not.toMatch(/Number 3/);
    });

    it("shows who wrote each line", async () => {
      repository();
      write("a.txt", "one\ntwo\nthree\n");
      expect(await call({ action: "blame", paths: ["a.txt"] })).toMatch(
        /[0-9a-f]{8} \d{4}-\d\d-\d\d Ada 1: one\n[0-9a-f]{8} .* Ada 2: two\n0{8} .* Not Committed Yet 3: three/,
      );
      expect(await call({ action: "blame", paths: ["a.txt"], offset: 2, limit: 1 })).toMatch(
        /Ada 2: two\n<[^]*offset=3/,
      );
    });

    it("shows a commit, a file of it, and a folder", async () => {
      repository();
      write("a.txt", "changed\n");
      write("b/c.txt", "new\n");
      git("add", ".");
      git("commit", "--quiet", "-m", "Second");
      expect(await call({ action: "show" })).toMatch(/Second\n[^]*\+changed/);
      expect(await call({ action: "show", ref: "HEAD~1", paths: ["a.txt"] })).toMatch(
        /\none\ntwo\n<\/source/,
      );
      expect(await call({ action: "show", paths: ["."] })).toMatch(/tree [0-9a-f]{40}\tb/);
      write("d", new Uint8Array([0, 1, 2]));
      git("add", ".");
      git("commit", "--quiet", "-m", "Binary");
      expect(await call({ action: "show", paths: ["d"] })).toBe("It is binary, and not shown.");
    });

    it("leaves the index as it was", async () => {
      repository();
      const before = readFileSync(join(root, ".git", "index"));
      write("a.txt", "one\ntwo\n");
      // Another time, the same content: git would note that. Its diff does, as it else shows the file as changed.
      utimesSync(join(root, "a.txt"), 1, 1);
      for (const action of ["status", "log", "show", "branch", "stash"]) {
        await call({ action });
      }
      expect(readFileSync(join(root, ".git", "index")).equals(before)).toBe(true);
    });
  });

  describe("changing", () => {
    it("adds paths as they are written, not as patterns", async () => {
      repository();
      write("*.txt", "star\n");
      write("b.txt", "b\n");
      write(":(top)x", "colon\n");
      write("-f", "dash\n");
      expect(await call({ action: "add", paths: ["*.txt", ":(top)x", "-f"] })).toBe(
        "Staged there now:\nA *.txt\nA -f\nA :(top)x",
      );
      expect(git("status", "--short", "b.txt")).toBe("?? b.txt");
      expect(await call({ action: "add", all: true })).toMatch(/A b\.txt/);
      await expect(call({ action: "add" })).rejects.toThrow(/takes paths, or all/);
      await expect(call({ action: "add", paths: ["missing"] })).rejects.toThrow(/did not match/);
    });

    it("commits, whatever the message has in it, as the user", async () => {
      repository();
      write("a.txt", "changed\n");
      const message = 'Say "it\'s" $(done) `now`\n\n# not a comment\n-- and\n\ttabs; ünï';
      expect(await call({ action: "commit", message, all: true })).toMatch(
        /^Committed [0-9a-f]{7,} .* Ada \(HEAD -> main\): Say "it's" \$\(done\) `now`$/,
      );
      expect(git("log", "-1", "--format=%B")).toBe(message);
      expect(git("log", "-1", "--format=%an <%ae>")).toBe("Ada <ada@example.org>");
    });

    it("commits as the given author", async () => {
      repository();
      write("b.txt", "b\n");
      await call({ action: "add", paths: ["b.txt"] });
      const author = { name: "Bot", email: "bot@example.org" };
      await call({ action: "commit", message: "Second" }, { author });
      expect(git("log", "-1", "--format=%an <%ae> %cn")).toBe("Bot <bot@example.org> Bot");
    });

    it("makes the first commit of a repository", async () => {
      git("init", "--quiet", "--initial-branch=main");
      write("a.txt", "one\n");
      await call({ action: "add", all: true });
      await call({ action: "commit", message: "First" });
      expect(git("log", "--format=%s")).toBe("First");
    });

    it("says that there is nothing to commit, or no author to commit as", async () => {
      repository();
      await expect(call({ action: "commit", message: "Empty" })).rejects.toThrow(
        /Nothing is staged/,
      );
      rmSync(join(base, "home", ".gitconfig"));
      write("a.txt", "x");
      await expect(call({ action: "commit", message: "Anonymous", all: true })).rejects.toThrow(
        /tell me who you are/,
      );
    });

    it("makes, lists and deletes branches", async () => {
      repository();
      await call({ action: "branch", name: "side" });
      expect(await call({ action: "branch" })).toMatch(
        /\* main [0-9a-f]{7,} \d{4}-\d\d-\d\d: First\n {2}side /,
      );
      expect(await call({ action: "branch", limit: 1 })).toMatch(/Go on with offset=2/);
      await call({ action: "branch", name: "side", delete: true });
      expect(git("branch")).toBe("* main");
      await expect(call({ action: "branch", name: "-D" })).rejects.toThrow(/is not the name/);
      await expect(call({ action: "branch", name: "a b" })).rejects.toThrow(/is not the name/);
    });

    it("deletes a branch by force, and says how to get it back", async () => {
      repository();
      git("checkout", "--quiet", "-b", "side");
      write("b.txt", "b\n");
      git("add", ".");
      git("commit", "--quiet", "-m", "Side");
      const tip = git("rev-parse", "HEAD");
      git("checkout", "--quiet", "main");
      await expect(call({ action: "branch", name: "side", delete: true })).rejects.toThrow(
        /not fully merged/,
      );
      const output = await call({ action: "branch", name: "side", delete: true, force: true });
      expect(git("branch")).toBe("* main");
      await call(parseUndoCalls(output)[0] ?? {});
      expect(git("rev-parse", "side")).toBe(tip);
    });

    it("goes to branches and commits, and makes branches on the way", async () => {
      repository();
      expect(await call({ action: "checkout", create: "side" })).toBe("Now on branch side.");
      expect(await call({ action: "checkout", ref: "main" })).toBe("Now on branch main.");
      expect(await call({ action: "checkout", ref: "HEAD" })).toBe("Now on branch main.");
      expect(await call({ action: "checkout", ref: git("rev-parse", "HEAD") })).toBe(
        "Now on a detached HEAD.",
      );
      await expect(call({ action: "checkout", ref: "nowhere" })).rejects.toThrow(/nowhere/);
      await expect(call({ action: "checkout", ref: "--force" })).rejects.toThrow(/is not the name/);
      await expect(call({ action: "checkout" })).rejects.toThrow(/takes a ref/);
    });

    it("does not overwrite what is ignored on the way to a branch", async () => {
      repository();
      git("checkout", "--quiet", "-b", "side");
      write("local", "theirs\n");
      git("add", ".");
      git("commit", "--quiet", "-m", "Local");
      git("checkout", "--quiet", "main");
      write(".git/info/exclude", "local\n");
      write("local", "mine\n");
      await expect(call({ action: "checkout", ref: "side" })).rejects.toThrow(/overwritten/);
      expect(read("local")).toBe("mine\n");
    });

    it("unstages paths, and moves the branch without touching files", async () => {
      repository();
      write("a.txt", "changed\n");
      git("add", ".");
      await call({ action: "reset", paths: ["a.txt"] });
      expect(git("status", "--short")).toBe("M a.txt".padStart(8));
      git("commit", "--quiet", "-am", "Second");
      await call({ action: "reset", mode: "soft", ref: "HEAD~1" });
      expect(git("status", "--short")).toBe("M  a.txt");
      expect(read("a.txt")).toBe("changed\n");
    });

    it("stashes, lists, shows, applies, pops", async () => {
      repository();
      write("a.txt", "changed\n");
      write("b.txt", "new\n");
      await call({ action: "stash", operation: "push", message: "Half done", all: true });
      expect(existsSync(join(root, "b.txt"))).toBe(false);
      expect(await call({ action: "stash" })).toMatch(/stash@\{0\}: On main: Half done/);
      expect(await call({ action: "stash", operation: "show" })).toMatch(/\+changed/);
      await call({ action: "stash", operation: "pop" });
      expect([read("a.txt"), read("b.txt")]).toEqual(["changed\n", "new\n"]);
      expect(await call({ action: "stash" })).toBe("Nothing is stashed.");
    });

    it("drops a stash, and says how to get it back", async () => {
      repository();
      write("a.txt", "changed\n");
      git("stash", "--quiet");
      const output = await call({ action: "stash", operation: "drop" });
      await call(parseUndoCalls(output)[0] ?? {});
      expect(read("a.txt")).toBe("changed\n");
    });
  });

  /** The calls that a result names to undo it. */
  function parseUndoCalls(text: string): Record<string, unknown>[] {
    return text
      .split("\n")
      .filter((line) => line.startsWith("  {"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  describe("what cannot be undone", () => {
    /** Files of every kind, changed in every way. */
    function mess(): void {
      repository();
      write(".gitignore", "ignored\nkept-anyway\n");
      write("gone.txt", "soon gone\n");
      write("run.sh", "#!/bin/sh\n", 0o755);
      write("kept-anyway", "tracked\n");
      write("crlf.txt", "a\r\nb\nc\r\n");
      git("add", "-f", ".");
      git("commit", "--quiet", "-m", "Second");
      write(".gitattributes", "* text=auto\n*.txt text eol=lf ident\n");
      write("a.txt", "changed $Id$\r\nmixed\n");
      write("crlf.txt", "x\r\ny\nz\r\n");
      write("kept-anyway", "tracked, changed\n");
      write("staged.txt", "staged\n");
      git("add", "staged.txt");
      write("staged.txt", "staged, then changed\n");
      write("new/deep/file.bin", new Uint8Array([0, 255, 13, 10, 10]), 0o755);
      write('odd "name"\n\t*', "odd\n");
      chmodSync(join(root, "run.sh"), 0o644);
      rmSync(join(root, "gone.txt"));
      symlinkSync("a.txt", join(root, "link"));
      symlinkSync("nowhere", join(root, "dangling"));
      write("ignored", "ignored\n");
    }

    it("reset --hard: tracked files and HEAD are at the commit, and a call takes HEAD back", async () => {
      mess();
      const head = git("rev-parse", "HEAD");
      const output = await call({ action: "reset", mode: "hard", ref: "HEAD~1" });
      expect(git("rev-parse", "HEAD")).toBe(git("rev-parse", `${head}~1`));
      expect(output).toContain("Changes that were not committed are gone.");
      expect(read("a.txt")).toBe("one\ntwo\n");
      expect(read("ignored")).toBe("ignored\n");
      for (const back of parseUndoCalls(output)) await call(back);
      expect(git("rev-parse", "HEAD")).toBe(head);
      expect(read("gone.txt")).toBe("soon gone\n");
    });

    it("reset --hard: names no way back where HEAD stays", async () => {
      mess();
      expect(parseUndoCalls(await call({ action: "reset", mode: "hard" }))).toEqual([]);
    });

    it("clean: removes what is untracked and lists it; what is ignored stays", async () => {
      mess();
      const output = await call({ action: "clean" });
      expect(existsSync(join(root, "new"))).toBe(false);
      expect(existsSync(join(root, "link"))).toBe(false);
      expect(read("ignored")).toBe("ignored\n");
      expect(read("staged.txt")).toBe("staged, then changed\n");
      expect(output).toMatch(/^Removed 5 untracked files\./);
      expect(output).toContain("new/deep/file.bin");
      expect(await call({ action: "clean", paths: ["missing"] })).toBe(
        "There is nothing to remove.",
      );
    });

    it("checkout of paths: only they change", async () => {
      mess();
      const { "a.txt": changed, ...others } = tree();
      await call({ action: "checkout", paths: ["a.txt", "gone.txt"] });
      const { "a.txt": now, "gone.txt": back, ...rest } = tree();
      expect([now, back]).not.toContain(changed);
      expect(read("a.txt")).toBe("one\ntwo\n");
      expect(read("gone.txt")).toBe("soon gone\n");
      expect(rest).toEqual(others);
    });

    it("reset --hard ends a merge", async () => {
      repository();
      git("checkout", "--quiet", "-b", "side");
      write("a.txt", "side\n");
      git("commit", "--quiet", "-am", "Side");
      git("checkout", "--quiet", "main");
      write("a.txt", "main\n");
      git("commit", "--quiet", "-am", "Main");
      expect(() => git("merge", "side")).toThrow(/failed/);
      await call({ action: "reset", mode: "hard" });
      expect(read("a.txt")).toBe("main\n");
      expect(git("status", "--short")).toBe("");
    });

    it("repositories inside are left alone", async () => {
      repository();
      mkdirSync(join(root, "inner"));
      git("-C", "inner", "init", "--quiet");
      write("inner/file", "inner\n");
      git("-C", "inner", "add", ".");
      git("-C", "inner", "commit", "--quiet", "-m", "Inner");
      // One without a commit, too.
      mkdirSync(join(root, "fresh"));
      git("-C", "fresh", "init", "--quiet");
      write("loose", "loose\n");
      await call({ action: "clean" });
      expect(existsSync(join(root, "loose"))).toBe(false);
      expect(read("inner/file")).toBe("inner\n");
      expect(existsSync(join(root, "fresh", ".git"))).toBe(true);
    });

    it("push --force says what the other side was known to have", async () => {
      repository();
      const bare = join(base, "bare.git");
      git("init", "--quiet", "--bare", bare);
      git("remote", "add", "origin", bare);
      const options = { push: { protocols: ["file"] } };
      expect(await call({ action: "push" }, options)).toMatch(/^Pushed main to .*bare\.git\./);
      const lost = git("rev-parse", "HEAD");
      git("commit", "--quiet", "--amend", "-m", "Other");
      await expect(call({ action: "push" }, options)).rejects.toThrow(/rejected|failed/);
      const output = await call({ action: "push", force: true }, options);
      expect(output).toMatch(`was at ${lost} when last seen`);
      expect(git("--git-dir", bare, "rev-parse", "main")).toBe(git("rev-parse", "HEAD"));
    });

    it("places that tools may not change are refused", async () => {
      repository();
      git("checkout", "--quiet", "-b", "side");
      write(".vscode/tasks.json", "{}");
      git("add", ".");
      git("commit", "--quiet", "-m", "Tasks");
      git("checkout", "--quiet", "main");
      const refused = /\.vscode\/tasks\.json, which tools may not change/;
      await expect(call({ action: "checkout", ref: "side" })).rejects.toThrow(refused);
      await expect(call({ action: "checkout", ref: "side", paths: [".vscode"] })).rejects.toThrow(
        refused,
      );
      await expect(call({ action: "reset", mode: "hard", ref: "side" })).rejects.toThrow(refused);
      // Nor from a branch that has no commit yet.
      git("symbolic-ref", "HEAD", "refs/heads/fresh");
      await expect(call({ action: "checkout", ref: "side" })).rejects.toThrow(refused);
      await expect(call({ action: "reset", mode: "hard", ref: "side" })).rejects.toThrow(refused);
      expect(existsSync(join(root, ".vscode"))).toBe(false);
    });
  });

  describe("access", () => {
    it.each([
      [{ action: "status" }, "read", false],
      [{ action: "diff" }, "read", false],
      [{ action: "log" }, "read", false],
      [{ action: "blame", paths: ["a.txt"] }, "read", false],
      [{ action: "show" }, "read", false],
      [{ action: "branch" }, "read", false],
      [{ action: "stash" }, "read", false],
      [{ action: "add", all: true }, "write", false],
      [{ action: "commit", message: "x" }, "write", false],
      [{ action: "branch", name: "x" }, "write", false],
      [{ action: "branch", name: "x", delete: true }, "write", false],
      [{ action: "branch", name: "x", delete: true, force: true }, "write", true],
      [{ action: "checkout", ref: "main" }, "write", false],
      [{ action: "checkout", paths: ["a.txt"] }, "write", true],
      [{ action: "reset" }, "write", false],
      [{ action: "reset", mode: "soft" }, "write", false],
      [{ action: "reset", mode: "hard" }, "write", true],
      [{ action: "clean" }, "write", true],
      [{ action: "stash", operation: "push" }, "write", false],
      [{ action: "stash", operation: "pop" }, "write", false],
      [{ action: "stash", operation: "drop" }, "write", true],
      [{ action: "push" }, "network", false],
      [{ action: "push", force: true }, "network", true],
    ] as const)("%j is %s, destructive: %s", async (args, kind, destructive) => {
      repository();
      git("remote", "add", "origin", "https://user:secret@example.org/x.git");
      const found = await access({ ...args });
      expect([found.kind, found.destructive === true]).toEqual([kind, destructive]);
      expect(found.summary).toMatch(new RegExp(`^git ${args.action}`));
      if (kind === "network") expect(found.targets).toEqual(["https://example.org/x.git"]);
    });

    it("reports what would be touched, resolved", async () => {
      repository();
      mkdirSync(join(root, "real"));
      write("real/x", "x\n");
      symlinkSync("real", join(root, "alias"));
      write("a.txt", "changed\n");
      expect((await access({ action: "add", paths: ["./alias/../alias/x"] })).targets).toEqual([
        "real/x",
      ]);
      expect((await access({ action: "reset", mode: "hard" })).targets).toEqual(["a.txt"]);
      expect(await access({ action: "clean" })).toMatchObject({
        targets: ["alias", "real/x"],
        summary: "git clean (2 files would change)",
      });
    });

    it("refuses what makes no sense", async () => {
      repository();
      await expect(access({ action: "status", force: true })).rejects.toThrow(
        /git status does not take force\. It takes: paths\./,
      );
      await expect(access({ action: "status", forse: true })).rejects.toThrow(/not take forse/);
      await expect(access({ action: "rebase" })).rejects.toThrow(/action/);
      for (const [args, words] of [
        [{ action: "log", offset: 0 }, /offset has to be at least 1/],
        [{ action: "log", limit: 0 }, /limit has to be at least 1/],
        [{ action: "diff", context: -1 }, /context has to be at least 0/],
        [{ action: "commit", message: "" }, /message is empty/],
        [{ action: "add", paths: [""] }, /path is empty/],
      ] as const) {
        await expect(access(args)).rejects.toThrow(words);
        await expect(call(args)).rejects.toThrow(words);
      }
      await expect(access({ action: "add", paths: ["../x"] })).rejects.toThrow(/x/);
      await expect(call({ action: "add", paths: ["/etc/passwd"] })).rejects.toThrow(/passwd/);
    });
  });

  describe("where the repository is", () => {
    it("says where there is none", async () => {
      await expect(call({ action: "status" })).rejects.toThrow(
        /There is no git repository at .*work or further up\./,
      );
    });

    it("does not follow a file or link that leads out, unless that was allowed", async () => {
      const outside = join(base, "outside");
      execFileSync("git", ["init", "--quiet", outside]);
      writeFileSync(join(root, ".git"), `gitdir: ${join(outside, ".git")}\n`);
      await expect(call({ action: "status" })).rejects.toThrow(/outside of the workspace/);
      expect(await call({ action: "status" }, { repositories: [outside] })).toMatch(/On branch/);
      rmSync(join(root, ".git"));
      symlinkSync(join(outside, ".git"), join(root, ".git"));
      await expect(call({ action: "status" })).rejects.toThrow(/\.git/);
    });

    it("is not led elsewhere by a file commondir in a folder .git, which git does not make", async () => {
      repository();
      git("init", "--quiet", "--initial-branch=main", "evil");
      git("-C", "evil", "commit", "--quiet", "--allow-empty", "-m", "Evil");
      write(".git/commondir", "../evil/.git\n");
      for (const args of [{ action: "log" }, { action: "status" }, { action: "add", all: true }]) {
        await expect(call(args)).rejects.toThrow(/commondir leads git to another repository/);
      }
      const inner = await openWorkspace(join(root, "evil"));
      rmSync(join(root, "evil", ".git"), { recursive: true });
      await expect(
        gitTool({ ...env, workspace: inner }).access({ action: "push" }),
      ).rejects.toThrow(/commondir leads git to another repository/);
      await inner.close();
      rmSync(join(root, ".git", "commondir"));
      expect(await call({ action: "log" })).toContain("First");
    });

    it("does not follow a link inside of the repository that leads out", async () => {
      repository();
      const outside = join(base, "outside");
      mkdirSync(outside);
      rmSync(join(root, ".git", "refs", "tags"), { recursive: true });
      symlinkSync(outside, join(root, ".git", "refs", "tags"));
      await expect(call({ action: "status" })).rejects.toThrow(/refs\/tags/);
    });

    it.each([
      ["names it", true],
      ["does not, but it points back", false],
    ])(
      "works in a linked worktree of a repository elsewhere: `repositories` %s",
      async (_, isNamed) => {
        repository();
        git("worktree", "add", "--quiet", join(base, "linked"));
        const linked = await openWorkspace(join(base, "linked"));
        const tool = gitTool(
          { ...env, workspace: linked },
          isNamed ? { repositories: [root] } : {},
        );
        const signal = new AbortController().signal;
        const host = { call: () => Promise.reject(new Error("not here")) };
        const output = await tool.execute(
          { action: "status" },
          { id: "c", signal, update: () => {}, host, messages: [] },
        );
        expect(joinText(output as AgentToolResult)).toMatch(/On branch linked/);
        writeFileSync(join(base, "linked", "x"), "x\n");
        await tool.execute(
          { action: "add", all: true },
          { id: "c", signal, update: () => {}, host, messages: [] },
        );
        await tool.execute(
          { action: "commit", message: "X" },
          { id: "c", signal, update: () => {}, host, messages: [] },
        );
        expect(git("log", "-1", "--format=%s", "linked")).toBe("X");
        await linked.close();
      },
    );

    it("stays in the workspace where the config names another working tree", async () => {
      repository();
      const outside = join(base, "outside");
      mkdirSync(outside);
      writeFileSync(join(outside, "precious"), "precious");
      git("config", "core.worktree", outside);
      write("loose", "loose\n");
      expect(await call({ action: "status" })).toMatch(/loose/);
      await call({ action: "clean" });
      await call({ action: "reset", mode: "hard" });
      expect(readdirSync(outside)).toEqual(["precious"]);
      expect(read("a.txt")).toBe("one\ntwo\n");
    });
  });

  describe("in a folder of a repository", () => {
    const SECRET = "outside-secret";

    /** A repository around the workspace with four commits, the last one a merge, and a stash. */
    function outerRepository(): void {
      const outside = (text: string): void => writeFileSync(join(base, "outside.txt"), text);
      git("-C", base, "init", "--quiet", "--initial-branch=main");
      writeFileSync(join(base, ".gitignore"), "/home\n/spool\nignored\n");
      outside(`${SECRET} 1\n`);
      write("a.txt", "one\n");
      write("in/b.txt", "b\n");
      git("-C", base, "add", ".");
      git("commit", "--quiet", "-m", "First");
      git("checkout", "--quiet", "-b", "side");
      outside(`${SECRET} side\n`);
      write("a.txt", "side\n");
      git("commit", "--quiet", "-am", "Side");
      git("checkout", "--quiet", "main");
      outside(`${SECRET} 2\n`);
      git("commit", "--quiet", "-am", "Of the outside alone");
      write("a.txt", "main\n");
      git("commit", "--quiet", "-am", "Main");
      expect(() => git("merge", "side")).toThrow(/failed/);
      outside(`${SECRET} merged\n`);
      write("a.txt", "merged\n");
      git("commit", "--quiet", "-am", "Merge");
      outside(`${SECRET} stashed\n`);
      write("a.txt", "stashed\n");
      git("stash", "--quiet");
      outside(`${SECRET} 3\n`);
      writeFileSync(join(base, "loose.txt"), `${SECRET}\n`);
      write("a.txt", "changed\n");
      write("new.txt", "new\n");
      write("ignored", "x\n");
    }

    it("shows the workspace and nothing else", async () => {
      outerRepository();
      const cases: [Record<string, unknown>, RegExp][] = [
        [{ action: "status" }, /:\n {2}M a\.txt\nUntracked \(1\):\n {2}new\.txt$/],
        [{ action: "status", paths: ["new.txt"] }, /:\n {2}new\.txt$/],
        [{ action: "diff" }, /a\/a\.txt b\/a\.txt\n[^]*\+changed/],
        [{ action: "diff", ref: "HEAD~1", to: "HEAD" }, /a\/a\.txt[^]*\+merged/],
        [{ action: "diff", ref: "HEAD~3", stat: true }, /^[^/]* a\.txt \|/],
        [{ action: "log" }, /Merge\n[^]*Main\n[^]*First/],
        [{ action: "log", paths: ["in"] }, /First/],
        [{ action: "blame", paths: ["a.txt"], ref: "HEAD" }, /1: merged/],
        [{ action: "show", ref: "HEAD~1" }, /Main\n[^]*a\/a\.txt b\/a\.txt[^]*\+main/],
        [{ action: "show" }, /Merge\n[^]*\+\+merged/],
        [{ action: "show", ref: "HEAD~3..HEAD" }, /Main/],
        [{ action: "show", paths: ["a.txt"] }, /^merged$/m],
        [{ action: "show", paths: ["."] }, /a\.txt\n[^]*in$/m],
        [{ action: "branch" }, /\* main/],
        [{ action: "stash" }, /stash@\{0\}/],
        [{ action: "stash", operation: "show" }, /a\/a\.txt[^]*\+stashed/],
      ];
      for (const [args, words] of cases) {
        const text = await call(args);
        expect(text).toMatch(words);
        expect(text).not.toMatch(/outside|loose|ignored/);
      }
    });

    it("shows nothing of a commit that changes nothing in the workspace", async () => {
      outerRepository();
      expect(await call({ action: "show", ref: "HEAD~2" })).toBe("Nothing to show.");
    });

    it("shows no content or folder by its id alone", async () => {
      outerRepository();
      const blob = git("rev-parse", "HEAD:outside.txt");
      const other = git("rev-parse", "HEAD~1:outside.txt");
      const folder = git("rev-parse", "HEAD^{tree}");
      for (const args of [
        { action: "show", ref: blob },
        { action: "show", ref: folder },
        { action: "show", ref: "HEAD^{tree}" },
        { action: "show", ref: folder, paths: ["a.txt"] },
        { action: "diff", ref: other, to: blob },
        { action: "diff", ref: `${other}..${blob}` },
      ]) {
        await expect(call(args)).rejects.toThrow(/is not a commit, and the repository has files/);
      }
      for (const path of ["../outside.txt", join(base, "outside.txt")]) {
        await expect(call({ action: "show", paths: [path] })).rejects.toThrow(/outside/);
        await expect(call({ action: "blame", paths: [path] })).rejects.toThrow(/outside/);
      }
    });

    it("names no file that came from outside", async () => {
      outerRepository();
      git("mv", "../outside.txt", "moved.txt");
      for (const args of [{ action: "status" }, { action: "diff", staged: true, stat: true }]) {
        const text = await call(args);
        expect(text).toContain("moved.txt");
        expect(text).not.toMatch(/outside\.txt/);
      }
    });

    it("changes nothing, and is not asked about what would", async () => {
      outerRepository();
      const before = [tree(base), git("for-each-ref"), git("status", "--porcelain")];
      for (const args of [
        { action: "add", all: true },
        { action: "commit", message: "x" },
        { action: "branch", name: "x" },
        { action: "checkout", paths: ["a.txt"] },
        { action: "reset", mode: "hard" },
        { action: "clean" },
        { action: "push" },
        { action: "stash", operation: "pop" },
      ]) {
        for (const attempt of [access, call]) {
          await expect(attempt(args)).rejects.toThrow(/only reads there: run git \w+ with shell\./);
        }
      }
      expect([tree(base), git("for-each-ref"), git("status", "--porcelain")]).toEqual(before);
    });

    it("works in a folder of a linked worktree", async () => {
      outerRepository();
      git("worktree", "add", "--quiet", join(base, "linked"));
      const linked = await openWorkspace(join(base, "linked", "work"));
      env = { ...env, workspace: linked };
      writeFileSync(join(base, "linked", "work", "a.txt"), "of the worktree\n");
      expect(await call({ action: "status" })).toMatch(/On branch linked[^]*M a\.txt$/);
      expect(await call({ action: "diff" })).toContain("+of the worktree");
      await linked.close();
    });

    it.runIf(process.geteuid?.() === 0)("does not use a repository of another user", async () => {
      outerRepository();
      chownSync(join(base, ".git"), 65_534, 65_534);
      await expect(call({ action: "status" })).rejects.toThrow(/belongs to another user/);
    });

    it("works inside of the sandbox", { tags: "bubblewrap" }, async () => {
      env = { ...env, sandbox: () => createSandbox() };
      outerRepository();
      expect(await call({ action: "status" })).toMatch(/M a\.txt\nUntracked \(1\):\n  new\.txt$/);
      expect(await call({ action: "diff" })).toMatch(/\+changed$/m);
    });
  });

  it("ends when it is aborted", async () => {
    repository();
    const controller = new AbortController();
    controller.abort();
    await expect(
      gitTool(env).execute(
        { action: "status" },
        {
          id: "c",
          signal: controller.signal,
          update: () => {},
          host: {
            call: () => Promise.reject(new Error("not here")),
          },
          messages: [],
        },
      ),
    ).rejects.toThrow(/was stopped/);
  });

  it("says so where there is no git", async () => {
    repository();
    await expect(call({ action: "status" }, { program: "no-such-git" })).rejects.toThrow(
      /Cannot start no-such-git/,
    );
  });

  it("works inside of the sandbox", { tags: "bubblewrap" }, async () => {
    env = { ...env, sandbox: () => createSandbox() };
    repository();
    write("a.txt", "changed\n");
    write("b.txt", "new\n");
    await call({ action: "add", all: true });
    // The home folder of this test is in a /tmp that programs do not see.
    const author = { name: "Ada", email: "ada@example.org" };
    await call({ action: "commit", message: "Second" }, { author });
    write("b.txt", "lost\n");
    expect(await call({ action: "diff" })).toMatch(/\+lost/);
    await call({ action: "reset", mode: "hard" });
    expect(read("b.txt")).toBe("new\n");
  });
});
