import { randomInt } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Fault, FAULTS } from "./fault-list.ts";
import { type Ended, findByTests, runNode } from "./fault-tests.ts";
import { Random } from "./world/random.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const MOST_SEEDS = 10_000;
const MOST_SEEDS_IN_CI = 1_500;
/** A fault that makes the loop spin without end is found by its silence. */
const SILENCE_MS = 240_000;
const SILENCE_IN_CI_MS = 20_000;

interface Verdict {
  fault: Fault;
  /** How many seeds it took; nothing when it was not found. */
  seeds: number | undefined;
  by: string;
}

/** A copy of the built packages and of the simulator, where a fault can be put in. */
class Laboratory {
  readonly #home: string;

  private constructor(home: string) {
    this.#home = home;
  }

  static async open(): Promise<Laboratory> {
    const home = await mkdtemp(join(tmpdir(), "gyre-faults-"));
    const modules = join(home, "node_modules");
    await mkdir(join(modules, "@gyre"), { recursive: true });
    for (const name of ["ai", "agent"]) {
      const from = join(ROOT, "packages", name);
      for (const part of ["package.json", "dist"]) {
        await cp(join(from, part), join(modules, "@gyre", name, part), { recursive: true });
      }
    }
    // What the packages need beside each other is found where it is installed.
    for (const name of ["@standard-schema"]) {
      const installed = await realpath(join(ROOT, "node_modules", name)).catch(() => undefined);
      if (installed) await symlink(installed, join(modules, name));
    }
    await cp(join(ROOT, "tests", "simulation", "dist"), join(home, "sim"), { recursive: true });
    await writeFile(join(home, "package.json"), '{ "type": "module" }\n');
    return new Laboratory(home);
  }

  async close(): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }

  /** Puts one fault in, simulates until something breaks, and takes it out again. */
  async examine(fault: Fault, seeds: number, silenceMs: number): Promise<Verdict> {
    const path = join(this.#home, "node_modules", "@gyre", fault.file);
    const sound = await readFile(path, "utf8");
    const broken = sound.replace(toPattern(fault), () => fault.replace);
    await writeFile(path, broken);
    try {
      return { fault, ...(await this.#simulate(seeds, silenceMs)) };
    } finally {
      await writeFile(path, sound);
    }
  }

  #simulate(seeds: number, silenceMs: number): Promise<Omit<Verdict, "fault">> {
    const args = [
      join(this.#home, "sim/main.js"),
      `--seeds=${seeds}`,
      "--deaths=0",
      "--first",
      "--workers=1",
    ];
    return runNode(args, { cwd: this.#home, env: process.env }, silenceMs).then(formatVerdict);
  }
}

/** Where a fault goes; how the lines are broken does not matter. */
function toPattern({ find }: Fault): RegExp {
  const words = find.split(/\s+/).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(words.join("\\s+"), "g");
}

/** Throws unless each fault has exactly one place to go to, so that the list cannot rot. */
async function checkList(faults: readonly Fault[]): Promise<void> {
  const lost: string[] = [];
  for (const fault of faults) {
    const { name, file, find } = fault;
    const built = await readFile(join(ROOT, "packages", file), "utf8");
    const places = built.match(toPattern(fault))?.length ?? 0;
    if (places !== 1) lost.push(`"${name}" stands ${places} times in ${file}: ${find}`);
  }
  const names = new Set(faults.map(({ name }) => name));
  if (names.size < faults.length) lost.push("two faults have the same name");
  if (lost.length === 0) return;
  throw new Error(
    `Faults must stand exactly once in the built code. Update faults.diff:\n${lost.join("\n")}`,
  );
}

function formatVerdict({ out, code, signal }: Ended): Omit<Verdict, "fault"> {
  if (signal) return { seeds: 1, by: "hang: the simulation does not go on" };
  const [, seed, rule = "", text = ""] = /^seed (\d+) breaks ([^:]+): (.*)$/m.exec(out) ?? [];
  if (seed !== undefined) return { seeds: Number(seed), by: `${rule}: ${text}` };
  if (code === 0) return { seeds: undefined, by: "" };
  // A fault that is not even code shows nothing.
  return { seeds: undefined, by: ": the simulation cannot be loaded with it" };
}

/** The same, by the tests beside the code. */
async function examineByTests(fault: Fault): Promise<Verdict> {
  const built = join(ROOT, "packages", fault.file);
  const source = built.replace("/dist/", "/src/").replace(/\.js$/, ".ts");
  const code = (await readFile(built, "utf8")).replace(toPattern(fault), () => fault.replace);
  const by = await findByTests(ROOT, source, code);
  return { fault, seeds: by === undefined ? undefined : 0, by: by ?? "" };
}

function line({ fault, seeds, by }: Verdict): string {
  const after = seeds === 0 ? "" : ` after ${seeds} seeds`;
  const found = seeds === undefined ? `NOT FOUND${by}` : `found${after} by ${by.slice(0, 110)}`;
  return `${fault.rule.padEnd(8)} ${fault.name.padEnd(44)} ${found}`;
}

/** So many faults, picked by a seed: the same seed picks the same ones. */
function pickSome(faults: readonly Fault[], count: number, seed: number): Fault[] {
  const random = new Random(seed, "faults");
  const left = [...faults];
  const picked: Fault[] = [];
  while (picked.length < count && left.length > 0) {
    picked.push(...left.splice(random.below(left.length), 1));
  }
  return picked;
}

function parseCount(option: string, value: string): number {
  const count = Number(value);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new Error(`--${option} takes a whole number above 0, not "${value}".`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      ci: { type: "boolean", default: false },
      /** Looks whether the unit tests find them, in place of the simulation. */
      tests: { type: "boolean", default: false },
      /** So many of them, picked at random. */
      some: { type: "string" },
      /** Picks those that an earlier `--some` picked. */
      seed: { type: "string" },
      only: { type: "string" },
    },
  });
  const { ci, only, seed: givenSeed, some, tests } = values;
  const chosen = FAULTS.filter(({ name, slow }) =>
    only === undefined ? !(ci && slow) : name === only,
  );
  if (chosen.length === 0) throw new Error(`There is no fault named "${only}".`);
  await checkList(only === undefined ? FAULTS : chosen);
  let waiting = [...chosen];
  if (some !== undefined) {
    const seed = givenSeed === undefined ? randomInt(1, 2 ** 31) : parseCount("seed", givenSeed);
    waiting = pickSome(chosen, parseCount("some", some), seed);
    console.log(`${waiting.length} of ${chosen.length} faults, picked by --seed ${seed}`);
  }
  const verdicts: Verdict[] = [];
  const work = async (): Promise<void> => {
    const laboratory = await Laboratory.open();
    try {
      for (let fault = waiting.shift(); fault; fault = waiting.shift()) {
        const seeds = ci ? MOST_SEEDS_IN_CI : MOST_SEEDS;
        const verdict = tests
          ? await examineByTests(fault)
          : await laboratory.examine(fault, seeds, ci ? SILENCE_IN_CI_MS : SILENCE_MS);
        verdicts.push(verdict);
        console.log(line(verdict));
      }
    } finally {
      await laboratory.close();
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), waiting.length) }, work));
  const found = verdicts.filter(({ seeds }) => seeds !== undefined).length;
  console.log(`${verdicts.length} faults, ${found} found`);
  if (found < verdicts.length) process.exitCode = 1;
}

await main();
