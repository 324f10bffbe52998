import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask, terminalWorld } from "../../testing/terminal-world.ts";
import { scriptedService } from "../../testing/scripted-service.ts";

// The built program: a session that breaks something, and what finds it.

const world = terminalWorld();

const write = (path: string, content: string) => ({
  say: [{ call: "write", arguments: { path, content } }],
});

it("finds the change after which a command fails, and leaves the folder as it is", async () => {
  const { run } = await world.open(
    [
      write("a.txt", "1"),
      write("b.txt", "1"),
      { say: "First done." },
      write("c.txt", "1"),
      write("broken.txt", "1"),
      write("d.txt", "1"),
      { say: "Second done." },
    ],
    { args: ["--mode", "full"] },
  );
  ask(run, "Make two files.");
  await run.until("First done.");
  ask(run, "Make three more.");
  await run.until("Second done.");
  run.press("ctrl+d");
  await run.end;
  const [, id = ""] = /--resume (\w+)/.exec(run.screen().join("\n")) ?? [];
  const { home, cwd } = run;
  const bisect = (...command: string[]) =>
    world.program.gyre(["bisect", id, "--", ...command], { home, cwd });
  const found = await bisect("sh", "-c", "! test -e broken.txt");
  expect(found.stderr).toContain("5 changes of");
  expect(found.stdout).toBe(
    "Change 4 of 5 broke it.\nPrompt: Make three more.\nFiles: broken.txt\n",
  );
  expect(found.code).toBe(0);
  expect(existsSync(join(cwd, "broken.txt"))).toBe(true);
  expect((await bisect("true")).stdout).toContain("no change broke it");
  const never = await bisect("false");
  expect(never.stdout).toContain("fails already before the first change");
  expect(never.code).toBe(1);
  const wrong = await world.program.gyre(["bisect", id], { home, cwd });
  expect(wrong.stderr).toContain("bisect takes a session and a command");
});

it("sends the prompts of a session again in a copy of the folder as it was, and compares", async () => {
  const { run } = await world.open(
    [write("a.txt", "1"), write("b.txt", "1"), { say: "All done." }],
    { args: ["--mode", "full"], files: { "tea.txt": "green" } },
  );
  ask(run, "Make two files.");
  await run.until("All done.");
  run.press("ctrl+d");
  await run.end;
  const [, id = ""] = /--resume (\w+)/.exec(run.screen().join("\n")) ?? [];
  const { home, cwd } = run;
  const service = await scriptedService([
    { say: [{ call: "find", arguments: { pattern: "*.txt" } }] },
    write("a.txt", "1"),
    write("b.txt", "2"),
    write("c.txt", "3"),
    { say: "Again." },
  ]);
  world.cleanUps.push(() => service.close());
  const command = ["sh", "-c", "test -e c.txt"];
  const ended = await world.program.gyre(["replay", id, "--mode", "full", "--", ...command], {
    home,
    cwd,
    service,
  });
  expect(ended.stderr).toContain("1 of 1: Make two files.");
  expect(ended.stdout).toMatch(/^requests {7}3 +5$/m);
  expect(ended.stdout).toMatch(/^files changed {2}2 +3$/m);
  expect(ended.stdout).toMatch(/^the command {4}fails +passes$/m);
  expect(ended.stdout).toContain(
    "the same: a.txt\ndifferent: b.txt\nonly again: c.txt\ngyre sessions show",
  );
  expect(ended.code).toBe(0);
  // It began with the files of before, and left the folder alone.
  expect(service.requests[1]?.text).toContain("tea.txt");
  expect(service.requests[1]?.text).not.toContain("a.txt:");
  expect(existsSync(join(cwd, "c.txt"))).toBe(false);
  expect(readFileSync(join(cwd, "b.txt"), "utf8")).toBe("1");
});

it("works in a worktree of the repository with --worktree, and the files of the folder stay", async () => {
  const home = await world.program.makeHome();
  const cwd = join(home, "shop");
  mkdirSync(cwd, { recursive: true });
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  git("init", "-q", "-b", "main");
  writeFileSync(join(cwd, "a.txt"), "green");
  git("add", ".");
  git("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "Tea");
  const service = await scriptedService([write("a.txt", "black"), { say: "Done." }]);
  world.cleanUps.push(() => service.close());
  service.play([
    { say: [{ call: "read", arguments: { path: "a.txt" } }] },
    write("a.txt", "black"),
    { say: "Done." },
  ]);
  const args = ["-p", "--worktree", "--mode", "auto-edit", "Make it black."];
  const ended = await world.program.gyre(args, { home, cwd, service });
  expect(ended.stdout).toBe("Done.\n");
  const [, folder = ""] = /^Works in (\S+) on the branch gyre\/shop-/m.exec(ended.stderr) ?? [];
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("black");
  expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("green");
  const outside = await world.program.gyre(["-p", "--worktree", "x"], {
    home,
    cwd: home,
    service,
  });
  expect(outside.stderr).toContain("--worktree: ");
  expect(outside.code).toBe(1);
});
