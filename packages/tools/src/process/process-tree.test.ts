import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newRunId, processInfo, ProcessTree, RUN_VARIABLE, runMark } from "@gyre/ai/programs";
import { type RunningProgram, runProgram, startProgram } from "./processes.ts";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";

const isLinux = process.platform === "linux";
const TREES = countCases(15, 100, "GYRE_TREES");
const AT_ONCE = 2;
/** One look may miss what is being born. */
const LOOKS = 5;
const SEED = pickSeed();
const LATEST_ABORT_MS = 60;

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-trees-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Processes that have `tag` in their arguments or their environment. */
function tagged(tag: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      if (!Number.isInteger(pid) || processInfo(pid)?.isZombie) return false;
      return ["cmdline", "environ"].some((file) => {
        try {
          return readFileSync(`/proc/${pid}/${file}`).includes(tag);
        } catch {
          return false;
        }
      });
    });
}

/** Numbers from 0 to below 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * A number of seconds that `sleep` takes and that is in no other command line. Not
 * many: what is left by a tree that was not ended is to end by itself.
 */
const newTag = (): string => `60.${randomBytes(6).readUIntBE(0, 6)}5`;

/** What programs do that are not to be got rid of. TAG stands for the time of a sleep. */
const SHAPES = [
  "sleep TAG",
  "(sleep TAG & sleep TAG & wait) & wait",
  "setsid sleep TAG & sleep TAG",
  "setsid -f bash -c 'sleep TAG & wait'",
  "setsid -f setsid -f bash -c 'trap \"\" TERM HUP; sleep TAG; sleep TAG; sleep TAG'",
  "( ( sleep TAG & ) & )",
  "( setsid bash -c 'trap \"\" TERM; sleep TAG & disown; sleep TAG' & )",
  "nohup sleep TAG & ",
  "nohup setsid -f sleep TAG >/dev/null 2>&1 </dev/null",
  "trap '' TERM; sleep TAG; sleep TAG; sleep TAG",
  "trap '' TERM INT HUP; setsid sleep TAG & sleep TAG; sleep TAG; sleep TAG",
  // Starts again when it is asked to end.
  "trap 'setsid -f sleep TAG' TERM; sleep TAG & wait; sleep TAG",
  // Without the mark: known by its parent.
  'env -i PATH="$PATH" sleep TAG & wait',
  // No process of it stays for long.
  "hop() { sleep 0.01; [ $1 = 0 ] || hop $(($1 - 1)) & }; hop 200",
  "kill -STOP $BASHPID; sleep TAG",
  "yes TAG",
  "exec -a renamed sleep TAG",
] as const;
const ENDINGS = ["wait", "exit 0", "exit 3", "sleep TAG", "trap '' TERM; sleep TAG; sleep TAG"];

function treeScript(random: () => number, tag: string): string {
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  const parts = Array.from(
    { length: 1 + Math.floor(random() * 3) },
    () => `{ ${pick(SHAPES)}\n} &`,
  );
  return [...parts, pick(ENDINGS)].join("\n").replaceAll("TAG", tag);
}

function bash(script: string, more: Record<string, string> = {}) {
  return {
    argv: ["bash", "-c", script],
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", ...more },
  };
}

/** Starts it, and answers once it has written its first piece. */
function started(script: string): Promise<Omit<RunningProgram, "stop"> & { stop: () => void }> {
  const controller = new AbortController();
  return new Promise((resolve, reject) => {
    const running = startProgram(bash(script), {
      spoolFolder: folder,
      signal: controller.signal,
      onOutput: () => {
        void running.then((run) => resolve({ ...run, stop: () => controller.abort() }));
      },
    });
    running.catch(reject);
  });
}

describe.runIf(isLinux)("process trees that are aborted", () => {
  it(
    `leave nothing, whatever they do (${TREES} trees, GYRE_SEED=${SEED})`,
    { tags: "long", timeout: 120_000 + TREES * 1_000 },
    async () => {
      const random = randomFrom(SEED);
      const battery = newTag();
      let made = 0;
      let aborted = 0;
      const unended: string[] = [];
      const runOne = async (): Promise<void> => {
        const tag = `${battery}${made++}`;
        const script = treeScript(random, tag);
        const abortAfter = random() * LATEST_ABORT_MS;
        const controller = new AbortController();
        const timer = setTimeout(() => controller.abort(), abortAfter);
        const end = await runProgram(bash(script, { TAG: tag }), {
          spoolFolder: folder,
          signal: controller.signal,
        });
        clearTimeout(timer);
        if (end.aborted) aborted++;
        if (end.left) unended.push(`${end.left.join(" ")}: ${script}`);
      };
      // Those that end by themselves before their time are not counted.
      const worker = async (): Promise<void> => {
        while (aborted < TREES) await runOne();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));

      expect(unended).toEqual([]);
      for (let look = 0; look < LOOKS; look++) expect(tagged(battery)).toEqual([]);
      // No note is left either.
      expect((await readdir(folder)).filter((name) => name.startsWith("running-"))).toEqual([]);
    },
  );

  it.each(SHAPES)("leave nothing at their own end: %s", async (shape) => {
    const tag = newTag();
    // Those that hold the pipe are looked at once they are there.
    const script = `{ ${shape.replaceAll("TAG", tag)}\n} & sleep 0.05; exit 4`;
    const end = await runProgram(bash(script, { TAG: tag }), { spoolFolder: folder });
    expect(tagged(tag)).toEqual([]);
    expect(end).toMatchObject({ exitCode: 4, aborted: false });
  });
});

describe.runIf(isLinux)("ProcessTree", () => {
  it("spares the program beside it", async () => {
    const [one, other] = await Promise.all([
      started("echo; sleep 1000"),
      started("setsid sleep 1000 & echo; wait"),
    ]);
    one.stop();
    await one.ended;
    expect(processInfo(other.pid)).toBeDefined();
    other.stop();
    expect(await other.ended).toMatchObject({ aborted: true });
  });

  it("finds what left its session and its parents by the mark alone, and by no other mark", async () => {
    const [ours, others] = [newTag(), newTag()];
    const { stop, ended, pid } = await started(
      `setsid -f sleep ${ours}; setsid -f env ${RUN_VARIABLE}=${newRunId()} sleep ${others}; echo; wait; sleep 60`,
    );
    const sleeping = (tag: string): number[] =>
      tagged(tag).filter((pid) => readFileSync(`/proc/${pid}/comm`, "utf8") === "sleep\n");
    await expect
      .poll(() => [sleeping(ours).length, sleeping(others).length], {
        interval: 5,
      })
      .toEqual([1, 1]);
    const id = /GYRE_RUN=(?:\w+,)*(\w{32})\0/.exec(
      readFileSync(`/proc/${pid}/environ`, "latin1"),
    )?.[1];
    const found = new ProcessTree({ id: id ?? "", isWatched: false }).find();
    const left = sleeping(others);
    expect(found).toContain(sleeping(ours)[0]);
    expect(found).not.toContain(left[0]);
    stop();
    await ended;
    expect(tagged(ours)).toEqual([]);
    // It took another mark, another session and another parent: of another run, for all we know.
    expect(sleeping(others)).toEqual(left);
    for (const pid of left) process.kill(pid, "SIGKILL");
  });

  it("does not take a session for its own whose number it had once", () => {
    const tree = new ProcessTree({ id: newRunId(), pid: process.pid, start: 1, isWatched: false });
    expect(tree.find()).toEqual([]);
  });

  it("adds its mark to the one that we have ourselves", () => {
    const before = process.env[RUN_VARIABLE];
    delete process.env[RUN_VARIABLE];
    expect(runMark("a")).toBe("a");
    process.env[RUN_VARIABLE] = "a";
    expect(runMark("b")).toBe("a,b");
    if (before === undefined) delete process.env[RUN_VARIABLE];
    else process.env[RUN_VARIABLE] = before;
  });

  it("reads a process with any name", async () => {
    const { pid, stop, ended } = await started(
      "printf 'a) R 1 (b' > /proc/$$/comm; echo; sleep 1000",
    );
    expect(processInfo(pid)).toMatchObject({ pid, parent: process.pid, group: pid, session: pid });
    stop();
    await ended;
    expect(processInfo(pid)).toBeUndefined();
  });
});

describe("in a sandbox with PIDs of its own", { tags: "bubblewrap" }, () => {
  it("nothing is left even of what has dropped mark, session and parents", async () => {
    const tag = newTag();
    const program = bash(
      `setsid -f env -i /bin/sh -c 'trap "" TERM; while :; do /bin/sleep ${tag}; done'; echo; sleep 0.05`,
    );
    const argv = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"];
    argv.push("--unshare-pid", "--die-with-parent", ...program.argv);
    const end = await runProgram({ ...program, argv }, { spoolFolder: folder });
    expect(end.exitCode).toBe(0);
    expect(tagged(tag)).toEqual([]);
  });
});
