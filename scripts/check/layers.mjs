import { readdirSync, readFileSync, existsSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { readModule } from "./imports.mjs";
import { listPackages, packageName } from "../shared/workspace.mjs";

/**
 * @typedef {import("../shared/workspace.mjs").Package} Package
 * @typedef {import("./imports.mjs").Import} Import
 */

/**
 * Which room may import which. A new room gets its line here.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const ARROWS = {
  cli: ["coding", "server", "durable", "tools", "mcp", "sessions", "protocol", "agent", "ai"],
  coding: ["tools", "mcp", "sessions", "agent", "ai"],
  react: ["server", "protocol", "agent", "ai"],
  server: ["durable", "sessions", "protocol", "agent", "ai"],
  durable: ["sessions", "agent", "ai"],
  tools: ["agent", "ai"],
  mcp: ["agent", "ai"],
  sessions: ["agent", "ai"],
  protocol: ["ai"],
  agent: ["ai"],
  ai: [],
};

/**
 * Folders that could be packages of their own: they import nothing of the rest of their
 * package, and of ours only these.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const STANDALONE_FOLDERS = {
  "packages/coding/src/conversation": [
    ...["@gyre/agent", "@gyre/ai", "@gyre/mcp", "@gyre/tools", "@gyre/sessions"],
  ],
};

/** Rooms that run in a browser, all but their `src/node/`. */
const BROWSER_ROOMS = ["ai", "agent", "protocol", "server", "react"];

/** An entry point whose file stands in the folder `node` is for Node, whatever its name. */
const NODE_FILE = /^\.\/(?:src|dist)\/node\//;

/** What a browser room has for Node, by name. `agent` has the one file that loads model services. */
const NODE_FILES = { agent: ["model-access.ts"] };

/** These know streams and helpers, never a provider. */
const WITHOUT_PROVIDERS = ["agent", "protocol"];

/**
 * Reads every module of every package, without tests and what they are made of, and checks what it imports:
 * only along the arrows, only through entry points, only what its package declares,
 * and nothing of Node where a browser is to run it. Reports too what is declared and
 * never imported.
 *
 * @param {string} root
 * @returns {import("../shared/parts.mjs").Findings}
 */
export function checkLayers(root) {
  const packages = listPackages(root);
  const problems = packages.flatMap((at) => checkPackage(root, at, packages));
  return { problems };
}

/**
 * @param {string} root
 * @param {Package} at
 * @param {readonly Package[]} packages
 */
function checkPackage(root, at, packages) {
  /** @type {string[]} */
  const problems = [];
  /** @type {Set<string>} */
  const imported = new Set();
  if (ARROWS[at.room] === undefined) {
    problems.push(`packages/${at.room}: scripts/check/layers.mjs has no arrows for this room`);
  }
  for (const [room, allowed] of Object.entries(NODE_FILES)) {
    if (room !== at.room) continue;
    for (const file of listSources(join(at.folder, "src", "node"))) {
      if (!allowed.includes(basename(file))) {
        problems.push(
          `${relative(root, file)}: packages/${room} has only ${allowed.join(", ")} for Node`,
        );
      }
    }
  }
  for (const file of listSources(join(at.folder, "src"))) {
    const { imports, nodeGlobals } = readModule(readFileSync(file, "utf8"), file);
    const inBrowser =
      BROWSER_ROOMS.includes(at.room) && !file.startsWith(join(at.folder, "src", "node") + sep);
    /** @param {number} line */
    const place = (line) => `${relative(root, file)}:${line}`;
    for (const one of imports) {
      if (one.specifier !== undefined) imported.add(packageName(one.specifier));
      const problem =
        checkStandalone(root, file, one) ?? checkImport(one, file, inBrowser, at, packages);
      if (problem !== undefined) problems.push(`${place(one.line)}: ${problem}`);
    }
    if (!inBrowser) continue;
    for (const { name, line } of nodeGlobals) {
      problems.push(`${place(line)}: uses Node's global ${name} in code for browsers`);
    }
  }
  for (const name of Object.keys(collectDeclared(at.manifest))) {
    if (imported.has(name) || isBroughtAlong(name, at, packages)) continue;
    problems.push(
      `packages/${at.room}/package.json: declares ${name}, which nothing in src imports`,
    );
  }
  return problems;
}

/**
 * @param {string} root
 * @param {string} file
 * @param {Import} one
 * @returns {string | undefined} what is wrong with it
 */
function checkStandalone(root, file, { specifier }) {
  if (specifier === undefined) return undefined;
  const path = relative(root, file).split(sep).join("/");
  for (const [folder, packages] of Object.entries(STANDALONE_FOLDERS)) {
    if (!path.startsWith(`${folder}/`)) continue;
    if (specifier.startsWith(".")) {
      const target = resolve(dirname(file), specifier);
      if (!target.startsWith(resolve(root, folder) + sep)) {
        return `imports ${specifier}, but ${folder} imports nothing of the rest of its package`;
      }
    } else if (specifier.startsWith("@gyre/") && !packages.includes(packageName(specifier))) {
      return `imports ${specifier}, but ${folder} imports only ${packages.join(", ")}`;
    }
  }
  return undefined;
}

/**
 * @param {Import} one
 * @param {string} file
 * @param {boolean} inBrowser
 * @param {Package} at
 * @param {readonly Package[]} packages
 * @returns {string | undefined} what is wrong with it
 */
function checkImport({ specifier, typeOnly }, file, inBrowser, at, packages) {
  if (specifier === undefined) {
    return inBrowser ? "imports what no check can see: the specifier is not a string" : undefined;
  }
  if (specifier.startsWith(".") || specifier.startsWith("/")) {
    const target = resolve(dirname(file), specifier);
    if (!target.startsWith(at.folder + sep)) return `imports ${specifier}, outside its package`;
    if (inBrowser && target.startsWith(join(at.folder, "src", "node") + sep)) {
      return `imports ${specifier}, which is for Node, in code for browsers`;
    }
    return undefined;
  }
  const name = packageName(specifier);
  if (specifier.startsWith("#")) {
    const target = at.manifest.imports?.[specifier]?.default;
    if (target === undefined || (inBrowser && isForNode(target))) {
      return `imports ${specifier}, which packages/${at.room}/package.json does not have for browsers`;
    }
    return undefined;
  }
  if (isBuiltin(specifier) || name === "node") {
    return inBrowser ? `imports ${specifier} of Node in code for browsers` : undefined;
  }
  if (name === at.manifest.name) return `imports its own package by name (${specifier})`;
  return (
    checkArrow(
      specifier,
      inBrowser,
      at,
      packages.find(({ manifest }) => manifest.name === name),
    ) ?? checkDeclared(name, typeOnly, at)
  );
}

/**
 * @param {string} specifier
 * @param {boolean} inBrowser
 * @param {Package} at
 * @param {Package | undefined} target undefined: not one of ours
 */
function checkArrow(specifier, inBrowser, at, target) {
  if (target === undefined) {
    return specifier.startsWith("@gyre/")
      ? `imports ${specifier}, and there is no such package`
      : undefined;
  }
  if (!ARROWS[at.room]?.includes(target.room)) {
    return `imports ${specifier}, but there is no arrow ${at.room} -> ${target.room}`;
  }
  const entry = specifier.slice(target.manifest.name.length + 1);
  const point = target.manifest.exports?.[entry === "" ? "." : `./${entry}`];
  if (point === undefined) {
    return `imports ${specifier}, which is no entry point of ${target.manifest.name}`;
  }
  const [part = ""] = entry.split("/");
  if (inBrowser && isForNode(point)) {
    return `imports ${specifier}, which is not for code for browsers`;
  }
  if (part === "providers" && WITHOUT_PROVIDERS.includes(at.room)) {
    return `imports ${specifier}, but knows no provider`;
  }
  return undefined;
}

/** @param {unknown} point what `exports` of a manifest has for one entry point */
function isForNode(point) {
  const files = typeof point === "object" && point !== null ? Object.values(point) : [point];
  return files.some((file) => NODE_FILE.test(String(file)));
}

/**
 * A package that is published as a bundle needs, of what our other packages need, what is
 * not bundled: in the same version.
 *
 * @param {string} name
 * @param {Package} at
 * @param {readonly Package[]} packages
 */
function isBroughtAlong(name, { manifest }, packages) {
  const version = collectDeclared(manifest)[name];
  if (manifest.bundled !== true || version === undefined) return false;
  return packages.some(
    (other) =>
      collectDeclared(other.manifest)[name] === version &&
      other.manifest.name in (manifest.devDependencies ?? {}),
  );
}

/** What is installed along with a package. @param {Package["manifest"]} manifest */
function collectDeclared({ dependencies, peerDependencies, optionalDependencies }) {
  return { ...dependencies, ...peerDependencies, ...optionalDependencies };
}

/**
 * Types that are gone in what is built may come from a devDependency, and so may all that
 * is part of the bundle that is published.
 *
 * @param {string} name
 * @param {boolean} typeOnly
 * @param {Package} at
 */
function checkDeclared(name, typeOnly, { room, manifest }) {
  const isBuiltIn = typeOnly || manifest.bundled === true;
  if (name in collectDeclared(manifest)) return undefined;
  if (isBuiltIn && name in (manifest.devDependencies ?? {})) return undefined;
  return `imports ${name}, which packages/${room}/package.json does not declare`;
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function listSources(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    // What tests are made of is not published.
    if (entry.isDirectory()) return entry.name === "testing" ? [] : listSources(path);
    return /\.[mc]?tsx?$/.test(path) && !/\.test(-d)?\.tsx?$/.test(path) ? [path] : [];
  });
}
