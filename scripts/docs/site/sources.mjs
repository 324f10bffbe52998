import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix, sep } from "node:path";
import { formatAddress } from "../../shared/addresses.mjs";

/**
 * The files that the site is made of, by their path from the root.
 *
 * @typedef {import("../../shared/addresses.mjs").Addresses} Addresses
 * @typedef {{ page: string } | { asset: string } | { address: string } | { file: string } | { missing: string }} Target
 *   what a link leads to: a page, a picture, a file at the repository's address, a file that is only named
 */

/** What the site is about, and its start. */
export const START = "docs/README.md";
const GUIDE = "docs/";
/** Programs to read, which are pages as well. */
const PROGRAM = /^(?:docs\/programs|examples)\/.*(?<!\.test)\.(?:tsx?|mjs|html)$/;
const PICTURE = /\.(?:svg|png)$/;
/** Where pages from outside of the guide are. */
const OUTSIDE = "project/";

/** Every page of the guide. @param {string} root */
export function listGuide(root) {
  return readdirSync(join(root, GUIDE), { recursive: true, encoding: "utf8" })
    .map((path) => GUIDE + path.split(sep).join("/"))
    .filter((path) => path.endsWith(".md"))
    .toSorted();
}

/** Where in the site a file is. @param {string} source */
export function toOutput(source) {
  const path = source.startsWith(GUIDE) ? source.slice(GUIDE.length) : OUTSIDE + source;
  if (PICTURE.test(path)) return path;
  return path.replace(/(^|\/)README\.md$/, "$1index.html").replace(/\.(?:md|tsx?|mjs)$/, ".html");
}

/** Whether it is code in place of Markdown. @param {string} source */
export function isProgram(source) {
  return PROGRAM.test(source);
}

/**
 * @param {string} root
 * @param {string} source
 */
export function readSource(root, source) {
  return readFileSync(join(root, source), "utf8");
}

/**
 * What a relative link of a page leads to.
 *
 * @param {string} root
 * @param {string} from
 * @param {string} path without its anchor
 * @param {Addresses | undefined} addresses nothing: source files have no address
 * @returns {Target}
 */
export function findTarget(root, from, path, addresses) {
  const source = path === "" ? from : posix.join(posix.dirname(from), decodeURI(path));
  const file = join(root, source);
  if (source.startsWith("../") || !existsSync(file)) return { missing: source };
  if (statSync(file).isFile()) {
    if (source.endsWith(".md") || isProgram(source)) return { page: source };
    if (PICTURE.test(source)) return { asset: source };
  }
  return addresses === undefined
    ? { file: source }
    : { address: formatAddress(addresses, encodeURI(source)) };
}
