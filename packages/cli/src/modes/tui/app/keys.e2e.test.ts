import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";

// Keys as the settings have them, in the built program and a real terminal.

const world = terminalWorld();

async function openWith(keys: Readonly<Record<string, unknown>>, shows?: string) {
  const home = await world.program.makeHome();
  const config = join(home, "config.json");
  mkdirSync(home, { recursive: true });
  writeFileSync(config, JSON.stringify({ keys }));
  const script = [
    { say: [{ call: "shell", arguments: { command: "seq 100" } }] },
    { say: "Counted." },
  ];
  const args = ["--config", config, "--mode", "full", "--sandbox", "none"];
  return world.open(script, { home, args, rows: 40, ...(shows && { shows }) });
}

it("a key does what it is set for, and its old one nothing; hints and /help name it", async () => {
  const { run } = await openWith({ expand: "f2", submit: "ctrl+x", newLine: ["enter"] });
  run.type("Count");
  run.press("enter");
  run.type("up to a hundred.");
  await run.until("  up to a hundred.");
  run.type("\x18");
  await run.until("Counted.");
  await run.until("92 more lines (F2)");
  run.press("ctrl+o");
  await run.settled();
  run.type("\x1bOQ");
  await run.until((rows) => rows.some((row) => row.trim() === "90"));
  run.type("/help");
  run.type("\x18");
  await run.until("take the conversation, files or both back");
  const shown = [...run.scrollback(), ...run.screen()].join("\n");
  expect(shown).toMatch(/F2 +│ show what is cut in full/);
  expect(shown).toMatch(/Ctrl\+X +│ send it/);
});

it("what is wrong with keys ends the program with all of it", async () => {
  const { run } = await openWith(
    { expnd: "f2", tree: "ctrl+x", stash: "ctrl+x" },
    "is set for both",
  );
  expect((await run.end).code).toBe(2);
  const shown = run.screen().join(" ").replaceAll(/\s+/g, " ");
  expect(shown).toContain('nothing is called "expnd"; may "expand" be meant');
  expect(shown).toContain('"ctrl+x" is set for both tree and stash');
});

it("Ctrl+C always leaves", async () => {
  const { run } = await openWith({ exit: [], interrupt: [] });
  await run.until("claude-sonnet-5-5");
  ask(run, "");
  run.press("ctrl+c");
  await run.until("Ctrl-C again leaves.");
  run.press("ctrl+c");
  expect((await run.end).code).toBe(0);
});
