import { execFileSync } from "node:child_process";
import { rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildProgram, type Program } from "../testing/program.ts";
import { scriptedService } from "../testing/scripted-service.ts";

/** A run takes a second; one that waits for a pipe never ends. */
const DEADLINE_MS = 30_000;

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

it.skipIf(process.platform === "win32").each([
  ["a pipe", ".git/config"],
  ["a pipe", ".git/config.worktree"],
  ["a device", ".git/config"],
  ["a device", ".git/config.worktree"],
])("answers in a folder that has %s in the place of %s", async (what, name) => {
  const service = await scriptedService([
    { say: [{ call: "find", arguments: { pattern: "*" } }] },
    { say: "Done." },
  ]);
  try {
    const { cwd, end } = await program.start(["--version"]);
    const { home } = await end;
    execFileSync("git", ["init", "-q"], { cwd });
    const path = join(cwd, name);
    rmSync(path, { force: true });
    if (what === "a pipe") execFileSync("mkfifo", [path]);
    else symlinkSync("/dev/zero", path);
    const ended = await program.gyre(["-p", "Go"], { home, service, deadlineMs: DEADLINE_MS });
    expect(ended.stdout).toBe("Done.\n");
  } finally {
    await service.close();
  }
});
