import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  completeLine,
  completionScript,
  formatCompletions,
  readNames,
  type Shell,
  SHELLS,
} from "./completions.ts";
import { typedCommands } from "./help.ts";
import { COMMANDS } from "../core/options.ts";

const PROGRAM = fileURLToPath(new URL("../../bundle/gyre.js", import.meta.url));
const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const EXECUTABLE = 0o755;
const names = typedCommands().map(([name]) => name);
const NAMES = {
  // One of the names is not to be trusted.
  models: async () => ["ollama/qwen3:8b", "openai/gpt-9", "ollama/$(touch evil)"],
  sessions: async () => ["abc1", "abd2"],
};

async function complete(line: string) {
  return completeLine(line.split(" "), NAMES);
}

describe("the end of a command line", () => {
  it.each<[string, readonly string[]]>([
    ["", names],
    ["mo", ["models"]],
    ["log", ["login", "logout"]],
    ["--output ", ["text", "json", "stream-json", "claude"]],
    ["--output=st", ["--output=stream-json"]],
    ["-p --thinking=", LEVELS.map((level) => `--thinking=${level}`)],
    ["-p 'do it' --mo", ["--model", "--mode"]],
    [
      "models --",
      ["--json", "--all", "--refresh", "--config", "--trust", "--cwd", "--help", "--version"],
    ],
    ["--cwd models --js", []],
    ["login an", ["anthropic"]],
    ["completions ", ["bash", "zsh", "fish"]],
    ["-m ", ["ollama/qwen3:8b", "openai/gpt-9"]],
    ["--model=op", ["--model=openai/gpt-9"]],
    ["--model ollama/qwen3:", ["ollama/qwen3:8b"]],
    ["--resume ab", ["abc1", "abd2"]],
    // A part of a name will do.
    ["--model gpt", ["openai/gpt-9"]],
    ["--model :", []],
    ["--model en", ["ollama/qwen3:8b", "openai/gpt-9"]],
    ["--tools re", ["read"]],
    ["--tools read,e", ["read,edit"]],
    ["--tools=grep,fi", ["--tools=grep,find"]],
    ["mcp ", ["list", "add", "remove", "login", "logout", "trust", "serve"]],
    ["mcp trust ", []],
    ["mcp --tools read tr", ["trust"]],
    ["completions bash ", []],
    ["help mod", ["models"]],
    ["help models ", []],
    ["sessions --cwd . show ab", ["abc1", "abd2"]],
    ["sessions sh", ["show"]],
    ["sessions show abd", ["abd2"]],
    ["sessions --json show ", ["abc1", "abd2"]],
    ["sessions --json s", ["show"]],
    ["sessions import ", []],
    ["--schema ", []],
    ["doctor ", []],
  ])("%j may be", async (line, expected) => {
    const { words } = await complete(line);
    expect(words.map(({ word }) => word)).toEqual(expected);
  });

  it.each([
    ["--schema ", "file"],
    ["sessions import ", "file"],
    ["hello ", "file"],
    ["--cwd ", "folder"],
    ["trust ", "folder"],
    ["--tools re", "part"],
    ["completions bash ", "none"],
    ["doctor ", "none"],
    ["--allow ", "none"],
  ])("%j is looked up as %s", async (line, kind) => {
    expect((await complete(line)).kind).toBe(kind);
  });

  it.each(Object.keys(COMMANDS).filter((name) => name !== "run"))(
    "knows every option of %s",
    async (name) => {
      const { words } = await complete(`${name} --`);
      const { options } = COMMANDS[name as keyof typeof COMMANDS];
      expect(words.map(({ word }) => word)).toEqual(
        expect.arrayContaining(options.map((option) => `--${option}`)),
      );
    },
  );
});

describe("as a shell reads them", () => {
  it.each<[Shell, string, string]>([
    // bash takes what stands before a colon or = for a word of its own.
    ["bash", "--model ollama/qwen3:", "word\n8b\n"],
    ["bash", "--output=st", "word\nstream-json\n"],
    // The empty one keeps what was typed.
    ["bash", "--model en", "word\nollama/qwen3:8b\nopenai/gpt-9\n\n"],
    ["bash", "mod", "word\nmodels\n"],
    ["zsh", "--model ollama/", "word\nollama/qwen3\\:8b\n"],
    ["zsh", "mod", "word\nmodels:list models, those that are usable first\n"],
    ["fish", "mod", "word\nmodels\tlist models, those that are usable first\n"],
  ])("%s, for %j", async (shell, line, expected) => {
    const typed = line.split(" ").at(-1) ?? "";
    expect(formatCompletions(shell, await complete(line), typed)).toBe(expected);
  });

  it("names are read from lists in JSON", () => {
    expect(readNames('[{"id": "a"}, {"id": 1}, {"id": "b", "x": 2}]', "id")).toEqual(["a", "b"]);
    expect(readNames("{}", "id")).toEqual([]);
  });
});

function isThere(shell: string): boolean {
  return spawnSync(shell, ["--version"]).status === 0;
}

describe.each(SHELLS.filter(isThere))("%s", (shell) => {
  let folder = "";
  let env: NodeJS.ProcessEnv = {};
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "gyre-completions-"));
    writeFileSync(join(folder, shell), completionScript(shell));
    const bin = join(folder, "bin");
    for (const name of [bin, join(folder, "sub")]) mkdirSync(name);
    const program = `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`;
    writeFileSync(join(bin, "gyre"), program, { mode: EXECUTABLE });
    const own = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
    env = { ...process.env, ...own, PATH: `${bin}${delimiter}${process.env["PATH"]}` };
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** What the shell offers at the end of a line. */
  const offered: Record<Shell, (line: string) => string> = {
    bash: (line) => `source "$0"
COMP_LINE='${line}' COMP_POINT=${line.length}
_gyre gyre
printf '%s\\n' "\${COMPREPLY[@]}"`,
    // What is offered is listed in place of being shown to a person.
    zsh: (line) => `compdef() {}
_files() { echo files }
_describe() { print -l -- \${(P)4} }
source "$0"
words=(${line
      .split(" ")
      .map((word) => `'${word}'`)
      .join(" ")}) CURRENT=\${#words} PREFIX=\${words[-1]}
_gyre`,
    fish: (line) => `source $argv[1]; complete -C '${line}'`,
  };

  function run(script: string): string {
    const file = join(folder, shell);
    const args = shell === "bash" ? ["--norc", "-c"] : ["-c"];
    return execFileSync(shell, [...args, script, file], { encoding: "utf8", env, cwd: folder });
  }

  it("can read the script", () => {
    const { status, stderr } = spawnSync(shell, ["-n", join(folder, shell)], { encoding: "utf8" });
    expect([status, stderr]).toEqual([0, ""]);
  });

  it.each([
    ["gyre mod", ["models"]],
    ["gyre log", ["login", "logout"]],
    ["gyre --output ", ["claude", "json", "stream-json", "text"]],
    ["gyre --tools read,e", ["read,edit"]],
    ["gyre mcp tr", ["trust"]],
  ])("offers for %j", (line, expected) => {
    const words = run(offered[shell](line))
      .split("\n")
      .map((offer) => offer.split(/[\t:]/)[0] ?? "");
    expect(words.filter((word) => word !== "").sort()).toEqual(expected);
  });
});

it.runIf(isThere("bash"))("is read without a word by a bash that stops at errors", () => {
  const args = ["--norc", "-euc", completionScript("bash")];
  const { status, stderr, stdout } = spawnSync("bash", args, { encoding: "utf8" });
  expect([status, stdout, stderr]).toEqual([0, "", ""]);
});
