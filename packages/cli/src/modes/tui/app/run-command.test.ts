import { describe, expect, it } from "vitest";
import type { Harness } from "../../../harness/harness.ts";
import { textIo } from "../../../testing/command-io.ts";
import { runCommand } from "./run-command.ts";
import { NO_COLOURS } from "../terminal/theme.ts";
import type { CommandWorld, TerminalCommand } from "../ui/ui.ts";

/** A command in the test's hands, and all that it did. */
function setUp(run: TerminalCommand["run"], { reopen = () => Promise.resolve() } = {}) {
  const stop = new AbortController();
  const did: string[] = [];
  const note =
    (what: string) =>
    (text = ""): void =>
      void did.push(`${what} ${text}`);
  const world: CommandWorld = {
    harness: { agent: { waitForIdle: () => Promise.resolve() } } as Harness,
    io: textIo({}),
    setup: { settings: {}, explicit: new Set(), cwd: "/", warn: () => {} },
    signal: stop.signal,
    reopen,
    prompt: note("prompt"),
    quit: note("quit"),
    ui: {
      columns: 80,
      theme: NO_COLOURS,
      draw: note("draw"),
      say: note("say"),
      warn: note("warn"),
      show: () => note("show")(),
      open: () => Promise.resolve(undefined),
      choose: () => {
        note("choose")();
        return Promise.resolve(undefined);
      },
      edit: note("edit"),
      suspend: (work) => work(),
      control: () => true,
    },
  };
  return { did, end: runCommand({ name: "x", about: "", run }, "", world), stop };
}

/** A promise with its settling in the test's hands. */
function gate(): { open: () => void; fail: (error: Error) => void; passed: Promise<void> } {
  let open = (): void => {};
  let fail = (_error: Error): void => {};
  const passed = new Promise<void>((settle, reject) => {
    open = settle;
    fail = reject;
  });
  return { open, fail, passed };
}

it("a command that is left alone is done when it is, and may fail", async () => {
  const { did, end } = setUp((_rest, { ui }) => ui.say("Hello"));
  expect(await end).toBe("done");
  expect(did).toEqual(["say Hello"]);
  const failed = setUp(() => Promise.reject(new Error("No.")));
  await expect(failed.end).rejects.toThrow("No.");
});

describe("a command that is stopped", () => {
  it("is let go of although it does not care, and nothing that it does later is seen", async () => {
    const { open, passed } = gate();
    const over = gate();
    const { did, end, stop } = setUp(async (_rest, inside) => {
      const { ui } = inside;
      await passed;
      ui.say("late");
      ui.edit("late");
      inside.prompt("late");
      over.open();
      await ui.choose({ title: "late", choices: [] });
    });
    stop.abort();
    expect(await end).toBe("stopped");
    open();
    await over.passed;
    expect(did).toEqual([]);
  });

  it("does not fail, neither at once nor later", async () => {
    const late = gate();
    const first = setUp(() => late.passed);
    const second = setUp(async (_rest, { signal }) => {
      await late.passed.catch(() => {});
      signal.throwIfAborted();
    });
    first.stop.abort();
    second.stop.abort();
    late.fail(new Error("Too late."));
    expect(await Promise.all([first.end, second.end])).toEqual(["stopped", "stopped"]);
  });

  it("is waited for while it opens another session, which no prompt follows", async () => {
    const opening = gate();
    const { did, end, stop } = setUp(
      async (_rest, inside) => {
        await inside.reopen({ new: true });
        inside.prompt("late");
      },
      { reopen: () => opening.passed },
    );
    stop.abort();
    let isOver = false;
    void end.then(() => (isOver = true));
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    opening.open();
    expect(await end).toBe("stopped");
    expect(did).toEqual([]);
  });
});
