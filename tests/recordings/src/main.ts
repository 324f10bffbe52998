import { parseArgs } from "node:util";
import {
  conversationReport,
  playConversations,
  unusedDifferences,
} from "./conversations/conversations.ts";
import { playDerived } from "./derived/derived.ts";
import { loadRecordings } from "./responses/manifest.ts";
import { playSchemas } from "./responses/json-schema.ts";
import { playVectors } from "./responses/plain-sse.ts";
import { playAll } from "./responses/play-all.ts";

const HELP = `npm run recorded -- [FOLDER] [--conversations] [--derived N] [--seed N] [--only PART]

Plays the recordings of FOLDER (default: ../shared/fixtures) through the real clients
over loopback and compares what they make of them with what is expected.

  --conversations
                let recorded conversations drive the agent loop too, and compare what it
                asks with what was asked then
  --derived N   play at least N changed recordings too: cut anywhere, cut short, with foreign events
  --seed N      of the random ones among them
  --only PART   only recordings with PART in their id`;

const DEFAULT_FOLDER = "../shared/fixtures";
/** Of what is wrong, so much is printed. */
const MAX_SHOWN = 50;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    conversations: { type: "boolean", default: false },
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
  const schemas = playSchemas(folder);
  const vectors = [...playVectors(folder), ...schemas.results];
  const results = [
    ...(await playAll(all, only)),
    ...vectors.filter(({ name }) => name.includes(only)),
  ];
  for (const { name, problems } of results) {
    for (const problem of problems) console.log(`${name}\n    ${problem}`);
  }
  let failed = results.filter(({ problems }) => problems.length > 0).length;
  let passed = results.length - failed;
  console.log(`${results.length} recordings in ${seconds(began)} s`);
  for (const line of schemas.summary) console.log(line);
  const conversations = values.conversations ? await playConversations(all, only) : [];
  for (const { name, problems } of conversations) {
    for (const problem of problems) console.log(`${name}\n    ${problem}`);
  }
  if (values.conversations) {
    console.log(conversationReport(conversations).join("\n"));
    for (const name of only === "" ? unusedDifferences(conversations) : []) {
      console.log(`     0 ${name}: not needed by these recordings`);
    }
  }
  const broken = conversations.filter(({ problems }) => problems.length > 0).length;
  passed += conversations.length - broken;
  failed += broken;
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
