import { expect, it } from "vitest";
import { ask, decide, terminalWorld } from "../../../testing/terminal-world.ts";

// What a person sees of calls, in the built program.

const { open } = terminalWorld();

const shell = (command: string, description?: string) => ({
  say: [{ call: "shell", arguments: { command, ...(description && { description }) } }],
});

it("counts the lines of a long output that are hidden, and not those in memory", async () => {
  const { run } = await open([shell("seq 200000"), { say: "Counted." }], {
    args: ["--mode", "full", "--sandbox", "none"],
  });
  ask(run, "Count.");
  await run.until("Counted.");
  await run.until("… 199,992 more lines (Ctrl+O)");
  expect(run.screen().join("\n")).toContain("  200000\n  … 199,992 more lines");
});

it("says what a command is for, in the question and behind the call", async () => {
  const { run } = await open([shell("touch tea", "make the tea"), { say: "Made." }], {
    args: ["--mode", "ask", "--sandbox", "none"],
  });
  ask(run, "Tea.");
  await run.until("Allow shell: make the tea?");
  await decide(run, "y", "Made.");
  expect(run.screen().join("\n")).toContain("● shell touch tea  # make the tea");
});

it("has the title of the terminal say what it does, and puts it back", async () => {
  const { run } = await open([{ say: "Hello." }], { env: { WT_SESSION: "1" } });
  await run.until("claude-sonnet-5-5");
  ask(run, "Hi.");
  await run.until("Hello.");
  await run.until((rows) => !rows.join("\n").includes("Esc interrupts"));
  run.press("ctrl+d");
  await run.end;
  const written = run.bytes.toString("utf8");
  const titles = written
    .split("\x1b]2;")
    .slice(1)
    .map((rest) => rest.slice(0, rest.indexOf("\x07")));
  expect(titles).toEqual(["gyre · shop", "● gyre · shop", "gyre · shop"]);
  expect(written.indexOf("\x1b]9;4;3\x07")).toBeGreaterThan(0);
  expect(written.indexOf("\x1b]9;4;0\x07")).toBeGreaterThan(written.indexOf("\x1b]9;4;3\x07"));
  expect(written.indexOf("\x1b[22;2t")).toBeGreaterThanOrEqual(0);
  expect(written.lastIndexOf("\x1b[23;2t")).toBeGreaterThan(written.lastIndexOf("\x1b]2;"));
});

it("lists models with their window and prices, and finds the newest of a family first", async () => {
  const { run } = await open([], { columns: 110, rows: 30 });
  await run.until("claude-sonnet-5-5");
  ask(run, "/model");
  await run.until("US dollars for a million tokens, in / out");
  run.type("sonnet");
  await run.until((rows) => rows.some((row) => /^› anthropic\/\S*sonnet/.test(row)));
  const found = run.screen().filter((row) => /^[› ] anthropic\/\S*sonnet/.test(row));
  const versions = found.map((row) => Number(/Sonnet ([\d.]+)/.exec(row)?.[1]));
  expect(versions.length).toBeGreaterThan(1);
  expect(versions).toEqual(versions.toSorted((one, other) => other - one));
  expect(found[0]).toMatch(/ · [\d.]+[kM] · \$[\d.]+ \/ \$[\d.]+/);
});
