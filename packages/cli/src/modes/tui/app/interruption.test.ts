import { describe, expect, it } from "vitest";
import type { Answer } from "../../../testing/scripted-service.ts";
import { openInTerminal, type TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";

// The built program in a real terminal: who has the say is the user.

const world = terminalWorld();
const { open } = world;

/** An answer that begins, and then nothing comes any more. */
const HALTED: Answer = {
  say: "I am at it, and there is more",
  fault: { how: "silence", afterDeltas: 1 },
};
const LEFT = { code: 0, signal: undefined };

function isIdle(rows: readonly string[]): boolean {
  return !rows.some((row) => row.includes("Esc interrupts"));
}

function leave(run: TerminalRun): TerminalRun["end"] {
  ask(run, "/quit");
  return run.end;
}

describe("a command that does not end", () => {
  /** A server that never answers. */
  const silent = JSON.stringify({ mcpServers: { silent: { command: "cat", args: [] } } });
  const options = { args: ["--trust"], files: { ".mcp.json": silent } };

  it("is stopped by Esc, and the next prompt is sent", async () => {
    const { run } = await open([{ say: "Hello." }], options);
    ask(run, "/mcp");
    await run.until("/mcp · ");
    run.press("escape");
    await run.until((rows) => isIdle(rows) && rows.includes("Stopped."));
    ask(run, "Hi.");
    await run.until("Hello.");
    expect(await leave(run)).toEqual(LEFT);
  });

  it("is stopped by Esc where it runs beside an answer, too", async () => {
    const { run } = await open([HALTED], options);
    ask(run, "Go.");
    await run.until("I am at it");
    ask(run, "/mcp");
    await run.settled();
    run.press("escape");
    await run.until((rows) => isIdle(rows) && rows.includes("Stopped."));
    expect(run.screen()).toContain("interrupted");
  });

  it("does not keep /quit from leaving", async () => {
    const { run } = await open([], options);
    ask(run, "/mcp");
    await run.until("/mcp · ");
    expect(await leave(run)).toEqual(LEFT);
  });

  it("is stopped calmly while the model writes for it", async () => {
    const { run } = await open([{ say: "Hello." }, HALTED, { say: "Here I am." }]);
    ask(run, "Hi.");
    await run.until("Hello.");
    await run.until(isIdle);
    ask(run, "/handoff the rest");
    await run.until("Drafting");
    run.press("escape");
    await run.until((rows) => isIdle(rows) && rows.includes("Stopped."));
    expect(run.screen().join("\n")).not.toContain("✗");
    ask(run, "Still there?");
    await run.until("Here I am.");
  });
});

describe("a session that is gone on with", () => {
  it("waits for the user where they had stopped an answer", async () => {
    const first = await open([HALTED]);
    ask(first.run, "Go.");
    await first.run.until("I am at it");
    first.run.press("escape");
    await first.run.until(isIdle);
    await leave(first.run);
    const { home, cwd } = first.run;
    const args = ["--continue"];
    const { run, service } = await open([{ say: "On it." }], { home, cwd, args });
    await run.until("interrupted");
    ask(run, "Now go on.");
    await run.until("On it.");
    expect(service.requests).toHaveLength(1);
    expect(JSON.stringify(service.requests[0]?.body)).toContain("Now go on.");
  });

  it("waits for the user where they had stopped a call", async () => {
    const call = { call: "shell", arguments: { command: "echo begun; sleep 600" } };
    const first = await open([{ say: [call] }], { args: ["--mode", "full", "--sandbox", "none"] });
    ask(first.run, "Go.");
    await first.run.until("begun");
    first.run.press("escape");
    await first.run.until(isIdle);
    await leave(first.run);
    const { home, cwd } = first.run;
    const args = ["--continue"];
    const { run, service } = await open([{ say: "On it." }], { home, cwd, args });
    ask(run, "Now go on.");
    await run.until("On it.");
    expect(service.requests).toHaveLength(1);
    expect(JSON.stringify(service.requests[0]?.body)).toContain("Now go on.");
  });
});

describe("Ctrl-C", () => {
  it("clears what is typed first, which Up brings back, then interrupts, and only then leaves", async () => {
    const { run } = await open([HALTED]);
    ask(run, "Go.");
    await run.until("I am at it");
    run.type("half a thought");
    await run.until("› half a thought");
    run.press("ctrl+c");
    await run.until((rows) => !rows.includes("› half a thought"));
    expect(isIdle(run.screen())).toBe(false);
    run.press("up");
    await run.until("› half a thought");
    run.press("ctrl+c");
    await run.until((rows) => !rows.includes("› half a thought"));
    run.press("ctrl+c");
    await run.until(isIdle);
    run.press("ctrl+c");
    await run.until("Ctrl-C again leaves.");
    run.press("ctrl+c");
    await expect(run.end).resolves.toEqual(LEFT);
  });

  it("keeps what an interruption gives back", async () => {
    const { run, service } = await open([HALTED]);
    ask(run, "Go.");
    await run.until("I am at it");
    ask(run, "And then?");
    await run.until("next: And then?");
    run.press("ctrl+c");
    await run.until("› And then?");
    run.press("ctrl+c");
    await run.until((rows) => isIdle(rows) && !rows.includes("› And then?"));
    run.press("up");
    await run.until("› And then?");
    expect(service.requests).toHaveLength(1);
  });
});

it("a word that is no command says how to ask it, in a terminal", async () => {
  const home = await world.program.makeHome();
  const run = await openInTerminal(world.program, ["doedit"], { home, columns: 200 });
  await expect(run.end).resolves.toEqual({ code: 2, signal: undefined });
  // Rows end in the middle of words.
  expect(run.screen().join("").replaceAll(" ", "")).toContain(
    "To ask that, start gyre and type it there; -p asks for one answer.".replaceAll(" ", ""),
  );
});

it("a session that is open elsewhere is reported first, with a way to go on, and its file last", async () => {
  const { run, service } = await open([{ say: "Hello." }]);
  ask(run, "Hi.");
  await run.until("Hello.");
  const place = { home: run.home, cwd: run.cwd, service, columns: 500 };
  const other = await openInTerminal(world.program, ["--continue"], place);
  await expect(other.end).resolves.toEqual({ code: 1, signal: undefined });
  expect(other.screen().join("\n")).toMatch(
    /^gyre: This session is open in process \d+ on \S+, since \S+\. Close it there, or go on in a copy: gyre --resume (\S+) --fork\. If that process is gone for certain: gyre sessions unlock \1\. Its file: \/\S+\.jsonl$/m,
  );
});

it("/new with a prompt begins a session that answers it", async () => {
  const { run, service } = await open([{ say: "Hello." }, { say: "Again." }]);
  ask(run, "Hi.");
  await run.until("Hello.");
  await run.until(isIdle);
  ask(run, "/new What now?");
  await run.until((rows) => isIdle(rows) && rows.includes("Again."));
  expect(JSON.stringify(service.requests[1]?.body)).not.toContain("Hello.");
});
