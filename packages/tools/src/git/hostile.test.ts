import { isLong } from "../../../../tests/support/cases.ts";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "@gyre/ai";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ToolEnv } from "../contract/env.ts";
import { gitTool } from "./tool.ts";
import type { GitOptions } from "./program.ts";
import { noSandbox } from "../sandbox/sandbox.ts";
import { SeenFiles } from "../workspace/seen.ts";
import { openWorkspace } from "../workspace/workspace.ts";

// Each of these runs git some hundred times.
vi.setConfig({ testTimeout: 120_000 });

let base: string;
let root: string;
let caught: string;
let env: ToolEnv;

beforeEach(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-hostile-")));
  root = join(base, "work");
  caught = join(base, "caught");
  for (const folder of ["work", "home", "spool", "caught"]) mkdirSync(join(base, folder));
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

/** git as its user runs it, who walks into every trap. Failing is part of that. */
function git(...args: string[]): void {
  try {
    execFileSync("git", args, {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: join(base, "home"),
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_TERMINAL_PROMPT: "0",
        GIT_PAGER_IN_USE: "0",
      },
      timeout: 60_000,
    });
  } catch {
    // What counts is whether a trap was sprung.
  }
}

function write(path: string, text: string, mode?: number): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  if (mode !== undefined) chmodSync(file, mode);
}

/** A command that leaves a trace. */
function trap(name: string): string {
  return `touch '${join(caught, name)}'; cat`;
}

function sprung(): string[] {
  return readdirSync(caught).sort();
}

async function call(args: Record<string, unknown>, options: GitOptions = {}): Promise<void> {
  await gitTool(env, { author: { name: "Ada", email: "ada@example.org" }, ...options }).execute(
    args,
    {
      id: "c1",
      signal: new AbortController().signal,
      update: () => {},
      host: { call: () => Promise.reject(new Error("not here")) },
      messages: [],
    },
  );
}

/** All that the tool can do, but for a push. */
const EVERYTHING: readonly Record<string, unknown>[] = [
  { action: "status" },
  { action: "diff" },
  { action: "diff", ref: "HEAD" },
  { action: "diff", ref: "HEAD", stat: true },
  { action: "log" },
  { action: "blame", paths: ["a.txt"] },
  { action: "show" },
  { action: "show", paths: ["a.txt"] },
  { action: "branch" },
  { action: "stash", operation: "push", all: true },
  { action: "stash" },
  { action: "stash", operation: "show" },
  { action: "stash", operation: "pop" },
  { action: "branch", name: "other" },
  { action: "checkout", create: "next" },
  { action: "checkout", ref: "main" },
  { action: "reset" },
  { action: "checkout", paths: ["a.txt"] },
  { action: "clean" },
  { action: "reset", mode: "hard" },
  { action: "branch", name: "other", delete: true },
  { action: "branch", name: "next", delete: true, force: true },
];

function repository(): void {
  git("init", "--quiet", "--initial-branch=main");
  git("config", "user.name", "Eve");
  git("config", "user.email", "eve@example.org");
  write("a.txt", "one\n");
  write("b.txt", "two\n");
  git("add", ".");
  git("commit", "--quiet", "-m", "First");
}

const HOOKS = [
  "applypatch-msg",
  "commit-msg",
  "post-checkout",
  "post-commit",
  "post-index-change",
  "post-rewrite",
  "pre-commit",
  "pre-push",
  "prepare-commit-msg",
  "reference-transaction",
];

describe("git in a repository that sets traps", () => {
  it.runIf(isLong)("springs none of them", { tags: "long" }, async () => {
    repository();
    write(".gitattributes", "a.txt diff=evil\n*.evil filter=evil\n*.odd filter=o=d.d\n");
    git("add", ".");
    git("commit", "--quiet", "-m", "Attributes");
    for (const hook of HOOKS) {
      write(`.git/hooks/${hook}`, `#!/bin/sh\ntouch '${join(caught, "hook")}'\n`, 0o755);
    }
    const settings: [string, string][] = [
      ["core.fsmonitor", `touch '${join(caught, "fsmonitor")}'; :`],
      ["core.pager", trap("pager")],
      ["pager.log", trap("pager")],
      ["core.editor", trap("editor")],
      ["sequence.editor", trap("editor")],
      ["diff.external", `touch '${join(caught, "external")}'; :`],
      ["diff.evil.textconv", trap("textconv")],
      ["diff.evil.command", `touch '${join(caught, "driver")}'; :`],
      ["filter.evil.clean", trap("clean")],
      ["filter.evil.smudge", trap("smudge")],
      ["filter.evil.required", "true"],
      ["filter.o=d.d.process", trap("process")],
      ["filter.o=d.d.required", "true"],
      ["gpg.program", join(base, "gpg")],
      ["commit.gpgSign", "true"],
      ["log.showSignature", "true"],
      ["alias.status", `!${trap("alias")}`],
      ["alias.frob", `!${trap("alias")}`],
      ["credential.helper", `!${trap("credential")}`],
      ["core.askPass", trap("askpass")],
      ["trailer.sign.command", trap("trailer")],
      ["hook.evil.command", trap("confighook")],
      ["hook.evil.event", "pre-commit"],
    ];
    for (const [key, value] of settings) git("config", key, value);
    writeFileSync(join(base, "gpg"), `#!/bin/sh\ntouch '${join(caught, "gpg")}'\n`, {
      mode: 0o755,
    });
    write("a.txt", "changed\n");
    write("b.txt", "changed\n");
    write("new.txt", "new\n");
    for (const args of EVERYTHING) await call(args);
    write("new.txt", "new\n");
    await call({ action: "add", paths: ["new.txt"] });
    await call({ action: "diff", staged: true });
    await call({ action: "commit", message: "Sign: me" });
    await call({ action: "log" });
    expect(sprung()).toEqual([]);

    // A file that should go through a filter is not added without it.
    write("x.evil", "evil\n");
    write("y.odd", "odd\n");
    await expect(call({ action: "add", paths: ["x.evil"] })).rejects.toThrow(/filter "evil"/);
    await expect(call({ action: "add", all: true })).rejects.toThrow(/filter "(evil|o=d\.d)"/);
    // Where there is no choice it is kept as it is.
    await call({ action: "clean" });
    expect(existsSync(join(root, "x.evil"))).toBe(false);
    expect(sprung()).toEqual([]);

    // These are traps indeed.
    write("a.txt", "changed again\n");
    write("b.txt", "changed again\n");
    write("x.evil", "evil\n");
    write("y.odd", "odd\n");
    git("status");
    git("diff");
    git("-c", "diff.external=", "diff", "--no-ext-diff");
    git("add", "x.evil");
    git("add", "y.odd");
    git("frob");
    git("commit");
    git("commit", "--allow-empty", "-m", "x");
    git("checkout", "--quiet", "-b", "trapped");
    expect(sprung()).toEqual([
      "alias",
      "clean",
      "driver",
      "editor",
      "external",
      "fsmonitor",
      "gpg",
      "hook",
      "process",
      "textconv",
    ]);
  });

  it("heeds no config that is included, and no folder of hooks that it names", async () => {
    repository();
    write("evil.cfg", `[core]\n\tfsmonitor = "${trap("included")}"\n`);
    write("hooks/post-checkout", `#!/bin/sh\ntouch '${join(caught, "hook")}'\n`, 0o755);
    git("config", "include.path", "../evil.cfg");
    git("config", "core.hooksPath", join(root, "hooks"));
    for (const args of EVERYTHING.slice(0, 3)) await call(args);
    await call({ action: "checkout", create: "next" });
    expect(sprung()).toEqual([]);
    git("status");
    git("checkout", "main");
    expect(sprung()).toEqual(["hook", "included"]);
  });

  it("runs no driver where changes meet", async () => {
    repository();
    write(".gitattributes", "a.txt merge=evil\n");
    git("add", ".");
    git("commit", "--quiet", "-m", "Attributes");
    git("config", "merge.evil.driver", trap("driver"));
    write("a.txt", "stashed\n");
    git("stash");
    write("a.txt", "committed\n");
    git("commit", "--quiet", "-am", "Second");
    await expect(call({ action: "stash", operation: "apply" })).rejects.toThrow(/failed/);
    expect(sprung()).toEqual([]);
    git("reset", "--hard", "--quiet");
    git("stash", "apply");
    expect(sprung()).toEqual(["driver"]);
  });

  it.runIf(isLong)(
    "does not go into a submodule, whatever its config has",
    { tags: "long" },
    async () => {
      repository();
      execFileSync("git", ["init", "--quiet", join(base, "source")]);
      writeFileSync(join(base, "source", "s.txt"), "s\n");
      git("-C", join(base, "source"), "add", ".");
      git(
        "-C",
        join(base, "source"),
        "-c",
        "user.name=E",
        "-c",
        "user.email=e",
        "commit",
        "-qm",
        "S",
      );
      git(
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "--quiet",
        join(base, "source"),
        "sub",
      );
      git("config", "--file", ".gitmodules", "submodule.sub.ignore", "none");
      git("add", ".");
      git("commit", "--quiet", "-m", "Submodule");
      const own = join(root, ".git", "modules", "sub");
      expect(existsSync(own)).toBe(true);
      mkdirSync(join(own, "info"), { recursive: true });
      writeFileSync(join(own, "info", "attributes"), "* filter=evil\n");
      git("-C", "sub", "config", "filter.evil.clean", trap("filter"));
      git("-C", "sub", "config", "core.fsmonitor", `touch '${join(caught, "fsmonitor")}'; :`);
      git("config", "diff.submodule", "diff");
      git("config", "submodule.recurse", "true");
      git("config", "status.submoduleSummary", "true");
      // Of the same length: only its content shows that it has changed.
      writeFileSync(join(root, "sub", "s.txt"), "t\n");
      rmSync(caught, { recursive: true });
      mkdirSync(caught);

      write("a.txt", "changed\n");
      write("new.txt", "new\n");
      for (const args of EVERYTHING) await call(args);
      write("a.txt", "changed\n");
      await call({ action: "add", all: true });
      await call({ action: "commit", message: "Second", all: true });
      rmSync(join(root, ".gitmodules"));
      write("a.txt", "changed again\n");
      await call({ action: "stash", operation: "push" });
      expect(sprung()).toEqual([]);
      expect(readFileSync(join(root, "sub", "s.txt"), "utf8")).toBe("t\n");

      git("status");
      expect(sprung()).toEqual(["filter", "fsmonitor"]);
    },
  );

  it("fetches no missing objects, by whatever way", async () => {
    repository();
    const blob = execFileSync("git", ["rev-parse", "HEAD:b.txt"], { cwd: root, encoding: "utf8" });
    rmSync(join(root, ".git", "objects", blob.slice(0, 2), blob.slice(2).trim()), { force: true });
    write("b.txt", "other\n");
    git("config", "core.repositoryFormatVersion", "1");
    git("config", "extensions.partialClone", "origin");
    git("config", "remote.origin.url", `ext::touch ${join(caught, "ext")}`);
    git("config", "remote.origin.promisor", "true");
    git("config", "protocol.ext.allow", "always");
    for (const args of [
      { action: "diff" },
      { action: "show", paths: ["b.txt"] },
      { action: "checkout", paths: ["b.txt"], ref: "HEAD" },
      { action: "reset", mode: "hard" },
    ]) {
      await expect(call(args)).rejects.toThrow(/failed/);
    }
    expect(readFileSync(join(root, "b.txt"), "utf8")).toBe("other\n");
    expect(sprung()).toEqual([]);
    git("show", "HEAD:b.txt");
    expect(sprung()).toEqual(["ext"]);
  });

  describe("push", () => {
    it("goes by no way that runs something", async () => {
      repository();
      git("config", "protocol.ext.allow", "always");
      git("config", "remote.origin.url", `ext::touch ${join(caught, "ext")}`);
      await expect(call({ action: "push" })).rejects.toThrow(/not allowed/);
      expect(sprung()).toEqual([]);
      git("push", "origin", "main");
      expect(sprung()).toEqual(["ext"]);
    });

    it("runs no hooks of an adjacent repository", async () => {
      repository();
      git("init", "--quiet", "--bare", "evil.git");
      write("evil.git/hooks/pre-receive", `#!/bin/sh\ntouch '${join(caught, "hook")}'\n`, 0o755);
      git("config", "remote.origin.url", join(root, "evil.git"));
      await expect(call({ action: "push" })).rejects.toThrow(/not allowed/);
      expect(sprung()).toEqual([]);
      git("push", "origin", "main");
      expect(sprung()).toEqual(["hook"]);
    });

    it("uses its own way to a server by ssh", async () => {
      repository();
      git("config", "core.sshCommand", `touch '${join(caught, "ssh")}'; :`);
      git("config", "remote.origin.url", "ssh://localhost/x.git");
      await expect(call({ action: "push" }, { push: { sshCommand: "false" } })).rejects.toThrow(
        /failed/,
      );
      expect(sprung()).toEqual([]);
      git("push", "origin", "main");
      expect(sprung()).toEqual(["ssh"]);
    });

    it.each([
      ["http.proxy", "http://localhost:1"],
      ["http.https://example.org/.sslVerify", "false"],
      ["remote.origin.receivepack", "evil"],
      ["remote.origin.vcs", "evil"],
      ["remote.origin.mirror", "true"],
    ])("is not made where the config has %s", async (key, value) => {
      repository();
      git("config", "remote.origin.url", "https://localhost:1/x.git");
      git("config", key, value);
      await expect(call({ action: "push" })).rejects.toThrow(/may not go where it says/);
    });

    it("reports the address that it really has", async () => {
      repository();
      git("config", "remote.origin.url", "https://example.org/x.git");
      git("config", "url.https://evil.example/.insteadOf", "https://example.org/");
      const access = await gitTool(env).access({ action: "push" });
      expect(access.targets).toEqual(["https://evil.example/x.git"]);
    });
  });

  it("does not show a file outside through a folder that became a link", async () => {
    repository();
    write("d/secret", "inside\n");
    git("add", ".");
    git("commit", "--quiet", "-m", "Folder");
    mkdirSync(join(base, "outside"));
    writeFileSync(join(base, "outside", "secret"), "key\n");
    rmSync(join(root, "d"), { recursive: true });
    execFileSync("ln", ["-s", join(base, "outside"), join(root, "d")]);
    await expect(call({ action: "blame", paths: ["d/secret"] })).rejects.toThrow(/d\/secret/);
    await expect(call({ action: "add", paths: ["d/secret"] })).rejects.toThrow(/d\/secret/);
    await call({ action: "reset", mode: "hard" });
    expect(readFileSync(join(base, "outside", "secret"), "utf8")).toBe("key\n");
  });
});
