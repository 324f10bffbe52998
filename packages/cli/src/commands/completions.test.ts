import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { completionScript, SHELLS } from "./completions.ts";
import { typedCommands } from "./help.ts";
import { COMMANDS, OPTIONS } from "../core/options.ts";

const EXECUTABLE = 0o755;

let folder = "";
let env: NodeJS.ProcessEnv = {};
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-completions-"));
  for (const shell of SHELLS) writeFileSync(join(folder, shell), completionScript(shell));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  mkdirSync(join(folder, "sub"));
  // Stands for the program; one of the names is not to be trusted.
  const program = `#!/bin/sh
case "$1" in
  models) printf '[\\n  {"model":"ollama/qwen3:8b"},\\n  {"model":"openai/gpt-9"},\\n  {"model":"ollama/$(touch ${folder}/evil)"}\\n]\\n' ;;
  sessions) printf '[{"id": "abc1","title":"x"},{"id":"abd2"}]' ;;
esac
`;
  writeFileSync(join(bin, "gyre"), program, { mode: EXECUTABLE });
  env = { ...process.env, PATH: `${bin}${delimiter}${process.env["PATH"]}` };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function isThere(shell: string): boolean {
  return spawnSync(shell, ["--version"]).status === 0;
}

/** What bash would offer at the end of a line, its words split as bash does. */
function offered(line: string): string[] {
  const script = `
source "$1"
COMP_LINE=$2 COMP_POINT=\${#2}
COMP_WORDS=($3) COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 ))
_gyre gyre
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const words = line
    .split(/ |(?<=[:=])|(?=[:=])/)
    .map((word) => `'${word}'`)
    .join(" ");
  const args = ["--norc", "-c", script, "bash", join(folder, "bash"), line, words];
  const out = execFileSync("bash", args, { encoding: "utf8", env, cwd: folder });
  return out.split("\n").filter((reply) => reply !== "");
}

describe.each(SHELLS)("the script for %s", (shell) => {
  it("has every command and every option", () => {
    const script = completionScript(shell);
    for (const name of Object.keys(COMMANDS)) {
      if (name !== "run") expect(script).toContain(name);
    }
    for (const name of Object.keys(OPTIONS)) expect(script).toMatch(new RegExp(`[- ]${name}\\b`));
  });

  it.runIf(isThere(shell))("is one that the shell can read", () => {
    const { status, stderr } = spawnSync(shell, ["-n", join(folder, shell)], { encoding: "utf8" });
    expect([status, stderr]).toEqual([0, ""]);
  });
});

describe.runIf(isThere("bash"))("bash", () => {
  const names = typedCommands().map(([name]) => name);

  it.each([
    ["gyre ", names],
    ["gyre mo", ["models"]],
    ["gyre log", ["login", "logout"]],
    ["gyre --output ", ["text", "json", "stream-json"]],
    ["gyre --output=st", ["stream-json"]],
    ["gyre -p --thinking=", ["off", "minimal", "low", "medium", "high", "xhigh"]],
    ["gyre -p 'do it' --mo", ["--model", "--mode"]],
    ["gyre models --", ["--json", "--all", "--config", "--trust", "--cwd", "--help", "--version"]],
    ["gyre --cwd models --js", []],
    ["gyre login an", ["anthropic"]],
    ["gyre completions ", ["bash", "zsh", "fish"]],
    ["gyre -m ", ["ollama/qwen3:8b", "openai/gpt-9"]],
    ["gyre --model=op", ["openai/gpt-9"]],
    // bash takes what stands before a colon for a word of its own.
    ["gyre --model ollama/qwen3:", ["8b"]],
    ["gyre --resume ab", ["abc1", "abd2"]],
    // A part of a name will do; the empty one keeps what was typed.
    ["gyre --model gpt", ["openai/gpt-9"]],
    ["gyre --model :", []],
    ["gyre --model en", ["ollama/qwen3:8b", "openai/gpt-9"]],
    ["gyre --tools re", ["read"]],
    ["gyre --tools read,e", ["read,edit"]],
    ["gyre --tools=grep,fi", ["grep,find"]],
    ["gyre mcp ", ["list", "trust", "serve"]],
    ["gyre mcp trust ", []],
    ["gyre mcp --tools read tr", ["trust"]],
    ["gyre completions bash ", []],
    ["gyre help mod", ["models"]],
    ["gyre help models ", []],
    ["gyre sessions --cwd . show ab", ["abc1", "abd2"]],
    ["gyre sessions sh", ["show"]],
    ["gyre sessions show abd", ["abd2"]],
    ["gyre sessions --json show ", ["abc1", "abd2"]],
    ["gyre sessions --json s", ["show"]],
    ["gyre sessions import ", []],
    ["gyre --schema ", []],
    ["gyre doctor ", []],
  ])("offers for %j", (line, expected) => {
    expect(offered(line)).toEqual(expected);
  });

  it("runs nothing that a name contains", () => {
    offered("gyre --model ollama/");
    expect(existsSync(join(folder, "evil"))).toBe(false);
  });

  it("is read without a word by a shell that stops at errors", () => {
    const args = ["--norc", "-euc", 'source "$1"', "bash", join(folder, "bash")];
    const { status, stderr, stdout } = spawnSync("bash", args, { encoding: "utf8" });
    expect([status, stdout, stderr]).toEqual([0, "", ""]);
  });
});

describe.runIf(isThere("fish"))("fish", () => {
  /** Each offer without what is said of it. */
  function offeredByFish(line: string): string[] {
    const script = `source ${join(folder, "fish")}; complete -C '${line}'`;
    const own = { ...env, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
    const out = execFileSync("fish", ["-c", script], { encoding: "utf8", env: own, cwd: folder });
    return out
      .split("\n")
      .filter((offer) => offer !== "")
      .map((offer) => offer.split("\t")[0] ?? "");
  }

  it.each([
    ["gyre mo", ["models"]],
    ["gyre --output ", ["json", "stream-json", "text"]],
    ["gyre models --a", ["--all"]],
    ["gyre -m op", ["openai/gpt-9"]],
    ["gyre -m gpt", ["openai/gpt-9"]],
    ["gyre --tools read,e", ["read,edit"]],
    ["gyre mcp tr", ["trust"]],
    ["gyre mcp trust ", []],
    ["gyre help mod", ["models"]],
    ["gyre login an", ["anthropic"]],
    ["gyre sessions show abd", ["abd2"]],
    ["gyre completions z", ["zsh"]],
  ])("offers for %j", (line, expected) => {
    expect(offeredByFish(line).sort()).toEqual(expected);
  });
});
