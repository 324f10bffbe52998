import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@gyre/ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolEnv } from "../contract/env.ts";
import { createSandbox } from "../sandbox/sandbox.ts";
import { modelText } from "../testing/model-text.ts";
import { SeenFiles } from "../workspace/seen.ts";
import { openWorkspace } from "../workspace/workspace.ts";
import { JobTable } from "./jobs/job-table.ts";
import { shellTool, type ShellOptions } from "./tool.ts";

let folder: string;
let root: string;
let env: ToolEnv;
let jobs: JobTable;

beforeEach(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "gyre-held-")));
  root = join(folder, "work");
  mkdirSync(join(folder, "spool"), { mode: 0o700 });
  mkdirSync(join(root, ".vscode"), { recursive: true });
  writeFileSync(join(root, ".vscode/settings.json"), "{}");
  env = {
    workspace: await openWorkspace(root),
    seen: new SeenFiles(),
    sandbox: () => createSandbox(),
    spoolFolder: join(folder, "spool"),
    environment: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: join(folder, "home") },
    clock: systemClock,
  };
  jobs = new JobTable(env);
});
afterEach(async () => {
  await jobs.close();
  await env.workspace.close();
  await rm(folder, { recursive: true, force: true });
});

async function shell(command: string, options: ShellOptions = {}, more = {}): Promise<string> {
  const result = await shellTool(env, { jobs, ...options }).execute(
    { command, ...more },
    {
      id: "c",
      signal: new AbortController().signal,
      update() {},
      host: { call: () => Promise.reject(new Error("There is nothing else to call.")) },
      messages: [],
    },
  );
  return modelText(result);
}

/** What is a mount for a command, from the workspace. */
async function listMounts(options: ShellOptions = {}): Promise<string[]> {
  const text = await shell("cut -d ' ' -f 5 /proc/self/mountinfo", options);
  const inside = text.split("\n").filter((line) => line.startsWith(`${root}/`));
  return inside.map((line) => line.slice(root.length + 1)).sort();
}

const HELD = [".vscode", ".vscode/settings.json"];

describe("protected places while a command runs", { tags: "bubblewrap" }, () => {
  it("are mounted only where the command that runs has mounts, too: it could put a link there", async () => {
    await shell("sleep 1000", {}, { background: true });
    mkdirSync(join(root, ".cargo"));
    writeFileSync(join(root, ".cargo/config.toml"), "");
    writeFileSync(join(root, ".mcp.json"), "{}");
    expect([...new Set(await listMounts())]).toEqual(HELD);
    await jobs.stop("job-1");
    expect([...new Set(await listMounts())]).toEqual([
      ".cargo",
      ".cargo/config.toml",
      ".mcp.json",
      ...HELD,
    ]);
  });

  it("are not mounted where the user replaced them meanwhile", async () => {
    await shell("sleep 1000", {}, { background: true });
    writeFileSync(join(root, "new"), "{}");
    renameSync(join(root, "new"), join(root, ".vscode/settings.json"));
    expect(await listMounts()).toEqual([]);
  });
});

describe("a writable folder in the workspace", { tags: "bubblewrap" }, () => {
  it("is no mount: a command could put a link in its place", async () => {
    mkdirSync(join(folder, "victim"));
    symlinkSync("../victim", join(root, "build"));
    await shell("true", { writable: [join(root, "build/cache")] });
    expect(existsSync(join(folder, "victim/cache"))).toBe(false);
    expect(await listMounts({ writable: [join(root, "cache")] })).toEqual(HELD);
  });
});

describe("the folders around a folder of git", { tags: "bubblewrap" }, () => {
  it("cannot be moved away", async () => {
    mkdirSync(join(root, "a/b"), { recursive: true });
    execFileSync("git", ["init", "-q", `--separate-git-dir=${join(root, "a/b/git")}`, root]);
    expect(await shell("mv a c; mv a/b a/c; ls .git a")).toContain("Device or resource busy");
    expect(readdirSync(join(root, "a"))).toEqual(["b"]);
  });
});
