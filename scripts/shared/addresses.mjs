// The addresses of the project, which stand in one place: scripts/shared/addresses.json. Run as a
// program, it writes them into the package.json files: `node scripts/shared/addresses.mjs`.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mustRun } from "./command.mjs";

/**
 * `keywords`: by folder of a package; those under "" are for all.
 *
 * @typedef {{ repository: string, homepage: string, keywords: Record<string, string[]> }} Addresses
 */

const FILE = "scripts/shared/addresses.json";

/**
 * @param {string} root
 * @returns {Addresses | undefined} nothing in a tree that has none
 */
export function readAddresses(root) {
  const file = join(root, FILE);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

/** Whether they are still those that stand in for real ones. @param {Addresses} addresses */
export function arePlaceholders({ repository, homepage }) {
  return [repository, homepage].some((address) => new URL(address).hostname.endsWith(".example"));
}

/**
 * What a package.json says of them.
 *
 * @param {Addresses} addresses
 * @param {string} room
 */
export function makeFields({ repository, homepage, keywords }, room) {
  return {
    homepage,
    repository: { type: "git", url: `git+${repository}.git`, directory: `packages/${room}` },
    bugs: { url: `${repository}/issues` },
    keywords: [...(keywords[""] ?? []), ...(keywords[room] ?? [])],
  };
}

/** Where a file of the repository can be read. @param {Addresses} addresses @param {string} path */
export function formatAddress({ repository }, path) {
  return `${repository}/blob/main/${path}`;
}

/** @param {string} root */
export async function writeAddresses(root) {
  const addresses = readAddresses(root);
  if (addresses === undefined) throw new Error(`There is no ${FILE}.`);
  const files = [];
  for (const room of readdirSync(join(root, "packages"))) {
    const file = join(root, "packages", room, "package.json");
    if (!existsSync(file)) continue;
    const { name, version, description, license, ...rest } = JSON.parse(readFileSync(file, "utf8"));
    const fields = makeFields(addresses, room);
    const manifest = { name, version, description, license, ...fields, ...rest, ...fields };
    writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
    files.push(file);
  }
  const oxfmt = fileURLToPath(new URL("../../node_modules/oxfmt/bin/oxfmt", import.meta.url));
  await mustRun(process.execPath, [oxfmt, ...files], { cwd: root });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await writeAddresses(fileURLToPath(new URL("../..", import.meta.url)));
}
