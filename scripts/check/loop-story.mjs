import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { parseSync } from "rolldown/utils";
import { readModule } from "./imports.mjs";

/** The loop is to be read in one sitting. */
export const MAX_LOOP_LINES = 300;
/** So are the modules that a turn runs through. */
export const MAX_STORY_MODULES = 6;
/** A helper is a small thing with a name. */
export const MAX_HELPER_LINES = 100;

const PAGE = "docs/loop.md";
const FOLDER = "packages/agent/src/loop";
const LOOP = `${FOLDER}/loop.ts`;
const STORY_HEADING = "### Modules of a turn";
const HELPERS_HEADING = "### Helpers of a turn";

/**
 * Checks that the story of a turn can be read: `loop.ts` is short, the page of the loop names the
 * few modules of the story and the helpers, and there is nothing else in the folder of the loop.
 * Helpers are small, and import no helpers.
 *
 * @param {string} root
 * @returns {import("../shared/parts.mjs").Findings}
 */
export function checkLoopStory(root) {
  const page = readFileSync(join(root, PAGE), "utf8");
  const story = linkedSources(page, STORY_HEADING);
  const helpers = linkedSources(page, HELPERS_HEADING);
  const problems = [];
  const lines = countCodeLines(readFileSync(join(root, LOOP), "utf8"));
  if (lines > MAX_LOOP_LINES) {
    problems.push(`${LOOP}: ${lines} lines of code of at most ${MAX_LOOP_LINES}`);
  }
  if (!story.includes(LOOP)) problems.push(`${PAGE}: "${STORY_HEADING}" does not name ${LOOP}.`);
  if (story.length > MAX_STORY_MODULES) {
    problems.push(`${PAGE}: ${story.length} modules of a turn of at most ${MAX_STORY_MODULES}`);
  }
  const named = new Set([...story, ...helpers]);
  for (const file of named) {
    if (!existsSync(join(root, file)))
      problems.push(`${PAGE} names ${file}, which does not exist.`);
  }
  for (const name of readdirSync(join(root, FOLDER))) {
    const file = `${FOLDER}/${name}`;
    if (!name.endsWith(".ts") || name.endsWith(".test.ts") || named.has(file)) continue;
    problems.push(`${file} is neither a module nor a helper of a turn in ${PAGE}.`);
  }
  for (const file of helpers.filter((helper) => existsSync(join(root, helper)))) {
    problems.push(...checkHelper(root, file, helpers));
  }
  const figures = [
    `${LOOP}: ${lines} lines of code of at most ${MAX_LOOP_LINES}`,
    `${story.length} modules of a turn of at most ${MAX_STORY_MODULES}, ${helpers.length} helpers`,
  ];
  return problems.length > 0 ? { problems } : { problems, figures };
}

/**
 * @param {string} root
 * @param {string} file
 * @param {readonly string[]} helpers
 */
function checkHelper(root, file, helpers) {
  const source = readFileSync(join(root, file), "utf8");
  const lines = countCodeLines(source);
  const problems = readModule(source, file)
    .imports.map(({ specifier = "" }) => posix.join(posix.dirname(file), specifier))
    .filter((imported) => helpers.includes(imported))
    .map((imported) => `${file} is a helper and imports another one: ${imported}.`);
  if (lines > MAX_HELPER_LINES) {
    problems.push(`${file}: ${lines} lines of code of at most ${MAX_HELPER_LINES} for a helper`);
  }
  return problems;
}

/**
 * The sources that the section below a heading links to.
 *
 * @param {string} page
 * @param {string} heading
 */
function linkedSources(page, heading) {
  const [, section = ""] = page.split(`\n${heading}\n`);
  const [text = ""] = `\n${section}`.split(/\n#{2,3} /);
  return [...text.matchAll(/\]\(\.\.\/(packages\/agent\/src\/[^)]+\.ts)\)/g)].map(
    ([, path = ""]) => path,
  );
}

/**
 * Counts the lines that hold code: not blank, and not comment alone.
 *
 * @param {string} source
 * @returns {number}
 */
export function countCodeLines(source) {
  const { comments } = parseSync("a.ts", source);
  const code = comments.reduceRight(
    (text, { start, end }) =>
      text.slice(0, start) + text.slice(start, end).replaceAll(/[^\n]/g, "") + text.slice(end),
    source,
  );
  return code.split("\n").filter((line) => line.trim() !== "").length;
}
