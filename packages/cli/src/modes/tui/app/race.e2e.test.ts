import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Answer, ServiceRequest } from "../../../testing/scripted-service.ts";
import { openInTerminal, type TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, decide, terminalWorld } from "../../../testing/terminal-world.ts";

// /race in the built program, in a real terminal, with real git.

const world = terminalWorld();

/** A repository with a commit, and a file that is not committed. */
async function makeShop(): Promise<{ home: string; cwd: string }> {
  const home = await world.program.makeHome();
  const cwd = join(home, "shop");
  mkdirSync(cwd, { recursive: true });
  git(cwd, "init", "-q", "-b", "main");
  writeFileSync(join(cwd, "tea.txt"), "green\n");
  git(cwd, "add", ".");
  git(cwd, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "Tea");
  writeFileSync(join(cwd, "note.txt"), "mine\n");
  return { home, cwd };
}

function git(cwd: string, ...args: string[]): string {
  return execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

/** Which of the rivals has sent it, by the folder that it works in. */
function findRival({ text }: ServiceRequest): number {
  const [, number = "0"] = [...text.matchAll(/Folder: \S+\/races\/\w+\/(\d)\/shop/g)].at(-1) ?? [];
  return Number(number);
}

const shell = (command: string): Answer => ({ say: [{ call: "shell", arguments: { command } }] });

function screen(run: TerminalRun): string {
  return run.screen().join("\n");
}

/** It shows this, and has done all that it was asked to. */
function idle(run: TerminalRun, shown: string): Promise<void> {
  return run.until((rows) => {
    const all = rows.join("\n");
    return all.includes(shown) && !/Esc (?:interrupts|stops)/.test(all);
  });
}

describe("/race", { tags: "long" }, () => {
  it(
    "shows rivals with other models live, tests them, and adopts one",
    { tags: "bubblewrap" },
    async () => {
      const { home, cwd } = await makeShop();
      let release = (): void => {};
      const held = new Promise<void>((settle) => (release = settle));
      const { run, service } = await world.open(
        async (request) => {
          const rival = findRival(request);
          const isResult = request.text.includes("(made)");
          if (rival === 1)
            return isResult
              ? { say: "One is done." }
              : shell("echo white > tea.txt; echo '(made)'");
          if (rival === 2 && !isResult)
            return shell("cat note.txt tea.txt > cup.txt; echo '(made)'");
          await held;
          return { say: "Two is done." };
        },
        { home, cwd, rows: 36, columns: 100, args: ["--mode", "full"] },
      );
      ask(run, "/race 2 --test 'test -e cup.txt' sonnet opus -- Make tea");
      await run.until(/1 Claude Sonnet.* · done · tests fail · \$/);
      await run.until(/2 Claude Opus.* · working/);
      expect(screen(run)).toMatch(/⠋|⠙|⠸|⠴|⠦|⠇/);
      release();
      await run.until("Look at which one?");
      const models = new Set(service.requests.map(({ body }) => String(body["model"])));
      expect([...models].sort()).toEqual([
        expect.stringContaining("opus"),
        expect.stringContaining("sonnet"),
      ]);
      expect(screen(run)).toMatch(/1 Claude Sonnet.*tests fail, 1 file \+1 -1/);
      expect(screen(run)).toMatch(/2 Claude Opus.*tests pass, 1 file \+2 -0/);
      run.press("down");
      run.press("enter");
      await run.until("cup.txt, new");
      await run.until("Adopt 2 Claude Opus");
      run.press("enter");
      await idle(run, "The others are branches of /tree");
      expect(readFileSync(join(cwd, "cup.txt"), "utf8")).toBe("mine\ngreen\n");
      expect(readFileSync(join(cwd, "tea.txt"), "utf8")).toBe("green\n");
      expect(git(cwd, "worktree", "list").trim().split("\n")).toHaveLength(1);
      expect(readdirSync(join(home, "state/gyre/races"))).toEqual([]);
      // The conversation is the one of the rival that was adopted, in the folder itself.
      service.play([{ say: "Welcome." }]);
      ask(run, "Thanks");
      await idle(run, "Welcome.");
      const last = JSON.stringify(service.requests.at(-1)?.body["messages"]);
      expect(last).toContain("Two is done.");
      expect(last).not.toContain("One is done.");
      expect(last).toContain(`Folder: ${cwd}\\nGit`);
      // The other one is in the tree, and its files come along.
      ask(run, "/tree");
      await run.until("[race 1 Claude Sonnet");
      run.press("home");
      run.press("down");
      run.press("down");
      await run.until(/› .*One is done\./);
      run.press("enter");
      await run.until("Files are not as they were at this place");
      expect(screen(run)).toContain("- cup.txt is removed  +0 -2");
      run.press("enter");
      await idle(run, "2 files brought to this place");
      expect(readFileSync(join(cwd, "tea.txt"), "utf8")).toBe("white\n");
      expect(existsSync(join(cwd, "cup.txt"))).toBe(false);
      expect(service.problems).toEqual([]);
    },
  );

  it("says which rival asks, and Esc stops all of them", async () => {
    const { home, cwd } = await makeShop();
    const { run } = await world.open(
      (request) => (findRival(request) === 0 ? { say: "?" } : shell("touch cup.txt")),
      { home, cwd, rows: 36, args: ["--mode", "ask"], env: { GYRE_SANDBOX: "none" } },
    );
    ask(run, "/race 2 Make a cup");
    await run.until(/rival [12] \(.+\) asks/);
    expect(screen(run)).toContain("touch cup.txt");
    run.press("escape");
    await run.until("Look at which one?");
    expect(screen(run)).toMatch(/1 .*stopped/);
    expect(screen(run)).toMatch(/2 .*stopped/);
    run.press("escape");
    await run.until(/None is adopted|None has begun/);
    expect(existsSync(join(cwd, "cup.txt"))).toBe(false);
    expect(git(cwd, "worktree", "list").trim().split("\n")).toHaveLength(1);
  });

  it("has commands of rivals in the sandbox of their copy", { tags: "bubblewrap" }, async () => {
    const { home, cwd } = await makeShop();
    const outside = join(cwd, "outside.txt");
    const { run, service } = await world.open(
      (request) =>
        request.text.includes("(made)")
          ? { say: "It is made." }
          : shell(
              `echo a > ${outside}; ls -A .. ; git status --short; echo b > cup.txt; echo "(ma""de)"`,
            ),
      { home, cwd, rows: 36, columns: 100 },
    );
    ask(run, "/race 1 --test 'test -e cup.txt' Make a cup");
    await run.until(/rival 1 \(.+\) asks/);
    expect(screen(run)).toContain("is outside of the workspace.");
    await decide(run, "y", "Look at which one?");
    expect(screen(run)).toMatch(/1 .*tests pass, 1 file \+1 -0/);
    expect(existsSync(outside)).toBe(false);
    const result = service.requests.at(-1)?.text ?? "";
    expect(result).toContain("Read-only file system");
    expect(result).toContain("?? note.txt");
    run.press("enter");
    await run.until("Adopt 1");
    run.press("enter");
    await idle(run, "1 file changed; /rewind undoes that.");
    expect(readFileSync(join(cwd, "cup.txt"), "utf8")).toBe("b\n");
  });

  it("is found after kill -9, and can be finished", { tags: "bubblewrap" }, async () => {
    const { home, cwd } = await makeShop();
    const { run, service } = await world.open(
      (request) => {
        if (request.text.includes("Begin")) {
          if (findRival(request) === 0) return { say: "Begun." };
        }
        if (request.text.includes("(made)")) return new Promise(() => {});
        return shell("echo white > tea.txt; echo '(made)'");
      },
      { home, cwd, rows: 30, args: ["--mode", "full"] },
    );
    ask(run, "Begin");
    await idle(run, "Begun.");
    ask(run, "/race 2 Make tea");
    const isWaiting = (): boolean =>
      service.requests.filter(({ text }) => text.includes("(made)")).length === 2;
    await expect.poll(isWaiting, { interval: 20 }).toBe(true);
    run.kill("SIGKILL");
    await run.end;
    expect(git(cwd, "worktree", "list").trim().split("\n")).toHaveLength(3);
    const doctor = await world.program.gyre(["doctor"], { home, cwd });
    expect(doctor.stdout).toMatch(/warning +races +a race in .* was cut off/);
    const place = { home, cwd, service, rows: 30 };
    const next = await openInTerminal(world.program, ["--continue", "--mode", "full"], place);
    world.cleanUps.push(() => {
      next.kill();
      return next.end;
    });
    await next.until("A race was cut off: “Make tea”. /race compares");
    ask(next, "/race");
    await next.until("compare what they did so far");
    next.press("enter");
    await next.until("Look at which one?");
    next.press("enter");
    await next.until("Adopt 1");
    next.press("enter");
    await next.until(/Rival 1.* is adopted/);
    expect(readFileSync(join(cwd, "tea.txt"), "utf8")).toBe("white\n");
    expect(git(cwd, "worktree", "list").trim().split("\n")).toHaveLength(1);
  });
});
