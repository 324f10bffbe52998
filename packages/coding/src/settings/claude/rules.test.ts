import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ToolInvocation } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import { openToolset, permissions, type Toolset } from "@gyre/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isClaudeRule, type RuleEffect, translateRule } from "./rules.ts";

const FILES = ["a.ts", "src/a.ts", "src/deep/a.ts", "src/b.md", "docs/a.ts", ".env", "src/.env"];
let base: string;
let root: string;
let tools: Toolset;

beforeAll(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-claude-rules-")));
  root = join(base, "work");
  for (const file of FILES) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), "x\n");
  }
  execFileSync("git", ["init", "-q"], { cwd: root });
  tools = await openToolset({ root, sandbox: "none", stateFolder: join(base, "state") });
});
afterAll(async () => {
  await tools.close();
  rmSync(base, { recursive: true, force: true });
});

/** What becomes of a call under one rule: allowed, asked about or denied. */
async function decide(
  effect: RuleEffect,
  rule: string,
  name: string,
  args: Record<string, unknown>,
): Promise<string> {
  const rules = translateRule(effect, rule, { cwd: root, home: base });
  if (!rules) throw new Error(`${rule} has no equal.`);
  const guard = permissions({
    mode: effect === "allow" ? "ask" : "full",
    sandboxed: effect === "allow" ? true : "waived",
    rules: { [effect]: rules },
    workspace: () => tools.env.workspace,
    ask: async () => ({ allow: false, reason: "asked" }),
  });
  const call: ToolInvocation = {
    toolCall: { type: "toolCall", id: "c", name, arguments: args },
    tool: tools.registry.get(name),
    args,
    signal: new AbortController().signal,
    run: { sessionId: undefined, model: scriptedModel([]).model, fallbacks: [] },
  };
  try {
    await guard.tool?.(call, async () => ({ content: [], isError: false }));
    return "runs";
  } catch (error) {
    return error instanceof Error && error.message.includes("forbids it") ? "denied" : "asked";
  }
}

describe("a rule of Claude Code", () => {
  const cases: [RuleEffect, string, string, Record<string, unknown>, string][] = [
    ["allow", "Bash(npm run test:*)", "shell", { command: "npm run test" }, "runs"],
    ["allow", "Bash(npm run test:*)", "shell", { command: "npm run test -- -u" }, "runs"],
    ["allow", "Bash(npm run test:*)", "shell", { command: "npm run tests" }, "asked"],
    ["allow", "Bash(npm run test:*)", "shell", { command: "npm run test && rm x" }, "asked"],
    ["allow", "Bash(make build *)", "shell", { command: "make build all" }, "runs"],
    ["allow", "Bash(make build)", "shell", { command: "make build all" }, "asked"],
    ["deny", "Bash(curl:*)", "shell", { command: "curl example.org" }, "denied"],
    ["deny", "Bash(curl:*)", "shell", { command: "echo a; curl example.org" }, "denied"],
    ["deny", "Bash(curl:*)", "shell", { command: "true" }, "runs"],
    ["ask", "Bash(git push:*)", "shell", { command: "git push origin" }, "asked"],
    ["deny", "Bash", "shell", { command: "true" }, "denied"],
    ["deny", "Read(./.env)", "read", { path: ".env" }, "denied"],
    ["deny", "Read(./.env)", "read", { path: "src/.env" }, "runs"],
    ["deny", "Read(.env)", "read", { path: "src/.env" }, "denied"],
    ["allow", "Edit(src/**)", "write", { path: "src/new.ts", content: "" }, "runs"],
    ["allow", "Edit(src/**)", "write", { path: "docs/new.ts", content: "" }, "asked"],
    ["allow", "Edit(/src/)", "write", { path: "src/deep/a.ts", content: "" }, "runs"],
    ["allow", "Edit", "write", { path: "docs/new.ts", content: "" }, "runs"],
    ["deny", "Edit(src/**)", "write", { path: "src/a.ts", content: "" }, "denied"],
    ["deny", "Write", "edit", { path: "a.ts", edits: [] }, "denied"],
    ["allow", "WebFetch(domain:x.org)", "fetch", { url: "https://x.org/a?b=c" }, "runs"],
    ["allow", "WebFetch(domain:x.org)", "fetch", { url: "https://x.org/" }, "runs"],
    ["allow", "WebFetch(domain:x.org)", "fetch", { url: "https://y.org/x.org" }, "asked"],
    ["deny", "WebFetch(domain:x.org)", "fetch", { url: "https://x.org/a" }, "denied"],
  ];
  it.each(cases)("%s %s: %s %j %s", async (effect, rule, tool, args, expected) => {
    expect(await decide(effect, rule, tool, args)).toBe(expected);
  });

  it("names places as Claude Code does, and servers whole", () => {
    const place = { cwd: "/home/me/p/sub", root: "/home/me/p", home: "/home/me" };
    const read = (path: string) => translateRule("deny", `Read(${path})`, place);
    expect(read("~/.ssh/**")).toEqual(["read(/home/me/.ssh/**)"]);
    expect(read("//etc/passwd")).toEqual(["read(/etc/passwd)"]);
    expect(read("/sub/x")).toEqual(["read(x)"]);
    expect(read("/other/x")).toEqual(["read(/home/me/p/other/x)"]);
    expect(read("../x")).toEqual(["read(/home/me/p/x)"]);
    expect(translateRule("deny", "mcp__git_hub", place)).toEqual(["mcp__git_hub__*"]);
    expect(translateRule("deny", "mcp__hub__merge", place)).toEqual(["mcp__hub__merge"]);
  });

  it("has no effect where its tool is not here, and no equal where it cannot be said", () => {
    const place = { cwd: root, home: base };
    expect(translateRule("deny", "WebSearch", place)).toEqual([]);
    for (const rule of ["Agent(Explore)", "Foo", "Foo(bar)", "Bash( )", "WebFetch(x)", "Grep(a)"]) {
      expect(translateRule("deny", rule, place)).toBeUndefined();
    }
    expect(["Bash(ls)", "mcp__hub", "shell(ls)", "mcp__hub__*", "Foo"].map(isClaudeRule)).toEqual([
      ...[true, true, false, false, false],
    ]);
  });

  it("forbids the files that git ignores by the same pattern", async () => {
    const patterns = [
      "a.ts",
      "*.ts",
      "src",
      "src/",
      "src/**",
      "src/*.ts",
      "/a.ts",
      "/src",
      "**/a.ts",
    ];
    for (const pattern of [
      ...patterns,
      "deep",
      "src/deep",
      ".env",
      "docs/a.ts",
      "*.md",
      "/src/**",
    ]) {
      writeFileSync(join(root, ".gitignore"), `${pattern}\n`);
      for (const path of FILES) {
        const expected = isIgnored(path) ? "denied" : "runs";
        const found = await decide("deny", `Read(${pattern})`, "read", { path });
        expect([pattern, path, found]).toEqual([pattern, path, expected]);
      }
    }
  });
});

function isIgnored(path: string): boolean {
  try {
    execFileSync("git", ["check-ignore", "-q", "--no-index", path], { cwd: root });
    return true;
  } catch {
    // It ends with 1 where a path is not ignored.
    return false;
  }
}
