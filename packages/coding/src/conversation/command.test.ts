import { describe, expect, it } from "vitest";
import { type Command, type CommandContext, parseCommand, runCommand } from "./command.ts";

/** A command in the test's hands, and all that it showed and asked. */
function setUp(run: Command["run"]) {
  const stop = new AbortController();
  const did: string[] = [];
  const context: CommandContext = {
    signal: stop.signal,
    show: (...parts) => void did.push(...parts.map(({ type }) => `show ${type}`)),
    choose: ({ title }) => {
      did.push(`choose ${title}`);
      return Promise.resolve(undefined);
    },
  };
  return { did, end: runCommand({ name: "x", about: "", run }, "", context), stop };
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

it.each([
  ["/new", { name: "new", rest: "" }],
  ["/skill:pdf  read\nit ", { name: "skill:pdf", rest: "read\nit" }],
  ["/", { name: "", rest: "" }],
  ["/usr/bin is full", undefined],
  ["say /new", undefined],
])("%j is the command %j", (typed, command) => {
  expect(parseCommand(typed)).toEqual(command);
});

it("gives what the command wants done, and rejects where it fails", async () => {
  expect(await setUp(() => ({ prompt: "Go" })).end).toEqual({ prompt: "Go" });
  expect(await setUp(() => "Hello").end).toEqual({ show: [{ type: "text", markdown: "Hello" }] });
  expect(await setUp(() => {}).end).toEqual({});
  await expect(setUp(() => Promise.reject(new Error("No."))).end).rejects.toThrow("No.");
});

describe("a command that is stopped", () => {
  it("is abandoned although it ignores the signal, and nothing that it does later is seen", async () => {
    const { open, passed } = gate();
    const over = gate();
    const { did, end, stop } = setUp(async (_rest, { choose, show }) => {
      await passed;
      show({ type: "warning", text: "late" });
      over.open();
      await choose({ title: "late", choices: [] });
    });
    stop.abort();
    expect(await end).toBe("stopped");
    open();
    await over.passed;
    expect(did).toEqual([]);
  });

  it("goes on where it ends itself, and its questions and its result count", async () => {
    const stop = new AbortController();
    const asked: string[] = [];
    const context: CommandContext = {
      signal: stop.signal,
      show: () => void asked.push("shown"),
      choose: ({ title }) => {
        asked.push(title);
        return Promise.resolve(undefined);
      },
    };
    const run: Command["run"] = async (_rest, { choose, show, signal }) => {
      await new Promise((settle) => signal.addEventListener("abort", settle));
      await choose({ title: "And now?", choices: [] });
      show({ type: "warning", text: "late" });
      return { prompt: "Go" };
    };
    const end = runCommand({ name: "x", about: "", endsItself: true, run }, "", context);
    stop.abort();
    expect(await end).toEqual({ prompt: "Go" });
    expect(asked).toEqual(["And now?", "shown"]);
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
});
