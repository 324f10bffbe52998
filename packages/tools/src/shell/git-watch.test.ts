import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@gyre/ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolEnv } from "../contract/env.ts";
import { createSandbox } from "../sandbox/sandbox.ts";
import { modelText } from "../testing/model-text.ts";
import { SeenFiles } from "../workspace/seen.ts";
import { openWorkspace } from "../workspace/workspace.ts";
import { JobTable } from "./jobs/job-table.ts";
import { shellTool, type ShellOptions } from "./tool.ts";

let folder: string;
let root: string;
/** Outside of the workspace: is there once something ran with the user's rights. */
let canary: string;
let env: ToolEnv;

beforeEach(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "gyre-git-watch-")));
  root = join(folder, "work");
  canary = join(folder, "canary");
  mkdirSync(root);
  mkdirSync(join(folder, "spool"), { mode: 0o700 });
  env = {
    workspace: await openWorkspace(root),
    seen: new SeenFiles(),
    sandbox: () => createSandbox(),
    spoolFolder: join(folder, "spool"),
    environment: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: tmpdir() },
    clock: systemClock,
  };
});
afterEach(async () => {
  await env.workspace.close();
  await rm(folder, { recursive: true, force: true });
});

async function shell(command: string, options: ShellOptions = {}, more = {}): Promise<string> {
  const tool = shellTool(env, options);
  const result = await tool.execute(
    { command, ...more },
    {
      id: "c",
      signal: new AbortController().signal,
      update() {},
      host: { call: () => Promise.reject(new Error("There is nothing else to call.")) },
      messages: [],
    },
  );
  return modelText(result);
}

/** git as the user runs it, with their rights. */
function git(cwd: string, ...args: string[]): string {
  const env = { PATH: process.env["PATH"], HOME: folder, GIT_EDITOR: "true" };
  const identity = [
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@b",
    "-c",
    "protocol.file.allow=always",
  ];
  return execFileSync("git", [...identity, ...args], { cwd, env, encoding: "utf8", stdio: "pipe" });
}

function startRepository(at = root): void {
  mkdirSync(at, { recursive: true });
  git(at, "init", "-q", "-b", "main");
  writeFileSync(join(at, "file"), "1\n");
  git(at, "add", ".");
  git(at, "commit", "-qm", "one");
}

const asAda = "git -c user.name=a -c user.email=a@b";
const commitFile = (text: number): string => `echo ${text} > file && ${asAda} commit -qam ${text}`;

const monitor = (): string => `git config core.fsmonitor 'touch ${canary}; false'`;

describe("git settings that a sandboxed command leaves", { tags: "bubblewrap" }, () => {
  it("run nothing in a new repository", async () => {
    const text = await shell(`git init -q . && ${monitor()} && echo ok`);
    expect(text).toContain("It made .git/config, which has git run a program (core.fsmonitor).");
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
    const aside = /put aside: (\S+)\. /.exec(text)?.[1] ?? "";
    expect(await readFile(aside, "utf8")).toContain("fsmonitor");
  });

  it("run nothing by hooks of a new repository", async () => {
    const hook = `printf '#!/bin/sh\\ntouch ${canary}' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit`;
    const text = await shell(`git init -q . && mkdir -p .git/hooks && ${hook}`);
    expect(text).toContain("It made .git/hooks/pre-commit, which git runs.");
    git(root, "commit", "-qm", "x", "--allow-empty");
    expect(existsSync(canary)).toBe(false);
  });

  it("run nothing in a repository inside of the repository", async () => {
    startRepository();
    const text = await shell(
      `git init -q sub && (cd sub && git -c user.name=a -c user.email=b commit -qm x --allow-empty && ${monitor()}) && git add sub`,
    );
    expect(text).toContain("It made sub/.git/config, which");
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
  });

  it.each([
    ["in its name", "sub\\377"],
    ["in the name of a folder above it", "a\\377/sub"],
  ])("run nothing in a repository with a byte that is no text %s", async (_where, name) => {
    startRepository();
    const text = await shell(
      `d=$(printf '${name}') && mkdir -p "$d" && git init -q "$d" && (cd "$d" && ${asAda} commit -qm x --allow-empty && ${monitor()}) && git add "$d"`,
    );
    expect(text).toMatch(
      /^It made .*sub\S*\/\.git.*, which is a repository in a folder whose name is no text\./m,
    );
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
    // What is as it was is left alone.
    expect(await shell("echo 2 > file && git add file")).not.toContain("put aside");
  });

  it.each([
    ["a file", "printf 'gitdir: ../.git/modules/x\\377' > sub/.git"],
    ["a link", `ln -s "$d" sub/.git`],
    ["a file and a link", `ln -s "$d" way && printf 'gitdir: ../way' > sub/.git`],
    [
      "a commondir",
      `git init -q sub && cp -r "$d"/* sub/.git/ && rm sub/.git/config && printf '../../.git/modules/x\\377' > sub/.git/commondir`,
    ],
  ])("run nothing where %s leads git to a name that is no text", async (_what, lead) => {
    startRepository();
    const text = await shell(
      `d=$PWD/.git/modules/$(printf 'x\\377') && mkdir -p .git/modules && git init -q tmp && (cd tmp && ${asAda} commit -qm x --allow-empty && ${monitor()}) && ` +
        `id=$(git -C tmp rev-parse HEAD) && mv tmp/.git "$d" && mkdir -p sub && ${lead} && git update-index --add --cacheinfo 160000,$id,sub`,
    );
    expect(text).toMatch(/which leads git to a place whose name is no text/);
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
  });

  it.each([
    ["the workspace", "."],
    ["the hooks", "sub/.git/hooks"],
    ["the folder of git", ".git"],
    ["a folder above", "sub"],
  ])("run nothing where a command took the right to list %s", async (_what, closed) => {
    startRepository();
    const hook = `mkdir -p .git/hooks && printf '#!/bin/sh\\ntouch ${canary}' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit`;
    const text = await shell(
      `git init -q sub && (cd sub && ${asAda} commit -qm x --allow-empty && ${hook} && ${monitor()}); git add sub; chmod 0311 ${closed}`,
    );
    expect(text).toContain("It made sub/.git/hooks/pre-commit, which git runs.");
    expect(text).toContain("It made sub/.git/config, which");
    git(root, "status");
    git(join(root, "sub"), "commit", "-qm", "y", "--allow-empty");
    expect(existsSync(canary)).toBe(false);
  });

  it("run nothing behind more repositories than are looked at", async () => {
    startRepository();
    const make = (at: string): string =>
      `mkdir -p ${at} && git init -q ${at} && (cd ${at} && ${asAda} commit -qm x --allow-empty)`;
    const text = await shell(
      `m=node_modules/p/x/m && ${make("$m")} && ${make("$m/n")} && (cd $m/n && ${monitor()}) && ` +
        `git -C $m add n && git -C $m -c user.name=a -c user.email=a@b commit -qm n && id=$(git -C $m rev-parse HEAD) && ` +
        `(for i in $(seq 20100); do printf "160000 $id\\tg/$i\\n"; done; printf "160000 $id\\t$m\\n") | git update-index --index-info`,
    );
    expect(text).toContain("It made node_modules/p/x/m/n/.git/config, which");
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
  });

  it("run nothing behind more folders than are looked at before it", { tags: "long" }, async () => {
    startRepository();
    const text = await shell(
      `mkdir -p d && cd d && mkdir $(seq 20100) && git init -q zz/s && cd zz/s && ${monitor()}`,
    );
    expect(text).toContain("It made d/zz/s/.git/config, which");
    git(join(root, "d/zz/s"), "status");
    expect(existsSync(canary)).toBe(false);
  });

  it("run nothing in a submodule", async () => {
    startRepository(join(folder, "other"));
    startRepository();
    git(root, "submodule", "--quiet", "add", join(folder, "other"), "sm");
    git(root, "commit", "-qm", "two");
    const text = await shell(`cd sm && ${monitor()}`);
    expect(text).toContain("It changed .git/modules/sm/config, which has git run a program");
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
  });

  it("run nothing by config.worktree", async () => {
    startRepository();
    git(root, "config", "extensions.worktreeConfig", "true");
    const set = `git config --worktree core.fsmonitor 'touch ${canary}; false'`;
    expect(await shell(set)).toMatch(
      /^Not kept in \.git\/config\.worktree, .*: core\.fsmonitor\./m,
    );
    expect(existsSync(join(root, ".git/config.worktree"))).toBe(false);
    const text = await shell(
      `printf '[core]\nfsmonitor = "touch ${canary}; false"\n' > .git/gyre-shared/config.worktree`,
    );
    expect(text).toContain("Read-only file system");
    expect(existsSync(join(root, ".git/config.worktree"))).toBe(false);
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
  });

  it("run nothing in a bare repository that is one no more", async () => {
    startRepository();
    const text = await shell(
      `git init -q --bare sub && cd sub && ${monitor()} && git config core.bare false && git config core.worktree ..`,
    );
    expect(text).toContain("It made sub/config, which");
    expect(() => git(join(root, "sub"), "status")).toThrow("must be run in a work tree");
    expect(existsSync(canary)).toBe(false);
  });

  it("run nothing where a file or a link leads git to a repository that was there", async () => {
    startRepository(join(root, "kept"));
    git(join(root, "kept"), "config", "core.fsmonitor", `touch ${canary}; false`);
    const text = await shell(
      "mkdir a b && echo 'gitdir: ../kept/.git' > a/.git && ln -s ../kept/.git b/.git",
    );
    expect(text).toContain("It made a/.git, which leads git to settings that run a program");
    expect(text).toContain("It made b/.git, which");
    expect(existsSync(join(root, "kept/.git/config"))).toBe(true);
    for (const name of ["a", "b"])
      expect(() => git(join(root, name), "status")).toThrow("not a git");
    expect(existsSync(canary)).toBe(false);
  });

  it("run nothing where a folder of git is moved into its place", async () => {
    startRepository(join(root, "kept"));
    git(join(root, "kept"), "config", "core.fsmonitor", `touch ${canary}; false`);
    expect(await shell("mv kept other")).toContain("It made other/.git/config, which");
  });

  it("lead a push nowhere by remotes of the old form", async () => {
    startRepository();
    const text = await shell(
      "mkdir -p .git/remotes .git/branches && echo 'URL: sub/bare.git' > .git/remotes/origin && echo sub/bare.git > .git/branches/origin",
    );
    expect(text).toContain(
      "It made .git/remotes/origin, which names a repository that git pushes to.",
    );
    expect(text).toContain("It made .git/branches/origin, which");
    expect(() => git(root, "push", "origin", "main")).toThrow("does not appear to be a git repo");
  });

  it("run nothing when a rebase is continued", async () => {
    startRepository();
    const at = ".git/gyre-shared/rebase-merge";
    const todo = `mkdir ${at} && echo 'exec touch ${canary}' > ${at}/git-rebase-todo`;
    expect(await shell(todo)).toContain(
      "It made .git/rebase-merge/git-rebase-todo, which has git run a program (exec).",
    );
    expect(existsSync(join(root, ".git/rebase-merge/git-rebase-todo"))).toBe(false);
  });

  it("leave a rebase that can be continued, without the programs that it was to run", async () => {
    startRepository();
    const text = await shell(
      `git switch -qc topic && ${commitFile(2)} && ${commitFile(3)} && git switch -q main && ${commitFile(4)} && ` +
        `git switch -q topic && ${asAda} rebase -q -x 'touch ${canary}' main`,
    );
    expect(text).toContain("The lines with exec were taken out of what is left of the rebase");
    expect(text).not.toContain("put aside");
    writeFileSync(join(root, "file"), "3\n");
    git(root, "add", "file");
    git(root, "rebase", "--continue");
    expect(existsSync(canary)).toBe(false);
    expect(git(root, "log", "--format=%s")).toBe("3\n2\n4\none\n");
  });

  it("run no strategy that is a file of the workspace when a rebase or a pick is continued", async () => {
    startRepository();
    const script = `mkdir git-merge-x && printf '#!/bin/sh\\ntouch ${canary}' > git-merge-x/y && chmod +x git-merge-x/y`;
    const text = await shell(
      `${script} && git switch -qc topic && ${commitFile(2)} && ${commitFile(3)} && git switch -q main && ` +
        `${commitFile(4)} && git switch -q topic && ${asAda} rebase -q -s ort main; echo x/y > .git/rebase-merge/strategy`,
    );
    expect(text).toContain("It made .git/rebase-merge/strategy, which has git run a program.");
    writeFileSync(join(root, "file"), "5\n");
    git(root, "add", "file");
    try {
      git(root, "rebase", "--continue");
    } catch {
      // It stops at the next conflict, or not.
    }
    expect(existsSync(canary)).toBe(false);
    const options =
      "mkdir .git/sequencer; printf '[options]\\nstrategy = x/y' > .git/sequencer/opts";
    expect(await shell(options)).toContain("It made .git/sequencer/opts, which has git run");
    expect(await shell(options.replace("x/y", "ort"))).not.toContain("put aside");
  });

  it("are found with the next command where a background job left them", async () => {
    startRepository();
    const jobs = new JobTable(env);
    await shell(`git init -q sub && cd sub && ${monitor()}`, { jobs }, { background: true });
    await jobs.ended("job-1");
    expect(await shell("true", { jobs })).toContain("It made sub/.git/config, which");
    await jobs.close();
  });

  it("run nothing where a background job left them and no command follows", async () => {
    startRepository();
    const jobs = new JobTable(env);
    const commit = `${asAda} commit -qm x --allow-empty`;
    const job = `git init -q sub && (cd sub && ${commit} && ${monitor()}) && git add sub && touch made && sleep 1000`;
    await shell(job, { jobs }, { background: true });
    await expect.poll(() => existsSync(join(root, "made"))).toBe(true);
    await jobs.close();
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
  });

  it("are found in packages, and further down where the index leads there", async () => {
    startRepository();
    const commit = "git -c user.name=a -c user.email=b commit -qm x --allow-empty";
    const text = await shell(
      ["node_modules/a", "node_modules/@s/b", "node_modules/c/d/e/f"]
        .map((path) => `(git init -q ${path} && cd ${path} && ${commit} && ${monitor()})`)
        .concat("git add -f node_modules/c/d/e/f")
        .join(" && "),
    );
    for (const path of ["a", "@s/b", "c/d/e/f"]) {
      expect(text).toContain(`It made node_modules/${path}/.git/config, which`);
    }
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
  });

  it("are never taken from outside of the workspace, wherever files and links lead", async () => {
    startRepository();
    const other = join(folder, "other");
    startRepository(other);
    git(other, "config", "core.fsmonitor", `touch ${canary}; false`);
    const text = await shell(
      `mkdir a && echo 'gitdir: ${other}/.git' > a/.git && rm -rf .git/gyre-shared/modules && ln -s ${folder} .git/gyre-shared/modules && ` +
        `git update-index --add --cacheinfo 160000,${git(root, "rev-parse", "HEAD").trim()},b && ln -s ${other} b`,
    );
    expect(text).toContain("It made a/.git, which leads git to settings that run a program");
    expect(text).toContain("It made .git/modules, which is a link in a folder of git.");
    expect(git(other, "config", "core.fsmonitor")).toContain(canary);
    expect(text).not.toContain("could not be put aside");
    expect(existsSync(join(root, "a/.git"))).toBe(false);
  });

  it("are found where the index of a repository inside leads to them", async () => {
    startRepository();
    const commit = "git -c user.name=a -c user.email=b commit -qm x --allow-empty";
    const deep = "node_modules/c/d/e/f";
    const text = await shell(
      `git init -q sub && cd sub && git init -q ${deep} && (cd ${deep} && ${commit} && ${monitor()}) && git add -f ${deep} && ${commit} && cd .. && git add sub`,
    );
    expect(text).toContain(`It made sub/${deep}/.git/config, which`);
    git(root, "status");
    expect(existsSync(canary)).toBe(false);
  });

  it("stay where they run nothing, and where the user had made them", async () => {
    startRepository();
    startRepository(join(root, "own"));
    git(join(root, "own"), "config", "core.fsmonitor", `touch ${canary}; false`);
    const text = await shell(
      "git init -q sub && cd sub && git remote add origin https://example.org/a.git && git config user.name Ada && git config core.fsmonitor true && cd ../own && touch .git/index",
    );
    expect(text).not.toContain("put aside");
    expect(git(join(root, "sub"), "config", "remote.origin.url")).toBe(
      "https://example.org/a.git\n",
    );
    expect(git(join(root, "own"), "config", "core.fsmonitor")).toContain(canary);
  });
});

/** An index with these files, executable ones, as git would not write it. */
const INDEX_SCRIPT = `
import hashlib, struct, subprocess, sys
data = b"DIRC" + struct.pack(">II", 2, len(sys.argv) - 1)
for name in sorted(sys.argv[1:]):
    id = subprocess.run(["git", "hash-object", "-w", "--stdin"], input=b"#!/bin/sh\\ntouch CANARY\\n", stdout=subprocess.PIPE).stdout
    entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100755, 0, 0, 0) + bytes.fromhex(id.decode().strip())
    entry += struct.pack(">H", len(name)) + name.encode()
    data += entry + bytes(8 - len(entry) % 8)
open(".git/gyre-shared/index", "wb").write(data + hashlib.sha1(data).digest())
`;

describe("the user's own git", { tags: "bubblewrap" }, () => {
  it("writes through no link that a command made in its folder", async () => {
    startRepository();
    const profile = join(folder, "profile");
    writeFileSync(profile, "# mine\n");
    const text = await shell(
      `ln -sf ${profile} .git/gyre-shared/COMMIT_EDITMSG && ln -sf ${profile} .git/logs/HEAD && ` +
        `ln -sf ${profile} .git/logs/refs/heads/main && mv .git/info .git/gyre-shared/moved; ` +
        `ln -s ${folder} .git/logs/refs/remotes && git worktree add -q w && ln -sf ${profile} .git/worktrees/w/logs/HEAD`,
    );
    for (const name of [
      "COMMIT_EDITMSG",
      "logs/HEAD",
      "logs/refs/heads/main",
      "logs/refs/remotes",
    ]) {
      expect(text).toContain(`.git/${name}, which is a link in a folder of git. It was put aside`);
    }
    expect(text).toContain(".git/worktrees/w/logs/HEAD, which is a link");
    git(root, "commit", "-qm", "two", "--allow-empty");
    git(join(root, "w"), "commit", "-qm", "three", "--allow-empty");
    expect(await readFile(profile, "utf8")).toBe("# mine\n");
  });

  it("checks out no hook, and nothing outside, by names that a command put into an index", async () => {
    startRepository();
    writeFileSync(join(root, "make.py"), INDEX_SCRIPT.replace("CANARY", canary));
    for (const name of ["../outside", ".git/hooks/post-checkout", "/outside", "a/.GIT/hooks/x"]) {
      const text = await shell(`python3 make.py file ${name}`);
      expect(text).toContain("It changed .git/index, which has git write to places outside.");
      git(root, "reset", "-q");
      git(root, "checkout", ".");
      expect(existsSync(join(folder, "outside"))).toBe(false);
      expect(existsSync(canary)).toBe(false);
    }
    expect(await shell("python3 make.py a/b file .gitignore ..a")).not.toContain("put aside");
    git(root, "reset", "-q");
    expect(
      await shell("git update-index --split-index; echo 2 >> file; git add file"),
    ).not.toContain("put aside");
  });

  it("writes to no other working tree that a repository inside names", async () => {
    startRepository();
    const text = await shell(
      `git init -q sub && cd sub && echo x > outside && git add . && ${asAda} commit -qm x && git config core.worktree ${folder}`,
    );
    expect(text).toContain(
      "It made sub/.git/config, which has git write elsewhere (core.worktree).",
    );
    git(join(root, "sub"), "reset", "-q", "--hard");
    expect(existsSync(join(folder, "outside"))).toBe(false);
    expect(await shell("git init -q b && git -C b config core.worktree ../../sub")).not.toContain(
      "put aside",
    );
  });

  it("keeps its settings where the user adds one that runs something while a command runs", async () => {
    startRepository();
    const running = shell("until [ -e go ]; do sleep 0.01; done");
    await expect.poll(() => readdirSync(join(folder, "spool")).length).toBeGreaterThan(1);
    git(root, "config", "alias.st", "!git status");
    git(root, "remote", "add", "origin", "https://example.org/a.git");
    writeFileSync(join(root, "go"), "");
    const text = await running;
    expect(text).toContain("It changed .git/config, which has git run a program (alias.st).");
    expect(git(root, "remote")).toBe("origin\n");
    expect(git(root, "config", "--local", "--list")).not.toContain("alias.");
    const aside = /put aside: (\S+)\. /.exec(text)?.[1] ?? "";
    expect(await readFile(aside, "utf8")).toContain("git status");
  });

  it("is led to no other folder, also not while a job runs", async () => {
    startRepository();
    const jobs = new JobTable(env);
    const pointer = "echo ../evil > .git/gyre-shared/commondir; touch made; sleep 1000";
    await shell(pointer, { jobs }, { background: true });
    await expect.poll(() => existsSync(join(root, "made"))).toBe(true);
    await expect.poll(() => existsSync(join(root, ".git/commondir"))).toBe(false);
    await jobs.close();
  });

  it("is not marked as trusted by a command", async () => {
    startRepository();
    const text = await shell("mkdir .git/safe; echo x > .git/gyre-shared/lazygit.yml");
    expect(text).toContain("It made .git/safe, which programs that use git trust.");
    expect(text).toContain("It made .git/lazygit.yml, which");
  });
});
