import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask, type OpenOptions, terminalWorld } from "../../../testing/terminal-world.ts";

// The last row as the settings have it, in the built program and a real terminal.

const world = terminalWorld();

async function openWith(statusLine: unknown, options: OpenOptions = {}) {
  const home = options.home ?? (await world.program.makeHome());
  mkdirSync(home, { recursive: true });
  const config = join(home, "config.json");
  writeFileSync(config, JSON.stringify({ statusLine }));
  const args = ["--config", config, ...(options.args ?? [])];
  return world.open([{ say: "Hello." }], { ...options, home, args });
}

it("a template is filled in", async () => {
  const { run } = await openWith("{folder} · {branch} · {mode}{fill}{cost}", {
    args: ["--mode", "plan"],
  });
  await run.until("shop · plan");
  ask(run, "Hi.");
  await run.until(/shop · plan +\$0\.\d+$/m);
  expect(run.screen().join("\n")).not.toContain("of context");
});

it("a program gets JSON and prints the row, in its colors alone", async () => {
  const home = await world.program.makeHome();
  const seen = join(home, "seen.jsonl");
  const command = `tee -a '${seen}' >/dev/null; printf '\\033[32mready\\033[0m \\033]0;title\\007in %s\\nmore\\n' "\${PWD##*/}"`;
  const { run } = await openWith({ type: "command", command }, { home });
  await run.until(/^ready in shop$/m);
  ask(run, "Hi.");
  await run.until("Hello.");
  const readLast = () => JSON.parse(readFileSync(seen, "utf8").trim().split("\n").at(-1) ?? "");
  // It runs for other changes, too, before the answer has been counted.
  await expect.poll(() => readLast().context_window.total_output_tokens).toBeGreaterThan(0);
  const last = readLast();
  expect(last).toMatchObject({
    model: { id: "claude-sonnet-5-5" },
    workspace: { current_dir: run.cwd },
  });
  expect(run.bytes.toString("utf8")).not.toContain("title\x07in");
});

it("a program that hangs is ended, with all that it started, and the usual row stays", async () => {
  const home = await world.program.makeHome();
  const alive = join(home, "alive");
  const command = `(sleep 30; touch '${alive}') & sleep 30`;
  const { run } = await openWith({ command }, { home });
  await run.until(/it\s+took\s+more\s+than\s+2\s+s/);
  await run.until("claude-sonnet-5-5");
  run.press("ctrl+d");
  expect((await run.end).code).toBe(0);
  expect(existsSync(alive)).toBe(false);
});

it("is never taken from a project, though it is trusted", async () => {
  const { run } = await world.open([], {
    args: ["--trust"],
    files: { ".gyre/config.json": JSON.stringify({ statusLine: { command: "touch run-here" } }) },
  });
  await run.until("claude-sonnet-5-5");
  await run.until(/statusLine is not\s+taken from a project/);
  ask(run, "/status");
  await run.until("sandbox");
  expect(existsSync(join(run.cwd, "run-here"))).toBe(false);
});
