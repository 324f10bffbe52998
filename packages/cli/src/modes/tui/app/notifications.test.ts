import { describe, expect, it } from "vitest";
import type { TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, decide, terminalWorld } from "../../../testing/terminal-world.ts";

// The built program, in a terminal that says whether it has the focus.

const { open } = terminalWorld();
const FOCUS_ON = "\x1b[?1004h";
const FOCUS_OFF = "\x1b[?1004l";
const LOST = "\x1b[O";
const GOT = "\x1b[I";
const NOTE = "\x1b]9;gyre · shop: ";

/** Settles when it has written a text. */
async function untilWritten(run: TerminalRun, text: string): Promise<void> {
  const isThere = (): boolean => run.bytes.toString("utf8").includes(text);
  if (isThere()) return;
  await new Promise<void>((settle) => {
    const stop = run.listen(() => {
      if (!isThere()) return;
      stop();
      settle();
    });
  });
}

describe("a notification", () => {
  it("comes when a prompt ends in a terminal that is not in front", async () => {
    const { run } = await open([{ say: "Hello." }], { env: { GYRE_NOTIFY: "desktop" } });
    run.type(LOST);
    ask(run, "Hi.");
    await untilWritten(run, `${NOTE}done in `);
    run.press("ctrl+d");
    await run.end;
    const written = run.bytes.toString("utf8");
    expect(written.indexOf(FOCUS_OFF)).toBeGreaterThan(written.indexOf(FOCUS_ON));
  });

  it("comes when it asks, and not where the terminal is in front: then it only rings", async () => {
    const call = (command: string) => ({ say: [{ call: "shell", arguments: { command } }] });
    const { run } = await open([call("touch a"), call("touch b"), { say: "Done." }], {
      args: ["--mode", "ask", "--sandbox", "none"],
      env: { GYRE_NOTIFY: "desktop", GYRE_NOTIFY_AFTER: "1h" },
    });
    ask(run, "Go.");
    await run.until("touch a");
    await untilWritten(run, `${NOTE}asks for permission`);
    run.type(GOT);
    await decide(run, "y", "touch b");
    await decide(run, "y", "Done.");
    expect(run.bytes.toString("utf8").split(NOTE)).toHaveLength(2);
  });

  it("comes after a prompt that took long, also where the focus is not known", async () => {
    const { run } = await open([{ say: "Hello." }], {
      env: { GYRE_NOTIFY: "desktop", GYRE_NOTIFY_AFTER: "0.001" },
    });
    ask(run, "Hi.");
    await untilWritten(run, `${NOTE}done in `);
    expect(run.bytes.toString("utf8").split(NOTE)).toHaveLength(2);
  });

  it("is off by default, and the focus is not asked for", async () => {
    const { run } = await open([{ say: "Hello." }]);
    run.type(LOST);
    ask(run, "Hi.");
    await run.until("Hello.");
    await run.until(/── .* ──/);
    run.press("ctrl+d");
    await run.end;
    const written = run.bytes.toString("utf8");
    expect(written).not.toContain(FOCUS_ON);
    expect(written).not.toContain(NOTE);
  });
});
