import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findColors, cursorMovesIn, fullClearsIn } from "../../../testing/screen-text.ts";
import type { Answer, Script, ScriptedService } from "../../../testing/scripted-service.ts";
import type { TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, decide, terminalWorld } from "../../../testing/terminal-world.ts";
import { measureWidth } from "../../../text/width.ts";

// The built program in a real terminal, as a person sees it: whole screens.

const { open } = terminalWorld();

/** The screen without empty rows at its end; what differs from run to run is masked. */
function shown(run: TerminalRun): string {
  const rows = run.screen().map((row) =>
    row
      .replace(/gyre \d[\d.]*/, "gyre VERSION")
      .replace(/ in \/\S*\/shop/, " in FOLDER/shop")
      .replace(/[\u2800-\u28ff]/, "*")
      .replace(/(--resume|session) \w{12}\b/, "$1 ID")
      .replace(/\b\d+(?:\.\d+)? ?(?:ms|s)\b/g, "0 s"),
  );
  while (rows.at(-1) === "") rows.pop();
  return `\n${rows.join("\n")}\n`;
}

/** An answer that stops in its midst, and leaves the stream open. */
function halted(say: string, afterDeltas: number, deltaChars = 12): Answer {
  return { say, deltaChars, fault: { how: "silence", afterDeltas } };
}

/** A script whose answers the test gives one by one, when it wants to. */
function byHand(): { script: Script; answer: (answer: Answer) => void } {
  const given: Answer[] = [];
  const waiting: ((answer: Answer) => void)[] = [];
  return {
    script: () => {
      const next = given.shift();
      return next ?? new Promise<Answer>((settle) => waiting.push(settle));
    },
    answer(one) {
      const settle = waiting.shift();
      if (settle) settle(one);
      else given.push(one);
    },
  };
}

/** It has done all that it was asked to. */
async function idle(run: TerminalRun, last: string): Promise<void> {
  await run.until((rows) => rows.join("\n").includes(last) && !isWorking(rows));
}

function isWorking(rows: readonly string[]): boolean {
  return rows.some((row) => row.includes("Esc interrupts"));
}

it("begins with one line about itself, the editor, and a footer", async () => {
  const { run } = await open([]);
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    ────────────────────────────────────────────────────────────────────────────────
    › Ask for something. / commands, @ files, ! shell, /help for all keys
    claude-sonnet-5-5 · auto
    "
  `);
  expect(run.cursor().isShown).toBe(true);
});

it("draws Markdown as it comes in", async () => {
  const say = "# A plan\n\nFirst **this**, then `that`:\n\n- one\n- two\n\nAnd now a long";
  const { run } = await open([halted(`${say} tail that never comes`, say.length, 1)]);
  ask(run, "Plan it.");
  await run.until("And now a long");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Plan it.

    A plan

    First this, then that:

    • one
    • two

    And now a long

    * writing · 0 s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    ›
    claude-sonnet-5-5 · auto
    "
  `);
});

it("does not clear the screen, and changes no row that has left it", async () => {
  const say = Array.from({ length: 30 }, (_, nth) => `${nth + 1}. Line **${nth + 1}**`).join("\n");
  const { run } = await open([{ say: `${say}\n\nThe end.`, deltaChars: 7, paceMs: 1 }]);
  const kept = run.scrollback();
  run.watch(() => kept.push(...run.scrollback(kept.length)));
  ask(run, "Count.");
  await idle(run, "The end.");
  expect(fullClearsIn(run.bytes.toString("latin1"))).toBe(0);
  expect(run.scrollback().slice(0, kept.length)).toEqual(kept);
  const rows = [...run.scrollback(), ...run.screen()].filter((row) => /Line \d+/.test(row));
  expect(rows.map((row) => row.trim())).toEqual(
    Array.from({ length: 30 }, (_, nth) => `${nth + 1}. Line ${nth + 1}`),
  );
});

describe("while it works", () => {
  it("shows what waits: Enter steers, Alt+Enter is for afterwards", async () => {
    const { run } = await open([halted("I am at it, and there is more", 1)]);
    ask(run, "Go.");
    await run.until("I am at it");
    run.type("Mind the tests.");
    run.press("enter");
    await run.until("next: Mind the tests.");
    run.type("Then write it down.");
    run.press("alt+enter");
    await run.until("then: Then write it down.");
    expect(shown(run)).toMatchInlineSnapshot(`
      "
      gyre VERSION · Claude Sonnet 5.5 · ~/shop

      › Go.

      I am at it,

      * writing · 0 s · Esc interrupts
      ↳ next: Mind the tests.
      ↳ then: Then write it down.
        Alt+Up takes them back
      ────────────────────────────────────────────────────────────────────────────────
      ›
      claude-sonnet-5-5 · auto
      "
    `);
  });

  it("takes what waits back into the editor with Alt+Up", async () => {
    const { run } = await open([halted("I am at it, and there is more", 1)]);
    ask(run, "Go.");
    await run.until("I am at it");
    ask(run, "Mind the tests.");
    await run.until("next: Mind the tests.");
    run.press("alt+up");
    await run.until((rows) => !rows.join("\n").includes("next:"));
    expect(shown(run)).toMatchInlineSnapshot(`
      "
      gyre VERSION · Claude Sonnet 5.5 · ~/shop

      › Go.

      I am at it,

      * writing · 0 s · Esc interrupts
      ────────────────────────────────────────────────────────────────────────────────
      › Mind the tests.
      claude-sonnet-5-5 · auto
      "
    `);
  });

  it("hands a message over between two steps", async () => {
    const { answer, script } = byHand();
    const { run, service } = await open(script, { files: { "a.txt": "one\n" } });
    ask(run, "Read a.txt.");
    await service.asked(0);
    ask(run, "And be brief.");
    await run.until("next: And be brief.");
    answer({ say: [{ call: "read", arguments: { path: "a.txt" } }] });
    await service.asked(1);
    answer({ say: "It says one." });
    await idle(run, "It says one.");
    expect(shown(run)).toMatchInlineSnapshot(`
      "
      gyre VERSION · Claude Sonnet 5.5 · ~/shop

      › Read a.txt.

      ● read a.txt
        1 line

      › And be brief.

      It says one.

      ── 0 s · $0.0008 ──

      ────────────────────────────────────────────────────────────────────────────────
      ›
      claude-sonnet-5-5 · auto           0% of context · $0.0008 · ↑200 ↓40 · cache 0%
      "
    `);
  });

  it("is interrupted by Esc, and what waited is in the editor", async () => {
    const { run } = await open([halted("I am at it, and there is more", 1)]);
    ask(run, "Go.");
    await run.until("I am at it");
    ask(run, "Mind the tests.");
    await run.until("next: Mind the tests.");
    run.press("escape");
    await run.until((rows) => !isWorking(rows));
    expect(shown(run)).toMatchInlineSnapshot(`
      "
      gyre VERSION · Claude Sonnet 5.5 · ~/shop

      › Go.

      I am at it,

      interrupted

      ── 0 s · $0.0002 ──

      ────────────────────────────────────────────────────────────────────────────────
      › Mind the tests.
      claude-sonnet-5-5 · auto            0% of context · $0.0002 · ↑100 ↓1 · cache 0%
      "
    `);
  });
});

it("asks before it runs a command", async () => {
  const { run } = await open(
    [
      { say: [{ call: "shell", arguments: { command: "touch made.txt" } }] },
      { say: "I leave it." },
    ],
    { env: { GYRE_SANDBOX: "none" } },
  );
  ask(run, "Make a file.");
  await run.until("Allow shell?");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Make a file.

    ○ shell touch made.txt

    * waiting for your answer · 0 s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    Allow shell?
    Running commands is asked about in mode ask. There is no sandbox around it.
    $ touch made.txt
    › 1 y yes, this once
      2 d yes, and do not ask again in this project: shell(touch made.txt)
      3 a yes, from now on, and say for how long
      4 n no
      5 t no, and type what to do instead
    ↑↓ and Enter, or its number or letter · Esc stops the agent
    claude-sonnet-5-5                  0% of context · $0.0004 · ↑100 ↓20 · cache 0%
    "
  `);
  await decide(run, "n", "I leave it.");
});

it("asks before it runs a command in the sandbox", { tags: "bubblewrap" }, async () => {
  const { run } = await open(
    [
      { say: [{ call: "shell", arguments: { command: "touch made.txt" } }] },
      { say: "I leave it." },
    ],
    { args: ["--mode", "ask"], env: { GYRE_EFFECTS: "false" } },
  );
  ask(run, "Make a file.");
  await run.until("Allow shell?");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Make a file.

    ○ shell touch made.txt

    * waiting for your answer · 0 s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    Allow shell?
    Running commands is asked about in mode ask.
    $ touch made.txt
    › 1 y yes, this once
      2 d yes, and do not ask again in this project: shell(touch), shell(touch *)
      3 a yes, from now on, and say for how long
      4 n no
      5 t no, and type what to do instead
    ↑↓ and Enter, or its number or letter · Esc stops the agent
    claude-sonnet-5-5                  0% of context · $0.0004 · ↑100 ↓20 · cache 0%
    "
  `);
  await decide(run, "n", "I leave it.");
});

it("shows what an edit changed", async () => {
  const edits = [{ oldText: "sum + price", newText: "sum + price * count" }];
  const { run } = await open(
    [{ say: [{ call: "edit", arguments: { path: "cart.js", edits } }] }, { say: "Fixed." }],
    {
      args: ["--mode", "full", "--sandbox", "none"],
      files: { "cart.js": "let sum = 0;\nsum = sum + price;\nexport { sum };\n" },
    },
  );
  ask(run, "Fix it.");
  await idle(run, "Fixed.");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Fix it.

    ● edit cart.js  +1 -1
      1   let sum = 0;
      2 - sum = sum + price;
      2 + sum = sum + price * count;
      3   export { sum };

    Fixed.

    ── 0 s · 1 file edited · $0.0008 ──

    ────────────────────────────────────────────────────────────────────────────────
    ›
    claude-sonnet-5-5 · full           0% of context · $0.0008 · ↑200 ↓40 · cache 0%
    "
  `);
  expect(readFileSync(join(run.cwd, "cart.js"), "utf8")).toContain("price * count");
});

describe("what the model got of a long result", () => {
  const full = ["--mode", "full", "--sandbox", "none"];

  /** The text of the newest result in a request. */
  function readResult(service: ScriptedService, nth: number): string {
    const text = JSON.stringify(service.requests[nth]?.body["messages"]);
    const messages = JSON.parse(text) as { content: { type: string; content?: unknown }[] }[];
    const result = messages.at(-1)?.content.find(({ type }) => type === "tool_result");
    const parts = result?.content as { text?: string }[] | string | undefined;
    return typeof parts === "string" ? parts : (parts ?? []).map((part) => part.text).join("\n");
  }

  it("a summary: is shown in place of the output, and named, also in the session later", async () => {
    const summary = "SUMMARY: numbers, one more each time.";
    const command = "seq 1 40000";
    const { run, service } = await open(
      [{ say: [{ call: "shell", arguments: { command } }] }, { say: summary }, { say: "Counted." }],
      // A result may have half of that.
      { args: full, env: { GYRE_COMPACT_AT: "16000" } },
    );
    ask(run, "Count.");
    await idle(run, "Counted.");
    const got = readResult(service, 2);
    expect(got).toContain(summary);
    const [, tokens = ""] = /\[Of (\d+) tokens/.exec(got) ?? [];
    const note = `the model got a summary of ${Number(tokens).toLocaleString("en")} tokens`;
    const rows = (): string => run.screen().join("\n").replaceAll(/\s+/g, " ");
    expect(rows()).toContain(note);
    expect(rows()).toContain(summary);
    expect(rows()).not.toContain(" 39999 ");
    run.press("ctrl+o");
    await run.until((now) => !now.join("\n").includes(summary));
    // All that is shown is what the model got, from its beginning on.
    const all = [...run.scrollback(), ...run.screen()].map((row) => row.trim());
    const first = all.findLastIndex((row) => row.includes(note)) + 1;
    const lines = got.split("\n").filter((line) => !line.startsWith("<"));
    expect(all.slice(first, first + 100)).toEqual(lines.slice(0, 100));

    run.press("ctrl+d");
    await run.end;
    const later = await open([], { args: ["--continue", ...full], home: run.home, cwd: run.cwd });
    await later.run.until("Counted.");
    expect(later.run.screen().join("\n").replaceAll(/\s+/g, " ")).toContain(note);
    expect(later.run.screen().join("\n")).toContain(summary);
  });

  it("a page: says which part it is", async () => {
    const numbers = Array.from({ length: 20_000 }, (_, n) => `line ${n + 1}`);
    const { run, service } = await open(
      [
        { say: [{ call: "read", arguments: { path: "big.txt" } }] },
        { say: [{ call: "grep", arguments: { pattern: "line", path: "big.txt" } }] },
        { say: "Seen." },
      ],
      { args: full, files: { "big.txt": numbers.join("\n") } },
    );
    ask(run, "Look.");
    await idle(run, "Seen.");
    const last = readResult(service, 1)
      .match(/line (\d+)/g)
      ?.at(-1)
      ?.slice("line ".length);
    expect(run.screen().join("\n")).toContain(`lines 1-${last} of 20,000`);
    expect(run.screen().join("\n")).toMatch(/ match(?:es)? in 1 file, not all/);
  });

  it("the beginning and the end: a row says so", async () => {
    const { run, service } = await open(
      [
        { say: [{ call: "shell", arguments: { command: "yes ABC | head -c 60000" } }] },
        { say: "Seen." },
      ],
      { args: full },
    );
    ask(run, "Look.");
    await idle(run, "Seen.");
    expect(readResult(service, 1)).toContain("left out; all of it is in");
    expect(run.screen().join(" ")).toContain("the model got the beginning and the end");
  });
});

it("lays out again when the terminal is resized while it streams", async () => {
  const { answer, script } = byHand();
  const { run, service } = await open(script);
  const words = "The quick brown fox jumps over the lazy dog and runs on. ";
  ask(run, "Explain.");
  await service.asked(0);
  answer(halted(`${words.repeat(3)}END more`, words.length * 3 + 3, 1));
  await run.until("END");
  run.resize(40, 20);
  await run.until((rows) => isLaidOut(rows, 40));
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Explain.

    The quick brown fox jumps over the lazy
    dog and runs on. The quick brown fox
    jumps over the lazy dog and runs on. The
    quick brown fox jumps over the lazy dog
    and runs on. END

    * writing · 0 s · Esc interrupts
    ────────────────────────────────────────
    ›
    claude-sonnet-5-5 · auto
    "
  `);
  run.resize(120, 20);
  await run.until((rows) => isLaidOut(rows, 120));
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Explain.

    The quick brown fox jumps over the lazy dog and runs on. The quick brown fox jumps over the lazy dog and runs on. The
    quick brown fox jumps over the lazy dog and runs on. END

    * writing · 0 s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    claude-sonnet-5-5 · auto
    "
  `);
});

/** A terminal that is resized first breaks rows by itself: the rule is then not one row. */
function isLaidOut(rows: readonly string[], columns: number): boolean {
  const rules = rows.filter((row) => row.includes("───"));
  return rules.length === 1 && rules[0] === "─".repeat(columns);
}

it("keeps East Asian characters and emoji in their columns", async () => {
  const say = "| a | b |\n|---|---|\n| 日本語 | 👍🏽 |\n| x | 한국 |\n\n漢字と emoji 👩‍👩‍👧 in a line.";
  const { run } = await open([{ say }]);
  ask(run, "表 😀?");
  await idle(run, "in a line.");
  run.type("日本x");
  await run.until("日本x");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › 表 😀?

    ┌────────┬──────┐
    │ a      │ b    │
    ├────────┼──────┤
    │ 日本語 │ 👍🏽   │
    │ x      │ 한국 │
    └────────┴──────┘

    漢字と emoji 👩‍👩‍👧 in a line.

    ── 0 s · $0.0004 ──

    ────────────────────────────────────────────────────────────────────────────────
    › 日本x
    claude-sonnet-5-5 · auto           0% of context · $0.0004 · ↑100 ↓20 · cache 0%
    "
  `);
  const { row, column } = run.cursor();
  expect(column).toBe(measureWidth(run.screen()[row] ?? ""));
});

it("opens the tree with Esc Esc", async () => {
  const { run } = await open([{ say: "One it is." }, { say: "Two it is." }]);
  ask(run, "First.");
  await idle(run, "One it is.");
  ask(run, "Second.");
  await idle(run, "Two it is.");
  run.press("escape");
  run.press("escape");
  await run.until("● here");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    › First.

    One it is.

    ── 0 s · $0.0004 ──

    › Second.

    Two it is.

    ── 0 s · $0.0004 ──

    ────────────────────────────────────────────────────────────────────────────────
    This session
      > First.
        One it is.
      > Second.
    ›   ● here Two it is.
    ↑↓ move · ←→ branches · Enter go there · l name it · u prompts only or all · Es…
    claude-sonnet-5-5 · auto           0% of context · $0.0008 · ↑200 ↓40 · cache 0%
    "
  `);
});

it("rewinds files to where they were", async () => {
  const edits = [{ oldText: "one", newText: "two" }];
  const { run } = await open(
    [{ say: [{ call: "edit", arguments: { path: "a.txt", edits } }] }, { say: "Written." }],
    { args: ["--mode", "full", "--sandbox", "none"], files: { "a.txt": "one\n" } },
  );
  ask(run, "Write two.");
  await idle(run, "Written.");
  ask(run, "/rewind");
  await run.until("Back to before which prompt?");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Write two.

    ● edit a.txt  +1 -1
      1 - one
      1 + two

    Written.

    ── 0 s · 1 file edited · $0.0008 ──

    ────────────────────────────────────────────────────────────────────────────────
    Back to before which prompt?
    / type to search
    › Write two.  1 file, just now
    ↑↓ to choose · Enter to take it · Esc to leave
    claude-sonnet-5-5 · full           0% of context · $0.0008 · ↑200 ↓40 · cache 0%
    "
  `);
  run.press("enter");
  await run.until("Back to before “Write two.”");
  expect(shown(run)).toMatchInlineSnapshot(`
    "

    › Write two.

    ● edit a.txt  +1 -1
      1 - one
      1 + two

    Written.

    ── 0 s · 1 file edited · $0.0008 ──

    ────────────────────────────────────────────────────────────────────────────────
    Back to before “Write two.”
    ~ a.txt  +1 -1
    › 1 conversation and files
      2 files only
      3 conversation only
      4 cancel
    ↑↓ and Enter, or its number · Esc to leave
    claude-sonnet-5-5 · full           0% of context · $0.0008 · ↑200 ↓40 · cache 0%
    "
  `);
  run.press("enter");
  await idle(run, "1 file taken back");
  expect(shown(run)).toMatchInlineSnapshot(`
    "

    › Write two.

    ● edit a.txt  +1 -1
      1 - one
      1 + two

    Written.

    ── 0 s · 1 file edited · $0.0008 ──

    session ID, from here on

    The conversation goes on from here. 1 file taken back; /rewind undoes that.

    ────────────────────────────────────────────────────────────────────────────────
    › Write two.
    claude-sonnet-5-5 · full                           $0.0008 · ↑200 ↓40 · cache 0%
    "
  `);
  expect(readFileSync(join(run.cwd, "a.txt"), "utf8")).toBe("one\n");
});

const LONG = "## A heading\n\nA paragraph that is longer than forty columns are, with `code`.";

it("fits a terminal of 40 columns", async () => {
  const { run } = await open([{ say: LONG }], { columns: 40 });
  ask(run, "Say something.");
  await idle(run, "with code.");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Say something.

    A heading

    A paragraph that is longer than forty
    columns are, with code.

    ── 0 s · $0.0004 ──

    ────────────────────────────────────────
    ›
    claude-sonnet-5-5 · auto   0% of context
    "
  `);
});

it("uses the room of 200 columns", async () => {
  const { run } = await open([{ say: LONG }], { columns: 200 });
  ask(run, "Say something.");
  await idle(run, "with code.");
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Say something.

    A heading

    A paragraph that is longer than forty columns are, with code.

    ── 0 s · $0.0004 ──

    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    claude-sonnet-5-5 · auto                                                                                                                                   0% of context · $0.0004 · ↑100 ↓20 · cache 0%
    "
  `);
});

it("writes no colors where they are not wanted", async () => {
  const { run } = await open([{ say: "## Plain\n\n**All** of `it`." }], {
    env: { NO_COLOR: "1" },
  });
  ask(run, "Say it.");
  await idle(run, "**All** of `it`.");
  expect(findColors(run.bytes.toString("latin1"))).toEqual([]);
});

it("writes lines alone for what reads a terminal aloud", async () => {
  const { run } = await open([{ say: "## Plain\n\nAll of it." }], {
    args: ["--screen-reader"],
    columns: 200,
  });
  await run.until("You:");
  ask(run, "Say it.");
  await run.until(/It took [^]*You:/);
  expect(cursorMovesIn(run.bytes.toString("latin1"))).toEqual([]);
  expect(shown(run).replace(/took [\d.]+/, "took SOME")).toMatchInlineSnapshot(`
    "
    This is gyre VERSION with Claude Sonnet 5.5 in FOLDER/shop. /help lists the commands.
    You: Say it.
    Agent: ## Plain

    All of it.
    Done. It took SOME seconds.
    You:
    "
  `);
});

it("leaves the conversation on the screen when it ends", async () => {
  const { run } = await open([{ say: "Done." }]);
  ask(run, "Do it.");
  await idle(run, "Done.");
  ask(run, "/quit");
  await expect(run.end).resolves.toMatchObject({ code: 0 });
  expect(shown(run)).toMatchInlineSnapshot(`
    "
    gyre VERSION · Claude Sonnet 5.5 · ~/shop

    › Do it.

    Done.

    ── 0 s · $0.0004 ──
    gyre --resume ID
    "
  `);
  expect(run.cursor().isShown).toBe(true);
});
