import { realpathSync, writeFileSync } from "node:fs";
import {
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix, win32 } from "node:path";
import type { AgentToolResult } from "@gyre/agent";
import { systemClock } from "@gyre/ai";
import { manualClock } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolEnv } from "../contract/env.ts";
import { JobTable } from "./jobs/job-table.ts";
import { jobsTool } from "./jobs/tool.ts";
import { putAside } from "./quarantine.ts";
import { createSandbox, noSandbox, type Sandbox, type SandboxPolicy } from "../sandbox/sandbox.ts";
import { SeenFiles } from "../workspace/seen.ts";
import {
  SHELL_MAX_BYTES,
  SHELL_MAX_TIMEOUT_MS,
  SHELL_PROGRESS_BYTES,
  SHELL_TIMEOUT_MS,
  type ShellDetails,
  type ShellOptions,
  shellTool,
} from "./tool.ts";
import { shellOn } from "./find-shell.ts";
import { openWorkspace, PathError } from "../workspace/workspace.ts";
import { modelText } from "../testing/model-text.ts";

const isPosix = process.platform !== "win32";
/** What the two lines around a text take, a few times over. */
const AROUND_BYTES = 2_000;
let folder: string;
let env: ToolEnv;

beforeEach(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "gyre-shell-")));
  const spoolFolder = join(folder, "spool");
  await mkdir(spoolFolder, { mode: 0o700 });
  await mkdir(join(folder, "work"));
  env = {
    workspace: await openWorkspace(join(folder, "work")),
    seen: new SeenFiles(),
    sandbox: () => Promise.resolve(noSandbox),
    spoolFolder,
    environment: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LANG: "C.UTF-8" },
    clock: systemClock,
  };
});
afterEach(async () => {
  await env.workspace.close();
  await rm(folder, { recursive: true, force: true });
});

describe("the shell that runs a command", () => {
  it.each([
    ["/opt/a;b:/usr/bin::/bin", posix, "/usr/bin/bash"],
    [String.raw`C:\Windows;D:\usr\bin;;D:\bin`, win32, String.raw`D:\usr\bin\bash`],
  ])("is the first bash on a PATH that the system parts: %s", (path, system, bash) => {
    const there = [bash, system.join(system.dirname(bash), "../../bin/bash")];
    expect(shellOn(path, (each) => there.includes(each), system)).toBe(bash);
    expect(shellOn(path, () => false, system)).toBe("sh");
  });
});

type Shell = ShellOptions & { signal?: AbortSignal; onUpdate?: (text: string) => void };

async function shell(args: Record<string, unknown>, options: Shell = {}): Promise<AgentToolResult> {
  const { signal = new AbortController().signal, onUpdate = () => {}, ...rest } = options;
  const result = await shellTool(env, rest).execute(args, {
    id: "1",
    signal,
    update: (partial) => onUpdate(joinText(partial)),
    host: { call: () => Promise.reject(new Error("not here")) },
    messages: [],
  });
  if (typeof result === "string") throw new Error("a plain string");
  return result;
}

function joinText(result: AgentToolResult): string {
  return modelText(result);
}

function readDetails({ details }: AgentToolResult): ShellDetails {
  return details as ShellDetails;
}

/** A sandbox that notes what it is asked for. */
function notingSandbox(): Sandbox & { policies: SandboxPolicy[] } {
  const policies: SandboxPolicy[] = [];
  return {
    kind: "none",
    policies,
    wrap: (program, policy) => {
      policies.push(policy);
      return program;
    },
  };
}

describe.runIf(isPosix)("shell", () => {
  it("gives exit code and output to the model, and all in details", async () => {
    const result = await shell({ command: "echo out; echo err >&2" });
    expect(joinText(result)).toMatch(
      /^Exit code 0\.\n<source kind="command"[^\n]+\nout\n<\/source[^\n]+\nstderr:\n<source[^\n]+\nerr\n<\/source[^\n]+$/,
    );
    expect(result.isError).toBe(false);
    const { durationMs, ...details } = readDetails(result);
    expect(details).toEqual({
      stdout: "out\n",
      stderr: "err\n",
      exitCode: 0,
      timedOut: false,
      aborted: false,
    });
    expect(durationMs).toBeGreaterThanOrEqual(0);
  });

  it("does not repeat the command, which the call has", async () => {
    const result = await shell({ command: 'echo out "of <this>" >&2; echo out' });
    expect(joinText(result)).toContain('<source kind="command" name="shell" mark=');
    expect(joinText(result)).not.toContain("echo");
  });

  it("describes a sandbox only where there is one", () => {
    expect(shellTool(env, {}).description).toContain("Sandboxed: only");
    const { description, parameters } = shellTool(env, { unconfined: true });
    expect(description).not.toMatch(/sandbox|network|private/);
    expect(JSON.stringify(parameters)).not.toContain("sandbox");
    expect(description).toContain("with the user's rights");
  });

  it("describes the private /tmp where there is one: empty when a session is resumed", () => {
    expect(shellTool(env, {}).description).not.toContain("private");
    const temporary = { folder, maxBytes: 1_000 };
    expect(shellTool({ ...env, temporary }, {}).description).toContain(
      "/tmp (private, empty on resume)",
    );
  });

  it("says that there was no output", async () => {
    expect(joinText(await shell({ command: "true" }))).toBe("Exit code 0.\nNo output.");
  });

  it("reports a failure as an error, with the output", async () => {
    const result = await shell({ command: "echo why >&2; exit 7" });
    expect(result.isError).toBe(true);
    expect(joinText(result)).toMatch(/^Exit code 7\.\nstderr:\n[^\n]+\nwhy\n/);
  });

  it("runs bash where there is one, in the workspace, with the environment that is given", async () => {
    const result = await shell({ command: 'echo "${BASH_VERSION:+bash} $PWD $LANG ${HOME-none}"' });
    expect(readDetails(result).stdout).toBe(`bash ${env.workspace.root} C.UTF-8 none\n`);
  });

  it("runs sh where there is no bash", async () => {
    env.environment = { PATH: folder };
    await writeFile(join(folder, "sh"), '#!/bin/sh\necho plain "$@"\n', { mode: 0o755 });
    expect(readDetails(await shell({ command: "x y" })).stdout).toBe("plain -c x y\n");
    const tool = shellTool(env, {});
    expect(tool.description).toMatch(/^Run a POSIX sh command/);
    expect(await tool.access({ command: "x y" })).toMatchObject({ language: "sh" });
  });

  it("runs in a folder of the workspace, and nowhere else", async () => {
    await mkdir(join(env.workspace.root, "inner"));
    await writeFile(join(env.workspace.root, "file"), "");
    const result = await shell({ command: "pwd", cwd: "inner" });
    expect(readDetails(result).stdout).toBe(`${join(env.workspace.root, "inner")}\n`);
    await expect(shell({ command: "pwd", cwd: "../spool" })).rejects.toThrow(PathError);
    await expect(shell({ command: "pwd", cwd: "file" })).rejects.toThrow("is not a folder");
    await expect(shell({ command: "pwd", cwd: "inne" })).rejects.toThrow("inner");
  });

  it("has no input to wait for", async () => {
    expect(joinText(await shell({ command: "cat; read x || echo closed" }))).toContain("closed");
  });

  it("shows beginning and end of long output, and where all of it is", async () => {
    const result = await shell({ command: "seq 100000" });
    const text = joinText(result);
    expect(text).toMatch(/^Exit code 0\.\n<source[^\n]+\n1\n2\n3\n/);
    expect(text).toMatch(/\n99999\n100000\n<\/source[^\n]+$/);
    expect(Buffer.byteLength(text)).toBeLessThan(SHELL_MAX_BYTES + AROUND_BYTES);
    const notice =
      /\[… ([\d,]+) lines \((\d+) KB\) left out; all of it is in (\S+): read shows/.exec(text);
    const shown = text.match(/^\d+$/gmu)?.length ?? 0;
    expect(notice?.[1]).toBe((100_000 - shown).toLocaleString("en-US"));
    const all = await readFile(notice?.[3] ?? "", "utf8");
    expect(all.split("\n").length).toBe(100_001);
  });

  it("has a file also for what fits into memory but is too long to be shown", async () => {
    const result = await shell({ command: "seq 8000" });
    const path = / all of it is in (\S+): read shows/.exec(joinText(result))?.[1] ?? "";
    expect(await readFile(path, "utf8")).toBe(readDetails(result).stdout);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("shows both streams where both are long", async () => {
    const text = joinText(await shell({ command: "seq 100000; seq -f 'e%.0f' 100000 >&2" }));
    expect(text).toContain("\n100000\n");
    expect(text).toContain("\ne100000\n");
    expect(Buffer.byteLength(text)).toBeLessThan(SHELL_MAX_BYTES + 2 * AROUND_BYTES);
  });

  it("shows no character in half, no sequence for terminals, no invalid text", async () => {
    const long = joinText(await shell({ command: "yes 😀😀😀 | head -n 30000 | tr -d '\\n'" }));
    expect(long.includes("\uFFFD")).toBe(false);
    expect(long).toMatch(/\n\[… \d+ KB left out; all of it is in /);
    const odd = joinText(
      await shell({ command: String.raw`printf '\033[31mred\033[0m \377 end'` }),
    );
    expect(odd).toContain("\nred \uFFFD end\n");
  });

  it("ends a command whose time is over, and says what to do", async () => {
    const clock = manualClock();
    env.clock = clock;
    const result = await shell(
      { command: "echo started; sleep 1000", timeoutMs: 4_000 },
      { onUpdate: () => void clock.advance(4_000) },
    );
    expect(result.isError).toBe(true);
    expect(joinText(result)).toMatch(
      /^Ended by us after 4\.0 s: its time was over\.\nGive it more with timeoutMs \(at most 600000\)/,
    );
    expect(joinText(result)).toContain("\nstarted\n");
    expect(readDetails(result)).toMatchObject({ timedOut: true, exitCode: null });
  });

  it.each([
    [undefined, SHELL_TIMEOUT_MS],
    [10_000_000, SHELL_MAX_TIMEOUT_MS],
  ])("has a time limit (asked for: %s)", async (timeoutMs, limit) => {
    const clock = manualClock();
    env.clock = clock;
    const result = await shell(
      { command: "echo; sleep 1000", ...(timeoutMs && { timeoutMs }) },
      { onUpdate: () => void clock.advance(limit) },
    );
    expect(readDetails(result)).toMatchObject({ timedOut: true, durationMs: limit });
  });

  it("is not given less time than there is", async () => {
    await expect(shell({ command: "true", timeoutMs: 0 })).rejects.toThrow(
      "timeoutMs has to be at least 1; it is 0.",
    );
  });

  it("is ended by an abort, and says so", async () => {
    const stop = new AbortController();
    const result = await shell(
      { command: "echo started; sleep 1000" },
      { signal: stop.signal, onUpdate: () => stop.abort() },
    );
    expect(result.isError).toBe(true);
    expect(joinText(result)).toContain("Ended by us: it was aborted.");
    expect(readDetails(result)).toMatchObject({ aborted: true, stdout: "started\n" });
  });

  it("reports progress, not too often, and only the end of much", async () => {
    const clock = manualClock();
    env.clock = clock;
    const updates: string[] = [];
    const root = env.workspace.root;
    const next = (): void => writeFileSync(join(root, `go${updates.length}`), "");
    const wait = (n: number): string => `until [ -e go${n} ]; do :; done`;
    const command = `echo a; ${wait(1)}; echo b; seq 5000; echo c; echo > ready; ${wait(2)}; ${wait(3)}`;
    const running = shell(
      { command },
      {
        onUpdate: (text) => {
          updates.push(text);
          next();
        },
      },
    );
    await expect.poll(() => clock.pending, { interval: 5 }).toBe(2);
    await expect
      .poll(() => stat(join(root, "ready")).then(Boolean, () => false), {
        interval: 5,
      })
      .toBe(true);
    // Time stood still: only the first piece is reported.
    expect(updates).toEqual(["a\n"]);
    await clock.advance(100);
    expect(updates.length).toBe(2);
    expect(updates[1]?.length).toBeLessThanOrEqual(SHELL_PROGRESS_BYTES);
    writeFileSync(join(root, "go3"), "");
    await running;
    expect(clock.pending).toBe(0);
  });

  it("starts background jobs, which outlive the call", async () => {
    const jobs = new JobTable(env);
    const result = await shell({ command: "echo up; sleep 1000", background: true }, { jobs });
    expect(joinText(result)).toBe("Started as job-1. Read its output with the tool jobs.");
    expect(result.details).toEqual({ id: "job-1" });
    await jobs.wait("job-1", 60_000);
    expect(jobs.read("job-1").text).toBe("up\n");
    expect(jobsTool(jobs).name).toBe("jobs");
    await jobs.close();
    await expect(shell({ command: "true", background: true })).rejects.toThrow(
      "There are no background jobs here.",
    );
  });
});

describe.runIf(isPosix)("what shell asks of the sandbox", () => {
  it("is to write the workspace but for what is protected, and no network", async () => {
    const { root } = env.workspace;
    await mkdir(join(root, ".git/hooks"), { recursive: true });
    await mkdir(join(root, ".git/objects"));
    await mkdir(join(root, ".claude"));
    await mkdir(join(root, ".vscode"));
    await writeFile(join(root, ".git/config"), "");
    await writeFile(join(root, ".vscode/tasks.json"), "");
    await writeFile(join(root, ".vscode/extensions.json"), "");
    const sandbox = notingSandbox();
    env.sandbox = () => Promise.resolve(sandbox);
    await shell({ command: "true" }, { hidden: ["/secret"] });
    const [policy] = sandbox.policies;
    expect(policy).toMatchObject({ writable: [root], hidden: ["/secret"], network: false });
    const readOnly = policy?.readOnly.map((path) => path.replace(`${root}/`, ""));
    expect(new Set(readOnly)).toEqual(
      new Set([".claude", ".git/config", ".git/hooks", ".vscode/tasks.json", env.spoolFolder]),
    );
  });

  it("is the network where it is allowed, and nothing for what runs outside", async () => {
    const sandbox = notingSandbox();
    env.sandbox = () => Promise.resolve(sandbox);
    await shell({ command: "true" }, { network: true });
    await shell({ command: "true", unsandboxed: "needs the printer" });
    expect(sandbox.policies.map((policy) => policy.network)).toEqual([true]);
  });

  it("is not to be started at all where it cannot be confined", async () => {
    const sandbox: Sandbox = {
      kind: "bubblewrap",
      wrap: () => {
        throw new Error("cannot be confined");
      },
    };
    env.sandbox = () => Promise.resolve(sandbox);
    await expect(shell({ command: "touch ran" })).rejects.toThrow("cannot be confined");
    await expect(stat(join(env.workspace.root, "ran"))).rejects.toThrow("ENOENT");
  });
});

describe("shell in a sandbox", { tags: "bubblewrap" }, () => {
  beforeEach(() => {
    env.sandbox = () => createSandbox();
  });

  it("changes the workspace and nothing else", async () => {
    await mkdir(join(env.workspace.root, ".git"));
    await writeFile(join(env.workspace.root, ".git/config"), "x");
    const command = `echo 1 > a; echo 2 > ${folder}/b; echo 3 > .git/config; echo 4 > .git/hooks/post-commit; echo 5 > .git/c; cat a .git/c`;
    const { stdout, stderr } = readDetails(await shell({ command }));
    expect(stdout).toBe("1\n5\n");
    expect(stderr.match(/Read-only file system|Permission denied|No such file/g)?.length).toBe(2);
    // It has a /tmp of its own.
    await expect(stat(join(folder, "b"))).rejects.toThrow("ENOENT");
    expect(await readFile(join(env.workspace.root, ".git/config"), "utf8")).toBe("x");
  });

  it("writes the caches of package managers to its own /tmp", async () => {
    const home = join(folder, "home");
    await mkdir(join(home, ".npm"), { recursive: true });
    env.environment = { ...env.environment, HOME: home };
    const names = ["npm_config_cache", "GOCACHE", "PIP_CACHE_DIR", "UV_CACHE_DIR"];
    const command = names.map((name) => `mkdir -p "$${name}/a" && echo "$${name}"`).join("; ");
    const { stdout } = readDetails(await shell({ command }));
    expect(stdout.trim().split("\n")).toEqual([
      "/tmp/cache/npm",
      "/tmp/cache/go-build",
      "/tmp/cache/pip",
      "/tmp/cache/uv",
    ]);
  });

  it("installs a package with npm", async () => {
    env.environment = { ...env.environment, HOME: "/root-is-read-only" };
    const root = env.workspace.root;
    await mkdir(join(root, "part"));
    await writeFile(join(root, "part/package.json"), '{"name":"part","version":"1.0.0"}');
    await writeFile(join(root, "package.json"), '{"name":"whole","version":"1.0.0"}');
    const result = await shell({
      command:
        "npm pack --silent ./part && npm install --no-audit ./part-1.0.0.tgz && npm ci --no-audit",
    });
    expect(joinText(result)).toMatch(/^Exit code 0\./);
    expect(await readFile(join(root, "node_modules/part/package.json"), "utf8")).toContain("part");
  });

  it("writes to folders that are named", async () => {
    const writable = [join(folder, "more"), join(folder, "made/by it")];
    await mkdir(join(folder, "more"));
    const command = writable.map((path) => `echo 1 > '${path}/a'`).join(" && ");
    expect(joinText(await shell({ command }, { writable }))).toBe("Exit code 0.\nNo output.");
    for (const path of writable) expect(await readFile(join(path, "a"), "utf8")).toBe("1\n");
  });

  it("says that it may be why a command failed, and what to set", async () => {
    const written = await shell({ command: "touch /usr/x" });
    expect(joinText(written)).toMatch(/^Exit code 1\.\nThe sandbox .+ the setting `writable`\.\n/);
    const asked = 'require("dns").lookup("a.test", (e) => { throw e })';
    const connected = await shell({ command: `node -e '${asked}'` });
    expect(joinText(connected)).toMatch(/^Exit code 1\.\nThe sandbox .+ the setting `network`\.\n/);
    const worked = await shell({ command: "touch /usr/x; true" });
    expect(joinText(worked)).not.toContain("The sandbox");
  });

  it("reads what was too long to be shown", async () => {
    const first = joinText(await shell({ command: "seq 100000" }));
    const path = / all of it is in (\S+): read shows/.exec(first)?.[1] ?? "";
    expect(readDetails(await shell({ command: `sed -n '5000p' ${path}` })).stdout).toBe("5000\n");
  });

  it("leaves nothing on abort", async () => {
    const stop = new AbortController();
    const result = await shell(
      {
        command: "trap '' TERM; setsid -f env -i /bin/sleep 60.135724; echo up; sleep 60; sleep 60",
      },
      { signal: stop.signal, onUpdate: () => stop.abort() },
    );
    expect(readDetails(result).aborted).toBe(true);
    const left = readDetails(
      await shell({
        command: "cat /proc/[0-9]*/cmdline | tr '\\0' ' '",
        unsandboxed: "",
      }),
    );
    expect(left.stdout).not.toContain("sleep 60.135724");
  });
});

describe("what a call of shell would do", () => {
  const access = (args: Record<string, unknown>): unknown => shellTool(env).access(args);

  it("is to run the command", async () => {
    expect(await access({ command: "ls -la" })).toEqual({
      kind: "run",
      targets: ["ls -la"],
      folder: ".",
      summary: "Run ls -la",
    });
  });

  it("reports the folder and the wish to leave the sandbox", async () => {
    await mkdir(join(env.workspace.root, "inner"));
    expect(await access({ command: "ls", cwd: "inner", unsandboxed: "docker\nis there" })).toEqual({
      kind: "run",
      targets: ["ls"],
      folder: "inner",
      unsandboxed: true,
      summary: `Run ls in ${env.workspace.root}/inner outside of the sandbox: docker␊is there`,
    });
    expect(await access({ command: "ls", unsandboxed: 1 })).toMatchObject({
      summary: "Run ls outside of the sandbox: no reason given",
    });
  });

  it("hides nothing of the command, and cuts what is long", async () => {
    expect(await access({ command: "a\u202E\u001B[8m\nrm" })).toMatchObject({
      summary: "Run a<U+202E>␛[8m␊rm",
    });
    const summary = `Run ${"x".repeat(300)}… (1,000 characters in all)`;
    expect(await access({ command: "x".repeat(1_000) })).toMatchObject({ summary });
  });

  it("is reported before it makes no sense", async () => {
    await expect(access({ command: " " })).rejects.toThrow("There is no command to run.");
    await expect(access({ command: "ls", cwd: ".." })).rejects.toThrow(PathError);
  });
});

describe("places that instruct agents and editors", () => {
  it("are not there afterwards where a command made them, and are kept aside", async () => {
    const command =
      "mkdir -p .husky .github/workflows .cargo && touch .husky/a .github/workflows/a .cargo/config.toml .cargo/other opencode.json && mkdir .gyre .vscode && echo '{}' > .mcp.json && echo x > .gyre/policy && echo y > .vscode/tasks.json && ln -s /etc .claude && echo z > .vscode/notes && git init -q . ; true";
    const result = await shell({ command });
    for (const path of [
      ".gyre",
      ".mcp.json",
      ".claude",
      ".vscode/tasks.json",
      ".husky",
      ".github/workflows",
      ".cargo/config.toml",
      "opencode.json",
    ]) {
      expect(joinText(result)).toContain(`It made ${path}, which`);
      await expect(stat(join(folder, "work", path))).rejects.toThrow("ENOENT");
    }
    const policy = /put aside: (\S+-\.gyre)\./.exec(joinText(result))?.[1] ?? "";
    expect(await readFile(join(policy, "policy"), "utf8")).toBe("x\n");
    expect(await readFile(join(folder, "work", ".vscode", "notes"), "utf8")).toBe("z\n");
    expect(await readFile(join(folder, "work", ".git", "HEAD"), "utf8")).toContain("ref:");
  });

  it("are not reached by a link in the place of their folder", async () => {
    const command = "mkdir other && echo y > other/tasks.json && ln -s other .vscode";
    expect(joinText(await shell({ command }))).toContain("It made .vscode, which");
    await expect(lstat(join(folder, "work", ".vscode"))).rejects.toThrow("ENOENT");
    expect(await readFile(join(folder, "work", "other", "tasks.json"), "utf8")).toBe("y\n");
  });

  it("are a repository's pointer to another config", async () => {
    await mkdir(join(folder, "work", ".git"));
    const command = "echo ../other > .git/commondir; echo x > .git/config";
    expect(joinText(await shell({ command }))).toContain("It made .git/commondir, which");
    await expect(stat(join(folder, "work", ".git", "commondir"))).rejects.toThrow("ENOENT");
    expect(await readFile(join(folder, "work", ".git", "config"), "utf8")).toBe("x\n");
  });

  it.runIf(process.platform === "linux")(
    "are not taken from outside when their folder becomes a link meanwhile",
    async () => {
      const work = join(folder, "work");
      await mkdir(join(work, ".vscode"));
      await writeFile(join(work, ".vscode", "tasks.json"), "inside");
      await mkdir(join(folder, "host"));
      await writeFile(join(folder, "host", "tasks.json"), "outside");
      const list = env.workspace.list.bind(env.workspace);
      env.workspace.list = async (path) => {
        const entries = await list(path);
        if (path !== ".vscode") return entries;
        await rename(join(work, ".vscode"), join(work, "moved"));
        await mkdir(join(work, ".vscode"));
        return entries;
      };
      const resolve = env.workspace.resolve.bind(env.workspace);
      env.workspace.resolve = async (path, options) => {
        const resolved = await resolve(path, options);
        if (path !== ".vscode/tasks.json") return resolved;
        await rm(join(work, ".vscode"), { recursive: true });
        await symlink(join(folder, "host"), join(work, ".vscode"));
        return resolved;
      };
      const failure = expect.stringMatching(/ENOTDIR|ELOOP/);
      expect(await putAside(env, [])).toMatchObject([{ path: ".vscode/tasks.json", failure }]);
      expect(await readFile(join(folder, "host", "tasks.json"), "utf8")).toBe("outside");
    },
  );

  it("are found where a command took the right to list their folder", async () => {
    const work = join(folder, "work");
    await mkdir(join(work, ".vscode"));
    await writeFile(join(work, ".vscode", "tasks.json"), "{}");
    await writeFile(join(work, ".mcp.json"), "{}");
    // Root may list all folders: so it is said instead.
    env.workspace.list = () => Promise.reject(new Error("EACCES"));
    const moved = await putAside(env, []);
    expect(moved.map(({ path }) => path)).toEqual([".mcp.json", ".vscode/tasks.json"]);
    await expect(lstat(join(work, ".mcp.json"))).rejects.toThrow("ENOENT");
  });

  it("stay where they were there before", async () => {
    await mkdir(join(folder, "work", ".gyre"));
    const result = await shell({ command: "echo ok" });
    expect(joinText(result)).not.toContain("put aside");
    expect((await stat(join(folder, "work", ".gyre"))).isDirectory()).toBe(true);
  });
});
