import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { runWithStubs } from "../../testing/bash-stubs.ts";
import { createLine, createRandom, STUB_NAMES } from "../../testing/command-lines.ts";
import { isHarmful } from "../../testing/harmful.ts";
import { Rules } from "../rules.ts";
import { parseCommandLine, type SimpleCommand, type Word } from "./parse.ts";
import { commandParts } from "./parts.ts";

/*
 * Lines at random, run by a real bash with stubs for programs, and compared with what is
 * found without running them. `GYRE_COMMANDS=1000000 GYRE_SEED=1` chooses how many and which.
 */

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

it(
  "finds all that bash runs and opens, in random lines",
  { tags: "long", timeout: 3_600_000 },
  async () => {
    const seed = pickSeed();
    const count = countCases(1_000, 50_000, "GYRE_COMMANDS");
    console.log(`${count} command lines with GYRE_SEED=${seed}`);
    const next = createRandom(seed);
    const total = { clear: 0, allowed: 0, runs: 0, files: 0 };
    for (let first = 0; first < count; first += BATCH_LINES) {
      const batch: Line[] = [];
      for (let serial = first; serial < Math.min(first + BATCH_LINES, count); serial++) {
        const text = createLine(next, serial);
        const { commands, unclear } = parseCommandLine(text);
        if (unclear === undefined) batch.push({ text, serial, commands });
      }
      const { runs, files } = await runWithStubs(
        batch.map(({ text }) => text),
        join(folder, "work"),
      );
      const allowed = new Set(batch.filter(({ text }) => isAllowed(text)));
      total.clear += batch.length;
      total.allowed += allowed.size;
      total.runs += runs.length;
      total.files += files.length;
      for (const { at, run } of runs) {
        const line = batch[at];
        if (!line) throw new Error(`There is no line ${at}.`);
        const what = `line ${line.serial} of GYRE_SEED=${seed}, ${JSON.stringify(line.text)}, runs ${JSON.stringify(run)}`;
        expect(
          line.commands.some(({ words }) => couldBe(run, words)),
          what,
        ).toBe(true);
        expect(allowed.has(line) && isHarmful(run), `${what}, which rules for its name allow`).toBe(
          false,
        );
      }
      const targets = batch.flatMap(({ commands }) => listTargets(commands));
      for (const file of files) {
        const isKnown = targets.some(({ text, literal, prefix }) =>
          literal ? file === text : file.startsWith(prefix),
        );
        expect(
          isKnown,
          `GYRE_SEED=${seed}, after line ${first}: ${JSON.stringify(file)} was written`,
        ).toBe(true);
      }
    }
    console.log(
      `${total.clear} were clear, and ran ${total.runs} commands; ${total.allowed} were allowed by rules; ${total.files} files`,
    );
  },
);

interface Line {
  text: string;
  serial: number;
  commands: readonly SimpleCommand[];
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

function listTargets(commands: readonly SimpleCommand[]): Word[] {
  return commands.flatMap(({ redirects }) =>
    redirects.flatMap(({ kind, target }) => (kind === "write" ? [target] : [])),
  );
}

/** Whether a command, up to the first word that is not known, is the one that was run. */
function couldBe(run: readonly string[], words: readonly Word[]): boolean {
  // What it runs is found out elsewhere: it may be a program.
  if (words[0]?.text === "time" && run[0] !== "time") {
    const program = words.findIndex(({ text }, index) => index > 0 && !/^\w+=|^-p$/.test(text));
    return program > 0 && couldBe(run, words.slice(program));
  }
  for (const [index, { text, literal, prefix }] of words.entries()) {
    const ran = run[index];
    if (!literal) return ran === undefined ? prefix === "" : ran.startsWith(prefix);
    if (ran !== text) return false;
  }
  return run.length === words.length;
}
