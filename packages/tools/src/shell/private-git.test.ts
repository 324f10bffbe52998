import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@gyre/ai";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { ToolEnv } from "../contract/env.ts";
import { createSandbox } from "../sandbox/sandbox.ts";
import { modelText } from "../testing/model-text.ts";
import { SeenFiles } from "../workspace/seen.ts";
import { openToolset } from "../toolset.ts";
import { openWorkspace } from "../workspace/workspace.ts";
import { JobTable } from "./jobs/job-table.ts";
import { shellTool, type ShellOptions } from "./tool.ts";

let folder: string;
let root: string;
let env: ToolEnv;

beforeEach(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "gyre-private-git-")));
  mkdirSync(join(folder, "spool"), { mode: 0o700 });
  root = join(folder, "work");
  startRepository(root);
  await openEnv(root);
});
afterEach(async () => {
  await env.workspace.close();
  await rm(folder, { recursive: true, force: true });
});

async function openEnv(at: string): Promise<void> {
  env = {
    workspace: await openWorkspace(at),
    seen: new SeenFiles(),
    sandbox: () => createSandbox(),
    spoolFolder: join(folder, "spool"),
    environment: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: join(folder, "home") },
    clock: systemClock,
  };
}

async function shell(command: string, options: ShellOptions = {}, more = {}): Promise<string> {
  const result = await shellTool(env, options).execute(
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
  const given = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
  const options = { cwd, env, encoding: "utf8", stdio: "pipe" } as const;
  return execFileSync("git", [...given, ...args], options);
}

function startRepository(at: string): void {
  mkdirSync(at, { recursive: true });
  git(at, "init", "-q", "-b", "main");
  git(at, "config", "user.name", "Ada");
  git(at, "config", "user.email", "ada@example.org");
  writeFileSync(join(at, "file"), "1\n");
  git(at, "add", ".");
  git(at, "commit", "-qm", "one");
}

const getConfig = (key: string): string => git(root, "config", "--local", "--get-all", key).trim();
const listConfig = (): string => git(root, "config", "--local", "--list");

it("commands in worktrees of one repository begin at once", { tags: "bubblewrap" }, async () => {
  const places = Array.from({ length: 6 }, (_, nth) => join(folder, `tree-${nth}`));
  for (const place of places)
    execFileSync("git", ["worktree", "add", "-q", "--detach", place], {
      cwd: root,
      stdio: "ignore",
    });
  for (const name of ["modules", "logs", "info"])
    rmSync(join(root, ".git", name), { recursive: true, force: true });
  const tools = [];
  for (const place of places) {
    const workspace = await openWorkspace(place);
    onTestFinished(() => workspace.close());
    tools.push(shellTool({ ...env, workspace }, {}));
  }
  const context = {
    id: "c",
    signal: new AbortController().signal,
    update() {},
    host: { call: () => Promise.reject(new Error("There is nothing else to call.")) },
    messages: [],
  };
  await Promise.all(tools.map(async (tool) => tool.execute({ command: "echo x > made" }, context)));
  for (const place of places) expect(existsSync(join(place, "made"))).toBe(true);
});

describe("git config in the sandbox", { tags: "bubblewrap" }, () => {
  it("takes settings that run nothing, which are then the user's", async () => {
    const text = await shell(
      "git remote add origin https://example.org/a.git && git config user.name Eve && " +
        "git update-ref refs/remotes/origin/main HEAD && git branch -u origin/main && git status -sb",
    );
    expect(text).not.toContain("Not kept");
    expect(text).toContain("\n## main...origin/main\n");
    expect(getConfig("remote.origin.url")).toBe("https://example.org/a.git");
    expect(getConfig("remote.origin.fetch")).toBe("+refs/heads/*:refs/remotes/origin/*");
    expect(getConfig("branch.main.merge")).toBe("refs/heads/main");
    expect(getConfig("user.name")).toBe("Eve");
    await shell("git remote rename origin up && git remote set-url up git@example.org:b.git");
    expect(getConfig("remote.up.url")).toBe("git@example.org:b.git");
    expect(getConfig("branch.main.remote")).toBe("up");
    await shell("git remote remove up");
    expect(listConfig()).not.toMatch(/^(?:remote|branch)\./m);
  });

  it("takes push -u to a server", async () => {
    git(folder, "init", "-q", "--bare", "server.git");
    git(root, "remote", "add", "origin", join(folder, "server.git"));
    const text = await shell("git push -qu origin main", {
      writable: [join(folder, "server.git")],
    });
    expect(text).toContain("Exit code 0.");
    expect(getConfig("branch.main.remote")).toBe("origin");
    expect(git(join(folder, "server.git"), "log", "--oneline", "main")).toContain("one");
  });

  it("drops what runs something, and reports it in one line", async () => {
    const before = readFileSync(join(root, ".git/config"), "utf8");
    const text = await shell(
      "git config core.hooksPath h && git config core.fsmonitor ./m && git config alias.x '!id' && " +
        "git config filter.f.clean ./c && git config include.path ../c && git remote add e 'ext::sh -c id' && " +
        "git config url.ext::sh.insteadOf https && git config core.sshCommand ./s && git config credential.helper ./h",
    );
    expect(text.split("\n")[1]).toBe(
      "Not kept in .git/config, because git may run or reach something by it: core.hookspath, " +
        "core.fsmonitor, core.sshcommand, alias.x, filter.f.clean, include.path, remote.e.url, " +
        "url.ext::sh.insteadof, credential.helper. Ask the user to set it.",
    );
    expect(git(root, "config", "--get-all", "remote.e.fetch")).toContain("refs/remotes/e");
    git(root, "config", "--unset-all", "remote.e.fetch");
    expect(readFileSync(join(root, ".git/config"), "utf8")).toBe(before);
  });

  it.each([
    ["remote.o.url", "../elsewhere"],
    ["remote.o.url", "/tmp/x.git"],
    ["remote.o.url", "file:///tmp/x.git"],
    ["remote.o.url", "ssh://-oProxyCommand=id/x"],
    ["remote.o.url", "-oProxyCommand=id:x"],
    ["remote.o.url", "ssh://me@localhost/x"],
    ["remote.o.pushurl", "fd::17"],
    ["remote.o.vcs", "foreign"],
    ["remote.o.uploadpack", "./x"],
    ["remote.o.proxy", "http://x"],
    ["branch.main.remote", "sub/bare.git"],
    ["branch.main.remote", "ext::sh -c id"],
    ["branch.main.pushRemote", "https://example.org"],
    ["remote.pushDefault", "bare.git"],
    ["branch.main.mergeOptions", "-s evil"],
    ["user.name", "a\u001b]0;x"],
    ["user.signingKey", "key::x"],
    ["submodule.s.update", "!id"],
    ["submodule.s.url", "./x"],
    ["core.worktree", "/usr"],
    ["core.attributesFile", "attrs"],
    ["core.gitProxy", "./p"],
    ["commit.template", "/etc/passwd"],
    ["commit.gpgSign", "yes"],
    ["gpg.program", "./g"],
    ["extensions.partialClone", "origin"],
    ["diff.x.textconv", "./t"],
    ["merge.x.driver", "./t"],
    ["pager.log", "./p"],
    ["core.pager", "./p"],
    ["core.editor", "./p"],
    ["protocol.allow", "always"],
    ["init.templateDir", "tmpl"],
    ["includeIf.gitdir:/.path", "xyz"],
  ])("does not take %s = %s", async (key, value) => {
    const text = await shell(`git config ${key} "$(printf %s '${value}')"`);
    expect(text).toMatch(/^Not kept in \.git\/config, /m);
    expect(listConfig()).not.toContain(value);
  });

  it("leaves no branch with a remote that git would take for a path", async () => {
    await shell("git remote add x https://example.org/a && git config branch.main.remote x");
    const text = await shell("git config --unset remote.x.url; git init -q --bare x");
    expect(text).toContain("Not kept in .git/config, ");
    expect(getConfig("remote.x.url")).toBe("https://example.org/a");
  });

  it("keeps what the user changes meanwhile", async () => {
    git(root, "config", "user.signingKey", "old");
    const jobs = new JobTable(env);
    const start =
      "git config user.name Eve && git config user.email e@x; touch ready; until [ -e go ]; do sleep 0.01; done";
    await shell(start, { jobs }, { background: true });
    await shell("until [ -e ready ]; do sleep 0.01; done");
    git(root, "config", "alias.mine", "status");
    git(root, "config", "user.name", "Grace");
    git(root, "remote", "add", "mine", "https://example.org/mine");
    writeFileSync(join(root, "go"), "");
    await jobs.ended("job-1");
    await shell("git remote add theirs https://example.org/theirs");
    expect(getConfig("user.name")).toBe("Grace");
    expect(getConfig("user.email")).toBe("e@x");
    expect(getConfig("alias.mine")).toBe("status");
    expect(git(root, "remote")).toBe("mine\ntheirs\n");
    await jobs.close();
  });

  it("neither stops the user's git while it is carried over, nor loses what that changes then", async () => {
    // Our runs of git find this one: where a change is made on a copy, the user makes one, too.
    const bin = join(folder, "bin");
    mkdirSync(bin);
    const found = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
    writeFileSync(
      join(bin, "git"),
      `#!/bin/sh
case " $* " in *" --add "*)
  mkdir "${folder}/once" 2>/dev/null && "${found}" -C "${root}" config mine.key kept && touch "${folder}/changed"
esac
exec "${found}" "$@"
`,
      { mode: 0o755 },
    );
    env = { ...env, environment: { ...env.environment, PATH: `${bin}:${process.env["PATH"]}` } };
    const text = await shell("git config user.name Eve; git remote add up https://example.org/up");
    expect(text).not.toContain("could not be carried over");
    expect(existsSync(join(folder, "changed"))).toBe(true);
    expect(getConfig("mine.key")).toBe("kept");
    expect(getConfig("user.name")).toBe("Eve");
    expect(getConfig("remote.up.url")).toBe("https://example.org/up");
    expect(existsSync(join(root, ".git/config.lock"))).toBe(false);
  });

  it("waits for the user's lock, and reports one that stays, which it leaves alone", async () => {
    const lock = join(root, ".git/config.lock");
    const before = readFileSync(join(root, ".git/config"), "utf8");
    writeFileSync(lock, "half of a config");
    const text = await shell("git config user.name Eve; rm -f .git/config.lock");
    expect(text).toContain("could not be carried over from its private copy");
    expect(text).toContain("config.lock is there: another git is changing the config");
    expect(readFileSync(lock, "utf8")).toBe("half of a config");
    expect(readFileSync(join(root, ".git/config"), "utf8")).toBe(before);

    // The user's git ends while we wait.
    const ended = shell("git config user.email e@x; touch ended");
    await expect.poll(() => existsSync(join(root, "ended")), { interval: 1 }).toBe(true);
    writeFileSync(lock, `${before}[mine]\n\tkey = kept\n`);
    renameSync(lock, join(root, ".git/config"));
    expect(await ended).not.toContain("could not be carried over");
    expect(getConfig("user.email")).toBe("e@x");
    expect(getConfig("mine.key")).toBe("kept");
  });

  it("is that of the folder .git, whatever a file commondir there says", async () => {
    startRepository(join(root, "evil"));
    const before = readFileSync(join(root, "evil/.git/config"), "utf8");
    writeFileSync(join(root, ".git/commondir"), "../evil/.git\n");
    await shell("git config user.name Eve; git config core.pager ./p");
    rmSync(join(root, ".git/commondir"), { force: true });
    expect(readFileSync(join(root, "evil/.git/config"), "utf8")).toBe(before);
    expect(getConfig("user.name")).toBe("Eve");
    expect(listConfig()).not.toContain("core.pager");
  });

  it("is one for commands that run at once", async () => {
    const add = (n: number): string =>
      `touch at-${n}; until [ -e at-1 ] && [ -e at-2 ] && [ -e at-3 ]; do sleep 0.01; done; ` +
      `until git remote add r${n} https://example.org/${n}; do sleep 0.01; done; git remote`;
    const texts = await Promise.all([1, 2, 3].map((n) => shell(add(n))));
    for (const text of texts) expect(text).toContain("Exit code 0.");
    expect(git(root, "remote")).toBe("r1\nr2\nr3\n");
    expect(
      (await readdir(join(folder, "spool"))).filter((name) => name.startsWith("git-")),
    ).toEqual([]);
  });

  it("is the user's file byte by byte where nothing was changed, with its mode", async () => {
    const path = join(root, ".git/config");
    const text = Buffer.concat([
      readFileSync(path),
      Buffer.from("; caf\u00e9\n[x]\n\ty = \u00e9\n", "latin1"),
    ]);
    writeFileSync(path, text);
    execFileSync("chmod", ["600", path]);
    await shell("git status && git commit -qm x --allow-empty");
    expect(readFileSync(path)).toEqual(text);
    await shell("git config push.default simple");
    expect(readFileSync(path)).toEqual(
      Buffer.concat([text, Buffer.from("[push]\n\tdefault = simple\n")]),
    );
  });
});

describe("git in the sandbox", { tags: "bubblewrap" }, () => {
  it("works on the user's branches, index and history", async () => {
    const text = await shell(
      "git checkout -qb feature && echo 2 > file && git commit -qam two && git tag t && git pack-refs --all && " +
        "git branch -m feature work && git gc -q && git branch -D main && echo 3 > file && git stash -q && " +
        "git worktree add -q ../work/linked && git status -sb",
    );
    expect(text).toContain("Exit code 0.");
    expect(git(root, "log", "--oneline", "-1", "work")).toContain("two");
    expect(git(root, "status", "--short", "--branch", "--", "file")).toBe("## work\n");
    expect(git(root, "stash", "list")).toContain("stash@{0}");
    expect(git(root, "branch", "--format=%(refname:short)")).toBe("linked\nwork\n");
    expect(git(join(root, "linked"), "status", "--short")).toBe("");
    git(root, "fsck", "--strict");
  });

  it("goes on with a merge and a rebase from one command to the next", async () => {
    await shell(
      "git checkout -qb other && echo 2 > file && git commit -qam two && git checkout -q main && echo 3 > file && git commit -qam three",
    );
    expect(await shell("git merge other")).toContain("CONFLICT");
    expect(git(root, "status")).toContain("You have unmerged paths");
    await shell("echo 4 > file && git add file && git commit -qm merged");
    expect(existsSync(join(root, ".git/MERGE_HEAD"))).toBe(false);
    expect(git(root, "log", "--oneline", "-1")).toContain("merged");
    await shell("git reset -q --hard HEAD~1");
    expect(await shell("git rebase other")).toContain("CONFLICT");
    expect(git(root, "status")).toContain("rebase in progress");
    const text = await shell(
      "echo 4 > file && git add file && GIT_EDITOR=true git rebase --continue",
    );
    expect(text).toContain("Exit code 0.");
    expect(existsSync(join(root, ".git/rebase-merge"))).toBe(false);
    expect(git(root, "status", "--short", "--branch")).toBe("## main\n");
    git(root, "fsck", "--strict");
  });

  it("sees what the user does meanwhile, and loses none of it", async () => {
    const jobs = new JobTable(env);
    await shell(
      "until git ls-files | grep -q '^a$'; do sleep 0.01; done; " +
        "until [ -e go ]; do sleep 0.01; done; echo 3 > b; git add b; git commit -qm theirs",
      { jobs },
      { background: true },
    );
    writeFileSync(join(root, "a"), "2\n");
    git(root, "add", "a");
    git(root, "checkout", "-qb", "mine");
    git(root, "commit", "-qm", "mine");
    // Another command sees it by then, so that the job does.
    expect(await shell("git branch --show-current; touch go")).toContain("\nmine\n");
    await jobs.ended("job-1");
    await shell("true");
    expect(git(root, "log", "--format=%s")).toBe("theirs\nmine\none\n");
    expect(git(root, "status", "--short")).toBe("?? go\n");
    await jobs.close();
  });

  it("locks the user's index while a command changes it, so that no commit reverts what the user commits", async () => {
    const jobs = new JobTable(env);
    const editor = "GIT_EDITOR='touch started; until [ -e go ]; do sleep 0.01; done; true'";
    await shell(`echo 2 > file; ${editor} git commit -qaem theirs`, { jobs }, { background: true });
    await shell("until [ -e started ] && [ -e .git/gyre-shared/index.lock ]; do sleep 0.01; done");
    writeFileSync(join(root, "mine"), "1\n");
    expect(() => git(root, "add", "mine")).toThrow("index.lock': File exists");
    writeFileSync(join(root, "go"), "");
    await jobs.ended("job-1");
    git(root, "add", "mine");
    git(root, "commit", "-qm", "mine");
    expect(git(root, "log", "--format=%s", "--stat=20")).toMatch(
      /^mine\n\n mine .*theirs\n\n file /s,
    );
    await jobs.close();
  });

  it("has a rebase in the user's folder while it runs, so that a crash loses nothing of it", async () => {
    const jobs = new JobTable(env);
    writeFileSync(join(root, "other"), "1\n");
    git(root, "add", "other");
    git(root, "commit", "-qm", "two");
    writeFileSync(join(root, "other"), "not committed\n");
    await shell(
      "git rebase -q --autostash --force-rebase HEAD~1 " +
        "-x 'touch started; until [ -e go ]; do sleep 0.01; done'",
      { jobs },
      { background: true },
    );
    const autostash = join(root, ".git/rebase-merge/autostash");
    await expect.poll(() => existsSync(join(root, "started")) && existsSync(autostash)).toBe(true);
    expect(readFileSync(autostash, "utf8")).toMatch(/^[0-9a-f]{40}/);
    await expect.poll(() => git(root, "status")).toContain("rebase in progress");
    writeFileSync(join(root, "go"), "");
    await jobs.ended("job-1");
    expect(git(root, "status")).not.toContain("rebase in progress");
    expect(readFileSync(join(root, "other"), "utf8")).toBe("not committed\n");
    await jobs.close();
  });

  it("keeps a rebase that the user begins or ends meanwhile", async () => {
    const jobs = new JobTable(env);
    git(root, "commit", "-qm", "two", "--allow-empty");
    await shell("sleep 1000", { jobs }, { background: true });
    expect(() => git(root, "rebase", "-q", "-x", "false", "HEAD~1")).toThrow("false");
    expect(await shell("git status", { jobs })).toContain("rebase in progress");
    git(root, "rebase", "--abort");
    expect(await shell("git status", { jobs })).not.toContain("rebase in progress");
    await jobs.close();
    expect(git(root, "status", "-sb")).toBe("## main\n");
  });

  it("leaves no lock of a command that was killed, and one of the user's", async () => {
    const lock = join(root, ".git/index.lock");
    await shell(
      "touch .git/index.lock; until [ -e .git/gyre-shared/index.lock ]; do :; done; kill -9 $$",
    );
    expect(existsSync(lock)).toBe(false);
    writeFileSync(lock, "");
    await shell("true");
    expect(existsSync(lock)).toBe(true);
  });

  it("carries over no links, no pipes and nothing that is too large", async () => {
    writeFileSync(join(folder, "secret"), "ref: refs/heads/secret\n");
    const before = readFileSync(join(root, ".git/config"), "utf8");
    const text = await shell(
      `cd .git && for name in HEAD config index ORIG_HEAD new; do rm -f $name; ln -s ${folder}/secret $name; done; ` +
        "mkfifo pipe config.worktree; mkdir rebase-merge; ln -s /etc/passwd rebase-merge/x; " +
        "truncate -s 1T big; mkdir gyre-shared/gyre-shared",
    );
    expect(text).toContain("could not be carried over");
    expect(readFileSync(join(root, ".git/config"), "utf8")).toBe(before);
    expect(readFileSync(join(root, ".git/HEAD"), "utf8")).toBe("ref: refs/heads/main\n");
    const names = await readdir(join(root, ".git"));
    for (const name of ["ORIG_HEAD", "new", "pipe", "big", "config.worktree"]) {
      expect(names).not.toContain(name);
    }
    expect(git(root, "status", "--short")).toBe("");
    expect(await shell("rm .git/config; git config user.name Eve")).toContain("Exit code 0.");
    expect(await shell("rm .git/config")).toContain(
      "The command removed .git/config: the user's was kept.",
    );
  });

  it("leaves no files of its own", async () => {
    const before = await readdir(join(root, ".git"));
    await shell("git status");
    const added = (await readdir(join(root, ".git"))).filter((name) => !before.includes(name));
    expect(added).toEqual(["modules", "worktrees"]);
    expect(
      (await readdir(join(root, ".git/hooks"))).filter((name) => !name.endsWith(".sample")),
    ).toEqual([]);
  });
});

describe("what git's settings name in the workspace", { tags: "bubblewrap" }, () => {
  beforeEach(() => {
    for (const name of ["tools/hooks", "conf"]) mkdirSync(join(root, name), { recursive: true });
    writeFileSync(join(root, "conf/git.inc"), "[user]\n\tname = Included\n");
    writeFileSync(join(root, "tools/monitor"), "#!/bin/sh\nexit 1\n");
    git(root, "config", "core.hooksPath", "tools/hooks");
    git(root, "config", "include.path", "../conf/git.inc");
    git(root, "config", "core.attributesFile", "conf/attributes");
    git(root, "config", "alias.m", "!./tools/monitor x");
  });

  it("cannot be changed by a command", async () => {
    const attempts = [
      "echo x > tools/hooks/pre-commit",
      "mv tools other",
      "echo x >> conf/git.inc",
      "mv conf other",
      "rm conf/git.inc",
      "echo x > tools/monitor",
      "ln -sf /bin/sh tools/monitor",
    ];
    const text = await shell(attempts.map((one) => `${one} && echo worked`).join("\n"));
    expect(text).not.toContain("worked");
    expect(await shell("echo x > tools/other && echo x > conf/other")).toContain("Exit code 0.");
  });

  it("is put aside where it was missing", async () => {
    const text = await shell("echo '* filter=x' > conf/attributes");
    expect(text).toContain("It made conf/attributes, which the settings of git name");
    expect(existsSync(join(root, "conf/attributes"))).toBe(false);
  });

  it("is put aside where a link to it was replaced", async () => {
    mkdirSync(join(root, "real/hooks"), { recursive: true });
    symlinkSync("real", join(root, "linked"));
    git(root, "config", "core.hooksPath", "linked/hooks");
    const text = await shell(
      "rm linked && mkdir -p linked/hooks && echo x > linked/hooks/pre-commit",
    );
    expect(text).toContain("It changed linked/hooks, which the settings of git name");
    expect(existsSync(join(root, "linked/hooks"))).toBe(false);
  });

  it("cannot be changed by file tools", async () => {
    const stateFolder = join(folder, "state");
    const toolset = await openToolset({ root, stateFolder, environment: env.environment });
    try {
      for (const path of [
        "tools/hooks/pre-commit",
        "conf/git.inc",
        "conf/attributes",
        "tools/monitor",
      ]) {
        expect((await toolset.env.workspace.resolve(path)).readOnly, path).toBe(true);
      }
      expect((await toolset.env.workspace.resolve("tools/other")).readOnly).toBe(false);
    } finally {
      await toolset.close();
    }
  });
});

describe("commits that have to be signed", { tags: "bubblewrap" }, () => {
  it("are made without a signature, and a signature that is asked for fails with a hint", async () => {
    git(root, "config", "commit.gpgSign", "true");
    git(root, "config", "gpg.program", "/bin/false");
    expect(await shell("git commit -qm two --allow-empty && git tag -a t -m t")).toContain(
      "Exit code 0.",
    );
    expect(git(root, "log", "-1", "--format=%s %G?")).toBe("two N\n");
    const text = await shell("git commit -S -qm three --allow-empty");
    expect(text).toContain("The sandbox has no keys to sign with");
  });
});

describe("a repository whose settings cannot be private", { tags: "bubblewrap" }, () => {
  it("says that the sandbox keeps them read-only, also where git claims success", async () => {
    git(root, "remote", "add", "o", "https://example.org/o");
    git(root, "update-ref", "refs/remotes/o/main", "HEAD");
    // A link as HEAD, as git made them once, is not what a private folder can have.
    await rm(join(root, ".git/HEAD"));
    symlinkSync("refs/heads/main", join(root, ".git/HEAD"));
    for (const command of ["git config user.name x", "git branch -u o/main; true"]) {
      expect(await shell(command), command).toContain(
        "The sandbox keeps these settings and hooks of git read-only; ask the user",
      );
    }
  });
});

describe("a repository that is not in the workspace", { tags: "bubblewrap" }, () => {
  async function moveTo(at: string): Promise<void> {
    await env.workspace.close();
    await openEnv(at);
  }

  it("is used from a linked worktree, and is as protected", async () => {
    const linked = join(folder, "linked");
    git(root, "worktree", "add", "-q", linked);
    await moveTo(linked);
    const text = await shell(
      "echo 2 > file && git commit -qam two && git remote add o https://example.org/o && git config core.pager ./p; " +
        "git -C . branch -m renamed; git status -sb; touch ../work/file ../work/.git/hooks/pre-commit",
    );
    expect(text).toContain(
      "Not kept in .git/config, because git may run or reach something by it: core.pager.",
    );
    expect(text).toContain("\n## renamed\n");
    expect(git(root, "log", "--oneline", "-1", "renamed")).toContain("two");
    expect(git(root, "remote")).toBe("o\n");
    expect(git(root, "branch", "--show-current")).toBe("main\n");
    expect(git(linked, "status", "--short")).toBe("");
    expect(text).toContain("Read-only file system");
    expect(existsSync(join(root, ".git/hooks/pre-commit"))).toBe(false);
  });

  it("is used from a folder of its working tree, of which nothing else can be changed", async () => {
    mkdirSync(join(root, "sub/deep"), { recursive: true });
    await moveTo(join(root, "sub"));
    const text = await shell(
      "echo 2 > new && git add new && git commit -qm two && cd deep && git status -sb; echo x > ../../file",
    );
    expect(text).toContain("\n## main\n");
    expect(git(root, "show", "--stat", "HEAD")).toContain("sub/new");
    expect(readFileSync(join(root, "file"), "utf8")).toBe("1\n");
    const planted = "printf '[core]\\nfsmonitor = ./m\\n' > ../.git/gyre-shared/config.worktree";
    expect(await shell(planted)).toContain(
      "It made ../.git/config.worktree, which has git run a program",
    );
  });

  it("is used from a submodule", async () => {
    git(root, "submodule", "--quiet", "add", root, "sm");
    git(root, "commit", "-qm", "two");
    await moveTo(join(root, "sm"));
    const text = await shell(
      "git config user.name Eve && git config user.email e@x && git checkout -qb b && git commit -qm x --allow-empty && git config core.pager ./p",
    );
    expect(text).toContain("Not kept in .git/config, ");
    expect(git(join(root, "sm"), "log", "-1", "--format=%s")).toBe("x\n");
    expect(git(root, "log", "-1", "--format=%s")).toBe("two\n");
  });

  it("is not mounted for others while a job runs that could put a link in its place", async () => {
    const plain = join(folder, "plain");
    mkdirSync(plain);
    await moveTo(plain);
    const jobs = new JobTable(env);
    await shell("until [ -e go ]; do sleep 0.01; done", { jobs }, { background: true });
    await shell("git init -q .");
    expect(await shell("ls -d .git/gyre-shared; touch go")).toContain("No such file");
    await jobs.ended("job-1");
    expect(await shell("ls -d .git/gyre-shared")).toContain("\n.git/gyre-shared\n");
    await jobs.close();
  });

  it("is not opened by a file .git that a command made", async () => {
    const plain = join(folder, "plain");
    mkdirSync(plain);
    git(root, "worktree", "add", "-q", join(folder, "linked"));
    await moveTo(plain);
    for (const target of ["work/.git", "work/.git/worktrees/linked"]) {
      writeFileSync(join(plain, ".git"), `gitdir: ${join(folder, target)}\n`);
      const text = await shell(`touch ${join(folder, "work/.git/refs/heads/x")}; git tag planted`);
      expect(text).toMatch(/Read-only file system|No such file/);
      expect(git(root, "tag")).toBe("");
    }
    // A folder of its own that says whose it is.
    await rm(join(plain, ".git"));
    await shell(
      `mkdir -p .git wt && cd .git && mkdir refs objects && echo 'ref: refs/heads/main' > HEAD && echo ${join(folder, "work", ".git")} > commondir && echo ${plain}/.git > gitdir`,
    );
    const text = await shell("git tag planted");
    expect(text).not.toContain("Exit code 0.");
    expect(git(root, "tag")).toBe("");
  });
});
