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
  ])("about what is outside of the workspace: %s", async (command) => {
    expect(await run(command)).toContain("outside of the workspace.");
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
  ])("nothing else: %s", async (command) => {
    expect(await run(command, { mode: "ask" })).not.toBe("ran");
    expect(await run(command, { mode: "plan" })).toBe("denied");
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
