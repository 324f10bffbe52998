import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { someCases } from "../../../../tests/support/cases.ts";
import { createSandbox, type ProgramSpec } from "../sandbox/sandbox.ts";
import { containCommand, containProcesses, findContainment } from "./containment.ts";
import { processInfo } from "@gyre/ai/programs";
import { runProgram } from "./processes.ts";

/*
 * Trees that do what programs do to outlive the one that started them: each is to end with its
 * command, with a sandbox, with a namespace of PIDs and with neither.
 */

/** Looks for survivors: one may be about to start another. */
const LOOKS = 3;
const ABORT_AFTER_MS = 120;

const perl = (script: string): string => `perl -e '${script}'`;
const SLEEP = 'exec "sleep", "TAG"';

/** TAG stands for the time of a sleep, which is how a survivor is found. */
const NASTY: Readonly<Record<string, string>> = {
  "a new session": "setsid -f sleep TAG",
  nohup: "nohup sleep TAG >/dev/null 2>&1 &",
  "a new session without streams": "nohup setsid -f sleep TAG </dev/null >/dev/null 2>&1",
  "a child that bash disowns": "sleep TAG & disown -a",
  "a grandchild": "( ( sleep TAG & ) & )",
  "a coprocess": "coproc sleep TAG",
  "a process substitution": "cat < <(setsid sleep TAG) >/dev/null &",
  "a terminal of its own": 'script -qfc "sleep TAG" /dev/null >/dev/null 2>&1 &',
  "no environment, new session": "env -i setsid -f sleep TAG",
  "no environment, two new sessions": "env -i setsid -f env -i setsid -f sleep TAG",
  "another mark": "env GYRE_RUN=0123 setsid -f sleep TAG",
  "no mark": "env -u GYRE_RUN setsid -f sleep TAG",
  "no environment, deaf": `env -i setsid -f bash -c 'trap "" TERM HUP INT; while :; do sleep TAG; done'`,
  "no environment, another name": "env -i setsid -f bash -c 'exec -a \"[kworker/0:1]\" sleep TAG'",
  "a daemon by two forks": perl(
    `use POSIX; exit if fork; POSIX::setsid(); exit if fork; chdir "/"; POSIX::close($_) for 0..255; %ENV = (PATH => $ENV{PATH}); ${SLEEP}`,
  ),
  "a daemon that overwrites its environment": perl(
    `use POSIX; exit if fork; POSIX::setsid(); exit if fork; %ENV = (); exec { "/bin/sleep" } "sleep", "TAG"`,
  ),
  "a group of its own": perl(`exit if fork; setpgrp(0, 0); ${SLEEP}`),
  deaf: "trap '' TERM INT HUP; setsid sleep TAG & sleep TAG; sleep TAG",
  stopped: "setsid -f bash -c 'kill -STOP $BASHPID; sleep TAG'",
  "stopped, no environment": "env -i setsid -f bash -c 'kill -STOP $BASHPID; sleep TAG'",
  "starts again when it is ended": "trap 'env -i setsid -f sleep TAG' TERM EXIT; sleep TAG & wait",
  "never the same process":
    "hop() { [ $1 = 0 ] || { sleep 0.005; hop $(($1 - 1)); } & }; hop 100; env -i setsid -f bash -c 'for n in {1..40}; do setsid -f sleep 0.01; sleep 0.01; done; sleep TAG'",
  "many forks":
    "fork() { [ $1 = 0 ] && exec sleep TAG; fork $(($1 - 1)) & fork $(($1 - 1)) & wait; }; fork 5",
  "many forks, no environment":
    "env -i setsid -f bash -c 'fork() { [ $1 = 0 ] && exec sleep TAG; fork $(($1 - 1)) & fork $(($1 - 1)) & wait; }; fork 4'",
  "two that guard each other":
    "env -i setsid -f bash -c 'guard() { trap \"\" TERM; while :; do sleep TAG; done; }; guard & guard & wait'",
  "a namespace of its own":
    "env -i setsid -f unshare --pid --fork sleep TAG || env -i setsid -f sleep TAG",
};

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-nasty-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** What is left ends by itself after a minute. */
const newTag = (): string => `60.${randomBytes(6).readUIntBE(0, 6)}5`;

function survivors(tag: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      if (!Number.isInteger(pid) || processInfo(pid)?.isZombie) return false;
      try {
        return readFileSync(`/proc/${pid}/cmdline`).includes(tag);
      } catch {
        // It has gone.
        return false;
      }
    });
}

function bash(script: string): ProgramSpec {
  const path = process.env["PATH"] ?? "/usr/bin:/bin";
  return { argv: ["bash", "-c", script], cwd: folder, env: { PATH: path } };
}

type Confine = (program: ProgramSpec) => Promise<ProgramSpec>;

async function expectNothingLeft(shape: string, confine: Confine): Promise<void> {
  const tag = newTag();
  const script = shape.replaceAll("TAG", tag);
  const ended = await runProgram(await confine(bash(`{ ${script}\n} & sleep 0.06; exit 4`)), {
    spoolFolder: folder,
  });
  for (let look = 0; look < LOOKS; look++) expect(survivors(tag)).toEqual([]);
  expect(ended).toMatchObject({ exitCode: 4, aborted: false });

  const aborted = await runProgram(await confine(bash(`{ ${script}\n} & sleep 30`)), {
    spoolFolder: folder,
    signal: AbortSignal.timeout(ABORT_AFTER_MS),
  });
  for (let look = 0; look < LOOKS; look++) expect(survivors(tag)).toEqual([]);
  expect(aborted).toMatchObject({ aborted: true });
  expect(aborted.left).toBeUndefined();
}

const { kind, prlimit } = await findContainment();

describe.runIf(prlimit !== undefined)(
  "by sweeps alone, nothing is left of",
  { tags: "long" },
  () => {
    it.each(someCases(6, Object.entries(NASTY)))("%s", (_name, shape) =>
      expectNothingLeft(shape, async (program) =>
        containProcesses(program, "", { kind: "sweep", ...(prlimit && { prlimit }) }),
      ),
    );
  },
);

describe.runIf(kind === "namespace")(
  "in a PID namespace, nothing is left of",
  { tags: "long" },
  () => {
    it.each(someCases(6, Object.entries(NASTY)))("%s", (_name, shape) =>
      expectNothingLeft(shape, (program) => containCommand(program, "")),
    );
  },
);

describe("in the sandbox, nothing is left of", { tags: "bubblewrap" }, () => {
  it.each(Object.entries(NASTY))("%s", (_name, shape) =>
    expectNothingLeft(shape, async (program) =>
      (await createSandbox()).wrap(program, {
        writable: [folder],
        readOnly: [],
        hidden: [],
        network: false,
      }),
    ),
  );
});
