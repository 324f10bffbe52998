import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, decide, terminalWorld } from "../../../testing/terminal-world.ts";

// What people know from other agents works when it is typed: the built program in a real terminal.

const world = terminalWorld();
const { open } = world;

/** It shows this, and has done all that it was asked to. */
async function idle(run: TerminalRun, shown: string | RegExp): Promise<void> {
  await run.until((rows) => {
    const screen = rows.join("\n");
    const isShown = typeof shown === "string" ? screen.includes(shown) : shown.test(screen);
    return isShown && !screen.includes("Esc interrupts");
  });
}

describe("a command that has another name elsewhere", () => {
  it("/exit leaves", async () => {
    const { run } = await open([]);
    ask(run, "/exit");
    expect(await run.end).toEqual({ code: 0, signal: undefined });
  });

  it("/clear begins a new session, whose first request has nothing of the old one", async () => {
    const { run, service } = await open([{ say: "First answer." }, { say: "Second answer." }]);
    ask(run, "The old question");
    await idle(run, "First answer.");
    ask(run, "/clear");
    await idle(run, /^a new session$/m);
    ask(run, "The new question");
    await run.until("Second answer.");
    const last = JSON.stringify(service.requests.at(-1)?.body);
    expect(last).toContain("The new question");
    expect(last).not.toContain("The old question");
  });

  it("/models lists models, /undo goes back, /usage shows what was used", async () => {
    const { run } = await open([]);
    ask(run, "/models");
    await run.until("Which model?");
    run.press("escape");
    await idle(run, /^(?![^]*Which model)/);
    ask(run, "/usage");
    await idle(run, "The session:");
    ask(run, "/undo");
    await run.until(/nothing|Nothing|no prompt/);
    expect(run.bytes.toString("utf8")).not.toContain("There is no command");
  });

  it("/status and /config show what holds", async () => {
    const { run } = await open([], { args: ["--mode", "plan"], rows: 40 });
    ask(run, "/status");
    await idle(run, /mode +│ plan/);
    ask(run, "/config");
    await run.until(/mode +│ "plan" +│ command line/);
    expect(run.screen().join("\n")).toContain("/config all");
  });

  it("/login asks for a key and shows nothing of it", async () => {
    const { run } = await open([]);
    ask(run, "/login anthropic");
    await run.until("Key for Anthropic");
    run.type("sk-ant-never-shown");
    run.press("enter");
    await run.until("was stored in");
    expect(run.bytes.toString("latin1")).not.toContain("never-shown");
  });

  it("one that is mistyped is answered with what may be meant", async () => {
    const { run } = await open([]);
    ask(run, "/claer");
    await run.until('There is no command "/claer". Did you mean /clear?');
    // It comes back, to be corrected.
    expect(run.screen().join("\n")).toContain("› /claer");
  });
});

describe("gyre -r", () => {
  it("lists the sessions, and goes on with the one that is chosen", async () => {
    const first = await open([{ say: "It is blue." }]);
    ask(first.run, "Which color?");
    await idle(first.run, "It is blue.");
    ask(first.run, "/exit");
    await first.run.end;
    const { home } = first.run;
    const { run, service } = await open([{ say: "Still blue." }], {
      home,
      args: ["-r"],
      shows: "Sessions of this folder",
    });
    run.press("enter");
    await run.until("It is blue.");
    ask(run, "And now?");
    await idle(run, "Still blue.");
    expect(JSON.stringify(service.requests.at(-1)?.body)).toContain("Which color?");
  });

  it("begins a new session where there is none to choose", async () => {
    const { run } = await open([], { args: ["-r"] });
    await run.until("There is no other session yet.");
    expect(run.screen().join("\n")).toContain("›");
  });
});

describe("a command of .claude/commands", () => {
  const files = {
    ".claude/commands/look.md":
      "Here is !`touch made && echo $1-made`, and @notes.md.\n\nSay what you see in $1.",
    "notes.md": "Buy milk.",
  };

  it("runs what it names after a question, and sends output and files", async () => {
    const { run, service } = await open([{ say: "I see." }], { files, args: ["--mode", "ask"] });
    ask(run, "/look parrots");
    await run.until("touch made");
    await decide(run, "y", "I see.");
    const sent = JSON.stringify(service.requests.at(-1)?.body);
    expect(sent).toContain("parrots-made");
    expect(sent).toContain("Buy milk.");
    expect(sent).toContain("Say what you see in parrots.");
  });

  it("that is not allowed to run sends nothing", async () => {
    const { run, service } = await open([{ say: "I see." }], { files, args: ["--mode", "plan"] });
    ask(run, "/look parrots");
    await run.until("was not run, and nothing was sent");
    expect(service.requests).toEqual([]);
  });
});

it("--draft is what the prompt begins with, and the user finishes it", async () => {
  const { run, service } = await open([{ say: "Read it." }], {
    args: ["--draft", "src/a.ts:3-7 "],
  });
  await run.until(/^› src\/a\.ts:3-7/m);
  ask(run, "is wrong");
  await run.until("Read it.");
  expect(JSON.stringify(service.requests.at(-1)?.body)).toContain("src/a.ts:3-7 is wrong");
});

describe("/init, /review and /diff", () => {
  it("ask for what they say, with what follows the name", async () => {
    const { run, service } = await open([{ say: "Written." }, { say: "Reviewed." }]);
    ask(run, "/init Mention the linter.");
    await idle(run, "Written.");
    ask(run, "/review main..HEAD");
    await idle(run, "Reviewed.");
    const sent = JSON.stringify(service.requests.at(-1)?.body);
    expect(sent).toContain("Write AGENTS.md");
    expect(sent).toContain("Mention the linter.");
    expect(sent).toContain("git diff main..HEAD");
  });

  it("leave their names to a command of the project", async () => {
    const { run, service } = await open([{ say: "Done." }], {
      files: { ".claude/commands/review.md": "Look at it as we do here." },
    });
    ask(run, "/review");
    await idle(run, "Done.");
    const sent = JSON.stringify(service.requests.at(-1)?.body);
    expect(sent).toContain("Look at it as we do here.");
    expect(sent).not.toContain("List findings");
  });

  it("/diff shows what is not committed, and asks no model", async () => {
    const home = await world.program.makeHome();
    const cwd = join(home, "shop");
    mkdirSync(cwd, { recursive: true });
    writeFileSync(join(cwd, "tea.txt"), "green\n");
    const git = (...args: string[]): void =>
      void execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@b.c", ...args], { cwd });
    git("init", "-q");
    git("add", ".");
    git("commit", "-qm", "tea");
    const { run, service } = await open([], { home, files: { "tea.txt": "black\n" }, rows: 40 });
    ask(run, "/diff");
    await idle(run, "+black");
    expect(run.screen().join("\n")).toContain("-green");
    expect(service.requests).toEqual([]);
  });
});
