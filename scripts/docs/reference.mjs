import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { readLibraries } from "./libraries.mjs";
import { toAnchor, readDoc, entryPage, FOLDER, indexPage, formatKinds } from "./reference-page.mjs";
import { toolListPage } from "./tool-list.mjs";

/**
 * Writes docs/reference, a page for each entry point of each library, from the built
 * declarations, and the list of tools.
 *
 *     node scripts/docs/reference.mjs             write the pages
 *     node scripts/docs/reference.mjs --check     fail where the pages are not what would be written
 *     node scripts/docs/reference.mjs --missing   list the exported names without a doc comment
 *
 * @typedef {import("./libraries.mjs").EntryPoint} EntryPoint
 */

const COMMAND = "npx tsc -b && node scripts/docs/reference.mjs";

/**
 * The pages, by their path in the folder.
 *
 * @param {string} root
 * @returns {Promise<Map<string, string>>}
 */
export async function referencePages(root) {
  const libraries = await readLibraries(root);
  /** @type {Map<string, string>} */
  const pages = new Map([["README.md", indexPage(libraries)]]);
  for (const entry of libraries.flatMap(({ entries }) => entries)) {
    refuseTwins(entry);
    pages.set(entry.page, entryPage(entry));
  }
  const catalog = join(root, "packages/tools/dist/catalog.js");
  if (existsSync(catalog)) {
    pages.set("tools/list.md", toolListPage(await import(pathToFileURL(catalog).href)));
  }
  return pages;
}

/**
 * Whether the pages are what would be written, all of them and no others.
 *
 * @param {string} root
 * @returns {Promise<import("../shared/parts.mjs").Findings>}
 */
export async function checkReference(root) {
  const pages = await referencePages(root);
  const problems = [...pages].flatMap(([page, text]) => {
    const file = join(root, FOLDER, page);
    if (!existsSync(file)) return `${FOLDER}/${page} is missing. Run: ${COMMAND}`;
    if (readFileSync(file, "utf8") === text) return [];
    return `${FOLDER}/${page} is not what the types say. Run: ${COMMAND}`;
  });
  const stray = pagesIn(root).filter((page) => !pages.has(page));
  return {
    problems: [
      ...problems,
      ...stray.map((page) => `${FOLDER}/${page} is of no entry point. Run: ${COMMAND}`),
    ],
  };
}

/**
 * Writes the pages, and takes away those of entry points that are gone.
 *
 * @param {string} root
 */
export async function writeReference(root) {
  const pages = await referencePages(root);
  for (const page of pagesIn(root)) {
    if (!pages.has(page)) rmSync(join(root, FOLDER, page));
  }
  for (const [page, text] of pages) {
    const file = join(root, FOLDER, page);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

/**
 * The exported names without a doc comment, by package.
 *
 * @param {string} root
 * @returns {Promise<Map<string, string[]>>}
 */
export async function missingDocs(root) {
  const libraries = await readLibraries(root);
  return new Map(
    libraries.map(({ name, entries }) => [
      name,
      entries
        .flatMap(({ names }) => names)
        .filter((one) => readDoc(one) === undefined)
        .map((one) => `${one.source}: ${formatKinds(one)} ${one.name}`),
    ]),
  );
}

/** @param {string} root */
function pagesIn(root) {
  const folder = join(root, FOLDER);
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((path) => path.replaceAll(sep, "/"))
    .filter((path) => path.endsWith(".md"));
}

/**
 * An anchor is in lower case, so two names of one kind may have the same.
 *
 * @param {EntryPoint} entry
 */
function refuseTwins({ specifier, names }) {
  /** @type {Map<string, string>} */
  const taken = new Map();
  for (const one of names) {
    const twin = taken.get(toAnchor(one));
    if (twin !== undefined) {
      throw new Error(`${specifier} exports ${twin} and ${one.name}, which differ in case alone.`);
    }
    taken.set(toAnchor(one), one.name);
  }
}

async function main() {
  const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
  const { values } = parseArgs({
    options: { check: { type: "boolean" }, missing: { type: "boolean" } },
  });
  if (values.missing) {
    for (const [name, lines] of await missingDocs(root)) {
      console.log([`${name}: ${lines.length}`, ...lines.map((line) => `  ${line}`)].join("\n"));
    }
  } else if (values.check) {
    const { problems } = await checkReference(root);
    for (const problem of problems) console.error(problem);
    process.exitCode = problems.length === 0 ? 0 : 1;
  } else {
    await writeReference(root);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
