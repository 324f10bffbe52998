/**
 * All libraries on the same work, in one run, in turns: `npm run bench:peers`. Writes
 * `bench/results/latest.json`, the tables and the plots.
 */
import { fork } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Column, COLUMNS, loadPeer, parsePackageName } from "./peers.ts";
import { growthPlot, speedPlot } from "../report/plots.ts";
import { measureBehaviors, computeGrowth, measureSpeed } from "./race.ts";
import { markdown } from "../report/report.ts";
import {
  failures,
  type GrowthRow,
  type Heading,
  type ResultRow,
  type Results,
} from "../report/results.ts";
import { SPEEDS } from "./speed.ts";
import { importRow, installedRows } from "./start-cost.ts";

const ROUNDS = 5;
/** The exit code of a command that was not understood. */
const MISUSE = 2;

const values = read();
const here = fileURLToPath(new URL(".", import.meta.url));
const resultsFolder = values.out ?? fileURLToPath(new URL("../results", import.meta.url));
const docs = fileURLToPath(new URL("../../../docs", import.meta.url));
const OTHER_CASES = ["import", "installed", "behavior"];
const [BEGIN, END] = ["<!-- results: begin -->", "<!-- results: end -->"];
const CASES = [...SPEEDS.map(({ name }) => name), ...OTHER_CASES];
const { quick } = values;
const rounds = quick ? 1 : Number(values.rounds);
const columns = COLUMNS.filter(({ id }) => values.peer?.includes(id) ?? true);

if (values.help) {
  console.log(`npm run bench:peers -- [--peer ID]... [--case NAME]... [--rounds N] [--out FOLDER]
npm run bench:peers -- --quick    whether everything works: once, small, cold; the figures are worth nothing
npm run bench:peers -- --report   the tables and plots of the last results again

A part of the work is printed, and kept only where --out says so.

Peers: ${COLUMNS.map(({ id }) => id).join(", ")}
Cases: ${CASES.join(", ")}`);
} else if (values.report) {
  const latest = `${resultsFolder}/latest.json`;
  if (!existsSync(latest)) refuse(`There is no ${latest}. Run npm run bench:peers first.`);
  report(JSON.parse(readFileSync(latest, "utf8")) as Results);
} else {
  refuseUnknown(
    "peer",
    values.peer,
    COLUMNS.map(({ id }) => id),
  );
  refuseUnknown("case", values.case, CASES);
  if (!Number.isInteger(rounds) || rounds < 1) {
    refuse(`--rounds is "${values.rounds}"; it has to be a whole number from 1 on.`);
  }
  if (!values.check) {
    const results = await measureAll();
    report(results);
    const failed = failures(results);
    if (failed.length > 0) {
      console.error(`Not measured, because something went wrong:\n${failed.join("\n")}`);
      process.exitCode = 1;
    }
  }
}

function read() {
  try {
    return parseArgs({
      options: {
        peer: { type: "string", multiple: true },
        case: { type: "string", multiple: true },
        rounds: { type: "string", default: String(ROUNDS) },
        out: { type: "string" },
        quick: { type: "boolean", default: false },
        report: { type: "boolean" },
        help: { type: "boolean", short: "h" },
        // Whether the rest makes sense: asked before anything is installed.
        check: { type: "boolean" },
      },
    }).values;
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

function refuse(message: string): never {
  console.error(message);
  process.exit(MISUSE);
}

function refuseUnknown(
  what: string,
  given: readonly string[] | undefined,
  known: readonly string[],
): void {
  for (const name of given ?? []) {
    if (!known.includes(name)) {
      refuse(`There is no ${what} "${name}". There are: ${known.join(", ")}.`);
    }
  }
}

function isWanted(name: string): boolean {
  return values.case?.includes(name) ?? true;
}

function report(results: Results): void {
  const text = markdown(results);
  // The docs show whole runs; what they show is not lost to a look at a part.
  const isWhole = values.out === undefined && !values.case && !values.peer && !quick;
  if (isWhole || values.out !== undefined) keep(results, text);
  if (isWhole) {
    writeFileSync(`${docs}/benchmarks-speed.svg`, speedPlot(results));
    writeFileSync(`${docs}/benchmarks-growth.svg`, growthPlot(results));
    fillIn(`${docs}/benchmarks.md`, text);
  }
  console.log(text);
}

function keep(results: Results, text: string): void {
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(`${resultsFolder}/latest.json`, `${JSON.stringify(results, undefined, 2)}\n`);
  writeFileSync(`${resultsFolder}/latest.md`, `${text}\n`);
}

/** Puts the tables between the marks of a page. */
function fillIn(path: string, text: string): void {
  const page = readFileSync(path, "utf8");
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) {
    throw new Error(`${path} has no place for the results: ${BEGIN} and ${END}.`);
  }
  writeFileSync(path, `${page.slice(0, begin)}${BEGIN}\n\n${text}\n\n${page.slice(end)}`);
}

async function measureAll(): Promise<Results> {
  const headings = await Promise.all(columns.map(describeColumn));
  const rows: ResultRow[] = [];
  const growth: GrowthRow[] = [];
  const server = fork(fileURLToPath(new URL("../src/library/stream-server.ts", import.meta.url)));
  const { port } = await new Promise<{ port: number }>((resolve) =>
    server.once("message", resolve),
  );
  const origin = `http://127.0.0.1:${port}`;
  for (const speed of SPEEDS.filter(({ name }) => isWanted(name))) {
    const measured = await measureSpeed(speed, { columns, rounds, origin, quick });
    rows.push(...measured);
    if (speed.grows && !quick) growth.push(computeGrowth(speed, measured));
  }
  server.disconnect();
  if (isWanted("import")) rows.push(await importRow(columns, rounds));
  if (isWanted("installed")) rows.push(...(await installedRows(columns)));
  return {
    when: new Date().toISOString(),
    node: process.version,
    machine: `${cpus().length} cores (${cpus()[0]?.model ?? "unknown"})`,
    rounds,
    columns: headings,
    rows,
    growth,
    behaviors: isWanted("behavior") ? await measureBehaviors(columns, quick) : [],
  };
}

async function describeColumn(column: Column): Promise<Heading> {
  const peer = await loadPeer(column.id);
  const [specifier] = peer.imports;
  if (specifier === undefined) return { id: column.id, name: peer.name, version: "" };
  const modules = `${here}${column.folder ?? "gyre"}/node_modules`;
  const manifest = readFileSync(`${modules}/${parsePackageName(specifier)}/package.json`, "utf8");
  const { version } = JSON.parse(manifest) as { version: string };
  return { id: column.id, name: peer.name, version };
}
