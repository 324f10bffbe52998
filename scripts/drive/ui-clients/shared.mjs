import { createRequire } from "node:module";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { pathToFileURL } from "node:url";

/**
 * @typedef {{ folder: string, runs: number, seed: number }} Plan
 * @typedef {import("../../shared/parts.mjs").Findings} Findings
 */

/** More differences than these are counted, not shown. */
const MAX_SHOWN = 3;

/**
 * A client from the folder where they are installed.
 *
 * @param {Plan} plan
 * @param {string} name
 */
export function load({ folder }, name) {
  const path = createRequire(join(folder, "package.json")).resolve(name);
  return import(pathToFileURL(path).href);
}

/**
 * What two views of a run differ in; nothing where they are equal.
 *
 * @param {string} what
 * @param {unknown} got
 * @param {unknown} expected
 * @returns {string[]}
 */
export function compare(what, got, expected) {
  const [a, b] = [got, expected].map((value) => JSON.parse(JSON.stringify(value ?? null)));
  if (isDeepStrictEqual(a, b)) return [];
  return [`${what}\n  got      ${JSON.stringify(a)}\n  expected ${JSON.stringify(b)}`];
}

/**
 * Plays as many random runs as the plan says, each from its seed.
 *
 * @param {Plan} plan
 * @param {(seed: number) => Promise<readonly string[]>} play gives what is wrong
 * @returns {Promise<Findings>}
 */
export async function playAll({ runs, seed: first }, play) {
  const problems = [];
  let wrong = 0;
  for (let seed = first; seed < first + runs; seed++) {
    /** @type {readonly string[]} */
    let found;
    try {
      found = await play(seed);
    } catch (error) {
      found = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
    }
    if (found.length === 0) continue;
    wrong++;
    if (wrong <= MAX_SHOWN)
      problems.push(...found.map((line) => `--runs 1 --seed ${seed}: ${line}`));
  }
  if (wrong > MAX_SHOWN) problems.push(`and ${wrong - MAX_SHOWN} runs more`);
  return {
    problems,
    figures: [`${runs - wrong} of ${runs} random runs the same, from seed ${first} on`],
  };
}
