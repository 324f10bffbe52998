import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packagesOf, readManifest } from "./workspace.mjs";

/** @typedef {import("./workspace.mjs").Manifest} Manifest */

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
 * Checks what the package.json files and the lockfile promise: exact versions, one
 * range of Node for all, no scripts at install, and no address of a registry.
 *
 * @param {string} root
 * @returns {import("./parts.mjs").Findings}
 */
export function checkManifests(root) {
  const top = readManifest(root);
  const packages = packagesOf(root);
  const versions = new Map(packages.map(({ manifest }) => [manifest.name, manifest.version]));
  const problems = [
    ...checkManifest("package.json", top, versions),
    ...packages.flatMap(({ room, folder, manifest }) => {
      const file = `packages/${room}/package.json`;
      const found = checkManifest(file, manifest, versions);
      if (manifest.engines?.node !== top.engines?.node) {
        found.push(`${file}: engines.node is not that of the root (${top.engines?.node})`);
      }
      if (manifest.private === true) return found;
      if (manifest.type !== "module") found.push(`${file}: type is not "module"`);
      if (manifest.license === undefined) found.push(`${file}: no license`);
      if (manifest.files === undefined) found.push(`${file}: no files, so all would be published`);
      if (!existsSync(join(folder, "LICENSE")))
        found.push(`packages/${room}: no LICENSE to publish`);
      return found;
    }),
    ...checkLockfile(root),
  ];
  return { problems };
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
  if (manifest.engines?.node === undefined) problems.push(`${file}: no engines.node`);
  for (const hook of INSTALL_HOOKS) {
    if (manifest.scripts?.[hook] !== undefined) problems.push(`${file}: has a script ${hook}`);
  }
  return problems;
}

/**
 * A lockfile made without the registry's full answer does not tell of scripts, so
 * the installed packages are asked as well. One made where a registry lacks the builds
 * for other platforms leaves them out, and `npm ci` refuses it.
 *
 * @param {string} root
 */
function checkLockfile(root) {
  /** @typedef {{ resolved?: string, hasInstallScript?: boolean, optionalDependencies?: object }} Entry */
  /** @type {{ packages: Record<string, Entry> }} */
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  /** @type {string[]} */
  const problems = [];
  for (const [path, { resolved, hasInstallScript, optionalDependencies }] of Object.entries(
    packages,
  )) {
    if (!path.includes("node_modules/")) continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    if (resolved !== undefined && /^https?:/.test(resolved)) {
      problems.push(`package-lock.json: ${name} has the address of a registry in "resolved"`);
    }
    for (const optional of Object.keys(optionalDependencies ?? {})) {
      const places = [`${path}/node_modules/${optional}`, `node_modules/${optional}`];
      if (places.some((place) => packages[place] !== undefined)) continue;
      problems.push(`package-lock.json: ${optional} is missing, which ${name} may need`);
    }
    if (MAY_RUN_SCRIPTS[name] !== undefined) continue;
    if (hasInstallScript === true || runsScripts(join(root, path))) {
      problems.push(`package-lock.json: ${name} runs a script when it is installed`);
    }
  }
  return problems;
}

/** @param {string} folder */
function runsScripts(folder) {
  if (!existsSync(join(folder, "package.json"))) return false;
  const { scripts } = readManifest(folder);
  return INSTALL_HOOKS.some((hook) => scripts?.[hook] !== undefined);
}
