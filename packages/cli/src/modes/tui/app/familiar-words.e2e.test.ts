import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { TerminalRun } from "../../../testing/terminal-program.ts";
import { answerOnce, ask, decide, terminalWorld } from "../../../testing/terminal-world.ts";

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

  it("one that was not taken is replaced by what is typed next, and can be edited", async () => {
    const { run, service } = await open([{ say: "Hello you." }, { say: "Later." }]);
    ask(run, "/claer");
    await run.until("What you type replaces it");
    ask(run, "Hello there");
    await idle(run, "Hello you.");
    expect(JSON.stringify(service.requests.at(-1)?.body)).not.toContain("claer");
    ask(run, "/exiit");
    await run.until("What you type replaces it");
    run.press("backspace");
    run.press("backspace");
    run.type("t");
    run.press("enter");
    expect(await run.end).toEqual({ code: 0, signal: undefined });
  });
});

describe("commands of Claude Code", () => {
  it("show what there is: memory, agents, skills, hooks, todos", async () => {
    const { run } = await open([], {
      rows: 40,
      files: {
        "CLAUDE.md": "Indent with tabs.",
        ".claude/skills/tea/SKILL.md": "---\nname: tea\ndescription: Makes tea.\n---\nBoil.",
        ".claude/agents/taster.md": "---\nname: taster\ndescription: Tastes tea.\n---\nTaste.",
      },
    });
    ask(run, "/memory");
    await idle(run, /shop\/CLAUDE\.md +│ 1 lines/);
    ask(run, "/agents");
    await idle(run, /taster +│ Tastes tea\./);
    ask(run, "/skills");
    await idle(run, /skill:tea +│ Makes tea\./);
    ask(run, "/hooks");
    await idle(run, "There are no hooks");
    ask(run, "/todos");
    await idle(run, "has written down no steps");
    ask(run, "/tasks");
    await idle(run, "There are no background jobs");
    expect(run.bytes.toString("utf8")).not.toContain("There is no command");
  });

  it("change what there is: plan, theme, effort, config", async () => {
    const { run, service } = await open([{ say: "I plan." }], { args: ["--mode", "ask"] });
    ask(run, "/plan make tea");
    await idle(run, "I plan.");
    expect(JSON.stringify(service.requests.at(-1)?.body)).toContain("make tea");
    expect(run.screen().join("\n")).toContain("claude-sonnet-5-5 · plan");
    ask(run, "/theme nothing");
    await idle(run, /✗.*nothing/);
    ask(run, "/theme light");
    await idle(run, "The theme is light now.");
    ask(run, "/effort low");
    await idle(run, "Thinking is low now.");
    ask(run, "/config theme light");
    await idle(run, /from the next\s+start on/);
    const settings = readFileSync(join(run.home, "config/gyre/config.json"), "utf8");
    expect(JSON.parse(settings)).toMatchObject({ theme: "light" });
    ask(run, "/config theem light");
    await idle(run, /"theem" is no setting\.\s+Did you mean theme/);
    ask(run, "/config maxTurns many");
    await idle(run, /must be a\s+whole\s+number/);
    expect(readFileSync(join(run.home, "config/gyre/config.json"), "utf8")).toBe(settings);
  });

  it("/doctor reports, and one that there is none for says what to do instead", async () => {
    const { run } = await open([], { rows: 50 });
    ask(run, "/ide");
    await idle(run, "There is no /ide here. `gyre acp` is for editors.");
    ask(run, "/doctor");
    await idle(run, /ok +node +v\d+/);
    expect(run.screen().join("\n")).toMatch(/^›\s*$/m);
  });

  it("# adds a line to the file of the project, or to the user's own", async () => {
    const { run, service } = await open([], { files: { "CLAUDE.md": "Indent with tabs." } });
    ask(run, "# the tests need Node 20");
    await run.until("Remember it where?");
    run.press("enter");
    await idle(run, /CLAUDE\.md\. It holds/);
    expect(readFileSync(join(run.cwd, "CLAUDE.md"), "utf8")).toBe(
      "Indent with tabs.\n- the tests need Node 20\n",
    );
    ask(run, "# be brief");
    await run.until("Remember it where?");
    run.type("2");
    await idle(run, /gyre\/AGENTS\.md\.\s+It\s+holds/);
    expect(readFileSync(join(run.home, "config/gyre/AGENTS.md"), "utf8")).toBe("- be brief\n");
    expect(service.requests).toEqual([]);
  });
});

it("/compact says once what it did", async () => {
  const long = (end: string) => ({ say: `${"A line of an answer.\n".repeat(3_000)}\n${end}` });
  const script = [long("End one."), long("End two."), { say: "End three." }, { say: "In short." }];
  const { run } = await open(script);
  for (const end of ["one", "two", "three"]) {
    ask(run, `Say ${end}`);
    await idle(run, `End ${end}.`);
  }
  ask(run, "/compact");
  await idle(run, /What was left\s+out stays/);
  expect(run.bytes.toString("utf8")).toContain("The context went from about");
  expect(run.bytes.toString("utf8")).not.toContain("context made smaller");
});

describe("settings of Claude Code in a folder", () => {
  it("are asked about at the start where they allow something", async () => {
    const rules = { permissions: { allow: ["Bash(touch made:*)"], deny: ["Read(./.env)"] } };
    const files = { ".claude/settings.json": JSON.stringify(rules) };
    const touch = { say: [{ call: "shell", arguments: { command: "touch made" } }] };
    const { run } = await open([touch, { say: "Made." }], {
      files,
      args: ["--mode", "ask", "--sandbox", "none"],
      shows: "Leave it out",
    });
    expect(run.screen().join("\n")).toContain("Bash(touch made:*)");
    await answerOnce(run, "y", "is now trusted");
    ask(run, "/permissions");
    await run.until(/deny +│ read\(\.env\) +│ Claude Code's settings/);
    run.press("escape");
    await idle(run, /^(?![^]*What may it do)/);
    ask(run, "Make it");
    await idle(run, "Made.");
    expect(existsSync(join(run.cwd, "made"))).toBe(true);
  });
});

describe("a question about a call", () => {
  it("is answered by a digit, and by one key for the project", async () => {
    const touch = (name: string) => ({
      say: [{ call: "shell", arguments: { command: `touch ${name}` } }],
    });
    const { run } = await open(
      [
        touch("one"),
        { say: "First." },
        touch("two"),
        { say: "Second." },
        touch("two"),
        { say: "Third." },
      ],
      { args: ["--mode", "ask", "--sandbox", "none"] },
    );
    ask(run, "Make one");
    await run.until("1 y yes, this once");
    await answerOnce(run, "1", "First.");
    ask(run, "Make two");
    await run.until("2 d yes, and do not ask again in this project");
    await answerOnce(run, "d", "Second.");
    ask(run, "And again");
    await idle(run, "Third.");
    expect(existsSync(join(run.cwd, "two"))).toBe(true);
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

  it("and -c go on with what was said in a terminal, not with a run of -p", async () => {
    const first = await open([{ say: "It is blue." }]);
    ask(first.run, "Which color?");
    await idle(first.run, "It is blue.");
    ask(first.run, "/exit");
    await first.run.end;
    const { cwd, home } = first.run;
    first.service.play([{ say: "Scripted." }]);
    const printed = await world.program.gyre(["-p", "A script asks", "--cwd", cwd], {
      service: first.service,
      home,
    });
    expect(printed.stdout).toBe("Scripted.\n");
    const { run } = await open([], { home, args: ["-c"], shows: "It is blue." });
    expect(run.screen().join("\n")).not.toContain("A script asks");
    ask(run, "/resume");
    await run.until(/A script asks.*of -p/);
    run.press("escape");
    first.service.play([{ say: "Again." }]);
    const again = await world.program.gyre(["-c", "-p", "And again", "--cwd", cwd], {
      service: first.service,
      home,
    });
    expect(JSON.stringify(again.requests.at(-1)?.body)).toContain("A script asks");
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

  it("is shown as it was typed, and what was sent when it is expanded", async () => {
    const long = { ".claude/commands/greet.md": "Say hello.\nBe polite.\nSay no more." };
    const { run, service } = await open([{ say: "Hello!" }], { files: long });
    ask(run, "/greet Anna");
    await idle(run, "Hello!");
    expect(JSON.stringify(service.requests.at(-1)?.body)).toContain("Be polite.");
    expect(run.screen().join("\n")).toMatch(
      /› \/greet Anna\n {2}sends 5 lines \(Ctrl\+O shows them\)/,
    );
    expect(run.bytes.toString("utf8")).not.toContain("Be polite.");
    run.press("ctrl+o");
    await idle(run, "Be polite.");
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
