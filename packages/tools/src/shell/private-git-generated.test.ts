import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, realpathSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@gyre/ai";
import { expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import type { ToolEnv } from "../contract/env.ts";
import { createSandbox } from "../sandbox/sandbox.ts";
import { createRandom } from "../testing/command-lines.ts";
import { modelText } from "../testing/model-text.ts";
import { SeenFiles } from "../workspace/seen.ts";
import { openWorkspace } from "../workspace/workspace.ts";
import { shellTool } from "./tool.ts";

/*
 * Commands of git at random that change its config, run in the sandbox, and directly in a copy of
 * the repository. `GYRE_GIT_CONFIGS=1000 GYRE_SEED=1` chooses how many and which.
 */

const MAX_COMMANDS = 12;
const REMOTES = ["origin", "up", "a/b"];
const BRANCHES = ["main", "topic", 'we"ird'];

/** Keys with values that run nothing. */
const HARMLESS: readonly (readonly [key: string, values: readonly string[]])[] = [
  ["user.name", ["Ada", 'Grace "the" Hopper', "#;\\ é"]],
  ["user.email", ["a@b", ""]],
  ["pull.rebase", ["true", "false", "merges"]],
  ["push.default", ["simple", "upstream"]],
  ["core.autocrlf", ["input", "false"]],
  ["color.ui", ["auto"]],
  ["advice.detachedHead", ["false"]],
  ["branch.main.merge", ["refs/heads/main", "refs/heads/x"]],
  ["branch.topic.rebase", ["true"]],
  ["remote.up.fetch", ["+refs/heads/*:refs/remotes/up/*", "refs/tags/*:refs/tags/*"]],
  ["remote.origin.prune", ["true"]],
  ["submodule.s.url", ["https://example.org/s"]],
  ["lfs.repositoryformatversion", ["0"]],
];

/** Keys with values that run something, or are not known not to. */
const RUNNING: readonly (readonly [key: string, values: readonly string[]])[] = [
  ["core.fsmonitor", ["./m", "touch x"]],
  ["core.hooksPath", ["h", "/tmp"]],
  ["core.pager", ["./p"]],
  ["core.sshCommand", ["./s"]],
  ["alias.st", ["!id", "status"]],
  ["filter.x.clean", ["./c"]],
  ["diff.x.textconv", ["./t"]],
  ["include.path", ["../x"]],
  ["includeIf.gitdir:/.path", ["x"]],
  ["credential.helper", ["!id"]],
  ["remote.origin.pushurl", ["ext::sh -c id", "/tmp/x"]],
  ["remote.up.vcs", ["ext"]],
  ["url.ext::sh.insteadOf", ["https://"]],
  ["submodule.s.update", ["!id"]],
  ["gpg.program", ["./g"]],
  ["made.up", ["x"]],
  ["core.worktree", [".."]],
];
const ADDRESSES = ["https://example.org/a.git", "git@example.org:b.git", "ssh://h/c", "git://h/d"];
const LOCAL_ADDRESSES = ["ext::sh -c id", "../bare", "file:///x", "/x"];

type Next = () => number;

function pick<T>(next: Next, from: readonly T[]): T {
  const one = from[Math.floor(next() * from.length)];
  if (one === undefined) throw new Error("There is nothing to choose from.");
  return one;
}

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function createCommand(next: Next): string {
  const kind = next();
  const remote = pick(next, REMOTES);
  const branch = pick(next, BRANCHES);
  if (kind < 0.45) {
    const [key, values] = pick(next, next() < 0.6 ? HARMLESS : RUNNING);
    const value = quote(pick(next, values));
    const how = pick(next, ["", "", "", "--add ", "--replace-all ", "--unset-all "]);
    return `git config ${how}${quote(key)}${how === "--unset-all " ? "" : ` ${value}`}`;
  }
  const address = quote(pick(next, next() < 0.75 ? ADDRESSES : LOCAL_ADDRESSES));
  if (kind < 0.6) return `git remote add ${remote} ${address}`;
  if (kind < 0.68)
    return `git remote set-url ${pick(next, ["", "--push ", "--add "])}${remote} ${address}`;
  if (kind < 0.74) return `git remote rename ${remote} ${pick(next, REMOTES)}`;
  if (kind < 0.8) return `git remote remove ${remote}`;
  if (kind < 0.9)
    return `git config ${quote(`branch.${branch}.remote`)} ${pick(next, [...REMOTES, "."])}`;
  if (kind < 0.95) return `git branch -M ${pick(next, ["main", "topic"])}`;
  return pick(next, [
    "git config --remove-section user",
    "git config --rename-section user author",
  ]);
}

function git(cwd: string, ...args: string[]): string {
  const env = { PATH: process.env["PATH"], HOME: "/nowhere" };
  return execFileSync("git", args, { cwd, env, encoding: "utf8", stdio: "pipe" });
}

type Config = ReadonlyMap<string, readonly string[]>;

function readLocal(root: string): Config {
  const config = new Map<string, string[]>();
  const args = ["config", "--file", ".git/config", "--no-includes", "--null", "--list"];
  for (const entry of git(root, ...args).split("\0")) {
    if (entry === "") continue;
    const end = entry.indexOf("\n");
    const key = entry.slice(0, end);
    config.set(key, [...(config.get(key) ?? []), entry.slice(end + 1)]);
  }
  return config;
}

/** By the tables above alone: nothing of what is tested. */
function isHarmless(key: string, values: readonly string[]): boolean {
  if (/^remote\..+\.url$/.test(key)) return values.every((value) => ADDRESSES.includes(value));
  if (/^remote\..+\.pushurl$/.test(key)) return values.every((value) => ADDRESSES.includes(value));
  if (/^remote\..+\.(?:fetch|prune)$|^branch\..+\.(?:merge|rebase)$/.test(key)) return true;
  if (/^(?:author|core\.(?:repo|file|bare|log))/.test(key)) return true;
  return HARMLESS.some(
    ([name, known]) =>
      name.toLowerCase() === key.toLowerCase() && values.every((value) => known.includes(value)),
  );
}

const isBranchRemote = (key: string): boolean => /^branch\..+\.remote$/s.test(key);

function listDangling(config: Config): string[] {
  return [...config]
    .filter(([key]) => isBranchRemote(key))
    .flatMap(([, values]) => values)
    .filter((name) => name !== "." && !config.has(`remote.${name}.url`));
}

it(
  "keeps what a private git config has that runs nothing, and never anything that runs",
  { tags: ["long", "bubblewrap"], timeout: 3_600_000 },
  async () => {
    const seed = pickSeed();
    const count = countCases(4, 100, "GYRE_GIT_CONFIGS");
    console.log(`${count} sequences of git commands with GYRE_SEED=${seed}`);
    const next = createRandom(seed);
    const folder = realpathSync(await mkdtemp(join(tmpdir(), "gyre-git-configs-")));
    try {
      for (let at = 0; at < count; at += 1) {
        const commands = Array.from({ length: 1 + Math.floor(next() * MAX_COMMANDS) }, () =>
          createCommand(next),
        );
        await expectSameConfig(
          join(folder, String(at)),
          commands,
          `GYRE_SEED=${seed}, case ${at}:\n${commands.join("\n")}`,
        );
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);

async function expectSameConfig(
  folder: string,
  commands: readonly string[],
  what: string,
): Promise<void> {
  const root = join(folder, "work");
  const copy = join(folder, "copy");
  const spoolFolder = join(folder, "spool");
  mkdirSync(spoolFolder, { recursive: true });
  git(folder, "init", "-q", "-b", "main", root);
  for (const args of [
    ["config", "user.name", "Ada"],
    ["config", "user.email", "a@b"],
    ["config", "core.pager", "less"],
    ["remote", "add", "origin", "https://example.org/a.git"],
    ["commit", "-qm", "x", "--allow-empty"],
  ]) {
    git(root, ...args);
  }
  cpSync(root, copy, { recursive: true });
  const before = readLocal(root);
  const script = commands.map((command) => `${command} >/dev/null 2>&1`).join("\n");
  const environment = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: "/nowhere" };
  execFileSync("bash", ["-c", `${script}\ntrue`], { cwd: copy, env: environment });
  const workspace = await openWorkspace(root);
  try {
    const env: ToolEnv = {
      ...{ workspace, spoolFolder, environment, clock: systemClock, seen: new SeenFiles() },
      sandbox: () => createSandbox(),
    };
    const result = await shellTool(env, {}).execute(
      { command: `${script}\ntrue` },
      {
        id: "c",
        signal: new AbortController().signal,
        update() {},
        host: { call: () => Promise.reject(new Error("There is nothing else to call.")) },
        messages: [],
      },
    );
    const text = modelText(result);
    const [direct, kept] = [readLocal(copy), readLocal(root)];
    expect(listDangling(kept), `${what}\n${text}`).toEqual([]);
    // With a remote that was dropped, or left without an address, others stay as they were.
    const isLinked = listDangling(direct).length > 0;
    for (const key of new Set([...direct.keys(), ...kept.keys(), ...before.keys()])) {
      const values = direct.get(key) ?? [];
      const old = before.get(key);
      const isKnown = isHarmless(key, values) && isHarmless(key, old ?? []);
      if (isBranchRemote(key) || (isLinked && /^remote\.[^.]+\.url$/.test(key))) continue;
      if (isKnown) expect(kept.get(key) ?? [], `${what}\n${key}\n${text}`).toEqual(values);
      else if (!isHarmless(key, kept.get(key) ?? [])) {
        expect(kept.get(key), `${what}\n${key}\n${text}`).toEqual(old);
      }
      if (!isKnown && JSON.stringify(values) !== JSON.stringify(old ?? [])) {
        expect(text, `${what}\n${key}`).toContain("Not kept in .git/config");
      }
    }
    expect(existsSync(join(root, ".git/config.lock"))).toBe(false);
    expect(git(root, "rev-parse", "--abbrev-ref", "HEAD"), what).toBe(
      git(copy, "rev-parse", "--abbrev-ref", "HEAD"),
    );
  } finally {
    await workspace.close();
  }
}
