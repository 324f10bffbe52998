import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { arePlaceholders, readAddresses } from "../../shared/addresses.mjs";
import { formatPage } from "./layout.mjs";
import { findDeadLinks } from "./links.mjs";
import { renderMarkdown } from "./markdown.mjs";
import { listInOrder, readChildren, readNavigation } from "./navigation.mjs";
import { makeProgramPage, readPrints } from "./program-page.mjs";
import { makeSearchIndex } from "./search-index.mjs";
import { findTarget, isProgram, listGuide, readSource, START, toOutput } from "./sources.mjs";

/**
 * @typedef {import("./markdown.mjs").Page} Page
 * @typedef {import("../../shared/addresses.mjs").Addresses} Addresses
 */

/**
 * The guide as a site: every page of docs/, the pages outside of it that they link to, and programs to read.
 *
 * @param {string} root
 * @returns {Promise<{ files: Map<string, string>, problems: string[] }>} files by their path in the site. With a
 *   problem the site is not complete: nothing should be written.
 */
export async function buildSite(root) {
  const known = readAddresses(root);
  const addresses = known === undefined || arePlaceholders(known) ? undefined : known;
  const dead = known !== undefined && addresses === undefined ? known : undefined;
  const { pages, assets } = readPages(root, addresses, (address) => isPlaceholder(address, dead));
  const groups = readNavigation(readSource(root, START), START);
  const order = listInOrder(groups);
  const children = new Map(
    order
      .filter((source) => source.startsWith("docs/") && source.endsWith("/README.md"))
      .map((source) => [source, readChildren(readSource(root, source), source)]),
  );
  const problems = [...pages.values()].flatMap((page) => page.problems);
  problems.push(...findOrphans([...pages.values()]));
  /** @type {Map<string, string>} */
  const files = new Map();
  for (const page of pages.values()) {
    const output = toOutput(page.source);
    if (files.has(output)) problems.push(`${page.source} and another file would both be ${output}`);
    const html = formatPage(
      page,
      { groups, children, order },
      (source) => pages.get(source)?.title ?? source,
    );
    files.set(output, html);
  }
  for (const asset of assets) files.set(toOutput(asset), readSource(root, asset));
  const index = makeSearchIndex([...pages.values()]);
  files.set("search-index.js", `globalThis.searchIndex=${JSON.stringify(index)};\n`);
  files.set("site.js", await bundleScript());
  for (const name of ["site.css", "icon.svg"]) files.set(name, readOwn(name));
  return { files, problems: [...problems, ...findDeadLinks(files)] };
}

/**
 * Every page of the guide, and those that their links lead to.
 *
 * @param {string} root
 * @param {Addresses | undefined} addresses
 * @param {(address: string) => boolean} isDead
 */
function readPages(root, addresses, isDead) {
  /** @type {Map<string, Page>} */
  const pages = new Map();
  /** @type {Set<string>} */
  const assets = new Set();
  const prints = readPrints(root);
  const left = listGuide(root);
  for (let source = left.shift(); source !== undefined; source = left.shift()) {
    if (pages.has(source)) continue;
    const from = source;
    const text = readSource(root, source);
    const page = isProgram(source)
      ? makeProgramPage(source, text, prints.get(source) ?? [])
      : renderMarkdown(source, text, (path) => findTarget(root, from, path, addresses), isDead);
    pages.set(source, page);
    for (const target of page.targets) {
      if ("page" in target) left.push(target.page);
      else if ("asset" in target) assets.add(target.asset);
    }
  }
  return { pages, assets };
}

/**
 * The pages that no other page leads to.
 *
 * @param {readonly Page[]} pages
 */
function findOrphans(pages) {
  const found = new Set([START]);
  for (const { source, targets } of pages) {
    for (const target of targets) {
      if ("page" in target && target.page !== source) found.add(target.page);
    }
  }
  return pages
    .filter(({ source }) => !found.has(source))
    .map(({ source }) => `${source}: no page links to it, add it to ${START}`);
}

/**
 * @param {string} address
 * @param {Addresses | undefined} placeholders
 */
function isPlaceholder(address, placeholders) {
  if (placeholders === undefined) return false;
  return [placeholders.repository, placeholders.homepage].some((one) => address.startsWith(one));
}

/** One file without modules: a browser that opened a page as a file loads no modules. */
async function bundleScript() {
  const input = fileURLToPath(new URL("browser/main.mjs", import.meta.url));
  const bundle = await rolldown({ input, platform: "browser" });
  try {
    const { output } = await bundle.generate({ format: "iife", minify: true });
    return output[0].code;
  } finally {
    await bundle.close();
  }
}

/** @param {string} name */
function readOwn(name) {
  return readFileSync(new URL(`browser/${name}`, import.meta.url), "utf8");
}
