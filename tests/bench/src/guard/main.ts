// `npm run bench:guard`: fails where Gyre executes more instructions than rows.ts allows.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Side } from "../library/works.ts";
import { entry, withProgram } from "../program/cli.ts";
import { countInstructions, hasValgrind } from "./callgrind.ts";
import { CONTROL, LIBRARY_ROWS, NODE_MAJOR, PROGRAM_ROWS } from "./rows.ts";
import { type Counted, judge } from "./verdict.ts";

const worker = fileURLToPath(new URL("worker.js", import.meta.url));

const { values } = parseArgs({ options: { slow: { type: "string" } } });
process.exitCode = await main(values.slow);

/** With `slow`, Gyre does the work of that row twice, and the guard must fail. */
async function main(slow?: string): Promise<number> {
  if (slow !== undefined && !(slow in LIBRARY_ROWS)) throw new Error(`No row "${slow}".`);
  if (!process.version.startsWith(`v${NODE_MAJOR}.`)) {
    console.log(`Instructions are not counted: the limits are those of Node ${NODE_MAJOR}.`);
    return 0;
  }
  if (!hasValgrind()) {
    console.log("Instructions are not counted: there is no valgrind (apt-get install valgrind).");
    return process.env["CI"] === "true" ? 1 : 0;
  }
  const { ok, lines } = judge([...countLibrary(slow), ...(await countProgram())]);
  console.log(lines.join("\n"));
  return ok ? 0 : 1;
}

/** Each side has one process for all rows: Node takes seconds to start under callgrind. */
function countLibrary(slow: string | undefined): Counted[] {
  const rows = Object.entries(LIBRARY_ROWS).map(([name, row]) => ({ name, row, control: false }));
  const control = rows.find(({ name }) => name === CONTROL);
  if (control) rows.push({ ...control, control: true });
  const floor = countSide(
    "floor",
    rows.map(({ name }) => `${name}=1`),
  );
  const gyre = countSide(
    "gyre",
    rows.map(({ name, control }) => `${name}=${control || name === slow ? 2 : 1}`),
  );
  return rows.map(({ row, control }, index) => ({
    row,
    control,
    floor: floor[index] ?? Number.NaN,
    gyre: gyre[index] ?? Number.NaN,
  }));
}

/** The instructions of each job, in order. */
function countSide(side: Side, jobs: readonly string[]): number[] {
  const counts = countInstructions([worker, side, ...jobs]);
  // The start, a row, the warm-up of the next one, that row, and so on.
  return counts.filter((_, index) => index % 2 === 1);
}

function countProgram(): Promise<Counted[]> {
  return withProgram(({ env, home }) => {
    const count = (args: readonly string[]): number =>
      countInstructions(args, { env, cwd: join(home, "work") }).reduce((sum, part) => sum + part);
    const floor = count(["-e", "0"]);
    return PROGRAM_ROWS.map((row) => ({ row, floor, gyre: count([entry, ...row.args]) }));
  });
}
