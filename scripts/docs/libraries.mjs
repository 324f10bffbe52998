import { join, relative, sep } from "node:path";
import { readDeclarations } from "./declarations.mjs";
import { isInternal, listPackages } from "../shared/workspace.mjs";

/**
 * @typedef {import("./declarations.mjs").Origin} Origin
 * @typedef {import("./declaration-file.mjs").Declared} Declared
 * @typedef {import("../shared/workspace.mjs").Package} Package
 * @typedef {Awaited<ReturnType<typeof readDeclarations>>} Declarations
 */

/**
 * A name that an entry point exports, with the page that documents it. `parts`: declarations
 * that it is made of and that cannot be imported. `see`: the names that it mentions.
 *
 * @typedef {{
 *   name: string, specifier: string, page: string, source: string,
 *   declared: readonly Declared[], parts: Declared[], see: Documented[],
 * }} Documented
 *
 * `others`: names that are exported here too and have their place elsewhere: at another
 * entry point, or in a module that is not ours.
 * @typedef {{
 *   specifier: string, page: string, names: Documented[],
 *   others: { name: string, home: Documented | string }[],
 * }} EntryPoint
 * @typedef {{ name: string, description: string, entries: EntryPoint[] }} Library
 */

/**
 * The packages of a tree that have entry points, with all that these export. They must have
 * been built.
 *
 * @param {string} root
 * @returns {Promise<Library[]>}
 */
export async function readLibraries(root) {
  const packages = listPackages(root).filter(({ manifest }) => manifest.exports !== undefined);
  const points = packages.flatMap(listEntryPoints);
  const files = new Map(points.map(({ specifier, file }) => [specifier, file]));
  const declarations = await readDeclarations([...files.values()], files);

  const homes = findHomes(root, points, declarations);
  for (const home of homes.values()) relate(home, homes, declarations);
  return packages.map(({ folder, manifest }) => ({
    name: manifest.name,
    description: readDescription(manifest),
    entries: points
      .filter((point) => point.folder === folder)
      .map((point) => describeEntryPoint(point, homes, declarations)),
  }));
}

/**
 * Names in the order of a dictionary, the same on every machine.
 *
 * @param {{ name: string }} a
 * @param {{ name: string }} b
 */
export function byName(a, b) {
  const [left, right] = [a.name.toLowerCase(), b.name.toLowerCase()];
  if (left !== right) return left < right ? -1 : 1;
  return a.name < b.name ? -1 : Number(a.name > b.name);
}

/** @param {Package["manifest"] & { description?: string }} manifest */
function readDescription({ description = "" }) {
  return description;
}

/**
 * The entry points that have types. A page is found by what a program imports.
 *
 * @param {Package} package_
 */
function listEntryPoints({ room, folder, manifest }) {
  return Object.entries(manifest.exports ?? {}).flatMap(([path, target]) => {
    if (typeof target !== "object" || target === null || !("types" in target)) return [];
    if (isInternal(path)) return [];
    const below = path.slice(1);
    const file = join(folder, String(target.types));
    return { specifier: `${manifest.name}${below}`, page: `${room}${below}.md`, file, folder };
  });
}

/** @typedef {ReturnType<typeof listEntryPoints>[number]} Point */

/**
 * Each name by its origin. It has its place at the first entry point of its own package
 * that exports it.
 *
 * @param {string} root
 * @param {readonly Point[]} points
 * @param {Declarations} declarations
 */
function findHomes(root, points, declarations) {
  /** @type {Map<string, Documented>} */
  const homes = new Map();
  for (const { specifier, page, file, folder } of points) {
    for (const [name, origin] of declarations.resolveExports(file)) {
      if (homes.has(formatKey(origin)) || !origin.from.startsWith(folder + sep)) continue;
      homes.set(formatKey(origin), {
        name,
        specifier,
        page,
        source: toSourcePath(relative(root, origin.from)),
        declared: declarations.declared(origin).map((one) => renamed(one, origin.name, name)),
        parts: [],
        see: [],
      });
    }
  }
  return homes;
}

/**
 * Finds what a name mentions. A type that cannot be imported is shown with it.
 *
 * @param {Documented} home
 * @param {ReadonlyMap<string, Documented>} homes
 * @param {Declarations} declarations
 */
function relate(home, homes, declarations) {
  /** @type {Set<string>} */
  const seen = new Set();
  const waiting = [...home.declared];
  for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
    for (const origin of declarations.usedBy(one)) {
      const target = homes.get(formatKey(origin));
      if (target === home || seen.has(formatKey(origin))) continue;
      seen.add(formatKey(origin));
      if (target !== undefined) {
        home.see.push(target);
        continue;
      }
      const parts = declarations.declared(origin);
      home.parts.push(...parts);
      waiting.push(...parts);
    }
  }
}

/**
 * @param {Point} point
 * @param {ReadonlyMap<string, Documented>} homes
 * @param {Declarations} declarations
 * @returns {EntryPoint}
 */
function describeEntryPoint({ specifier, page, file }, homes, declarations) {
  /** @type {EntryPoint} */
  const entry = { specifier, page, names: [], others: [] };
  for (const [name, origin] of declarations.resolveExports(file)) {
    const home = homes.get(formatKey(origin));
    if (home?.page === page && home.name === name) entry.names.push(home);
    else entry.others.push({ name, home: home ?? origin.from });
  }
  entry.names.sort(byName);
  entry.others.sort(byName);
  return entry;
}

/** @param {Origin} origin */
function formatKey({ from, name }) {
  return `${from} ${name}`;
}

/** @param {string} built the path of a declaration file */
function toSourcePath(built) {
  return built
    .replaceAll(sep, "/")
    .replace("/dist/", "/src/")
    .replace(/\.d\.ts$/, ".ts");
}

/**
 * @param {Declared} declared
 * @param {string} from
 * @param {string} to the name that it is exported by
 * @returns {Declared}
 */
function renamed(declared, from, to) {
  if (from === to) return declared;
  return { ...declared, text: declared.text.replace(` ${from}`, () => ` ${to}`) };
}
