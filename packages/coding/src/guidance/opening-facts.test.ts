import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openToolset, type Toolset } from "@gyre/tools";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findFacts } from "./opening-facts.ts";

let folder: string;
let toolset: Toolset;
beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-facts-")));
  const stateFolder = join(folder, "..", `${folder.split("/").at(-1)}-state`);
  toolset = await openToolset({
    root: folder,
    sandbox: "none",
    tools: ["read", "git"],
    stateFolder,
  });
});
afterEach(async () => {
  await toolset.close();
  rmSync(folder, { recursive: true, force: true });
  rmSync(`${folder}-state`, { recursive: true, force: true });
});

const now = new Date(2026, 4, 3, 12);

function sources() {
  const { signal } = new AbortController();
  return {
    toolset,
    tools: ["read", "git", "shell"],
    mode: "ask",
    settings: {},
    now,
    signal,
  } as const;
}

it("has date, system, folder, git, mode, sandbox and the tools that are off", async () => {
  execFileSync("git", ["init", "-q", "-b", "trunk", folder]);
  writeFileSync(join(folder, "new.txt"), "new");
  const { text = "", summary } = (await findFacts(sources(), [])) ?? {};
  expect(text.split("\n")).toEqual([
    "Date: 2026-05-03",
    expect.stringMatching(new RegExp(`^System: ${process.platform} \\S+ ${process.arch}$`)),
    `Folder: ${folder}`,
    "Git: branch trunk; files: 0 staged, 0 changed, 1 new",
    "Mode: ask",
    "Commands: not in a sandbox",
    expect.stringMatching(/^Tools that are off, and that the user can turn on: .*\btodo\b/),
  ]);
  // People know all of it.
  expect(summary).toBe("");
});

it("is not repeated where the conversation has it, and is where something has changed", async () => {
  const first = await findFacts(sources(), []);
  if (!first) throw new Error("There are no facts.");
  expect(first.text).toContain("Git: no repository");
  expect(await findFacts(sources(), [first])).toBeUndefined();
  const again = await findFacts({ ...sources(), now: new Date(2026, 4, 4) }, [first]);
  expect(again?.text).toContain("Date: 2026-05-04");
});

it.skipIf(process.platform === "win32")(
  "does not wait for a repository whose settings never come",
  async () => {
    execFileSync("git", ["init", "-q", folder]);
    rmSync(join(folder, ".git/config"));
    execFileSync("mkfifo", [join(folder, ".git/config")]);
    const { text } = (await findFacts(sources(), [])) ?? {};
    expect(text).toContain("Git: did not answer in time");
  },
);

it("says nothing of commands where there are none", async () => {
  const { text = "" } = (await findFacts({ ...sources(), tools: ["read"] }, [])) ?? {};
  expect(text).not.toContain("Commands:");
});
