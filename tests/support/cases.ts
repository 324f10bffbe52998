/** Set by `npm run test:long`. */
export const isLong: boolean = process.env["GYRE_LONG"] === "1";

/**
 * How many cases a test with the tag `long` runs: `few` in `npm test`, `many` in `npm run test:long`,
 * or the figure in the variable of this name, if it is set.
 */
export function countCases(few: number, many: number, variable?: string): number {
  const given = variable === undefined ? undefined : process.env[variable];
  if (given !== undefined) return Number(given);
  return isLong ? many : few;
}

/** A fresh seed, or the one in `GYRE_SEED`, which repeats the cases of an earlier run. */
export function pickSeed(): number {
  return Number(process.env["GYRE_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
}

/** Some of the cases of a test with the tag `long`, other ones each time; all in `npm run test:long`. */
export function someCases<T>(few: number, all: readonly T[]): readonly T[] {
  if (isLong) return all;
  const seed = pickSeed();
  console.log(`${few} of ${all.length} cases, from ${seed % all.length} on: GYRE_SEED=${seed}`);
  const from = seed % all.length;
  return [...all.slice(from), ...all.slice(0, from)].slice(0, few);
}
