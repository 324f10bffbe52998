import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";
import { readBranch } from "./branch.ts";

// Background jobs in the built program. A command waits for a file that the test makes.

const world = terminalWorld();

/** Ends when there is a file `go`. */
const WAIT = "echo begun; until test -e go; do sleep 0.05; done; echo over";
const shell = (more: object = {}) => ({
  say: [{ call: "shell", arguments: { command: WAIT, ...more } }],
});

it("has a sign in the footer for a job, and reports its end to the user and to the model", async () => {
  const { run, service } = await world.open(
    [shell({ background: true }), { say: "It runs." }, { say: "I know." }],
    { args: ["--mode", "full", "--sandbox", "none"], rows: 24 },
  );
  ask(run, "Serve it.");
  await run.until("It runs.");
  await run.until("· 1 job");
  ask(run, "/jobs");
  await run.until("Background jobs. Enter shows");
  run.press("enter");
  await run.until("Leave it running");
  expect(run.screen().join("\n")).toContain("begun");
  run.press("escape");
  writeFileSync(join(run.cwd, "go"), "");
  await run.until(/job-\w+-1 ended, exit code 0 after/);
  await run.until((rows) => !rows.join("\n").includes("· 1 job"));
  ask(run, "And now?");
  await run.until("I know.");
  expect(service.requests[2]?.text).toMatch(/\[Background job job-\w+-1 has ended \(exit code 0/);
});

it("moves a running command to the background with Ctrl+B, and the model goes on", async () => {
  const { run, service } = await world.open(
    [
      shell(),
      { say: [{ call: "read", arguments: { path: "tea.txt" } }] },
      { say: "Then that." },
      { say: "All of it." },
    ],
    { args: ["--mode", "full", "--sandbox", "none"], files: { "tea.txt": "green" }, rows: 24 },
  );
  ask(run, "Do it.");
  await run.until(/^ {2}begun$/m);
  run.press("ctrl+b");
  await run.until("Then that.");
  expect(service.requests[1]?.text).toMatch(/moved it to the background: it goes on as job-\w+-1/);
  await run.until("· 1 job");
  ask(run, "/jobs stop 1");
  await run.until("is stopped: stopped after");
  ask(run, "More?");
  await run.until("All of it.");
  // It was the user who ended it.
  expect(service.requests[3]?.text).not.toContain("has ended");
});

it("shows the branch of the repository", async () => {
  const home = await world.program.makeHome();
  const cwd = join(home, "shop");
  mkdirSync(join(cwd, ".git/refs"), { recursive: true });
  mkdirSync(join(cwd, ".git/objects"));
  writeFileSync(join(cwd, ".git/HEAD"), "ref: refs/heads/tea/green\n");
  expect(readBranch(cwd)).toBe("tea/green");
  const { run } = await world.open([], { home, cwd });
  await run.until("· tea/green");
});
