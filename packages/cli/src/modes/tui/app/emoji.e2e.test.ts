import { describe, expect, it } from "vitest";
import type { TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";

// Emoji of several parts in the built program, in terminals of all three kinds.

const { open } = terminalWorld();
const FAMILY = "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}";
const PARTS = FAMILY.replaceAll("\u200D", "");
const ASTRONAUT = "\u{1F469}\u{1F3FD}\u200D\u{1F680}";
const SET = "\x1b[?2027h";
const RESET = "\x1b[?2027l";

async function leave(run: TerminalRun): Promise<void> {
  run.press("ctrl+d");
  await run.end;
}

/** Where the bold word behind the emoji begins. */
function findColumn(run: TerminalRun): number | undefined {
  return run
    .styled()
    .flat()
    .find(({ text }) => text === "end")?.column;
}

describe("an emoji of several parts", () => {
  it("is drawn whole where the terminal takes it for one character", async () => {
    const { run } = await open([{ say: `Hi ${FAMILY}${ASTRONAUT} **end**` }]);
    ask(run, "Hi.");
    await run.until(`Hi ${FAMILY}${ASTRONAUT} end`);
    expect(findColumn(run)).toBe("Hi  ".length + 2 + 2);
    await leave(run);
    expect(run.bytes.toString("utf8")).not.toContain(SET);
  });

  it("is drawn whole where the terminal has a mode for it, which is set as long as the program runs", async () => {
    const { run } = await open([{ say: `Hi ${FAMILY} **end**` }], { clusters: "mode" });
    ask(run, "Hi.");
    await run.until(`Hi ${FAMILY} end`);
    expect(findColumn(run)).toBe("Hi  ".length + 2);
    await leave(run);
    const written = run.bytes.toString("utf8");
    expect(written.split(SET)).toHaveLength(2);
    expect(written.lastIndexOf(RESET)).toBeGreaterThan(written.indexOf(SET));
  });

  it("is drawn as its parts elsewhere, and nothing of the question stays", async () => {
    const { run } = await open([{ say: `Hi ${FAMILY} **end**` }], { clusters: "never" });
    expect(run.screen().join("")).not.toMatch(/\p{Extended_Pictographic}/u);
    ask(run, "Hi.");
    await run.until(" end");
    expect(run.bytes.toString("utf8").split("\x1b[?2026l").slice(1).join("")).not.toContain(
      "\u200D",
    );
    // Each has two columns for the program, whatever the terminal makes of it.
    expect(findColumn(run)).toBe("Hi  ".length + 2 * [...PARTS].length);
  });

  it("does not let a joiner through anywhere else", async () => {
    const { run } = await open([
      { say: "pay\u200Dpal \u202Eevil\u202C \u{1F680}\u200D\u{1F469} end" },
    ]);
    ask(run, "Hi.");
    await run.until("paypal evil \u{1F680}\u{1F469} end");
    expect(run.screen().join("")).not.toMatch(/[\u200D\u202E]/);
  });
});
