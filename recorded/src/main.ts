import { parseArgs } from "node:util";
import { play } from "./ask.ts";
import { differences } from "./compare.ts";
import { playDerived } from "./derived.ts";
import { type Case, loadRecordings, type Recordings } from "./manifest.ts";
import { playMcp, playVectors } from "./plain-sse.ts";
import { serveRecordings } from "./serve.ts";

const HELP = `npm run recorded -- [FOLDER] [--derived N] [--seed N] [--only PART]

Plays the recordings of FOLDER (default: ../shared/fixtures) through the real clients
over loopback and compares what they make of them with what is expected.

  --derived N   play N changed recordings too: cut anywhere, cut short, with foreign events
  --seed N      of the random ones among them
  --only PART   only recordings with PART in their id`;

const DEFAULT_FOLDER = "../shared/fixtures";
/** Of what is wrong, so much is printed. */
const MAX_SHOWN = 50;

interface Result {
  name: string;
  problems: string[];
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    derived: { type: "string", default: "0" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) console.log(HELP);
else process.exitCode = (await run()) ? 0 : 1;

async function run(): Promise<boolean> {
  const folder = positionals[0] ?? DEFAULT_FOLDER;
  const { only } = values;
  const all = loadRecordings(folder);
  const began = performance.now();
  const results = [
    ...(await playAll(
      all,
      all.cases.filter(({ id }) => id.includes(only)),
    )),
    ...playVectors(folder).filter(({ name }) => name.includes(only)),
  ];
  for (const { name, problems } of results) {
    for (const problem of problems) console.log(`${name}\n    ${problem}`);
  }
  let failed = results.filter(({ problems }) => problems.length > 0).length;
  let passed = results.length - failed;
  console.log(`${results.length} recordings in ${seconds(began)} s`);
  const count = wholeNumber("derived");
  if (count > 0) {
    const from = performance.now();
    const seed = wholeNumber("seed");
    const { cases, problems } = await playDerived({ folder, count, seed, only });
    for (const problem of problems.slice(0, MAX_SHOWN)) console.log(problem);
    if (problems.length > MAX_SHOWN) console.log(`... and ${problems.length - MAX_SHOWN} more`);
    console.log(`${cases} derived cases (seed ${seed}) in ${seconds(from)} s`);
    passed += cases - problems.length;
    failed += problems.length;
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0;
}

function wholeNumber(name: "derived" | "seed"): number {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`--${name} must be a whole number, got ${values[name]}.`);
}

function seconds(from: number): string {
  return ((performance.now() - from) / 1000).toFixed(1);
}

/** Every recording through the real client, over loopback. */
async function playAll(all: Recordings, cases: readonly Case[]): Promise<Result[]> {
  const server = await serveRecordings(all);
  const results: Result[] = [];
  for (const one of cases) {
    try {
      const url = server.urlOf(one);
      const problems =
        one.api === "mcp"
          ? await playMcp(one, url)
          : differences(one, (await play(one, url)).message);
      results.push({ name: one.id, problems });
    } catch (error) {
      results.push({ name: one.id, problems: [`threw ${String(error)}`] });
    }
  }
  await server.close();
  return results;
}
