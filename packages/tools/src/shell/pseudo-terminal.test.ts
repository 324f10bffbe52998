import { spawnSync } from "node:child_process";
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
} from "node:fs";
import { mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { toResult } from "@gyre/agent";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isGuarded } from "../contract/access.ts";
import { modelText } from "../testing/model-text.ts";
import { openToolset, type Toolset } from "../toolset.ts";
import type { ShellDetails } from "./tool.ts";

let folder: string;
let tools: Toolset;

beforeEach(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "gyre-terminal-")));
  await mkdir(join(folder, "work"));
});
afterEach(async () => {
  await tools.close();
  await rm(folder, { recursive: true, force: true });
});

async function open(sandbox: "none" | "auto", path?: string): Promise<void> {
  tools = await openToolset({
    root: join(folder, "work"),
    tools: ["shell", "jobs"],
    stateFolder: join(folder, "state"),
    sandbox,
    ...(path !== undefined && { environment: { PATH: path } }),
  });
}

async function call(
  name: "shell" | "jobs",
  args: Record<string, unknown>,
  options: { signal?: AbortSignal; update?: (text: string) => void } = {},
): Promise<{ text: string; details: unknown }> {
  const { signal = new AbortController().signal, update = () => {} } = options;
  const result = await tools.registry.get(name).execute(args, {
    id: "1",
    signal,
    update: (partial) => update(modelText(toResult(name, partial))),
    messages: [],
    host: { call: () => Promise.reject(new Error("not here")) },
  });
  const whole = toResult(name, result);
  return { text: modelText(whole), details: whole.details };
}

async function shell(command: string, more: Record<string, unknown> = {}): Promise<string> {
  return (await call("shell", { command, tty: true, ...more })).text;
}

async function startJob(command: string): Promise<string> {
  const { details } = await call("shell", { command, tty: true, background: true });
  return (details as { id: string }).id;
}

/** Reads the screen of a job until it shows something. */
async function readUntil(id: string, wanted: string | RegExp): Promise<string> {
  for (;;) {
    const { text } = await call("jobs", { action: "read", id, waitMs: 60_000 });
    if (text.match(wanted)) return text;
    if (tools.jobs.info(id).end) throw new Error(`It ended without ${String(wanted)}: ${text}`);
  }
}

function findProgram(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return ["/usr/bin", ...folders]
    .map((each) => join(each, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Processes, dead ones aside, that have this among their arguments. */
function findProcesses(argument: string): string[] {
  if (!existsSync("/proc/self/cmdline")) {
    const { stdout } = spawnSync("ps", ["-axo", "args"], { encoding: "utf8" });
    return stdout.split("\n").filter((line) => line.includes(argument));
  }
  return readdirSync("/proc").filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(argument);
    } catch {
      // No process, or one that is gone.
      return false;
    }
  });
}

/** A folder of links to the programs that a terminal is made with, and no others. */
async function makePath(...names: readonly string[]): Promise<string> {
  const bin = join(folder, "bin");
  await mkdir(bin);
  for (const name of ["bash", "sh", "stty", "seq", "sleep", "cat", "tty", ...names]) {
    const path = findProgram(name);
    if (path !== undefined) await symlink(realpathSync(path), join(bin, name));
  }
  return bin;
}

const MAKERS = ["script", "python3"].filter((name) => {
  // The python3 of a version manager may be a script, which finds nothing in a PATH of links.
  const isThere = process.platform !== "win32" && existsSync(`/usr/bin/${name}`);
  if (!isThere) console.log(`There is no /usr/bin/${name} here: no terminal is made with it.`);
  return isThere;
});

describe.each(MAKERS)("a terminal by %s", (maker) => {
  beforeEach(async () => open("none", await makePath(maker)));

  it("is what a command has for all of its streams, with a size and a name", async () => {
    const text = await shell('[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size; echo "$TERM"; exit 3');
    expect(text).toMatch(/^Exit code 3\.\n[^]*\n40 120\nxterm-256color\n/);
  });

  it("gives all that a command writes, drawn as text", async () => {
    const command = String.raw`seq 20000; printf '10%%\r\033[32mdone\033[0m\033[K\n'`;
    const { text, details } = await call("shell", { command, tty: true });
    // eslint-disable-next-line no-control-regex -- what it must not have
    expect(text).not.toMatch(/[\x00-\x08\x0b-\x1f]/);
    expect(text).toMatch(/\n19999\n20000\ndone\n/);
    const path = /all of it is in (\S+):/.exec(text)?.[1] ?? "";
    const all = (await readFile(path, "utf8")).split("\n");
    expect(all).toEqual([...Array.from({ length: 20_000 }, (_, nth) => `${nth + 1}`), "done", ""]);
    expect((details as ShellDetails).lines).toBe(20_001);
  });

  it("keeps words of the command as they are", async () => {
    expect(await shell(`cat <<'END'\nit's "$HOME" \\n %s\nEND`)).toContain(
      `\nit's "$HOME" \\n %s\n`,
    );
  });

  it("is that of a job that the model can type in, with keys", async () => {
    const id = await startJob(
      "stty -echo; echo ready; while read -r line; do echo got $line; done",
    );
    await readUntil(id, "ready");
    expect((await call("jobs", { action: "type", id, input: "green<enter>" })).text).toMatch(
      /Screen, with the cursor in row 3, column 1:\n[^\n]*\nready\ngot green\n/,
    );
    const { text } = await call("jobs", { action: "type", id, input: "<ctrl+c>", waitMs: 60_000 });
    expect(text).toMatch(/: (?:Exit code 130\.|Ended by SIGINT)/);
    await expect(call("jobs", { action: "type", id, input: "x" })).rejects.toThrow("has ended");
  });

  it("ends with all that was started in it, on a stop, an abort and a timeout", async () => {
    // A number by which the processes are found, whatever their PIDs are to themselves.
    const mark = `${process.pid}${Date.now()}`;
    const stubborn = `trap '' TERM HUP INT; sleep ${mark} & echo begun; sleep ${mark}; sleep ${mark}`;
    const id = await startJob(stubborn);
    await readUntil(id, "begun");
    expect(findProcesses(mark)).not.toEqual([]);
    expect((await call("jobs", { action: "stop", id })).text).toContain("Ended by us");
    expect(findProcesses(mark)).toEqual([]);

    const stop = new AbortController();
    const update = (text: string): void => {
      if (text.includes("begun")) stop.abort();
    };
    const args = { command: stubborn, tty: true };
    const aborted = await call("shell", args, { signal: stop.signal, update });
    expect(aborted.text).toContain("Ended by us: it was aborted.");
    expect(findProcesses(mark)).toEqual([]);

    const late = await shell(stubborn, { timeoutMs: 2_000 });
    expect(late).not.toContain("stderr");
    expect(late).toMatch(/^Ended by us after [\d.]+ s: its time was over\./);
    expect(findProcesses(mark)).toEqual([]);
  });
});

describe.runIf(process.platform !== "win32")("a terminal that cannot be made", () => {
  it("is one clear line for the model", async () => {
    await open("none", await makePath());
    await expect(shell("true")).rejects.toThrow(
      "No terminal can be made here: that takes script (util-linux) or python3. Run it without tty.",
    );
  });
});

describe.runIf(MAKERS.length > 0)("typing in a job", () => {
  beforeEach(() => open("none"));

  it("waits for what follows, and shows the keys that programs asked for", async () => {
    // Application keys, then each character as a number.
    const program = String.raw`printf '\033[?1hready\n'; stty raw -echo; od -An -c -N3; stty sane`;
    const id = await startJob(program);
    await readUntil(id, "ready");
    const { text } = await call("jobs", { action: "type", id, input: "<up>", waitMs: 60_000 });
    expect(text).toContain("033   O   A");
  });

  it("is an error for a job without a terminal, for nothing, and for too much", async () => {
    const { details } = await call("shell", { command: "sleep 1000", background: true });
    const { id } = details as { id: string };
    const type = (input: string): Promise<unknown> => call("jobs", { action: "type", id, input });
    await expect(type("x")).rejects.toThrow("does not run in a terminal. Start it with tty");
    await expect(type("")).rejects.toThrow("There is nothing to type");
    await expect(type("x".repeat(4_001))).rejects.toThrow("At most 4000 characters");
  });

  it("is a command to permissions, with all of its line; to interrupt is not", async () => {
    const id = await startJob("cat");
    const jobs = tools.registry.get("jobs");
    const access = (args: Record<string, unknown>): unknown => isGuarded(jobs) && jobs.access(args);
    const args = { action: "type", id, input: "git pu" };
    expect(access(args)).toEqual({
      kind: "run",
      targets: ["git pu"],
      summary: `Type git pu in ${id}: cat`,
    });
    await call("jobs", args);
    expect(access({ ...args, input: "sh<enter>" })).toMatchObject({ targets: ["git push\n"] });
    await call("jobs", { ...args, input: "sh<enter>" });
    expect(access({ ...args, input: "y" })).toMatchObject({ targets: ["y"] });
    expect(access({ ...args, input: "<ctrl+c>" })).toMatchObject({ kind: "none" });
  });
});

describe.runIf(MAKERS.length > 0)("a terminal in the sandbox", { tags: "bubblewrap" }, () => {
  beforeEach(() => open("auto"));

  it("is one of the sandbox, which holds for what runs in it", async () => {
    const text = await shell("tty; touch inside /etc/outside; echo $?; exit 5");
    expect(text).toMatch(/^Exit code 5\./);
    expect(text).toContain("/dev/pts/0");
    expect(text).toMatch(/\/etc\/outside.*Read-only file system/);
    expect(existsSync(join(folder, "work/inside"))).toBe(true);
  });

  it("is that of a job, which is ended with all that it started", async () => {
    const id = await startJob("cat; sleep 1000");
    const { text } = await call("jobs", { action: "type", id, input: "tea\n" });
    expect(text).toMatch(/\ntea\ntea\n/);
    await call("jobs", { action: "stop", id });
    expect(tools.jobs.info(id).end?.aborted).toBe(true);
    expect(tools.jobs.info(id).end?.left).toBeUndefined();
  });
});
