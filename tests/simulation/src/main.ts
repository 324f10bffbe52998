import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { availableParallelism } from "node:os";
import { runSeed, type SeedResult, watchStrayErrors } from "./seed.ts";

/** Seeds that a worker is given at a time. */
const SEEDS_A_PORTION = 50;
/** Of so many seeds, one is also a world in which the program dies at each commit. */
const SEEDS_A_DEATH = 100;

interface Options {
  seeds: number;
  /** Worlds in which the program dies at each commit. */
  deaths: number;
  from: number;
  workers: number;
  verbose: boolean;
  /** Stop at the first failure. */
  first: boolean;
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: "string", default: "1000" },
      deaths: { type: "string" },
      from: { type: "string", default: "1" },
      workers: { type: "string", default: String(availableParallelism()) },
      verbose: { type: "boolean", default: false },
      first: { type: "boolean", default: false },
    },
  });
  const whole = (name: "seeds" | "deaths" | "from" | "workers", least: number): number => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= least) return value;
    throw new RangeError(
      `--${name} must be a whole number of at least ${least}, got ${values[name]}.`,
    );
  };
  const { verbose, first } = values;
  const seeds = whole("seeds", 1);
  return {
    seeds,
    deaths: values.deaths === undefined ? Math.floor(seeds / SEEDS_A_DEATH) : whole("deaths", 0),
    from: whole("from", 0),
    workers: verbose ? 1 : whole("workers", 1),
    verbose,
    first,
  };
}

/** Runs the seeds and hands on what broke, in order of seeds whatever the number of workers. */
async function simulate(options: Options): Promise<SeedResult[]> {
  const { from, seeds, workers } = options;
  if (workers === 1 || seeds <= SEEDS_A_PORTION) {
    watchStrayErrors();
    return simulateHere(options);
  }
  const results: SeedResult[] = [];
  let next = from;
  let stopped = false;
  const runWorker = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: "sim" });
      const feed = (): void => {
        const left = from + seeds - next;
        if (left <= 0 || stopped) {
          void worker.terminate().then(() => resolve());
          return;
        }
        const count = Math.min(SEEDS_A_PORTION, left);
        worker.postMessage({ ...options, from: next, seeds: count, first: false });
        next += count;
      };
      worker.on("message", (broken: SeedResult[]) => {
        results.push(...broken);
        if (options.first && broken.length > 0) stopped = true;
        feed();
      });
      worker.on("error", reject);
      feed();
    });
  await Promise.all(Array.from({ length: workers }, runWorker));
  return results.sort((one, other) => one.seed - other.seed);
}

async function simulateHere({ from, seeds, verbose, first }: Options): Promise<SeedResult[]> {
  const results: SeedResult[] = [];
  for (let seed = from; seed < from + seeds; seed++) {
    const result = await runSeed(seed, verbose);
    // The parent, if there is one that listens, knows a hang by the silence.
    process.send?.(seed);
    if (verbose) for (const line of result.lines) console.log(line);
    if (!result.broken) continue;
    results.push(result);
    if (first) break;
  }
  return results;
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  const started = performance.now();
  const failed = await simulate(options);
  const seconds = (performance.now() - started) / 1000;
  for (const { seed, broken } of failed) {
    console.log(`seed ${seed} breaks ${broken?.rule}: ${broken?.text}`);
    console.log(`  npm run sim -- --seeds 1 --from ${seed} --verbose`);
  }
  console.error(`${(options.seeds / seconds).toFixed(0)} seeds/s`);
  const bad = await simulateDeaths(options);
  console.log(`${options.seeds} seeds, ${failed.length} failures`);
  if (failed.length > 0 || bad > 0) process.exitCode = 1;
}

/** How many seeds failed. */
async function simulateDeaths({ from, deaths: seeds }: Options): Promise<number> {
  if (seeds === 0) return 0;
  // Fault injection has copies of the core alone.
  const { runDeaths } = await import("./deaths/deaths.ts");
  let [deaths, compared, failures] = [0, 0, 0];
  for (let seed = from; seed < from + seeds; seed++) {
    const result = await runDeaths(seed);
    deaths += result.deaths;
    compared += result.compared;
    if (result.broken.length === 0) continue;
    failures++;
    console.log(`seed ${seed} does not survive: ${result.broken[0]}`);
    console.log(`  npm run sim -- --seeds 1 --deaths 1 --from ${seed}`);
  }
  const range = `seeds ${from} to ${from + seeds - 1}`;
  console.log(`${range}: ${deaths} deaths, ${compared} compared, ${failures} failures`);
  return failures;
}

function serve(): void {
  watchStrayErrors();
  parentPort?.on("message", (portion: Options) => {
    void simulateHere(portion).then((broken) => parentPort?.postMessage(broken));
  });
}

if (isMainThread) await main();
else if (workerData === "sim") serve();
