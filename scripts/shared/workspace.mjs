import { readdirSync, readFileSync, existsSync } from "node:fs";
import { join } from "node:path";

/**
 * The fields of a package.json that the checks look at.
 *
 * @typedef {Record<string, string>} Versions
 * @typedef {{
 *   name: string, version?: string, private?: boolean, type?: string, license?: string,
 *   engines?: { node?: string }, files?: string[], bin?: unknown,
 *   bundled?: boolean, exports?: Record<string, unknown>, scripts?: Record<string, string>,
 *   dependencies?: Versions, devDependencies?: Versions,
 *   optionalDependencies?: Versions, peerDependencies?: Versions,
 * }} Manifest
 * @typedef {{ room: string, folder: string, manifest: Manifest }} Package `room`: the folder's name
 */

/**
 * @param {string} folder
 * @returns {Manifest}
 */
export function readManifest(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

/**
 * The packages of a tree, by name of their folder.
 *
 * @param {string} root
 * @returns {Package[]}
 */
export function packagesOf(root) {
  const packages = join(root, "packages");
  return readdirSync(packages)
    .toSorted()
    .map((room) => ({ room, folder: join(packages, room) }))
    .filter(({ folder }) => existsSync(join(folder, "package.json")))
    .map(({ room, folder }) => ({ room, folder, manifest: readManifest(folder) }));
}
