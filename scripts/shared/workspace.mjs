import { readdirSync, readFileSync, existsSync } from "node:fs";
import { join, sep } from "node:path";

/**
 * The fields of a package.json that the checks look at.
 *
 * @typedef {Record<string, string>} Versions
 * @typedef {{
 *   name: string, version?: string, private?: boolean, type?: string, license?: string,
 *   engines?: { node?: string }, files?: string[], bin?: unknown,
 *   bundled?: boolean, exports?: Record<string, unknown>, imports?: Record<string, { default?: unknown }>, scripts?: Record<string, string>,
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
export function listPackages(root) {
  const packages = join(root, "packages");
  return readdirSync(packages)
    .toSorted()
    .map((room) => ({ room, folder: join(packages, room) }))
    .filter(({ folder }) => existsSync(join(folder, "package.json")))
    .map(({ room, folder }) => ({
      room,
      folder,
      manifest: expandPatterns(folder, readManifest(folder)),
    }));
}

/**
 * The package.json files of examples that are installed in a folder of their own, below the root.
 *
 * @param {string} root
 */
export function listExampleManifests(root) {
  const examples = join(root, "examples");
  if (!existsSync(examples)) return [];
  return readdirSync(examples)
    .toSorted()
    .map((name) => `examples/${name}/package.json`)
    .filter((file) => existsSync(join(root, file)));
}

/**
 * The source file of an entry point. The condition has a name of its own: other packages have
 * a `source` that Node cannot run.
 *
 * @param {unknown} target
 */
export function findSource(target) {
  return /** @type {{ "@gyre/source"?: string }} */ (target)["@gyre/source"];
}

/**
 * Whether an entry point is for our own programs alone, which are bundled: it is neither
 * documented nor published.
 *
 * @param {string} path as in `exports`
 */
export function isInternal(path) {
  return path.startsWith("./internal/");
}

/**
 * A pattern among the entry points (`./providers/*`) stands for one entry point for each
 * source file that it matches.
 *
 * @param {string} folder
 * @param {Manifest} manifest
 * @returns {Manifest}
 */
function expandPatterns(folder, manifest) {
  if (manifest.exports === undefined || typeof manifest.exports !== "object") return manifest;
  const entries = Object.entries(manifest.exports).flatMap(([path, target]) => {
    const source = findSource(target);
    if (!path.includes("*") || source === undefined) return [[path, target]];
    const [before = "", after = ""] = source.split("*");
    const parent = join(folder, before);
    return readdirSync(parent, { recursive: isInternal(path), encoding: "utf8" })
      .map((name) => name.split(sep).join("/"))
      .filter((name) => !/\.test(-d)?\.ts$/.test(name))
      .map((name) => (after.startsWith("/") ? name : name.slice(0, -after.length)))
      .filter((name) => existsSync(join(parent, `${name}${after}`)))
      .map((name) => [
        path.replace("*", name),
        JSON.parse(JSON.stringify(target).replaceAll("*", name)),
      ]);
  });
  return { ...manifest, exports: Object.fromEntries(entries) };
}

/** The package that an import is of: `@a/b` of `@a/b/c`. @param {string} specifier */
export function packageName(specifier) {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}
