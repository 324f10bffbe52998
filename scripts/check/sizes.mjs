import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { bundleForBrowser } from "../release/bundle.mjs";
import { pack } from "../release/pack.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { listPackages } from "../shared/workspace.mjs";

/**
 * Measures what sizes.json has a limit for, in bytes: for a package's name its packed
 * `tarball`, and the `browser` bundle of all that it exports with all that it needs,
 * minified and compressed with gzip. `page`: of a module, what a page loads at first.
 *
 * @param {string} root
 * @returns {Promise<import("../shared/parts.mjs").Findings>}
 */
export async function checkSizes(root) {
  /** @type {Record<string, { tarball?: number, browser?: number, page?: number, module?: string }>} */
  const limits = JSON.parse(readFileSync(join(root, "sizes.json"), "utf8"));
  /** @type {string[]} */
  const problems = [];
  /** @type {string[]} */
  const figures = [];
  /**
   * @param {string} what
   * @param {number} bytes
   * @param {number} limit
   */
  const compare = (what, bytes, limit) => {
    const figure = `${what.padEnd(22)} ${String(bytes).padStart(7)} of at most ${limit} bytes`;
    figures.push(figure);
    if (bytes > limit) problems.push(`too large: ${figure}`);
  };
  const packages = listPackages(root);
  for (const [name, { tarball, browser, page, module = "" }] of Object.entries(limits)) {
    if (page !== undefined) {
      compare(name, await firstBytes(module, root), page);
      continue;
    }
    const one = packages.find(({ manifest }) => manifest.name === name);
    if (one === undefined) {
      problems.push(`sizes.json: there is no package ${name}`);
      continue;
    }
    if (tarball !== undefined) {
      const { bytes } = await inTemporaryFolder((folder) => pack(one, folder));
      compare(`${name} tarball`, bytes, tarball);
    }
    if (browser !== undefined) compare(`${name} browser`, await browserBytes(name, root), browser);
  }
  return { problems, figures };
}

/**
 * @param {string} name
 * @param {string} root
 */
async function browserBytes(name, root) {
  const chunks = await bundleForBrowser(`export * from ${JSON.stringify(name)};`, root);
  return chunks.reduce((sum, { code }) => sum + gzipSync(code, { level: 9 }).length, 0);
}

/**
 * @param {string} module
 * @param {string} root
 */
async function firstBytes(module, root) {
  const chunks = await bundleForBrowser(module, root);
  /** @type {Set<string>} */
  const loaded = new Set();
  /** @param {string | undefined} fileName */
  const load = (fileName) => {
    const chunk = chunks.find((one) => one.fileName === fileName);
    if (!chunk || loaded.has(chunk.fileName)) return 0;
    loaded.add(chunk.fileName);
    /** @type {number} */
    let bytes = gzipSync(chunk.code, { level: 9 }).length;
    for (const other of chunk.imports) bytes += load(other);
    return bytes;
  };
  return load(chunks[0]?.fileName);
}
