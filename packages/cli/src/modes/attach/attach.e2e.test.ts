import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { attachWorld } from "../../testing/attached-program.ts";
import type { Answer } from "../../testing/scripted-service.ts";
import type { TerminalRun } from "../../testing/terminal-program.ts";
import { ask, decide } from "../../testing/terminal-world.ts";

// The built programs: gyre serve, and gyre attach in terminals, as people see them.

const world = attachWorld();

/** The screen without empty rows at its end; what differs from run to run is masked. */
function shown(run: TerminalRun): string {
  const rows = run.screen().map((row) =>
    row
      .replace(/gyre \d[\d.]*/, "gyre VERSION")
      .replace(/ · \/\S*\/shop/, " · FOLDER/shop")
      .replace(/[\u2800-\u28ff]/, "*")
      .replace(/\b\d+(?:\.\d+)? ?(?:ms|s)\b/g, "0 s"),
  );
  while (rows.at(-1) === "") rows.pop();
  return `\n${rows.join("\n")}\n`;
}

/** An answer that stops in its midst, and leaves the stream open. */
function halted(say: string, afterDeltas = 1): Answer {
  return { say, deltaChars: 12, fault: { how: "silence", afterDeltas } };
}

const isIdle = (rows: readonly string[]): boolean =>
  !rows.some((row) => row.includes("Esc interrupts"));

it("shows a new session as a local one is shown, and leaves with the way back", async () => {
  const server = await world.serve([{ say: "Two **kinds** of tea." }]);
  const run = await world.attach(server, { args: ["--cwd", "."] });
  ask(run, "What is here?");
  await run.until("Two kinds of tea.");
  await run.until(isIdle);
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · FOLDER/shop

    › What is here?

    Two kinds of tea.

    ── 0 s · $0.0004 ──

    ────────────────────────────────────────────────────────────────────────────────
    ›
    claude-sonnet-5-5                  0% of context · $0.0004 · ↑100 ↓20 · cache 0%
    "
  `);
  run.press("ctrl+d");
  expect(await run.end).toEqual({ code: 0, signal: undefined });
  expect(run.screen().join("\n")).toMatch(/gyre attach ws:\/\/127\.0\.0\.1:\d+ \w+/);
});

describe("two terminals on one session", () => {
  const write = {
    call: "edit",
    arguments: { path: "tea.txt", edits: [{ oldText: "black", newText: "green" }] },
  } as const;

  it("show the same: what is asked in one, answers, messages that wait, and interruptions", async () => {
    const { one, other } = await world.attachTwice([halted("I am at it, and there is more")]);
    ask(one, "Go.");
    await other.until("I am at it,");
    ask(other, "Mind the tests.");
    await one.until("next: Mind the tests.");
    await other.until("next: Mind the tests.");
    one.type("half a thought");
    await one.until("half a thought");
    expect(shown(other)).toMatchInlineSnapshot(`
      "
      gyre VERSION · Claude Sonnet 5.5 · FOLDER/shop

      › Go.

      I am at it,

      * writing · 0 s · Esc interrupts
      ↳ next: Mind the tests.
        Alt+Up takes it back
      ────────────────────────────────────────────────────────────────────────────────
      ›
      claude-sonnet-5-5
      "
    `);
    // The other takes it back.
    other.press("alt+up");
    await one.until((rows) => !rows.some((row) => row.includes("next:")));
    await other.until("› Mind the tests.");
    other.press("escape");
    await one.until("interrupted");
    await one.until(isIdle);
    await other.until(isIdle);
    expect(one.screen().join("\n")).toContain("half a thought");
  });

  it("ask both, with the change itself, and what one answers is no question in the other", async () => {
    const { server, one, other } = await world.attachTwice([{ say: [write] }, { say: "Done." }], {
      files: { "tea.txt": "white\nblack\n" },
    });
    ask(one, "Change it.");
    await one.until("Allow edit tea.txt?");
    await other.until("Allow edit tea.txt?");
    expect(shown(other)).toMatchInlineSnapshot(`
      "

      › Change it.

      ○ edit tea.txt

      * waiting for your answer · 0 s · Esc interrupts
      ────────────────────────────────────────────────────────────────────────────────
      Allow edit tea.txt?
      Edit tea.txt (1 place)
      Writing files is asked about in mode ask.
      1   white
      2 - black
      2 + green
      › 1 y yes, this once
        2 a yes, and from now on: edit(tea.txt)
        3 e yes, and all edits in this session
        4 n no
        5 t no, and type what to do instead
      ↑↓ and Enter, or its number or letter · Esc stops the agent
      claude-sonnet-5-5                  0% of context · $0.0004 · ↑100 ↓20 · cache 0%
      "
    `);
    await decide(other, "y", "Done.");
    await one.until("Done.");
    await one.until(isIdle);
    await other.until(isIdle);
    expect(readFileSync(join(server.run.cwd, "tea.txt"), "utf8")).toBe("white\ngreen\n");
    const rows = (run: TerminalRun): string[] =>
      run.screen().filter((row) => !/── .* ──|claude-sonnet|^›(?: Ask|$)/.test(row));
    expect(rows(one)).toEqual(rows(other));
    expect(shown(one)).toMatchInlineSnapshot(`
      "

      › Change it.

      ● edit tea.txt  +1 -1
        1   white
        2 - black
        2 + green

      Done.

      ── 0 s · 1 file edited · $0.0008 ──

      ────────────────────────────────────────────────────────────────────────────────
      ›
      claude-sonnet-5-5                  0% of context · $0.0008 · ↑200 ↓40 · cache 0%
      "
    `);
  });

  it("Esc at a question denies it and ends the run, in both", async () => {
    const { one, other } = await world.attachTwice([{ say: [write] }, { say: "Too late." }], {
      files: { "tea.txt": "black\n" },
    });
    ask(one, "Change it.");
    await one.until("Allow edit tea.txt?");
    await other.until("Allow edit tea.txt?");
    one.press("escape");
    const isOver = (rows: readonly string[]): boolean =>
      isIdle(rows) && !rows.some((row) => row.includes("Allow edit"));
    await one.until(isOver);
    await other.until(isOver);
    expect(one.screen().join("\n")).toMatch(/⊘|✗/);
  });

  it("a rule that one gives holds for the session", async () => {
    const shell = (id: string) =>
      ({ call: "write", arguments: { path: `${id}.txt`, content: "tea\n" }, id }) as const;
    const { server, one, other } = await world.attachTwice([
      { say: [shell("a")] },
      { say: [shell("b")] },
      { say: "Both." },
    ]);
    ask(one, "Write two.");
    await one.until("Allow write a.txt?");
    await decide(one, "e", "Both.");
    await other.until("Both.");
    expect(readFileSync(join(server.run.cwd, "b.txt"), "utf8")).toBe("tea\n");
  });
});

describe("a session that works already", () => {
  it("is shown as far as it is, and goes on from there", async () => {
    let finish = (): void => {};
    const gate = new Promise<void>((settle) => (finish = settle));
    const say = "First this, and then that, and at the end all of the rest.";
    const server = await world.serve([
      { say: [{ text: "Looking." }, { call: "find", arguments: { pattern: "*.tea" } }] },
      { say, deltaChars: 12, gate: { afterDeltas: 2, until: gate } },
    ]);
    const one = await world.attach(server, { args: ["--cwd", "."] });
    ask(one, "Go.");
    await one.until("First this, and then");
    const other = await world.attach(server, { shows: "works now" });
    other.press("enter");
    await other.until("First this, and then");
    await other.until("Esc interrupts");
    finish();
    await other.until("all of the rest.");
    await other.until(isIdle);
    await one.until(isIdle);
    const rows = (run: TerminalRun): string[] =>
      run.screen().filter((row) => !/── .* ──|claude-sonnet|^›(?: Ask|$)/.test(row));
    expect(rows(other)).toEqual(rows(one));
  });

  it("asks what is open already, and runs it once", async () => {
    const call = { call: "write", arguments: { path: "a.txt", content: "tea\n" } } as const;
    const server = await world.serve([{ say: [call] }, { say: "Written." }]);
    const one = await world.attach(server, { args: ["--cwd", "."] });
    ask(one, "Write it.");
    await one.until("Allow write a.txt?");
    one.kill();
    await one.end;
    const other = await world.attach(server, { shows: "waits for an answer" });
    other.press("enter");
    await other.until("Allow write a.txt?");
    await decide(other, "y", "Written.");
    await other.until(isIdle);
    expect(other.screen().filter((row) => row.includes("a.txt"))).toHaveLength(1);
    expect(shown(other)).toMatchInlineSnapshot(`
      "
      gyre VERSION · Claude Sonnet 5.5 · FOLDER/shop

      › Write it.

      ● write a.txt  new, 1 line
        1 + tea

      Written.

      ── 0 s · 1 file edited · $0.0004 ──

      ────────────────────────────────────────────────────────────────────────────────
      › Ask for something. / commands, @ files, /help for all keys
      claude-sonnet-5-5                  0% of context · $0.0008 · ↑200 ↓40 · cache 0%
      "
    `);
  });
});

it("works with a server that keeps its sessions in a database, as far as that serves it", async () => {
  const call = { call: "write", arguments: { path: "a.txt", content: "tea\n" } } as const;
  const server = await world.serve([{ say: [call] }, { say: "Written." }], {
    args: ["--database", "file:runs.db"],
  });
  const run = await world.attach(server, { args: ["--cwd", "."] });
  ask(run, "Write it.");
  await run.until("Allow write a.txt?");
  await decide(run, "y", "Written.");
  await run.until(isIdle);
  expect(readFileSync(join(server.run.cwd, "a.txt"), "utf8")).toBe("tea\n");
  ask(run, "/cost");
  await run.until("The server does not offer /cost");
});
