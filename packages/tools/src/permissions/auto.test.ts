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
  await symlink("draft.ts", join(base, "work/to-draft"));
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
  await symlink(base, join(base, "work/drafts/far"));
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
  name: string = access.kind === "run" ? "shell" : "write",
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
      name,
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
    'cd "$none" && rm -rf dist node_modules && rm -f a.ts *.log',
    "cd src && npm test || rm -f a.ts",
    'cd "$(git rev-parse --show-toplevel)" && rm -f src/a.ts',
    "cd $(mktemp -d) && echo x > letter",
    "x[0]=1; cd src && rm -f a.ts",
    "f() { ls $1; }; f src; cd src && rm -f a.ts",
    'cd "$none" && npm test && cat a.txt && grep -rn tea src',
    "cd a.txt || rm -f src/a.ts",
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
    "tox list && nox -l && mc --version",
    "pre-commit --version",
    "find -L src -name '*.ts'",
    "grep -R a src",
    "cat src/*",
    "echo x > a.txt",
    "echo x >> draft.ts",
    "echo x | tee -a draft.ts",
    "echo x > new.txt && cat src/a.ts > /tmp/draft.ts",
    "echo x > test.log",
    "chmod +x check.sh",
    "printf 'ls' > x.sh; sh x.sh",
    "(cd src && cat ../a.txt)",
    "if true; then cd src; fi && ls",
    "cat {a.txt,src/a.ts}",
    "f=src/a.ts; rm $f",
    "rm $PWD/a.txt",
    "echo a.txt | xargs rm",
    "echo ls | sh",
    "env bash -c 'ls src'",
    'find src -name "*.ts" | while read -r f; do wc -l "$f"; done',
    "find src -name '*.ts' -exec rm {} +",
    "for f in src/*.ts; do cp $f ${f%.ts}.bak; done",
    "rm leak && mv up other",
    "xargs --version && pnpm -v && rsync -a src/ copy/",
    "python3 -c \"s = open('.env').read(); open('.env', 'w').write(s.lower())\"",
    "sed -i s/Dear/Hello/ drafts/letter",
    "cat > new.sh <<'E'\nnpm test\nE\nbash new.sh && rm new.sh",
    "cat <<< text | tee new.txt",
    "git log --grep 'git push origin' && git grep 'npm install left-pad'",
    "git commit -qm 'rm -rf drafts; curl x.org'",
    'echo "$HOME" && printf ../notes',
    "terraform fmt && terraform validate",
    "hyperfine 'npm test' && git rebase -x 'npm test' HEAD~1",
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
    ["$(echo curl) x", '"curl x" needs the network.'],
    ["$(cat names) x", 'It is unclear which command "$(cat names)" is.'],
    ["cat a.txt | sh", '"sh" runs what it reads.'],
    ["mc cp a.txt play/bucket", '"mc cp" needs the network.'],
    ["tnpm i", '"tnpm i" needs the network.'],
    ["cnpm install x", '"cnpm install" needs the network.'],
    ["bzr branch lp:x", '"bzr branch" needs the network.'],
    ["brz pull", '"brz pull" needs the network.'],
    ["pre-commit run --all-files", '"pre-commit run" needs the network.'],
    ["tox -e py312", '"tox py312" needs the network.'],
    ["tox", '"tox" needs the network.'],
    ["python3 -m nox -s tests", '"python3 nox" needs the network.'],
    ["echo 'curl example.org' > x.sh; sh x.sh", '"curl" needs the network.'],
    ["cat > x.sh <<'E'\ngit push\nE\nchmod +x x.sh && ./x.sh", '"git push" needs the network.'],
    ["tee x.sh <<< 'git push'; . ./x.sh", '"git push" needs the network.'],
    ["cp send.sh x.sh; sh x.sh", '"scp" needs the network.'],
    ["ln -s send.sh x.sh && bash x.sh", '"scp" needs the network.'],
    ["echo \"fetch('https://x.org')\" > x.js; node x.js", 'The code for "node" needs the network.'],
    ["printf 'x:\\n\\tgit push\\n' | make -f - x", '"git push" needs the network.'],
    ["echo 'x: ; git push' > M; make --eval 'y: ; curl z' y", '"curl z" needs the network.'],
    [
      "sed -i 's/node --test/curl x.org/' package.json && npm run quick",
      '"curl" needs the network.',
    ],
    ["X=curl; $X x.org", '"curl" needs the network.'],
    ['f() { "$1" x.org; }; f curl', '"curl" needs the network.'],
    ['c=(git push); "${c[@]}"', '"git push" needs the network.'],
    ["x[0]=1; git push", '"git push" needs the network.'],
    [". <(echo curl x.org)", '"." runs what it reads.'],
    ["source /dev/stdin <<< 'git push'", '"git push" needs the network.'],
    ["EDITOR='curl x.org' git commit --amend", '"curl" needs the network.'],
    ["git difftool -y -x 'curl x.org'", '"curl" needs the network.'],
    [
      "cat > s.sh <<'E'\nsed -n 's/.*/rm -f draft.ts/w s.sh' a.txt; sh s.sh\nE\nbash s.sh",
      'It is unclear what "s.sh" does, which the line itself writes.',
    ],
    ["echo ls > s.sh; cp send.sh s.sh; sh s.sh", '"scp" needs the network.'],
    ["echo ls >> send.sh; sh send.sh", '"scp" needs the network.'],
    // A file in the place of a folder: where it leads is not known.
    ["cp src/a.ts a.txt/", '"a.txt/" is outside of the workspace.'],
    ["git grep -Ocurl tea", '"curl files" needs the network.'],
    ["tar -I 'curl x.org' -cf x.tar a.txt", '"curl" needs the network.'],
    ["sed '1e curl x.org' a.txt", '"curl" needs the network.'],
    ["sed 's/.*/rm -f draft.ts/e' a.txt", '"sed" runs what it makes of a text.'],
    [
      "f() { pwd; }; f || c[u]rl x & python3 -c \"import os; os.execvp('curl', ['curl', 'x.org'])\"",
      '"curl" needs the network.',
    ],
    ["awk 'BEGIN { \"curl x.org\" | getline x }'", '"curl" needs the network.'],
    ["script -qc 'curl x.org' /dev/null", '"curl" needs the network.'],
    ["flock lock curl x.org", '"curl" needs the network.'],
    ["ed -s <<< '!curl x.org'", '"curl" needs the network.'],
    ["sqlite3 :memory: '.shell curl x.org'", '"curl" needs the network.'],
    [
      "python3 -c \"import socket; socket.socket().connect(('x.org', 80))\"",
      'The code for "python3" needs the network.',
    ],
    [
      "python3 -c 'import os, sys; os.system(sys.argv[1])' 'git push'",
      '"git push" needs the network.',
    ],
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
    "chmod 000 .git",
    "chmod -w .git/config",
    "echo x > draft.ts",
    "echo x >| .env",
    "node --version &> draft.ts",
    "echo x | tee .env",
    "cd drafts && echo x > letter",
    "echo x > to-draft",
    "(cd drafts && rm letter)",
    "pushd drafts; rm letter; popd",
    "f() { cd drafts && rm letter; }; f",
    "npm test && cd drafts; rm letter",
    "c[u]rl x & cd nothing || cd drafts && rm -f letter",
    "x[0]=1; cd drafts && echo x > letter",
    "cd nothing || cd drafts && rm letter",
    "false && { cd src; }; rm draft.ts",
    "true || { cd src; }; rm draft.ts",
    "{ cd src; } | cat; rm draft.ts",
    "ls | { cd src; }; rm draft.ts",
    "cd drafts && { false; } || rm letter",
    "pushd src; pushd; rm draft.ts",
    "pushd src; pushd +1; rm draft.ts",
    "mkdir src && cd src; rm draft.ts",
    "f() { rm letter; }; cd drafts; f",
    "f() { rm le*; }; cd drafts; f",
    "trap 'rm letter' EXIT; cd drafts",
    'cd s"$none"rc; git checkout a.ts',
    "cd drafts; false || rm letter",
    "cd drafts && false || rm letter",
    "cd src/; false || cd ../drafts; rm letter",
    'cd drafts"$none"; rm letter',
    'cd "$none" && cd drafts; rm letter',
    'cd "$none"; rm l*',
    "d=(src drafts); cd ${d[1]}; rm letter",
    "CDPATH=drafts/..; cd src; cd drafts; rm letter",
    "cd src node_modules; rm draft.ts",
    "cd a.txt; rm draft.ts",
    "cd src > none/x; rm draft.ts",
    "mv src old; cd src; rm draft.ts",
    "for d in 1 2 3 4 5 6 7 8 drafts; do cd $d; done; rm letter",
    "f=.env; echo x > $f",
    "echo .env | xargs rm",
    "cp a.txt ${none:-draft.ts}",
    "echo x > ${none:-draft.ts}",
    "find . -name '*.json' -delete",
    "find . -name '*.json' | xargs rm",
    "cd src; cd ..; rm -rf ./*",
    "for f in dr*.ts; do cp a.txt $f; done",
    "find . -name '.env*' -exec mv {} /tmp/ ;",
    "find . -name '.env' | xargs rm",
    "mv drafts old && rm -rf old",
    "mv .env .env.bak; rm .env.bak",
    "ln -s draft.ts l && echo x > l",
    "ln draft.ts l && echo x > l",
    "cp a.txt to-draft",
    "sort -o draft.ts a.txt",
    "uniq a.txt .env",
    "git diff --output=.env",
    "git mv -f a.txt draft.ts",
    "install -m 644 a.txt draft.ts",
    "sed -n 'w draft.ts' a.txt",
    "awk '{ print > \"draft.ts\" }' a.txt",
    "perl -e 'open F, \">draft.ts\"; print F 1'",
    "node -e \"require('fs').writeFileSync('.env', 'x')\"",
    "python3 -c \"open('draft.ts', 'w').write(open('a.txt').read())\"",
    "python3 -c \"import os; os.rename('draft.ts', '/tmp/y')\"",
    "echo 'rm draft.ts' > x.sh; sh x.sh",
    "printf 'import os\\nos.remove(\".env\")\\n' > x.py; python3 x.py",
    "trap 'rm draft.ts' EXIT",
    "((echo a) > draft.ts) && ls",
    "echo 'rm draft.ts' | bash -s",
  ])("about what cannot be undone: %s", async (command) => {
    expect(await run(command)).toContain("cannot be undone.");
  });

  it.each([
    "cat ../notes",
    "cat leak",
    "echo ../*",
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
    "find -L . -name x",
    "find . -follow -type f -exec cat {} +",
    "grep -R private .",
    "cd src && grep -R private ..",
    "cp -rL . copy",
    "tar -chf x.tar .",
    "zip -r x.zip .",
    "cat *",
    "cat lea[jk]",
    "cat le{ak,ek}",
    "python3 -c \"print(open('leak').read())\"",
    "cat up/../notes",
    'cd d"$none"rafts; cat far/notes',
    'cd d"$none"rafts; cat far/*',
    "ls .$(echo .)",
    "X=.; ls $X$X",
    "D=$(dirname $PWD); cat $D/notes",
    "D=${PWD%/*}; ls $D",
    "ls ${x:-..}",
    "ls ${PWD/work/}",
    "a=(..); ls ${a[0]}",
    "read -r x <<< ..; ls $x",
    "set -- ..; ls $1",
    "f() { ls $1; }; f ..",
    "bash -c 'cat \"$1\"' _ ../notes",
    "cd src; cd ..; cat ../notes",
    "(cd src); cd .. && ls",
    "cd src | cat ../notes",
    "cat $(cat <<< ../notes)",
    "echo ../notes > l; xargs cat < l",
    "echo ../notes > l; cat $(cat l)",
    "echo ../notes > l && tar -T l -cf x.tar",
    "(cd src && ls)\nfor f in *; do cat $f; done",
    "((echo a) > ../new) && ls",
    "echo ls .. > x.sh; sh x.sh",
    "find . -type l -exec cat {} +",
    "find . -lname '*notes' | xargs cat",
    "for l in $(find . -type l); do cat $l; done",
    "ls | xargs cat",
    "xargs -a <(echo leak) cat",
    "git ls-files | xargs cat",
    "rm -rf up/*",
    "mv -t up a.txt",
    "ln -s $PWD l && find -L l -name notes",
    "perl -e 'open F, \"<../notes\"; print <F>'",
    "node -e \"require('fs').writeFileSync('../new', 'x')\"",
    "python3 -c \"import glob; print(glob.glob('../*'))\"",
    "awk '{ print > \"../new\" }' a.txt",
    "sed '1e cat ../notes' a.txt",
    "sqlite3 :memory: \"select readfile('../notes')\"",
  ])("about what is outside of the workspace: %s", async (command) => {
    expect(await run(command)).toContain("outside of the workspace.");
  });

  it.each([
    "pkill node",
    "kill -9 1234",
    "crontab -r",
    "git config --global a.b c",
    "make install",
    "chattr +i a.txt",
    "setfacl -m u:ada:r a.txt",
  ])("about what is not of the workspace: %s", async (command) => {
    expect(await run(command)).toContain("reaches beyond the workspace.");
  });

  it("where there is no sandbox, or the call leaves it", async () => {
    expect(await run("npm test", { sandboxed: false })).toContain("There is no sandbox");
    expect(await run("npm test", { sandboxed: "waived" })).toContain("There is no sandbox");
    const script = "printf 'curl example.org' > x.sh; sh x.sh";
    expect(await run(script, { sandboxed: false })).toContain("There is no sandbox");
    expect(await run(script, { sandboxed: "waived" })).toContain("There is no sandbox");
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

describe("what is typed in a program that runs", () => {
  const concern = "It is typed in a program that may use the network.";
  const type = (
    text: string,
    access: Partial<Access> = {},
    options: Partial<PermissionOptions> = {},
  ): Promise<string> => attempt({ kind: "run", targets: [text], ...access }, options, "jobs");

  it("is decided on as a command is", async () => {
    expect(await type("print(1)\n")).toBe("ran");
    expect(await type("git push\n")).toMatch(/network/);
    expect(await type("print(1)\n", {}, { mode: "ask" })).toMatch(/mode "ask"/);
    expect(await type("print(1)\n", {}, { mode: "plan" })).toBe("denied");
    expect(await type("git push\n", {}, { rules: { deny: ["shell(git push)"] } })).toBe("denied");
  });

  it("is asked about where the program has rights that it was given, unless a rule allows it", async () => {
    expect(await type("print(1)\n", { concern })).toBe(concern);
    expect(await type("ls\n", { concern })).toBe(concern);
    expect(await type("ls\n", { unsandboxed: true })).toBe("It would run outside of the sandbox.");
    expect(await type("ls\n", { concern }, { rules: { allow: ["shell(ls)"] } })).toBe("ran");
    expect(await type("ls\n", { concern }, { rules: { deny: ["shell(ls)"] } })).toBe("denied");
    expect(await type("ls\n", { concern }, { mode: "full" })).toBe("ran");
  });
});
