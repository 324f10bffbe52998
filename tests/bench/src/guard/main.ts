// `npm run bench:guard`: fails where Gyre executes more instructions than rows.ts allows.
// `-- --slow ROW` does the work of a row of the library twice, to see it fail.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Bench, withProgram } from "../program/cli.ts";
import { countInstructions, hasValgrind } from "./callgrind.ts";
import { type Counter, runGuard } from "./guard.ts";
import { LIBRARY_ROWS, NODE_MAJOR } from "./rows.ts";

const worker = fileURLToPath(new URL("worker.js", import.meta.url));

const { slow } = parseArgs({ options: { slow: { type: "string" } } }).values;
if (slow !== undefined && !(slow in LIBRARY_ROWS)) {
  throw new Error(`No row "${slow}". Rows: ${Object.keys(LIBRARY_ROWS).join(", ")}.`);
}
if (!process.version.startsWith(`v${NODE_MAJOR}.`)) {
  console.log(`Instructions are not counted: the limits are those of Node ${NODE_MAJOR}.`);
} else if (!hasValgrind()) {
  console.log("Instructions are not counted: there is no valgrind (apt-get install valgrind).");
  if (process.env["CI"] === "true") process.exitCode = 1;
} else {
  const { ok, lines } = await withProgram((bench) => runGuard(createCounter(bench), slow));
  console.log(lines.join("\n"));
  if (!ok) process.exitCode = 1;
}

function createCounter({ env, home }: Bench): Counter {
  const options = { env, cwd: join(home, "work") };
  return {
    countJobs(side, jobs) {
      const args = jobs.map(({ name, rounds }) => `${name}=${rounds}`);
      // The start, a row, the warm-up of the next one, that row, and so on.
      return countInstructions([worker, side, ...args], options).filter((_, nth) => nth % 2 === 1);
    },
    countNode: (args) => countInstructions(args, options).reduce((sum, part) => sum + part),
  };
}
