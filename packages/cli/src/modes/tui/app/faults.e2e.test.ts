import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "@lydell/node-pty";
import { describe, expect, it } from "vitest";
import { buildEnvironment, sessionFiles } from "../../../testing/program.ts";
import { type Answer, type Script, scriptedService } from "../../../testing/scripted-service.ts";
import { openInTerminal, type TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, decide, terminalWorld } from "../../../testing/terminal-world.ts";

// The built program in a real terminal, when things go wrong.

const world = terminalWorld();
const { cleanUps, open } = world;

/** An answer that begins, and then nothing comes any more. */
const HALTED: Answer = {
  say: "I am at it, and there is more",
  fault: { how: "silence", afterDeltas: 1 },
};

const DEADLINE_MS = 60_000;

function isIdle(rows: readonly string[]): boolean {
  return !rows.some((row) => /Esc (?:interrupts|stops)/.test(row));
}

/** A terminal that can be taken away, or that takes nothing for a while. It draws nothing. */
async function openBare(script: Script, args: readonly string[]) {
  const service = await scriptedService(script);
  cleanUps.push(() => service.close());
  const home = await world.program.makeHome();
  const cwd = join(home, "work");
  for (const folder of [cwd, join(home, "tmp")]) mkdirSync(folder);
  const child = spawn(process.execPath, [world.program.entry, ...args], {
    cwd,
    env: { TERM: "xterm-256color", ...buildEnvironment(home, service) },
  });
  let written = "";
  child.onData((text) => (written += text));
  const end = new Promise<number>((settle) =>
    child.onExit(({ exitCode, signal }) => settle(signal ? -signal : exitCode)),
  );
  let isOver = false;
  void end.then(() => (isOver = true));
  cleanUps.push(async () => {
    if (!isOver) child.kill("SIGKILL");
    await end;
  });
  const shows = async (text: string): Promise<void> => {
    await expect.poll(() => written.includes(text), { timeout: DEADLINE_MS }).toBe(true);
  };
  await shows("Claude");
  return { child, end, service, shows };
}

/** The modes of the terminal at the end. */
function readModes(run: TerminalRun): Record<string, boolean> {
  const text = run.bytes.toString("latin1");
  const isOff = (off: string, on: string): boolean => text.lastIndexOf(off) > text.lastIndexOf(on);
  return {
    paste: isOff("\x1b[?2004l", "\x1b[?2004h"),
    keys: isOff("\x1b[<u", "\x1b[>1u"),
    cursor: isOff("\x1b[?25h", "\x1b[?25l"),
    wrap: isOff("\x1b[?7h", "\x1b[?7l"),
    sync: isOff("\x1b[?2026l", "\x1b[?2026h"),
  };
}
const RESTORED = { paste: true, keys: true, cursor: true, wrap: true, sync: true };

let stayed = 0;

/** A call of a long command, recognized among the others by its duration. */
function staying(): { call: string; arguments: { command: string }; isThere: () => boolean } {
  const time = `600.${process.pid}${++stayed}`;
  const isThere = (): boolean =>
    execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n").includes(`sleep ${time}`);
  return { call: "shell", arguments: { command: `exec sleep ${time}` }, isThere };
}

async function started({ isThere }: { isThere: () => boolean }): Promise<void> {
  await expect.poll(isThere, { timeout: DEADLINE_MS }).toBe(true);
}

describe("the end", () => {
  it.each([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("by %s gives the terminal back and ends what runs", async (signal, code) => {
    const stay = staying();
    const { run } = await open([{ say: [stay] }], {
      args: ["--mode", "full", "--sandbox", "none"],
    });
    ask(run, "Go.");
    await started(stay);
    run.kill(signal);
    await expect(run.end).resolves.toEqual({ code, signal: undefined });
    expect(readModes(run)).toEqual(RESTORED);
    expect(stay.isThere()).toBe(false);
  });

  it("by a failure while it draws reports it, and gives the terminal back", async () => {
    const home = await world.program.makeHome();
    const torn = join(home, "torn.cjs");
    writeFileSync(
      torn,
      `process.on("SIGUSR2", () => {
        const { write } = process.stdout;
        process.stdout.write = () => {
          process.stdout.write = write;
          throw new Error("The screen is torn.");
        };
      });`,
    );
    const { run } = await open([HALTED], { home, env: { NODE_OPTIONS: `--require "${torn}"` } });
    ask(run, "Go.");
    await run.until("I am at it");
    process.kill(run.pid, "SIGUSR2");
    await expect(run.end).resolves.toEqual({ code: 1, signal: undefined });
    expect(readModes(run)).toEqual(RESTORED);
    expect(run.screen()).toContain("gyre: The screen is torn.");
  });

  it("of the terminal itself ends the program and what it runs", async () => {
    const stay = staying();
    const { child, end } = await openBare(
      [{ say: [stay] }],
      ["--mode", "full", "--sandbox", "none"],
    );
    child.write("Go.\r");
    await started(stay);
    if ("destroy" in child && typeof child.destroy === "function") child.destroy();
    // The terminal sends a second SIGHUP, which ends a process that is already exiting.
    expect([129, -1]).toContain(await end);
    expect(stay.isThere()).toBe(false);
  });

  it("by force leaves a session that goes on", async () => {
    const first = await open([{ say: "Hello there." }, HALTED]);
    ask(first.run, "One.");
    await first.run.until("Hello there.");
    ask(first.run, "Two.");
    await first.run.until("I am at it");
    first.run.kill("SIGKILL");
    await first.run.end;
    const { home, cwd } = first.run;
    const { run, service } = await open([{ say: "Resumed." }], {
      home,
      cwd,
      args: ["--continue"],
    });
    await run.until("Resumed.");
    expect(service.requests).toHaveLength(1);
    expect(run.screen()).toContain("Hello there.");
  });

  it("by force while it asks: asks the same again, and the call runs once", async () => {
    const command = "echo ran >> ran.txt";
    const env = { GYRE_SANDBOX: "none" };
    const first = await open([{ say: [{ call: "shell", arguments: { command } }] }], { env });
    ask(first.run, "Go.");
    await first.run.until("Allow shell?");
    first.run.kill("SIGKILL");
    await first.run.end;
    const { home, cwd } = first.run;
    const args = ["--continue"];
    const { run, service } = await open([{ say: "It is done." }], { home, cwd, args, env });
    await run.until("Allow shell?");
    expect(service.requests).toHaveLength(0);
    expect(existsSync(join(cwd, "ran.txt"))).toBe(false);
    await decide(run, "y", "It is done.");
    await run.until(isIdle);
    expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe("ran\n");
    run.kill("SIGKILL");
    await run.end;
    const last = await open([], { home, cwd, args });
    await last.run.until("It is done.");
    expect(last.service.requests).toHaveLength(0);
    expect(last.run.screen().join("\n")).not.toContain("Allow shell?");
  });

  it("by force while messages wait: they are sent when it goes on", async () => {
    const first = await open([HALTED]);
    ask(first.run, "Go.");
    await first.run.until("I am at it");
    ask(first.run, "And then?");
    await first.run.until("next: And then?");
    const { home, cwd } = first.run;
    const saved = (): string =>
      sessionFiles(home)
        .map((path) => readFileSync(path, "utf8"))
        .join();
    await expect.poll(saved, { timeout: DEADLINE_MS }).toContain(`"type":"queue"`);
    first.run.kill("SIGKILL");
    await first.run.end;
    const { run, service } = await open([{ say: "Both are done." }], {
      home,
      cwd,
      args: ["--continue"],
    });
    await run.until("Both are done.");
    expect(JSON.stringify(service.requests[0]?.body["messages"])).toContain("And then?");
    expect(service.requests).toHaveLength(1);
  });
});

describe("an interruption", () => {
  it("in a hurry, three times, brings what waited back once", async () => {
    const { run, service } = await open([HALTED]);
    ask(run, "Go.");
    await run.until("I am at it");
    ask(run, "And then?");
    await run.until("next: And then?");
    run.press("escape");
    await run.until(isIdle);
    // As a terminal sends it that distinguishes Esc from what follows.
    run.type("\x1b[27u\x1b[27u!");
    await run.until("› And then?!");
    expect(run.screen().join("\n")).not.toContain("This session");
    expect(service.requests).toHaveLength(1);
  });

  it("R22: while it counts down to the next attempt stops it", async () => {
    const { run, service } = await open([
      { status: 529, message: "busy", headers: { "retry-after": "30" } },
      { say: "Hello." },
    ]);
    ask(run, "Go.");
    await run.until("overloaded, trying again in 30 s (2 of 10), Esc stops");
    await run.until("overloaded, trying again in 29 s (2 of 10), Esc stops");
    run.press("escape");
    await run.until(isIdle);
    expect(run.screen()).toContain("interrupted");
    expect(service.requests).toHaveLength(1);
    ask(run, "/retry");
    await run.until((rows) => isIdle(rows) && rows.includes("Hello."));
    expect(service.requests[1]?.text).toBe(service.requests[0]?.text);
  });

  it("R22: by a failure is over: /retry asks again, and the prompt is not repeated", async () => {
    const { run, service } = await open([{ status: 400, message: "odd" }, { say: "Hello." }]);
    ask(run, "Go.");
    await run.until("odd");
    ask(run, "/retry");
    await run.until((rows) => isIdle(rows) && rows.includes("Hello."));
    expect(service.requests[1]?.text).toBe(service.requests[0]?.text);
    expect(run.screen().filter((row) => row === "› Go.")).toHaveLength(1);
    ask(run, "/retry");
    await run.until("There is nothing to ask again: the last answer is complete.");
    expect(service.requests).toHaveLength(2);
  });

  it("while a hook looks at a prompt brings the prompt back, and what waited", async () => {
    const home = await world.program.makeHome();
    const folder = join(home, "config", "gyre");
    mkdirSync(folder, { recursive: true });
    const hooks = { UserPromptSubmit: [{ command: "sleep 600" }] };
    writeFileSync(join(folder, "config.json"), JSON.stringify({ hooks }));
    const { run, service } = await open([], { home });
    ask(run, "Go.");
    await run.until("Esc interrupts");
    ask(run, "And then?");
    await run.until("next: And then?");
    run.press("escape");
    await run.until(isIdle);
    await run.until(/^› Go\.\n\n {2}And then\?$/m);
    expect(service.requests).toEqual([]);
  });

  it("of two calls that wait for an answer lets neither run", async () => {
    const calls = ["one", "two"].map((name) => ({
      call: "shell",
      arguments: { command: `touch ${name}` },
    }));
    const { run, service } = await open([{ say: calls }], {
      args: ["--mode", "ask"],
      env: { GYRE_EFFECTS: "false" },
    });
    ask(run, "Go.");
    await run.until("Allow shell?");
    run.press("ctrl+c");
    await run.until(isIdle);
    expect(existsSync(join(run.cwd, "one")) || existsSync(join(run.cwd, "two"))).toBe(false);
    expect(service.requests).toHaveLength(1);
  });

  it("by Ctrl-C leaves a panel, and not what goes on below it", async () => {
    const { run } = await open([HALTED]);
    ask(run, "Go.");
    await run.until("I am at it");
    ask(run, "/model");
    await run.until("Which model?");
    run.press("ctrl+c");
    await run.until((rows) => !rows.includes("Which model?"));
    expect(isIdle(run.screen())).toBe(false);
  });
});

it("sends what was queued when the answer was already there", async () => {
  const home = await world.program.makeHome();
  const folder = join(home, "config", "gyre");
  mkdirSync(folder, { recursive: true });
  const hooks = { Stop: [{ command: "until test -e go; do sleep 0.02; done" }] };
  writeFileSync(join(folder, "config.json"), JSON.stringify({ hooks }));
  const { run, service } = await open([{ say: "One." }, { say: "Two." }], { home });
  ask(run, "First.");
  await run.until("One.");
  ask(run, "Second.");
  await run.until("next: Second.");
  writeFileSync(join(run.cwd, "go"), "");
  await run.until((rows) => isIdle(rows) && rows.includes("Two."));
  expect(run.screen().filter((row) => row === "› Second.")).toHaveLength(1);
  expect(service.requests).toHaveLength(2);
});

describe("what is typed", () => {
  it("comes back to the editor where it cannot be taken", async () => {
    const { run } = await open([HALTED]);
    ask(run, "/nothing of that name");
    await run.until("There is no command");
    await run.until("› /nothing of that name");
    run.press("ctrl+c");
    ask(run, "Go.");
    await run.until("I am at it");
    ask(run, "!ls");
    await run.until("A command has to wait");
    await run.until("! ls");
    expect(isIdle(run.screen())).toBe(false);
  });

  it("is a prompt where it begins with a path", async () => {
    const { run, service } = await open([{ say: "One." }, { say: "Two." }]);
    ask(run, "/usr/bin/x is broken");
    await run.until("One.");
    await run.until(isIdle);
    ask(run, "/tmp is full");
    await run.until("Two.");
    expect(service.requests).toHaveLength(2);
  });

  it("is not held by a paste that has no end", async () => {
    const { run } = await open([]);
    run.type("\x1b[200~half of it");
    await run.until("› half of it");
    run.type(" and more");
    await run.until("and more");
    expect(run.screen()).toContain("› half of it and more");
  });

  it("is text alone: reports, answers and unknown keys are ignored", async () => {
    const { run } = await open([]);
    run.type(
      "\x1b[M !!\x1b[<0;10;10M\x1b[I\x1b[O\x1b[?997;1n\x1b[200;5;77z\x1b]11;rgb:0/0/0\x1b\\a",
    );
    run.type("\x1bP1+r\x1b\\\x1b[24;80Rb");
    await run.until("ab");
    expect(run.screen()).toContain("› ab");
  });
});

describe("a terminal", () => {
  it("that is resized a hundred times while it streams shows all in the end", async () => {
    const say = `${"The quick brown fox jumps over the lazy dog. ".repeat(30)}\n\nTHE END`;
    const { run } = await open([{ say, paceMs: 2 }]);
    ask(run, "Go.");
    await run.until("quick");
    let count = 0;
    const stop = run.watch(() => {
      if (count++ < 100) run.resize(30 + ((count * 37) % 90), 8 + ((count * 13) % 30));
    });
    await run.until((rows) => isIdle(rows) && rows.includes("THE END"));
    stop();
    run.resize(80, 20);
    run.type("typed");
    const rules = (rows: readonly string[]): string[] => rows.filter((row) => row.includes("───"));
    // A wide rule that the terminal has broken by itself is more than one row.
    await run.until((rows) => rows.includes("› typed") && rules(rows).join() === "─".repeat(80));
    expect(run.screen().filter((row) => row.includes("THE END"))).toHaveLength(1);
  });

  it.each([
    [20, 5],
    [2, 1],
  ])("of %i by %i does not stop it", async (columns, rows) => {
    const service = await scriptedService([{ say: "Hello." }]);
    cleanUps.push(() => service.close());
    const run = await openInTerminal(world.program, [], { service, columns, rows });
    cleanUps.push(() => {
      run.kill();
      return run.end;
    });
    await run.until((shown) => shown.join("") !== "");
    ask(run, "Hi.");
    await service.asked(0);
    run.resize(80, 20);
    await expect.poll(() => run.screen()).toEqual(expect.arrayContaining(["› Hi.", "Hello."]));
  });

  it("that never reports where its cursor is draws all the same", async () => {
    const { child, shows } = await openBare([], []);
    child.resize(100, 30);
    await shows("─".repeat(100));
    child.write("typed");
    await expect(shows("typed")).resolves.toBeUndefined();
  });

  it("that takes nothing does not keep Esc from what runs", async () => {
    const text = "Words that come in quickly. ".repeat(5_000);
    const stay = staying();
    const { child, service, shows } = await openBare(
      [{ say: [{ text }, stay], deltaChars: 400 }],
      ["--mode", "full", "--sandbox", "none"],
    );
    child.write("Go.\r");
    await service.asked(0);
    child.pause();
    await started(stay);
    child.write("\x1b");
    await expect.poll(stay.isThere).toBe(false);
    child.resume();
    await shows("aborted");
  });
});
