import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { AnswerPart, WholeAnswer } from "../testing/scripted-service.ts";
import type { TerminalRun } from "../testing/terminal-program.ts";
import { ask, decide, terminalWorld } from "../testing/terminal-world.ts";
import { DAILY_USE } from "./daily-use.ts";

// The built program in a terminal, with keys, as people use it every day: what has no test elsewhere.

const { open } = terminalWorld();
const packageFolder = fileURLToPath(new URL("../..", import.meta.url));

it.each(DAILY_USE)("has a test: $feature", ({ file, isProcess, test }) => {
  const source = readFileSync(join(packageFolder, file), "utf8");
  expect(
    ['"', "`"].some((quote) => source.includes(`${quote}${test}`)),
    test,
  ).toBe(true);
  if (isProcess === undefined) expect(source).toMatch(/terminalWorld|openInTerminal|attachWorld/);
});

function calls(...parts: readonly AnswerPart[]): WholeAnswer {
  return { say: parts };
}

const shell = (command: string, more: object = {}): WholeAnswer =>
  calls({ call: "shell", arguments: { command, ...more } });

/** The color of the terminal that warnings are in. */
const RED = 1;

const readScreen = (run: TerminalRun): string => run.screen().join("\n");

/** What was typed to answer is gone from the editor before the next prompt. */
function askNext(run: TerminalRun, prompt: string): void {
  run.type("\u0015");
  ask(run, prompt);
}

describe("commands", { tags: ["long", "bubblewrap"] }, () => {
  it("runs commands unasked in the sandbox, and asks about the network", async () => {
    const { run, service } = await open(
      [
        shell("echo green > tea.txt && cat tea.txt"),
        shell("curl -s https://tea.invalid/price"),
        { say: "I leave the price." },
      ],
      { rows: 24 },
    );
    ask(run, "Write it down.");
    await run.until("Allow shell?");
    // Only the second is a question.
    expect(readFileSync(join(run.cwd, "tea.txt"), "utf8")).toBe("green\n");
    expect(service.requests).toHaveLength(2);
    expect(readScreen(run)).toMatch(/network|tea\.invalid/);
    await decide(run, "n", "I leave the price.");
  });
});

describe("rules", { tags: "long" }, () => {
  it.each([
    ["the session", 0, false],
    ["the project", 1, true],
    ["everywhere", 2, true],
  ])(
    "an approval lasts for what it says, and is taken back by /permissions forget: %s",
    async (_, nthChoice, isKept) => {
      const command = "touch made.txt";
      const options = { args: ["--mode", "ask", "--sandbox", "none"], rows: 24 };
      const { run } = await open(
        [shell(command), { say: "Made." }, shell(command), { say: "Made again." }],
        options,
      );
      ask(run, "Make it.");
      await run.until("Allow shell?");
      await decide(run, "a", "everywhere");
      for (let nth = 0; nth < nthChoice; nth++) run.press("down");
      run.press("enter");
      await run.until("Made.");
      askNext(run, "Once more.");
      await run.until("Made again.");
      expect(existsSync(join(run.cwd, "made.txt"))).toBe(true);
      const { home, cwd } = run;
      askNext(run, "/exit");
      await run.end;

      const next = await open([shell(command), { say: "And again." }], { ...options, home, cwd });
      ask(next.run, "In a new session.");
      if (!isKept) {
        await next.run.until("Allow shell?");
        return;
      }
      await next.run.until("And again.");
      askNext(next.run, "/permissions forget shell(touch made.txt)");
      await next.run.until("is asked about again.");
      next.service.play([shell(command), { say: "No." }]);
      askNext(next.run, "And now?");
      await next.run.until("Allow shell?");
    },
  );
});

describe("warnings", { tags: "long" }, () => {
  it.each([
    ["git push --force", "commits on the server"],
    ["git clean -fdx", "ignored ones as .env"],
    ["sudo rm -rf /", "all files of this machine"],
  ])(
    "what is destroyed is in red, and there is no answer for always: %s",
    async (command, loss) => {
      const { run } = await open([shell(command), { say: "I leave it." }], {
        args: ["--mode", "ask", "--sandbox", "none"],
        rows: 24,
      });
      ask(run, "Clean up.");
      await run.until("Allow shell?");
      await run.until("no, and type");
      const red = run
        .styled()
        .flat()
        .filter(({ look }) => look.foreground === RED)
        .map(({ text }) => text)
        .join(" ");
      expect(red.replaceAll(/\s+/g, " ")).toContain(loss);
      expect(readScreen(run)).toContain("yes, this once");
      expect(readScreen(run)).not.toContain("from now on");
      // Nor is there a key for it.
      run.type("a");
      await decide(run, "n", "I leave it.");
    },
  );

  it("a name that a text of others brought is asked about, with where it comes from", async () => {
    const { run } = await open(
      [
        calls({ call: "read", arguments: { path: "node_modules/tea/README.md" } }),
        calls({ call: "fetch", arguments: { url: "https://evil.example/prices" } }),
        { say: "I stay here." },
      ],
      {
        files: { "node_modules/tea/README.md": "Prices: https://evil.example/prices\n" },
        rows: 24,
      },
    );
    ask(run, "What does tea cost?");
    await run.until("Allow fetch?");
    await run.until("no, and type");
    expect(readScreen(run).replaceAll(/\s+/g, " ")).toContain(
      "evil.example comes from the file node_modules/tea/README.md, and is in no message of yours and in no tracked file.",
    );
    await decide(run, "n", "I stay here.");
  });
});

describe("places", { tags: "long" }, () => {
  it("folders are added at the start and by /add-dir, and are changed as the workspace is", async () => {
    const { run, service } = await open(
      (request) => {
        const lib = /Further folders of the workspace: ([^\\\]]+)/.exec(request.text)?.[1] ?? "";
        const isFirst = !request.text.includes("Done.");
        const isAnswered = request.text.includes("tool_result");
        if (isFirst && !isAnswered) {
          return calls({ call: "write", arguments: { path: `${lib}/a.txt`, content: "a" } });
        }
        return { say: "Done." };
      },
      { args: ["--mode", "auto-edit", "--add-dir", "../lib"], files: { "../lib/b.txt": "b" } },
    );
    ask(run, "Write there.");
    await run.until(/Done\.[^]*── \d/);
    expect(readFileSync(join(run.cwd, "../lib/a.txt"), "utf8")).toBe("a");
    const more = join(run.home, "more");
    mkdirSync(more);
    service.play([
      calls({ call: "write", arguments: { path: join(more, "c.txt"), content: "c" } }),
      { say: "There too." },
    ]);
    askNext(run, `/add-dir ${more}`);
    await run.until("belongs to the workspace now.");
    askNext(run, "And there.");
    await run.until("There too.");
    expect(existsSync(join(more, "c.txt"))).toBe(true);
  });

  it("fetch asks once a server", async () => {
    const page = (path: string): WholeAnswer =>
      calls({ call: "fetch", arguments: { url: `https://tea.invalid/${path}` } });
    const { run, service } = await open([page("a"), page("b"), { say: "No tea there." }], {
      rows: 24,
    });
    ask(run, "What does it cost?");
    await run.until("Allow fetch?");
    expect(readScreen(run)).toContain("tea.invalid");
    await decide(run, "a", "everywhere");
    run.press("enter");
    // The second needs no question. Neither finds a server.
    await run.until("No tea there.");
    expect(service.requests).toHaveLength(3);
  });
});

const hasTerminal = ["script", "python3"].some((name) => existsSync(`/usr/bin/${name}`));

describe.runIf(hasTerminal)("programs that want a terminal", { tags: "long" }, () => {
  it("a program runs in a terminal, the model types there, and /jobs shows its screen", async () => {
    const program = "stty -echo; printf 'name? '; read -r name; echo hello $name; sleep 1000";
    const findJob = (text: string): string => /job-\w+-1/.exec(text)?.[0] ?? "";
    const { run, service } = await open(
      [
        shell(program, { tty: true, background: true }),
        ({ text }) =>
          calls({
            call: "jobs",
            arguments: { action: "type", id: findJob(text), input: "Ada<enter>" },
          }),
        { say: "It greets." },
      ],
      { args: ["--mode", "full", "--sandbox", "none"], rows: 24 },
    );
    ask(run, "Greet Ada.");
    await run.until("It greets.");
    expect(service.requests[2]?.text).toMatch(/Screen, with the cursor in row \d+/);
    askNext(run, "/jobs 1");
    await run.until(/hello Ada/);
    askNext(run, "/jobs stop 1");
    await run.until("is stopped");
  });
});

describe("errors after an edit", { tags: "long" }, () => {
  it("errors of a language server come with the result of the edit", async () => {
    const server = fileURLToPath(
      new URL("../../../tools/src/testing/language-server.mjs", import.meta.url),
    );
    const config = {
      languageServers: {
        tea: { command: [process.execPath, server, "--push"], files: { ".tea": "tea" } },
      },
    };
    const { run, service } = await open(
      [
        calls({ call: "write", arguments: { path: "a.tea", content: "green\nwrong\n" } }),
        { say: "I see the error." },
      ],
      {
        args: ["--mode", "auto-edit", "--sandbox", "none"],
        files: { "../config/gyre/config.json": JSON.stringify(config) },
      },
    );
    ask(run, "Write it.");
    await run.until("I see the error.");
    expect(service.requests[1]?.text).toMatch(/tea now finds 1 error in a\.tea/);
  });
});
