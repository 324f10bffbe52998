import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ToolInvocation, toResult } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { permissions } from "../permissions.ts";
import { openToolset, type Toolset } from "../toolset.ts";

const SECRET = "hunter22";
let base: string;
let root: string;
let tools: Toolset;

beforeEach(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-read-rules-")));
  root = join(base, "work");
  mkdirSync(join(root, "config"), { recursive: true });
  git("init", "-q", "-b", "main");
  write("a.txt", "plain one\n");
  git("add", ".");
  git("commit", "-qm", "one");
  for (const name of [".env", "config/.Env.local", "config/secret.txt"])
    write(name, `KEY=${SECRET}\n`);
  write("a.txt", "plain two\n");
  git("add", ".");
  git("commit", "-qm", "two");
  tools = await openToolset({ root, sandbox: "none", stateFolder: join(base, "state") });
});
afterEach(async () => {
  await tools.close();
  rmSync(base, { recursive: true, force: true });
});

function git(...args: string[]): string {
  const env = { PATH: process.env["PATH"], HOME: base };
  const identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
  return execFileSync("git", [...identity, ...args], { cwd: root, env, encoding: "utf8" }).trim();
}

function write(name: string, text: string): void {
  writeFileSync(join(root, name), text);
}

/** The text of the result, or the words of the denial. */
async function attempt(name: string, args: Record<string, unknown>): Promise<string> {
  const guard = permissions({
    mode: "full",
    sandboxed: "waived",
    rules: { deny: ["read(**/.env*)", "read(config/secret.txt)"] },
    workspace: () => tools.env.workspace,
  });
  const tool = tools.registry.get(name);
  const { signal } = new AbortController();
  const invocation: ToolInvocation = {
    toolCall: { type: "toolCall", id: "c1", name, arguments: args },
    tool,
    args,
    signal,
    run: { sessionId: undefined, model: scriptedModel([]).model, fallbacks: [] },
  };
  const host = { call: () => Promise.reject(new Error("There is nothing else to call.")) };
  try {
    const result = await guard.tool?.(invocation, async () => {
      const given = await tool.execute(args, { id: "c1", signal, update() {}, host, messages: [] });
      return toResult(name, given);
    });
    return result ? textOf(result) : "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

describe("a rule that forbids reading a file", () => {
  const LEFT_OUT =
    "[Left out, because rules forbid to read them: .env, config/.Env.local, config/secret.txt.]";

  it("holds for a patch that moves it, and for edits, which show what is near", async () => {
    const move = `*** Begin Patch\n*** Update File: .env\n*** Move to: copy.txt\n@@\n-KEY=${SECRET}\n+KEY=${SECRET}\n*** End Patch`;
    expect(await attempt("apply_patch", { patch: move })).toContain('"read(**/.env*)" forbids it');
    const edits = [{ oldText: "KEY=x", newText: "KEY=y" }];
    expect(await attempt("edit", { path: ".env", edits })).toContain('"read(**/.env*)" forbids it');
    expect(await attempt("edit", { path: "a.txt", edits })).not.toContain("forbids");
  });

  it("holds for a commit, a difference and a stash without paths", async () => {
    const shown = await attempt("git", { action: "show" });
    expect(shown).toContain("plain two");
    expect(shown).not.toContain(SECRET);
    expect(shown).toContain(LEFT_OUT);

    const compared = await attempt("git", { action: "diff", ref: "HEAD~1", to: "HEAD" });
    expect(compared).toContain("plain two");
    expect(compared).not.toContain(SECRET);
    expect(compared).toContain(LEFT_OUT);
    const folder = await attempt("git", { action: "diff", ref: "HEAD~1", paths: ["config"] });
    expect(folder).not.toContain(SECRET);

    write(".env", `KEY=${SECRET} changed\n`);
    write("a.txt", "plain three\n");
    const changed = await attempt("git", { action: "diff" });
    expect(changed).toContain("plain three");
    expect(changed).not.toContain(SECRET);
    git("stash");
    const stashed = await attempt("git", { action: "stash", operation: "show" });
    expect(stashed).toContain("plain three");
    expect(stashed).not.toContain(SECRET);
    expect(stashed).toContain("[Left out, because rules forbid to read them: .env.]");
  });

  it("holds in a folder of a repository, by the paths of the workspace", async () => {
    await tools.close();
    write(".env", `KEY=${SECRET} 2\n`);
    for (const name of ["config/secret.txt", "config/a.txt", "config/.Env.local"]) {
      write(name, `${SECRET} 2\n`);
    }
    git("add", ".");
    git("commit", "-qm", "three");
    git("mv", "config/.Env.local", "config/secret.local");
    write("config/secret.local", `${SECRET} 3\n`);
    root = join(root, "config");
    tools = await openToolset({ root, sandbox: "none", stateFolder: join(base, "state") });
    write("a.txt", "plain four\n");
    for (const args of [
      { action: "diff", ref: "HEAD~1", to: "HEAD" },
      { action: "show", ref: "HEAD" },
    ]) {
      const text = await attempt("git", args);
      expect(text).toContain("diff --git a/a.txt b/a.txt");
      expect(text).toContain("[Left out, because rules forbid to read them: .Env.local.]");
      expect(text).not.toContain("a/.Env.local");
      expect(text).not.toContain("config/");
    }
    expect(await attempt("git", { action: "diff" })).toContain("+plain four");
    for (const paths of [[".Env.local"], ["./.Env.local"]]) {
      const text = await attempt("git", { action: "show", paths });
      expect(text).toContain('"read(**/.env*)" forbids it');
    }
    expect(await attempt("git", { action: "show", paths: ["../.env"] })).not.toContain(SECRET);
  });

  it("holds for contents and folders that are named by their ids", async () => {
    const blob = git("rev-parse", "HEAD:config/secret.txt");
    const tree = git("rev-parse", "HEAD:config");
    const empty = git("hash-object", "-w", "-t", "tree", "/dev/null");
    for (const args of [
      { action: "show", ref: blob },
      { action: "show", ref: tree, paths: ["secret.txt"] },
      { action: "diff", ref: git("rev-parse", "HEAD:a.txt"), to: blob },
      { action: "diff", ref: empty, to: tree },
    ]) {
      const text = await attempt("git", args);
      expect(text).not.toContain(SECRET);
      expect(text).toContain("is not a commit");
    }
  });

  it("holds for a search over a folder, which says so", async () => {
    write("b.txt", `the ${SECRET} of others\n`);
    const found = await attempt("grep", { pattern: SECRET });
    expect(found).toContain("b.txt:1:");
    expect(found).not.toContain("KEY");
    expect(found).toContain("3 files were left out: rules forbid to read them.");
    expect(await attempt("grep", { pattern: SECRET, path: "config" })).toMatch(/^No line matches/);
    expect(await attempt("grep", { pattern: SECRET, filesOnly: true })).not.toContain(".env");
  });
});
