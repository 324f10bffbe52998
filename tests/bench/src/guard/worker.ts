// One side's works, to be counted by callgrind: `worker.js SIDE NAME=ROUNDS...`. What is
// executed between two marks is the measured rounds of a row.
import { getPriority } from "node:os";
import { LIBRARY_ROWS } from "./rows.ts";

/** After so many rounds all functions are compiled and all caches of the engine are filled. */
const WARM_UP_ROUNDS = 2;

/**
 * The clock stands still: code that pauses every few milliseconds would do so more often on a
 * slow machine, and under callgrind every machine is slow.
 */
const now = Date.now();
Date.now = () => now;

/** Callgrind writes its count to a file and starts again from 0 where this calls into libc. */
function mark(): void {
  getPriority();
}

const [side, ...jobs] = process.argv.slice(2);
if (side !== "floor" && side !== "gyre") throw new Error(`No side "${side}".`);
for (const job of jobs) {
  const [name = "", rounds = ""] = job.split("=");
  const work = LIBRARY_ROWS[name]?.work[side];
  if (!work) throw new Error(`No row "${name}".`);
  for (let round = 0; round < WARM_UP_ROUNDS; round++) await work();
  mark();
  for (let round = 0; round < Number(rounds); round++) await work();
  mark();
}
