import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { countCases } from "../../../../tests/support/cases.ts";
import { createSandbox, type ProgramSpec } from "../sandbox/sandbox.ts";
import { containProcesses, findContainment } from "./containment.ts";
import { runProgram } from "./processes.ts";

/*
 * How long it takes from an abort to the answer, with two processes beside it that never rest:
 * `GYRE_TREE_TIMES=300 npx vitest run packages/tools/src/process/tree-times.test.ts`.
 */

const TREES = countCases(12, 60, "GYRE_TREE_TIMES");
/** Stated, for a machine with nothing else to do. A run of few trees finds those that never end. */
const MAX_P95_MS = TREES >= 100 ? 250 : 20_000;
const ABORT_AFTER_MS = 80;

/** Of those that end when they are asked to and those that do not, about as many. */
const SHAPES = [
  "sleep 60",
  "(sleep 60 & sleep 60 & wait) & wait",
  "setsid sleep 60 & sleep 60",
  "setsid -f bash -c 'trap \"\" TERM HUP; sleep 60; sleep 60'; sleep 60",
  "trap '' TERM; sleep 60; sleep 60",
  "env -i setsid -f sleep 60; sleep 60",
  "kill -STOP $BASHPID",
  "hop() { sleep 0.01; [ $1 = 0 ] || hop $(($1 - 1)) & }; hop 200; sleep 60",
  "trap 'setsid -f sleep 60' TERM; sleep 60 & wait; sleep 60",
  "yes",
  "for n in 1 2 3 4 5 6 7 8; do setsid sleep 60 & done; wait",
];

let folder: string;
let busy: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-times-"));
});
afterEach(async () => {
  for (const each of busy) each.kill("SIGKILL");
  busy = [];
  await rm(folder, { recursive: true, force: true });
});

/** Two at once, as an agent runs them. */
async function measure(confine: (program: ProgramSpec) => ProgramSpec): Promise<number[]> {
  const times: number[] = [];
  let started = 0;
  const worker = async (): Promise<void> => {
    while (started < TREES) {
      const took = await abortOne(confine, SHAPES[started++ % SHAPES.length] ?? "");
      if (took !== undefined) times.push(took);
    }
  };
  await Promise.all([worker(), worker()]);
  return times.sort((a, b) => a - b);
}

/** Nothing for one that ended by itself. */
async function abortOne(
  confine: (program: ProgramSpec) => ProgramSpec,
  script: string,
): Promise<number | undefined> {
  const controller = new AbortController();
  const program = {
    argv: ["/bin/bash", "-c", script],
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
  };
  let abortedAt = 0;
  const timer = setTimeout(() => {
    abortedAt = performance.now();
    controller.abort();
  }, ABORT_AFTER_MS);
  const end = await runProgram(confine(program), {
    spoolFolder: folder,
    signal: controller.signal,
  });
  clearTimeout(timer);
  expect(end.left).toBeUndefined();
  return end.aborted ? performance.now() - abortedAt : undefined;
}

function share(sorted: readonly number[], part: number): number {
  return Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0);
}

describe.runIf(process.platform === "linux")(`from an abort to the answer (${TREES} trees)`, () => {
  const policy = { writable: ["/tmp"], readOnly: [], hidden: [], network: false };
  it.each(["sweep", "namespace", "bubblewrap"] as const)(
    "%s, beside two busy loops",
    { tags: ["long"], timeout: 60_000 + TREES * 2_000 },
    async (kind) => {
      const found = await findContainment();
      const { prlimit } = found;
      const sandbox = kind === "bubblewrap" ? await createSandbox({ kind: "any" }) : undefined;
      if (kind !== "sweep" && (sandbox?.kind ?? found.kind) !== kind) return;
      const confine = (program: ProgramSpec): ProgramSpec =>
        sandbox?.wrap(program, policy) ??
        containProcesses(
          program,
          "",
          kind === "sweep" ? { kind, ...(prlimit && { prlimit }) } : found,
        );
      const idle = await measure(confine);
      busy = [1, 2].map(() => spawn("/bin/sh", ["-c", "while :; do :; done"], { stdio: "ignore" }));
      const loaded = await measure(confine);
      const figures = [idle, loaded].map(
        (times) => `p50 ${share(times, 0.5)} ms, p95 ${share(times, 0.95)} ms`,
      );
      console.log(`${kind}: idle ${figures[0]}; beside two busy loops ${figures[1]}`);
      expect(share(loaded, 0.95)).toBeLessThan(MAX_P95_MS);
    },
  );
});
