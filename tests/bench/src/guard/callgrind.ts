import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The function of libc at which callgrind starts a new count. Node itself never calls it. */
const MARK = "getpriority";
/** A run that hangs ends then. On a busy machine one takes minutes. */
const DEADLINE_MS = 600_000;

/**
 * With these Node executes the same instructions each time: one thread, fixed seeds, no
 * optimizing compiler (it would still be at work while a row is counted), and so much room that
 * no garbage collection falls into one count and not into another.
 */
const REPEATABLE = [
  "--single-threaded",
  "--predictable",
  "--random-seed=1",
  "--hash-seed=1",
  "--no-opt",
  "--min-semi-space-size=256",
  "--max-semi-space-size=256",
] as const;

export interface CountOptions {
  cwd?: string;
  /**
   * All that there is of the environment: where it names certificates, for one, Node reads
   * them as it starts, which takes four times the rest of the start.
   */
  env?: Readonly<Record<string, string>>;
}

export function hasValgrind(): boolean {
  return spawnSync("valgrind", ["--version"]).status === 0;
}

/**
 * Runs Node under callgrind. Returns the instructions up to the first mark, between marks, and
 * after the last one. Throws if the program fails.
 */
export function countInstructions(
  args: readonly string[],
  { cwd = process.cwd(), env = {} }: CountOptions = {},
): number[] {
  const folder = mkdtempSync(join(tmpdir(), "gyre-callgrind-"));
  try {
    const out = join(folder, "out");
    const callgrind = ["--tool=callgrind", `--callgrind-out-file=${out}`, `--dump-before=${MARK}`];
    const { error, signal, status, stderr } = spawnSync(
      "valgrind",
      [...callgrind, process.execPath, ...REPEATABLE, ...args],
      { cwd, env: { PATH: process.env["PATH"], ...env }, encoding: "utf8", timeout: DEADLINE_MS },
    );
    if (error) throw error;
    if (status !== 0) {
      throw new Error(`node ${args.join(" ")} ended with ${status ?? signal}:\n${stderr}`);
    }
    return readCounts(out);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Counts are in `out.1`, `out.2` and so on; what follows the last mark is in `out`. */
function readCounts(out: string): number[] {
  const last = readFileSync(out, "utf8");
  const parts = Number(/^part: (\d+)$/m.exec(last)?.[1] ?? 1);
  const counts: number[] = [];
  for (let part = 1; part < parts; part++) {
    counts.push(parseTotal(readFileSync(`${out}.${part}`, "utf8")));
  }
  return [...counts, parseTotal(last)];
}

/** The sum that a file of callgrind ends with. Throws if there is none. */
export function parseTotal(text: string): number {
  const total = /^totals: (\d+)$/m.exec(text)?.[1];
  if (total === undefined) throw new Error("Callgrind wrote no totals.");
  return Number(total);
}
