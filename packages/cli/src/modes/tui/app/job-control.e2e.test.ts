import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildEnvironment } from "../../../testing/program.ts";
import { type Script, scriptedService } from "../../../testing/scripted-service.ts";
import { openCommand, type TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";

// The built program as a job of a real shell, in a real terminal.

const world = terminalWorld();
const DEADLINE_MS = 60_000;

function ps(format: string, ...more: readonly string[]): string {
  return execFileSync("ps", ["-o", `${format}=`, ...more], { encoding: "utf8" }).trim();
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

interface Job {
  shell: TerminalRun;
  pid: number;
  service: Awaited<ReturnType<typeof scriptedService>>;
  /** Settles when the shell has noticed that the program has stopped. */
  stop(signal: NodeJS.Signals): Promise<void>;
  /** What the terminal does with what is typed, by the names of stty. */
  modes(): string[];
}

/** Starts the program from a shell with job control. */
async function startJob(script: Script): Promise<Job> {
  const service = await scriptedService(script);
  world.cleanUps.push(() => service.close());
  const home = await world.program.makeHome();
  const cwd = join(home, "work");
  for (const folder of [cwd, join(home, "tmp")]) mkdirSync(folder);
  const shell = openCommand(["bash", "--noprofile", "--norc", "-i"], {
    cwd,
    env: { ...buildEnvironment(home, service), PS1: "shell> " },
  });
  world.cleanUps.push(() => {
    shell.kill("SIGHUP");
    shell.kill();
    return shell.end;
  });
  await shell.until("shell>");
  shell.type(`'${process.execPath}' '${world.program.entry}'\r`);
  await shell.until("Ask for something.");
  const pid = Number(ps("pid", "--ppid", String(shell.pid)));
  const tty = `/dev/${ps("tty", "-p", String(pid))}`;
  world.cleanUps.push(async () => {
    if (isRunning(pid)) process.kill(pid, "SIGKILL");
  });
  return {
    shell,
    pid,
    service,
    async stop(signal) {
      process.kill(pid, signal);
      await expect.poll(() => ps("state", "-p", String(pid)), { timeout: DEADLINE_MS }).toBe("T");
      await shell.until("Stopped");
    },
    modes: () => execFileSync("stty", ["-a", "-F", tty], { encoding: "utf8" }).split(/[\s;]+/),
  };
}

const hasPs = (() => {
  try {
    return ps("pid", "-p", String(process.pid)) !== "";
  } catch {
    return false;
  }
})();

describe.runIf(hasPs)("a program that was stopped, and is continued with fg,", () => {
  it.each(["SIGSTOP", "SIGTSTP"] as const)(
    "%s: draws the screen again and reads keys as before",
    async (signal) => {
      const job = await startJob([{ say: "Hello there." }, { say: "Still here." }]);
      const { shell } = job;
      ask(shell, "Hi.");
      await shell.until("Hello there.");
      shell.type("half a line");
      await shell.until("› half a line");
      await job.stop(signal);
      shell.type("clear\r");
      await shell.until((rows) => rows.filter((row) => row !== "").join() === "shell>");
      shell.type("fg\r");
      await shell.until((rows) => rows.includes("Hello there.") && rows.includes("› half a line"));
      expect(job.modes()).toEqual(expect.arrayContaining(["-icanon", "-echo", "-isig"]));
      shell.type(", and the rest");
      await shell.until("› half a line, and the rest");
      shell.press("enter");
      await shell.until("Still here.");
      expect(job.service.requests).toHaveLength(2);
    },
  );

  it("Ctrl+Z: stops it, and the screen is drawn again", async () => {
    const { pid, service, shell } = await startJob([{ say: "Hello there." }]);
    shell.type("Hi");
    await shell.until("› Hi");
    shell.press("ctrl+z");
    await expect.poll(() => ps("state", "-p", String(pid)), { timeout: DEADLINE_MS }).toBe("T");
    await shell.until("Stopped");
    shell.type("clear\r");
    await shell.until((rows) => rows.filter((row) => row !== "").join() === "shell>");
    shell.type("fg\r");
    await shell.until((rows) => rows.includes("› Hi"));
    shell.type("!");
    await shell.until("› Hi!");
    shell.press("enter");
    await shell.until("Hello there.");
    expect(service.requests).toHaveLength(1);
  });

  it("SIGTSTP: gives the keys of the terminal back to the shell meanwhile", async () => {
    const job = await startJob([]);
    await job.stop("SIGTSTP");
    const text = job.shell.bytes.toString("latin1");
    expect(text.lastIndexOf("\x1b[<u")).toBeGreaterThan(text.lastIndexOf("\x1b[>1u"));
    job.shell.type("fg\r");
    await job.shell.until("Ask for something.");
    await expect
      .poll(() => job.shell.bytes.toString("latin1").lastIndexOf("\x1b[>1u"))
      .toBeGreaterThan(text.length);
  });
});

it("Ctrl+Z stops nothing where no shell could continue it", async () => {
  const { run } = await world.open([{ say: "Hello there." }]);
  run.press("ctrl+z");
  await run.until("There is no shell to go to.");
  ask(run, "Hi.");
  await run.until("Hello there.");
  expect(run.screen().join("\n")).not.toContain("There is no shell");
});
