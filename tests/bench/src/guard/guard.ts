import type { Side } from "../library/works.ts";
import { entry } from "../program/cli.ts";
import { CONTROL, LIBRARY_ROWS, PROGRAM_ROWS } from "./rows.ts";
import { type Counted, judge, type Verdict } from "./verdict.ts";

/** Counts instructions. */
export interface Counter {
  /** Of each job of one side. */
  countJobs: (side: Side, jobs: readonly Job[]) => readonly number[];
  /** Of Node with these arguments, from its start to its end. */
  countNode: (args: readonly string[]) => number;
}

/** A row of the library, and how often its work is done. */
export interface Job {
  name: string;
  rounds: number;
}

/** Counts all rows and judges them. With `slow`, Gyre does the work of that row twice. */
export function runGuard({ countJobs, countNode }: Counter, slow?: string): Verdict {
  const rows = Object.entries(LIBRARY_ROWS).map(([name, row]) => ({ name, row, control: false }));
  rows.push(
    ...rows.filter(({ name }) => name === CONTROL).map((row) => ({ ...row, control: true })),
  );
  const floor = countJobs(
    "floor",
    rows.map(({ name }) => ({ name, rounds: 1 })),
  );
  const gyre = countJobs(
    "gyre",
    rows.map(({ name, control }) => ({ name, rounds: control || name === slow ? 2 : 1 })),
  );
  const library = rows.map(({ row, control }, index): Counted => ({
    row,
    control,
    floor: floor[index] ?? Number.NaN,
    gyre: gyre[index] ?? Number.NaN,
  }));
  const bare = countNode(["-e", "0"]);
  const program = PROGRAM_ROWS.map((row): Counted => ({
    row,
    floor: bare,
    gyre: countNode([entry, ...row.args]),
  }));
  return judge([...library, ...program]);
}
