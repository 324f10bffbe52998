import { expect, it } from "vitest";
import type { Answer } from "../../../testing/scripted-service.ts";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";

// The keys of vim, in the built program and a real terminal.

const { open } = terminalWorld();

const VIM = { env: { GYRE_EDITOR_MODE: "vim" } };
const BAR = "\x1b[6 q";
const BLOCK = "\x1b[2 q";
const USUAL = "\x1b[0 q";
/** An answer that begins, and then nothing comes any more. */
const HALTED: Answer = {
  say: "I am at it, and there is more",
  fault: { how: "silence", afterDeltas: 1 },
};

it("a prompt is edited as in vim, with the mode in the footer and in the cursor", async () => {
  const { run, service } = await open([{ say: "Done." }], VIM);
  await run.until("INSERT · claude-sonnet-5-5");
  expect(run.bytes.toString("utf8")).toContain(BAR);
  run.type("Fix the old test");
  await run.until("› Fix the old test");
  run.press("escape");
  await run.until("NORMAL · claude");
  expect(run.bytes.toString("utf8")).toContain(BLOCK);
  run.type("bb");
  run.type("2d");
  await run.until("NORMAL 2d · claude");
  run.press("escape");
  run.type("cwnew");
  await run.until("› Fix the new test");
  run.press("enter");
  await run.until("Done.");
  expect(JSON.stringify(service.requests[0]?.body["messages"])).toContain("Fix the new test");
  await run.until("INSERT · claude");
  run.press("ctrl+d");
  await run.end;
  const written = run.bytes.toString("utf8");
  // The cursor is left as it was.
  expect(written.lastIndexOf(USUAL)).toBeGreaterThan(
    Math.max(written.lastIndexOf(BAR), written.lastIndexOf(BLOCK)),
  );
});

it("Esc leaves the insert mode, and interrupts in the normal mode", async () => {
  const { run } = await open([HALTED], VIM);
  await run.until("INSERT");
  ask(run, "Go.");
  await run.until("I am at it");
  await run.until("Esc Esc interrupts");
  run.press("escape");
  await run.until((rows) => rows.some((row) => /s · Esc interrupts/.test(row)));
  run.press("escape");
  await run.until((rows) => !rows.some((row) => row.includes("interrupts")));
  expect(run.screen().join("\n")).toContain("NORMAL · claude");
});

it("/vim turns it on and off, and without it nothing is written for the cursor", async () => {
  const { run } = await open([]);
  await run.until("claude-sonnet-5-5");
  expect(run.bytes.toString("utf8")).not.toMatch(/\[\d q/);
  ask(run, "/vim");
  await run.until("Keys work as in vim now");
  await run.until("INSERT · claude");
  ask(run, "/vim");
  await run.until("Keys work as before.");
  await run.until((rows) => !rows.some((row) => row.includes("INSERT")));
  expect(run.bytes.toString("utf8").lastIndexOf(USUAL)).toBeGreaterThan(0);
});
