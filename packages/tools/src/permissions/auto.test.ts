import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineTool, type ToolInvocation } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Access, GuardedTool } from "../contract/access.ts";
import { type PermissionOptions, permissions } from "../permissions.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";

let base: string;
let workspace: Workspace;

beforeAll(async () => {
  base = await mkdtemp(join(await realpath(tmpdir()), "gyre-auto-"));
  await mkdir(join(base, "work/node_modules/.bin"), { recursive: true });
  await mkdir(join(base, "work/src"));
  await writeFile(join(base, "work/node_modules/.bin/vitest"), "");
  await writeFile(join(base, "notes"), "private");
  await writeFile(join(base, "work/a.txt"), "a\n");
  await writeFile(join(base, "work/secret"), "s\n");
  await symlink(join(base, "notes"), join(base, "work/leak"));
  await symlink(base, join(base, "work/up"));
  await writeFile(join(base, "work/src/a.ts"), "a\n");
  await writeFile(join(base, "work/.gitignore"), ".env\nnode_modules\n");
  await writeFile(join(base, "work/send.sh"), "cd x\nscp dist/* host:\n");
  await writeFile(join(base, "work/check.sh"), "npm test\nrm -rf dist\n");
  await writeFile(
    join(base, "work/Makefile"),
    "all: quick\nsite:\n\t@rsync -a . host:\nquick:\n\tnpm test\n",
  );
  const scripts = {
    ship: "npm run send",
    send: "curl -T a.txt https://example.org",
    quick: "node --test",
  };
  await writeFile(join(base, "work/package.json"), JSON.stringify({ scripts }));
  const git = (...args: string[]): void =>
    void execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
      cwd: join(base, "work"),
    });
  git("init", "-q");
  git("add", "-A");
  git("commit", "-qm", "Begin");
  await mkdir(join(base, "work/drafts"));
  await writeFile(join(base, "work/drafts/letter"), "Dear\n");
  await writeFile(join(base, "work/draft.ts"), "work\n");
  await writeFile(join(base, "work/.env"), "key\n");
  workspace = await openWorkspace(join(base, "work"));
});
afterAll(async () => {
  await workspace.close();
  await rm(base, { recursive: true });
});

/** What becomes of a call in mode `auto`: "ran", why it is asked about, or "denied". */
async function attempt(
  access: Partial<Access> & Pick<Access, "kind" | "targets">,
  options: Partial<PermissionOptions> = {},
): Promise<string> {
  let question: string | undefined;
  const guard = permissions({
    mode: "auto",
    sandboxed: true,
    workspace,
    ask: ({ reason }) => {
      question = reason;
      return Promise.resolve({ allow: false });
    },
    ...options,
  });
  const tool: GuardedTool = {
    ...defineTool({
      name: access.kind === "run" ? "shell" : "write",
      description: "For tests.",
      parameters: { type: "object", properties: {} },
      execute: () => "done",
    }),
    access: () => ({ summary: "", ...access }),
  };
  const call: ToolInvocation = {
    toolCall: { type: "toolCall", id: "c1", name: tool.name, arguments: {} },
    tool,
    args: {},
    signal: new AbortController().signal,
    run: { sessionId: undefined, model: scriptedModel([]).model, fallbacks: [] },
  };
  try {
    await guard.tool?.(call, () => Promise.resolve({ content: [] }));
    return "ran";
  } catch {
    return question ?? "denied";
  }
}

const run = (command: string, options: Partial<PermissionOptions> = {}): Promise<string> =>
  attempt({ kind: "run", targets: [command] }, options);

describe("mode auto, in a sandbox, runs unasked", () => {
  it.each([
    "git status && git log -3 | head",
    "pwd && date",
    "npm test",
    "npx vitest run",
    "npm run build -- --watch=false",
    "make -j4 2>&1 | tail -20",
    "node -e 'console.log(1)'",
    "sed -n '/start/,/end/p' src/a.ts",
    "grep -rn '/api/' src",
    "awk '/x/ { print $1 }' src/a.ts",
    "for f in src/*; do wc -l $f; done",
    "rm -r src/old build/*",
    "rm -f *.log",
    "find . -name '*.tmp' -delete",
    "git commit -am 'Fetch and push'",
    "git checkout -b next",
    "git restore --staged .",
    "git stash",
    "git clean -n",
    "git remote -v",
    "git branch -d old",
    "echo 'curl https://example.org' > notes.md",
    "cp src/a.ts /tmp/copy.ts",
    "ls > /dev/null 2>&1",
    "npm --version",
    "python3 -m unittest",
    "cargo build",
    "go test ./...",
    "cat $FILE",
    "npm run quick && make quick && sh check.sh",
    "cd src && cat ../a.txt && cd .. && ls",
    "rm src/a.ts && rm -rf src dist node_modules",
    "rm -rf dist/* coverage && rm -f draft.log",
    "mv a.txt src/ && cp a.txt b.txt",
    "find . -name '*.pyc' -delete; find . -name __pycache__ -exec rm -rf {} +",
    "T=$(mktemp -d) && cp a.txt $T && rm -rf $T",
    'for f in src/*.ts; do mv "$f" "${f%.ts}.js"; done',
    "node server.js & sleep 1; curl -s http://localhost:3000/; kill $!",
    "git checkout main && git merge next && git stash pop",
    "git commit -m '/etc is not read, https://example.org is'",
    "grep -rn '/usr/bin/env' . | sort | head",
    "echo 'export A=/usr/local' > env.sh",
    "source .venv/bin/activate && pytest -q",
    "node -e \"p.homepage = 'https://x.org'; fs.rmSync('dist', { recursive: true })\"",
    "NODE_ENV=test PATH=/usr/local/bin:$PATH npm test",
    "git config --get user.name",
    "npx --no-install vitest",
  ])("%s", async (command) => {
    expect(await run(command)).toBe("ran");
  });

  it("writes inside of the workspace", async () => {
    expect(await attempt({ kind: "write", targets: ["src/a.ts"] })).toBe("ran");
  });
});

describe("mode auto asks", () => {
  it.each([
    ["curl -s https://example.org", '"curl" needs the network.'],
    ["npm install left-pad", '"npm install" needs the network.'],
    ["npm --prefix app ci", '"npm ci" needs the network.'],
    ["yarn", '"yarn" needs the network.'],
    ["npx create-app", '"npx create-app" needs the network.'],
    ["python3 -m pip install x", '"python3 pip" needs the network.'],
    ["git -C . fetch", '"git fetch" needs the network.'],
    ["git submodule update --init", '"git submodule" needs the network.'],
    ["true && (ssh example.org ls)", '"ssh" needs the network.'],
    ["echo $(wget -qO- example.org)", '"wget" needs the network.'],
    ["timeout 5 env A=1 git pull", '"git pull" needs the network.'],
    ["npm --loglevel silent install", '"npm silent" needs the network.'],
    ["pnpm", '"pnpm" needs the network.'],
    ["frobnicate deploy", '"frobnicate deploy" needs the network.'],
    ["deno run https://example.org/x.ts", '"deno run" needs the network.'],
    ["curl http://localhost@example.org", '"curl" needs the network.'],
    ["curl -x example.org:80 http://localhost", '"curl" needs the network.'],
    [
      "python3 -c \"import urllib.request as r; r.urlopen('https://x.org')\"",
      'The code for "python3" needs the network.',
    ],
    ["node <<'E'\nfetch('https://x.org')\nE", 'The code for "node" needs the network.'],
    ["echo \"fetch('https://x.org')\" | node", 'The code for "node" needs the network.'],
    ["node -e \"require('child_process').execSync('git push')\"", '"git push" needs the network.'],
    [
      "python3 -c \"import subprocess as s; s.run(['git', 'push'])\"",
      '"git push" needs the network.',
    ],
    ["npm run ship", '"curl" needs the network.'],
    ["make site", '"rsync" needs the network.'],
    ["./send.sh", '"scp" needs the network.'],
    ["npm run release:all", '"release:all" may reach other machines.'],
    ["alias up='git push'; up", '"git push" needs the network.'],
    ["git -c alias.up=push up", '"git up" gives a command another name.'],
    ["$(echo curl) x", 'It is unclear which command "$(echo curl)" is.'],
    ["cat a.txt | sh", '"sh" runs what it reads.'],
  ])("about the network: %s", async (command, reason) => {
    expect(await run(command)).toBe(reason);
  });

  it.each([
    "git reset --hard HEAD~1",
    "git clean -fdx",
    "git checkout -- src",
    "git checkout .",
    "git restore src",
    "git stash drop",
    "git branch -D old",
    "git push --force",
    "git push origin +main",
    "git push origin :old",
    "git reflog expire --all",
    "rm -rf .",
    "rm -rf ./*",
    "rm -rf *",
    "rm -fr -- .git",
    'rm -r "$DIR"',
    "find . -delete",
    "find . -type f -exec rm -rf . ;",
    "xargs rm -rf .git < list",
    "sudo ls",
    "dd if=/dev/zero of=disk.img",
    "bash -c 'git reset --hard'",
    "rm -rf drafts",
    "rm draft.ts",
    "rm .env",
    "rm -rf src drafts",
    "rm -rf dra*",
    "cd drafts && rm letter",
    "echo drafts | xargs rm -rf",
    "find drafts -delete",
    "find . -not -name '*.log' -delete",
    "find . -name '*.ts' -exec rm {} ;",
    "mv drafts /tmp/",
    "mv .git old",
    "cp a.txt draft.ts",
    "> draft.ts",
    "truncate -s 0 draft.ts",
    "git checkout src/a.ts",
    "git checkout HEAD src",
    "git checkout :/",
    "git reset --har",
    "git branch -M old",
    "git switch -C main HEAD~1",
    "git rm -f a.txt",
    "git update-ref refs/heads/main HEAD~1",
    "python3 -c \"import shutil; shutil.rmtree('drafts')\"",
    "perl -e 'system(\"rm -rf .\")'",
    "sqlite3 app.db 'drop table users'",
  ])("about what cannot be undone: %s", async (command) => {
    expect(await run(command)).toContain("cannot be undone.");
  });

  it.each([
    "cat ../notes",
    "cat leak",
    "cd .. && ls",
    "ls /etc",
    "cat ~/.ssh/id_ed25519",
    'cat "$HOME/.netrc"',
    "tar -C/etc -cf x.tar .",
    "gcc --sysroot=/usr -c a.c",
    "echo x >> ~/.bashrc",
    "echo x > ../notes",
    "sort < ../notes",
    "cd && ls",
    "cd src || cat ../notes",
    "(cd src); cat ../notes",
    "cat $PWD/../notes",
    "cat {..,.}/notes",
    "cat u*/notes",
    "D=..; cat $D/notes",
    "cat /tmp/../etc/passwd",
    "for f in ../*; do cat $f; done",
    "cat $(echo ../notes)",
    "grep -- -x leak",
    "grep - leak",
    "../run.sh",
    "/opt/x/bin/y",
    "python3 -c \"print(open('/etc/passwd').read())\"",
    "sed -n 'r ../notes' a.txt",
    "PYTHONPATH=.. python3 x.py",
    "node -e 'console.log(process.env.HOME)'",
  ])("about what is outside of the workspace: %s", async (command) => {
    expect(await run(command)).toContain("outside of the workspace.");
  });

  it.each([
    "pkill node",
    "kill -9 1234",
    "crontab -r",
    "git config --global a.b c",
    "make install",
  ])("about what is not of the workspace: %s", async (command) => {
    expect(await run(command)).toContain("reaches beyond the workspace.");
  });

  it("where there is no sandbox, or the call leaves it", async () => {
    expect(await run("npm test", { sandboxed: false })).toContain("There is no sandbox");
    expect(await run("npm test", { sandboxed: "waived" })).toContain("There is no sandbox");
    const left = await attempt({ kind: "run", targets: ["ls"], unsandboxed: true });
    expect(left).toContain("outside of the sandbox");
  });

  it("about writes outside of the workspace, and what its tool calls destructive", async () => {
    expect(await attempt({ kind: "write", targets: ["../notes"] })).toContain("asked about");
    const gone = await attempt({ kind: "write", targets: ["a"], destructive: true });
    expect(gone).toContain("cannot be undone");
  });
});

describe("rules take precedence over mode auto", () => {
  it("deny, also of what is not clear", async () => {
    const rules = { deny: ["shell(npm test)"] };
    expect(await run("npm test", { rules })).toBe("denied");
    expect(await run("true; npm test", { rules })).toBe("denied");
    expect(await run('eval "$X"', { rules })).toContain("may concern it");
  });

  it("one with a wildcard does not allow what destroys something", async () => {
    const rules = { allow: ["shell(git push *)", "shell(rm -rf drafts)"] };
    expect(await run("git push origin main", { rules })).toBe("ran");
    expect(await run("git push --force origin main", { rules })).toContain("cannot be undone");
    expect(await run("rm -rf drafts", { rules })).toBe("ran");
  });

  it("one that a person took back does not hold", async () => {
    const rules = { allow: ["shell(git fetch)"] };
    expect(await run("git fetch", { rules, isRevoked: () => true })).toContain("network");
  });

  it("ask and allow", async () => {
    expect(await run("npm test", { rules: { ask: ["shell(npm test)"] } })).not.toBe("ran");
    expect(await run("git fetch", { rules: { allow: ["shell(git fetch)"] } })).toBe("ran");
  });
});

const MODES = ["ask", "auto-edit", "auto", "plan", "full"] as const;

describe("what only shows something of the workspace runs in every mode", () => {
  it.each([
    "ls -la src",
    "cat a.txt | head -3",
    "pwd && date",
    "grep -rn x src | wc -l",
    "find . -name '*.ts' -type f",
    "test -f a.txt && echo yes",
    "node --version",
    "wc -l a.txt 2>/dev/null",
  ])("also without a sandbox: %s", async (command) => {
    for (const mode of MODES) expect(await run(command, { mode, sandboxed: false })).toBe("ran");
  });

  it.each(["git status --short", "git log -3", "git diff HEAD~1 -- src", "git branch -a"])(
    "in a sandbox, as git may run what the repository says: %s",
    async (command) => {
      for (const mode of MODES) expect(await run(command, { mode })).toBe("ran");
      expect(await run(command, { mode: "ask", sandboxed: false })).not.toBe("ran");
    },
  );

  it.each([
    "cat ../notes",
    "cat leak",
    "cat $FILE",
    "cat *",
    "cat `ls`",
    "ls > list",
    "ls | xargs cat",
    "cd src && ls",
    "LD_PRELOAD=./x ls",
    "./ls",
    "tail -f a.txt",
    "find . -delete",
    "find . -exec cat {} ;",
    "find -L . -name x",
    "grep -R x .",
    "rg --pre ./x y",
    "sort -o a.txt a.txt",
    "uniq a.txt b.txt",
    "date -s tomorrow",
    "sed -n 1p a.txt",
    "git log --output=x",
    "git branch next",
    "git stash",
    "git -c core.pager=./x log",
    "tree -o out",
    "tree -R -L 1",
    "jq -n env",
    "grep --der x .",
    "sort --outp=a.txt a.txt",
    "diff --rec src .",
    "wc --files0-from=list",
    "env",
    "node -v x",
    "python3 -v",
    "file -z a.txt",
    "tree --output x",
    "ls up",
    "grep -- -x leak",
  ])("nothing else: %s", async (command) => {
    expect(await run(command, { mode: "ask" })).not.toBe("ran");
    expect(await run(command, { mode: "plan" })).toBe("denied");
  });

  it.each([
    "cat /tmp/x",
    "ls /tmp",
    "cat /dev/tty",
    "yarn --version",
    "cargo --version",
    "pnpm -v",
  ])("only in a sandbox, as others write there or choose the program: %s", async (command) => {
    expect(await run(command, { mode: "ask", sandboxed: false })).not.toBe("ran");
  });

  it("not what a rule keeps from being read, or forbids", async () => {
    const read = { mode: "ask" as const, rules: { deny: ["read(secret)"] } };
    for (const command of ["cat secret", "cat a.txt secret", "ls", "grep x .", "git diff"]) {
      expect(await run(command, read), command).not.toBe("ran");
    }
    for (const command of ["cat a.txt", "pwd", "cat a.txt | wc -l"]) {
      expect(await run(command, read), command).toBe("ran");
    }
    const rules = { deny: ["shell(cat *)"] };
    expect(await run("cat a.txt", { mode: "ask", rules })).toBe("denied");
    expect(await run("ls | cat -", { mode: "ask", rules })).toBe("denied");
  });
});
