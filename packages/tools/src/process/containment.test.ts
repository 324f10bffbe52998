import { readFileSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ProgramSpec } from "../sandbox/sandbox.ts";
import {
  type Containment,
  containProcesses,
  describeContainment,
  findContainment,
  tryContainments,
} from "./containment.ts";
import { type ProgramEnd, runProgram } from "./processes.ts";

const isLinux = process.platform === "linux";
let folder: string;
let found: Containment;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-containment-"));
  found = await findContainment();
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function bash(script: string): ProgramSpec {
  const path = process.env["PATH"] ?? "/usr/bin:/bin";
  return { argv: ["/bin/bash", "-c", script], cwd: folder, env: { PATH: path } };
}

const run = (script: string, how = found): Promise<ProgramEnd> =>
  runProgram(containProcesses(bash(script), script, how), { spoolFolder: folder });

/** The same without a namespace. */
const swept = (): Containment => ({
  kind: "sweep",
  ...(found.prlimit !== undefined && { prlimit: found.prlimit }),
});

describe.runIf(isLinux)("a command that is contained", () => {
  it.each(["as found", "by sweeps"])("keeps exit code, streams and folder, %s", async (how) => {
    const end = await run("pwd; echo err >&2; exit 7", how === "as found" ? found : swept());
    expect(end).toMatchObject({ exitCode: 7, signal: null });
    expect(end.stdout.head).toBe(`${folder}\n`);
    expect(end.stderr.head).toBe("err\n");
  });

  it("ends by a signal as 128 and its number, and says no more than without", async () => {
    const signal = async (how: Containment): Promise<[number | null, string | null, string]> => {
      // Spelled so that it is not taken for a command that acts on others.
      const { exitCode, signal, stderr } = await run("builtin ki'll' -SEGV $$", how);
      return [exitCode, signal, stderr.head];
    };
    expect(await signal(swept())).toEqual([null, "SIGSEGV", ""]);
    if (found.kind === "namespace") expect(await signal(found)).toEqual([139, null, ""]);
  });

  it("has job control, pipes and traps", async () => {
    const end = await run(
      "set -m; trap 'echo trapped' USR1; sleep 60 & jobs -p | wc -l; builtin ki'll' -USR1 $$; builtin ki'll' %1; wait %1; echo $?; echo a | cat",
    );
    expect(end.stdout.head).toBe("1\ntrapped\n143\na\n");
    expect(end.exitCode).toBe(0);
  });

  it.each([
    "ps ax",
    "kill 12",
    "sleep 1; pkill -f vite",
    "lsof -ti:3000 | xargs kill",
    "(fuser -k 3000/tcp)",
    "cat /proc/1/stat",
    "/bin/ps",
    "mount -t tmpfs x /mnt",
  ])("runs among all processes if it acts on others: %s", (command) => {
    const how: Containment = { kind: "namespace", unshare: "/usr/bin/unshare" };
    expect(containProcesses(bash(command), command, how).argv[0]).toBe("/bin/bash");
  });

  it.each(["npm test", "ls ps.txt", "echo top-down", "./kill-port.sh", "make processes"])(
    "has PIDs of its own otherwise: %s",
    (command) => {
      const how: Containment = { kind: "namespace", unshare: "/usr/bin/unshare" };
      expect(containProcesses(bash(command), command, how).argv[0]).toBe("/usr/bin/unshare");
    },
  );

  it("sees the host's processes with ps, and those of others stay", async () => {
    const { stdout } = await run("ps -o pid= -p 1,$PPID; sleep 0");
    expect(stdout.head.trim().split(/\s+/)).toContain(String(process.pid));
  });

  it("leaves the mounts of the host as they are", async () => {
    const mounts = (): string[] =>
      readFileSync("/proc/self/mountinfo", "utf8")
        .split("\n")
        .filter((line) => line.includes(" /proc "));
    const before = mounts();
    await run("true");
    expect(mounts()).toEqual(before);
  });
});

describe.runIf(isLinux)("which containment is in use", () => {
  it("sweeps where there is neither unshare nor prlimit", async () => {
    const none = await tryContainments(folder);
    expect(none).toEqual({ kind: "sweep" });
    expect(describeContainment(none)).toContain("found by their environment, and end");
    const end = await run("setsid -f sleep 60; exit 3", none);
    expect(end).toMatchObject({ exitCode: 3 });
  });

  it("sweeps where unshare fails, as in most containers", async () => {
    for (const name of ["unshare", "prlimit"]) {
      const path = join(folder, name);
      await writeFile(path, `#!/bin/sh\necho '${name}: Operation not permitted' >&2; exit 1\n`);
      await chmod(path, 0o755);
    }
    expect(await tryContainments(folder)).toEqual({ kind: "sweep" });
  });

  it("sweeps where unshare starts the program and confines nothing", async () => {
    const path = join(folder, "unshare");
    await writeFile(path, `#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n`);
    await chmod(path, 0o755);
    expect((await tryContainments(folder)).kind).toBe("sweep");
  });

  it.runIf(process.geteuid?.() === 0)("is found by what this machine can do", () => {
    expect(describeContainment({ kind: "namespace", unshare: "/usr/bin/unshare" })).toBe(
      "the PID namespace of a command ends with it",
    );
    expect(describeContainment({ kind: "sweep", prlimit: "/usr/bin/prlimit" })).toBe(
      "processes of a command are found by their environment and a limit, and end with it",
    );
  });
});
