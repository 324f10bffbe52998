import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { makeFields, readAddresses } from "../shared/addresses.mjs";
import { listExampleManifests, listPackages, readManifest } from "../shared/workspace.mjs";

/** @typedef {import("../shared/workspace.mjs").Manifest} Manifest */

const EXACT = /^\d+\.\d+\.\d+(-[\w.]+)?$/;
const INSTALL_HOOKS = ["preinstall", "install", "postinstall"];

/**
 * Packages that may run a script when they are installed, each with its reason.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const MAY_RUN_SCRIPTS = {
  fsevents: "optional, for macOS alone, by way of vite; no package that we publish needs it",
};

/**
 * Checks what the package.json files and the lockfiles promise: exact versions no
 * address of a registry, the addresses of the project; and for what is not just measured against, one range of Node
 * for all and no scripts at install.
 *
 * @param {string} root
 * @returns {import("../shared/parts.mjs").Findings}
 */
export function checkManifests(root) {
  const top = readManifest(root);
  const packages = listPackages(root);
  const versions = new Map(packages.map(({ manifest }) => [manifest.name, manifest.version]));
  const problems = [
    ...checkManifest("package.json", top, versions),
    ...checkEngines("package.json", top),
    ...packages.flatMap(({ room, folder, manifest }) => {
      const file = `packages/${room}/package.json`;
      const found = [...checkManifest(file, manifest, versions), ...checkEngines(file, manifest)];
      if (manifest.engines?.node !== top.engines?.node) {
        found.push(`${file}: engines.node is not that of the root (${top.engines?.node})`);
      }
      if (manifest.private === true) return found;
      if (manifest.type !== "module") found.push(`${file}: type is not "module"`);
      if (manifest.license === undefined) found.push(`${file}: no license`);
      if (manifest.files === undefined) found.push(`${file}: no files, so all would be published`);
      if (!existsSync(join(folder, "LICENSE")))
        found.push(`packages/${room}: no LICENSE to publish`);
      if (manifest.exports !== undefined && !("./package.json" in manifest.exports)) {
        found.push(`${file}: exports have no "./package.json"`);
      }
      return [...found, ...checkAddresses(root, room, folder)];
    }),
    ...checkLockfile(root, "package-lock.json"),
    ...checkScripts(root),
    ...[...listPeerFolders(root), ...listEngineFolders(root)].flatMap((folder) =>
      checkPeer(root, folder, versions),
    ),
    ...listExampleManifests(root).flatMap((file) => {
      const manifest = readManifest(join(root, dirname(file)));
      return [...checkManifest(file, manifest, versions), ...checkEngines(file, manifest)];
    }),
  ];
  return { problems };
}

/**
 * The addresses of the project stand in one place; a tree without it has none to compare.
 *
 * @param {string} root
 * @param {string} room
 * @param {string} folder
 */
function checkAddresses(root, room, folder) {
  const addresses = readAddresses(root);
  if (addresses === undefined) return [];
  const manifest = /** @type {Record<string, unknown>} */ (
    /** @type {unknown} */ (readManifest(folder))
  );
  return Object.entries(makeFields(addresses, room))
    .filter(([name, value]) => !isDeepStrictEqual(manifest[name], value))
    .map(
      ([name]) =>
        `packages/${room}/package.json: ${name} is not as in scripts/shared/addresses.json: run node scripts/shared/addresses.mjs`,
    );
}

const PEERS = "tests/bench/peers";
const ENGINES = "tests/durable/engines";

/**
 * The folders with the libraries that we are measured against.
 *
 * @param {string} root
 */
function listPeerFolders(root) {
  if (!existsSync(join(root, PEERS))) return [];
  const below = readdirSync(join(root, PEERS)).toSorted();
  return [PEERS, ...below.map((name) => `${PEERS}/${name}`)].filter((folder) =>
    existsSync(join(root, folder, "package.json")),
  );
}

/**
 * The folder with the engines that durable runs are tried on.
 *
 * @param {string} root
 */
function listEngineFolders(root) {
  return existsSync(join(root, ENGINES, "package.json")) ? [ENGINES] : [];
}

/**
 * A measured library, or an engine, is installed without running its scripts, so it may have some.
 *
 * @param {string} root
 * @param {string} folder
 * @param {ReadonlyMap<string, string | undefined>} workspace versions of our own packages
 */
function checkPeer(root, folder, workspace) {
  const manifest = readManifest(join(root, folder));
  const lockfile = `${folder}/package-lock.json`;
  const problems = checkManifest(`${folder}/package.json`, manifest, workspace);
  if (existsSync(join(root, lockfile))) problems.push(...checkLockfile(root, lockfile));
  else if (Object.keys(manifest.dependencies ?? {}).length > 0) {
    problems.push(`${folder}: no package-lock.json, so each install may bring something else`);
  }
  return problems;
}

/**
 * @param {string} file
 * @param {Manifest} manifest
 * @param {ReadonlyMap<string, string | undefined>} workspace versions of our own packages
 */
function checkManifest(file, manifest, workspace) {
  /** @type {string[]} */
  const problems = [];
  const { dependencies, devDependencies, optionalDependencies } = manifest;
  for (const [name, version] of Object.entries({
    ...dependencies,
    ...devDependencies,
    ...optionalDependencies,
  })) {
    if (!EXACT.test(version)) problems.push(`${file}: ${name} is ${version}, not an exact version`);
    else if (workspace.has(name) && workspace.get(name) !== version) {
      problems.push(`${file}: ${name} is ${version}, but here it is ${workspace.get(name)}`);
    }
  }
  for (const hook of INSTALL_HOOKS) {
    if (manifest.scripts?.[hook] !== undefined) problems.push(`${file}: has a script ${hook}`);
  }
  return problems;
}

/**
 * @param {string} file
 * @param {Manifest} manifest
 */
function checkEngines(file, manifest) {
  return manifest.engines?.node === undefined ? [`${file}: no engines.node`] : [];
}

/**
 * What a lockfile says of the packages that it installs, by path.
 *
 * @typedef {{ resolved?: string, hasInstallScript?: boolean, optionalDependencies?: object }} Entry
 * @param {string} file
 * @returns {Record<string, Entry>}
 */
function lockedIn(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}

/** @param {string} path in a lockfile */
const readName = (path) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);

/**
 * A lockfile made where a registry lacks the builds for other platforms leaves them
 * out, and `npm ci` refuses it.
 *
 * @param {string} root
 * @param {string} file below the root
 */
function checkLockfile(root, file) {
  const packages = lockedIn(join(root, file));
  /** @type {string[]} */
  const problems = [];
  for (const [path, { resolved, optionalDependencies }] of Object.entries(packages)) {
    if (!path.includes("node_modules/")) continue;
    const name = readName(path);
    if (resolved !== undefined && /^https?:/.test(resolved)) {
      problems.push(`${file}: ${name} has the address of a registry in "resolved"`);
    }
    for (const optional of Object.keys(optionalDependencies ?? {})) {
      const places = [`${path}/node_modules/${optional}`, `node_modules/${optional}`];
      if (places.some((place) => packages[place] !== undefined)) continue;
      problems.push(`${file}: ${optional} is missing, which ${name} may need`);
    }
  }
  return problems;
}

/**
 * A lockfile made without the registry's full answer does not list scripts, so
 * the installed packages are asked as well.
 *
 * @param {string} root
 */
function checkScripts(root) {
  return Object.entries(lockedIn(join(root, "package-lock.json")))
    .filter(
      ([path]) => path.includes("node_modules/") && !Object.hasOwn(MAY_RUN_SCRIPTS, readName(path)),
    )
    .filter(([path, { hasInstallScript }]) => hasInstallScript || runsScripts(join(root, path)))
    .map(([path]) => `package-lock.json: ${readName(path)} runs a script when it is installed`);
}

/** @param {string} folder */
function runsScripts(folder) {
  if (!existsSync(join(folder, "package.json"))) return false;
  const { scripts } = readManifest(folder);
  return INSTALL_HOOKS.some((hook) => scripts?.[hook] !== undefined);
}
