import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import {
  countProcesses,
  MAX_PROCESSES,
  runWithStubs,
  type StubRun,
  type StubShell,
} from "../../testing/bash-stubs.ts";
import {
  createLine,
  createRandom,
  mayFlood,
  mayReachOutside,
  STUB_NAMES,
} from "../../testing/command-lines.ts";
import { isHarmful } from "../../testing/harmful.ts";
import { Rules } from "../rules.ts";
import { parseCommandLine, type SimpleCommand, type Word } from "./parse.ts";
import { type CommandPart, commandParts } from "./parts.ts";
import { describePosixDoubt } from "./posix.ts";

/*
 * Lines at random, run by a real shell with stubs for programs, and compared with what is
 * found without running them. `GYRE_COMMANDS=1000000 GYRE_SEED=1` chooses how many and which.
 */

/** Enough to see what is wrong. */
const MAX_MISSED = 20;
/** Processes of bash at a time. */
const SLOTS = 2;
/** In one process of bash. */
const BATCH_LINES = 500;

/** Every program of the stubs, by name alone: what an argument adds is to be asked about. */
const RULES = new Rules({
  allow: STUB_NAMES.flatMap((name) => [`shell(${name} *)`, `shell(${name})`]),
});

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-commands-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const SHELLS: readonly StubShell[] = ["bash", "dash"];
const isThere = (shell: StubShell): boolean => {
  const found = spawnSync(shell, ["-c", "exit 0"]).status === 0;
  if (!found) console.log(`There is no ${shell} here: nothing is compared with it.`);
  return found;
};

it.for(SHELLS.filter(isThere))(
  "finds all that %s runs and opens, in random lines",
  { tags: "long", timeout: 3_600_000 },
  async (shell) => {
    const seed = pickSeed();
    const count = countCases(1_000, 50_000, "GYRE_COMMANDS");
    console.log(`${count} command lines for ${shell} with GYRE_SEED=${seed}`);
    const next = createRandom(seed);
    const total = { clear: 0, allowed: 0, runs: 0, files: 0 };
    const missed: string[] = [];
    const check = async (batch: readonly Line[], slot: number): Promise<void> => {
      const lines = batch.map(({ text }) => text);
      const { runs, files } = await runWithStubs(lines, join(folder, `work${slot}`), shell);
      const allowed = new Set(batch.filter(({ text }) => isAllowed(text)));
      total.clear += batch.length;
      total.allowed += allowed.size;
      total.runs += runs.length;
      total.files += files.length;
      missed.push(...findMissedRuns(batch, allowed, runs), ...findMissedFiles(batch, files));
    };
    for (let serial = 0; serial < count && missed.length < MAX_MISSED;) {
      const batches: Line[][] = [];
      while (batches.length < SLOTS) {
        const batch: Line[] = [];
        for (const end = Math.min(serial + BATCH_LINES, count); serial < end; serial++) {
          const text = createLine(next, serial);
          const { commands, unclear } = parseCommandLine(text);
          const isAsked = shell === "dash" && describePosixDoubt(text) !== undefined;
          const isRun = !mayFlood(text) && !mayReachOutside(text);
          if (unclear === undefined && !isAsked && isRun) batch.push({ text, serial, commands });
        }
        batches.push(batch);
      }
      await Promise.all(batches.map(check));
    }
    console.log(JSON.stringify(total));
    expect(missed, `with GYRE_SEED=${seed}`).toEqual([]);
  },
);

/** What it starts waits, for a writer that never comes. */
const FLOOD = `for x in ${"x ".repeat(MAX_PROCESSES + 1)}; do read x <../pipe & done`;

it.each([
  ["while ca; do cb & done", true],
  ["for ((;;)); do coproc ca; done", true],
  ["until ca >&2 && cb; do ch; done", false],
  ["for x in a b; do ca & done", false],
])("knows whether %j may start processes without end", (line, expected) => {
  expect(mayFlood(line)).toBe(expected);
});

it.each([
  ["ca </dev/null 2>/dev/null; cb >~/a", false],
  ["ca >/dev/nul", true],
  ["ca >/dev/null1", true],
  ["ca >{a,/dev/null}b", true],
  ["ca >/a", true],
])("knows whether %j may write elsewhere", (line, expected) => {
  expect(mayReachOutside(line)).toBe(expected);
});

it.for(SHELLS.filter(isThere))("ends lines that flood %s, and leaves no process", async (shell) => {
  const work = join(folder, "flood");
  const pipe = spawnSync("mkfifo", ["-m", "600", join(folder, "pipe")]);
  if (pipe.error) throw pipe.error;
  await expect(runWithStubs([FLOOD, FLOOD], work, shell)).rejects.toThrow(
    /has \d+ processes, and was/,
  );
  await vi.waitFor(() => expect(countProcesses(work)).toBe(0));
  // What is left in the background of a line ends as well.
  const left = await runWithStubs(["(read x <../pipe &)", "ca"], work, shell);
  expect(left.runs).toEqual([{ at: 1, run: ["ca"] }]);
  await vi.waitFor(() => expect(countProcesses(work)).toBe(0));
  // The others go on behind a line that waits forever.
  const stuck = await runWithStubs(["ca", "cb; read x <../pipe", "ch"], work, shell, 2_000);
  expect(stuck.runs).toEqual(["ca", "cb", "ch"].map((name, at) => ({ at, run: [name] })));
  await vi.waitFor(() => expect(countProcesses(work)).toBe(0));
});

interface Line {
  text: string;
  serial: number;
  commands: readonly SimpleCommand[];
}

/** Commands that were not found, or that rules for their names allow to do something else. */
function findMissedRuns(
  batch: readonly Line[],
  allowed: ReadonlySet<Line>,
  runs: readonly StubRun[],
): string[] {
  return runs.flatMap(({ at, run }) => {
    const line = batch[at];
    if (!line) throw new Error(`There is no line ${at}.`);
    const what = `line ${line.serial}, ${JSON.stringify(line.text)}, runs ${JSON.stringify(run)}`;
    const isFound = line.commands.some(({ words }) => couldBe(run, words));
    if (!isFound && !isUnwrapped(run, line.text)) return [what];
    return allowed.has(line) && isHarmful(run) ? [`${what}, which rules allow`] : [];
  });
}

/** Whether a command is found in the arguments of another one, or may be there. */
function isUnwrapped(run: readonly string[], text: string): boolean {
  const { parts, unclear } = commandParts(text);
  const words = run.join(" ");
  return (
    unclear !== undefined ||
    parts.some(
      ({ plain, known }) =>
        plain.includes(words) || known?.some((start) => `${words} `.startsWith(start)),
    )
  );
}

/** Files that came to be though no line opens them, as far as is known. */
function findMissedFiles(batch: readonly Line[], files: readonly string[]): string[] {
  const lines = batch.map(({ text, serial }) => ({ text, serial, ...commandParts(text) }));
  const targets = lines.flatMap(({ parts }) => listTargets(parts));
  const unclear = lines.filter((line) => line.unclear !== undefined);
  const serials = new Set(unclear.map(({ serial }) => `o${serial}`));
  return files
    .filter(
      (file) =>
        !serials.has(/^o\d*/.exec(file)?.[0] ?? "") &&
        // A disturbance may have cut the number in the name short.
        !unclear.some(({ text }) => text.includes(file)) &&
        !targets.some(({ text, literal, prefix }) =>
          literal ? file === text : file.startsWith(prefix),
        ),
    )
    .map((file) => `${JSON.stringify(file)} is written behind line ${batch[0]?.serial}`);
}

function isAllowed(text: string): boolean {
  const subject = {
    tool: "shell",
    kind: "run",
    targets: [text],
    asked: [],
    commands: [commandParts(text)],
  } as const;
  return RULES.permission(subject) !== undefined;
}

function listTargets(parts: readonly CommandPart[]): Word[] {
  return parts.flatMap(({ redirects }) =>
    redirects.flatMap(({ kind, target }) => (kind === "write" ? [target] : [])),
  );
}

/** Whether a command, up to the first word that is not known, is the one that was run. */
function couldBe(run: readonly string[], words: readonly Word[]): boolean {
  // What it runs is found out elsewhere: it may be a program.
  if (words[0]?.text === "time") {
    const program = words.findIndex(
      ({ text }, index) => index > 0 && !/^[A-Za-z_]\w*\+?=|^(?:-p|--)$/.test(text),
    );
    if (program > 0 && couldBe(run, words.slice(program))) return true;
  }
  for (const [index, { text, literal, prefix }] of words.entries()) {
    const ran = run[index];
    if (!literal) return ran === undefined ? prefix === "" : ran.startsWith(prefix);
    if (ran !== text) return false;
  }
  return run.length === words.length;
}
