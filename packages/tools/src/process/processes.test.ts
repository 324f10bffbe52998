import { getEventListeners } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { manualClock } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HEAD_BYTES, processInfo, TAIL_BYTES } from "@gyre/ai/programs";
import { type RunOptions, runProgram, startProgram } from "./processes.ts";
import type { ProgramSpec } from "../sandbox/sandbox.ts";

const isPosix = process.platform !== "win32";
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-processes-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const PATH = process.env["PATH"] ?? "/usr/bin:/bin";
const program = (...argv: string[]): ProgramSpec => ({ argv, cwd: folder, env: { PATH } });
const sh = (script: string): ProgramSpec => program("sh", "-c", script);
const run = (spec: ProgramSpec, more: Partial<RunOptions> = {}): ReturnType<typeof runProgram> =>
  runProgram(spec, { spoolFolder: folder, ...more });

/** Longer than pipes of a program that has exited may be quiet. */
const HANG_MS = 300;

function hang(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function hangUntilDead(pid: number): void {
  while (processInfo(pid)?.isZombie === false) hang(1);
}

describe.runIf(isPosix)("running a program", () => {
  it("gives exit code, output and time", async () => {
    const end = await run(sh("echo out; echo err >&2; exit 3"));
    expect(end).toMatchObject({ exitCode: 3, signal: null, timedOut: false, aborted: false });
    expect(end.stdout).toEqual({ head: "out\n", tail: "", bytes: 4, lines: 1 });
    expect(end.stderr.head).toBe("err\n");
    expect(end.durationMs).toBeGreaterThanOrEqual(0);
  });

  it("starts it without a shell", async () => {
    const end = await run(program("echo", "$HOME", "*; exit 1"));
    expect(end.stdout.head).toBe("$HOME *; exit 1\n");
  });

  it("gives it the environment that is passed and no other, but for the mark", async () => {
    const end = await run({ ...program("env"), env: { PATH, COLOR: "blue" } });
    const names = end.stdout.head.match(/^\w+(?==)/gmu);
    expect(names?.sort()).toEqual(["COLOR", "GYRE_RUN", "PATH"]);
  });

  it("closes its input at once, or after what is given", async () => {
    expect((await run(program("cat"))).stdout.head).toBe("");
    expect((await run(program("cat"), { input: "héllo" })).stdout.head).toBe("héllo");
  });

  it("does not mind a program that does not read its input", async () => {
    const end = await run(program("true"), { input: "x".repeat(1_000_000) });
    expect(end.exitCode).toBe(0);
  });

  it("reports the signal that ended it", async () => {
    expect(await run(sh("kill -SEGV $$"))).toMatchObject({ exitCode: null, signal: "SIGSEGV" });
  });

  it("says why it cannot be started, and leaves no note", async () => {
    await expect(run(program("no-such-program-here"))).rejects.toThrow(
      "Cannot start no-such-program-here: there is no such program on the PATH.",
    );
    const lost = join(folder, "gone");
    await expect(run({ ...program("true"), cwd: lost })).rejects.toThrow(
      `Cannot start true: its working folder ${lost} is not there.`,
    );
    await expect(run(program("true", "nul\0"))).rejects.toThrow("Cannot start true: ");
    await expect(run(program("true", "x".repeat(8_000_000)))).rejects.toThrow("too long");
    await expect(run(program())).rejects.toThrow("argv is empty");
    expect(await readdir(folder)).toEqual([]);
  });

  it("notes what runs, and takes the note back", async () => {
    const stop = new AbortController();
    const options = { spoolFolder: folder, signal: stop.signal };
    const running = await startProgram(program("sleep", "60"), options);
    const names = await readdir(folder);
    stop.abort();
    await running.ended;
    expect(await readdir(folder)).toEqual([]);
    expect(names.length).toBe(process.platform === "linux" ? 1 : 0);
  });
});

describe.runIf(isPosix)("ending a program", () => {
  it("ends it after its time, and says so", async () => {
    const clock = manualClock();
    const ended = run(sh("echo started; sleep 1000"), {
      clock,
      timeoutMs: 5_000,
      onOutput: () => void clock.advance(5_000),
    });
    expect(await ended).toMatchObject({
      exitCode: null,
      timedOut: true,
      aborted: false,
      durationMs: 5_000,
      stdout: { head: "started\n" },
    });
  });

  it("ends it on abort, and says so", async () => {
    const stop = new AbortController();
    const end = await run(sh("echo started; sleep 1000"), {
      signal: stop.signal,
      onOutput: () => stop.abort(),
    });
    expect(end).toMatchObject({ aborted: true, timedOut: false, stdout: { head: "started\n" } });
  });

  it("lets it clean up when it is asked to end", async () => {
    const stop = new AbortController();
    const end = await run(sh("trap 'echo cleaned; exit 7' TERM; echo started; sleep 1000 & wait"), {
      signal: stop.signal,
      onOutput: () => stop.abort(),
    });
    expect(end).toMatchObject({ aborted: true, exitCode: 7 });
    expect(end.stdout.head).toBe("started\ncleaned\n");
  });

  it("starts nothing where it was aborted before", async () => {
    const end = await run(sh(`touch ${folder}/ran`), { signal: AbortSignal.abort() });
    expect(end).toMatchObject({ aborted: true, exitCode: null });
    expect(await readdir(folder)).toEqual([]);
  });

  it("leaves no listener on the signal", async () => {
    const { signal } = new AbortController();
    await run(program("true"), { signal });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("ends it where the output's listener throws, and reports the error", async () => {
    const broken = new Error("broken");
    const ended = run(sh("echo x; sleep 1000"), {
      onOutput: () => {
        throw broken;
      },
    });
    await expect(ended).rejects.toBe(broken);
  });

  // The grandchild never releases it.
  it("answers when the program exits, not when a grandchild lets go of the pipe", async () => {
    const end = await run(sh("(trap '' TERM; while :; do sleep 1; done) & echo done"));
    expect(end).toMatchObject({ exitCode: 0, stdout: { head: "done\n" } });
  });
});

describe.runIf(isPosix)("output", () => {
  it("is streamed as it comes, in order", async () => {
    // After each line the program waits for us to have seen it.
    const steps = ["1", "2 >&2", "3", "4 >&2"];
    const script = steps.map((step, n) => `echo ${step}; until [ -e seen${n} ]; do :; done`);
    const pieces: string[] = [];
    await run(sh(script.join("\n")), {
      onOutput: (piece, stream) => {
        writeFileSync(join(folder, `seen${pieces.length}`), "");
        pieces.push(`${stream} ${piece.trim()}`);
      },
    });
    expect(pieces).toEqual(["stdout 1", "stderr 2", "stdout 3", "stderr 4"]);
  });

  it.runIf(process.platform === "linux")(
    "is read where the exit is noticed before it, and the event loop hangs then",
    async () => {
      // The kernel reports the exit of the first; before it is handled the second exits as well, so
      // that both exits are handled before the output of the second is looked at.
      const script = "until [ -e go ]; do sleep 0.01; done; printf second";
      const second = await startProgram(sh(script), { spoolFolder: folder });
      const first = await startProgram(program("printf", "first"), {
        spoolFolder: folder,
        onOutput: () => {
          writeFileSync(join(folder, "go"), "");
          hangUntilDead(second.pid);
          setImmediate(() => hang(HANG_MS));
        },
      });
      hangUntilDead(first.pid);
      expect((await first.ended).stdout.head).toBe("first");
      expect((await second.ended).stdout.head).toBe("second");
    },
  );

  it("is decoded across pieces", async () => {
    const pieces: string[] = [];
    const script = String.raw`
      printf '\360\237'; until [ -e go ]; do :; done; printf '\230\200 caf\303'; exit 0`;
    const ended = run(sh(script), { onOutput: (piece) => pieces.push(piece) });
    writeFileSync(join(folder, "go"), "");
    const end = await ended;
    expect(pieces.join("")).toBe("😀 caf�");
    expect(end.stdout).toMatchObject({ head: "😀 caf�", bytes: 9, lines: 1 });
  });

  it("may be anything at all", async () => {
    const end = await run(program("head", "-c", "20000", "/dev/urandom"));
    expect(end.stdout.bytes).toBe(20_000);
    expect(end.stdout.head).not.toMatch(/\p{Surrogate}/u);
  });

  it("goes to a file of our own once it is too long for memory", async () => {
    const end = await run(program("seq", "100000"));
    const { head, tail, bytes, lines, path = "" } = end.stdout;
    const all = await readFile(path, "utf8");
    expect(all.length).toBe(bytes);
    expect(all.startsWith(head)).toBe(true);
    expect(all.endsWith(tail)).toBe(true);
    expect([head.length, tail.length]).toEqual([HEAD_BYTES, TAIL_BYTES]);
    expect(lines).toBe(100_000);
    expect(all.slice(-7)).toBe("100000\n");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("may be one long line", async () => {
    const end = await run(sh("head -c 1048576 /dev/zero | tr '\\0' x"));
    expect(end.stdout).toMatchObject({ bytes: 1_048_576, lines: 1 });
  });

  it("goes on where there is no room for it on disk", async () => {
    const spoolFolder = join(folder, "spool");
    await mkdir(spoolFolder);
    const script = "echo first; until [ -e go ]; do :; done; seq 100000; echo last";
    const end = await run(sh(script), {
      spoolFolder,
      onOutput: (piece) => {
        if (!piece.startsWith("first")) return;
        rmSync(spoolFolder, { recursive: true });
        writeFileSync(join(folder, "go"), "");
      },
    });
    expect(end.exitCode).toBe(0);
    expect(end.stdout.tail.endsWith("100000\nlast\n")).toBe(true);
    expect(end.stdout.path).toBeUndefined();
    expect(end.stdout.lost).toContain("ENOENT");
  });
});
