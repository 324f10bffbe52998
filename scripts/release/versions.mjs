import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A package.json, or a lockfile, which has those of the packages.
 *
 * @typedef {import("../shared/workspace.mjs").Manifest} Manifest
 * @typedef {Manifest & { packages?: Record<string, Manifest> }} ManifestFile
 */

const KINDS = /** @type {const} */ (["dependencies", "devDependencies", "optionalDependencies"]);
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/;

/**
 * @param {readonly string[]} args
 * @param {string} current
 * @returns {{ version: string, isPublished: boolean }}
 */
export function parseReleaseArgs(args, current) {
  const isPublished = args.includes("--publish");
  const rest = args.filter((arg) => arg !== "--publish");
  const [version = ""] = rest;
  if (rest.length !== 1 || !VERSION.test(version)) {
    throw new Error("Usage: npm run release -- VERSION [--publish], such as 0.2.0");
  }
  if (compareVersions(version, current) < 0) {
    throw new Error(`Version ${version} is older than ${current}.`);
  }
  return { version, isPublished };
}

/** @param {string} one @param {string} other */
function compareVersions(one, other) {
  const [a, b] = [one, other].map((version) => version.split(".").map(Number));
  const differences = [0, 1, 2].map((index) => (a?.[index] ?? 0) - (b?.[index] ?? 0));
  return differences.find((difference) => difference !== 0) ?? 0;
}

/**
 * The changelog with its newest section released. Throws where that section is another version's, or says
 * nothing.
 *
 * @param {string} text
 * @param {string} version
 * @param {string} day
 */
export function releaseChangelog(text, version, day) {
  const [, heading = "", body = ""] =
    /^## (.*, not released)\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(text) ?? [];
  if (heading === "") throw new Error('CHANGELOG.md has no section "VERSION, not released".');
  if (!/^- /m.test(body)) throw new Error("The newest section of CHANGELOG.md says nothing.");
  return text.replace(`## ${heading}`, `## ${version}, ${day}`);
}

/**
 * Sets the version of the packages, of what they need of each other, and of the lockfile.
 *
 * @param {string} root
 * @param {readonly string[]} files package.json files and the lockfile
 * @param {string} version
 */
export function setVersions(root, files, version) {
  const names = new Set(
    files.filter((file) => file.startsWith("packages/")).map((file) => readJson(root, file).name),
  );
  for (const file of files) {
    if (!existsSync(join(root, file))) continue;
    const json = readJson(root, file);
    setVersion(json, names, version);
    for (const [path, entry] of Object.entries(json.packages ?? {})) {
      if (path === "" || path.startsWith("packages/")) setVersion(entry, names, version);
    }
    writeFileSync(join(root, file), `${JSON.stringify(json, null, 2)}\n`);
  }
}

/**
 * @param {Manifest} manifest
 * @param {ReadonlySet<string>} names
 * @param {string} version
 */
function setVersion(manifest, names, version) {
  if (manifest.version !== undefined) manifest.version = version;
  for (const kind of KINDS) {
    const versions = manifest[kind] ?? {};
    for (const name of Object.keys(versions)) if (names.has(name)) versions[name] = version;
  }
}

/** @param {string} root @param {string} file @returns {ManifestFile} */
function readJson(root, file) {
  return JSON.parse(readFileSync(join(root, file), "utf8"));
}
