import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve, sep } from "node:path";

/** A plugin cannot be used. */
export class PluginError extends Error {
  readonly code = "bad_plugin";
}

/** Where a plugin begins. */
export interface PluginEntry {
  /** For people: the name of the package, or of the file without its ending. */
  name: string;
  /** The module to load, absolute. */
  file: string;
  /** The folder of the package, where it is one. */
  folder?: string;
}

/** The names of conditions under which a package is loaded by us. */
const CONDITIONS: ReadonlySet<string> = new Set(["node", "import", "default"]);
const IN_PACKAGE = /^(.*)[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)(?:[\\/](.+))?$/;

/**
 * Finds what a setting names: a file, a folder with a package, or a package in a
 * `node_modules`, which is also looked for in the folders above. Throws `PluginError`.
 */
export function findPlugin(path: string): PluginEntry {
  const [, folder, name, subpath] = IN_PACKAGE.exec(path) ?? [];
  if (folder !== undefined && name !== undefined) {
    const found = findPackage(name, folder);
    if (found !== undefined) return packageEntry(found, subpath);
    throw new PluginError(
      `there is no package "${name}" in ${folder} or above it. Install it there; a path begins with ./`,
    );
  }
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) throw new PluginError(`there is no file ${path}`);
  if (stats.isDirectory()) return packageEntry(path, undefined);
  return { name: basename(path, extname(path)), file: path };
}

/** The folder of a package, as Node finds it from a folder. */
export function findPackage(name: string, from: string): string | undefined {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const found = join(folder, "node_modules", name);
    if (basename(folder) !== "node_modules" && existsSync(found)) return found;
    if (folder === dirname(folder)) return undefined;
  }
}

function packageEntry(folder: string, subpath: string | undefined): PluginEntry {
  const manifest = readManifest(folder);
  const { exports, main } = manifest;
  const name = typeof manifest["name"] === "string" ? manifest["name"] : basename(folder);
  const target =
    exports === undefined
      ? (subpath ?? (typeof main === "string" ? main : "index.js"))
      : exported(exports, subpath === undefined ? "." : `./${subpath.replaceAll(sep, "/")}`);
  if (target === undefined) {
    throw new PluginError(`the package "${name}" does not export ${subpath ?? "anything to load"}`);
  }
  const file = join(folder, target);
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) {
    throw new PluginError(`the package "${name}" has no file ${target}`);
  }
  return { name, file, folder };
}

/** What `package.json` says. Throws `PluginError`. */
export function readManifest(folder: string): Record<string, unknown> {
  const path = join(folder, "package.json");
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (isObject(manifest)) return manifest;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new PluginError(`${path} cannot be read: ${why}`, { cause: error });
  }
  throw new PluginError(`${path} must hold a JSON object`);
}

function exported(exports: unknown, path: string): string | undefined {
  const hasPaths = isObject(exports) && Object.keys(exports).some((key) => key.startsWith("."));
  if (hasPaths) return chosen(exports[path]);
  return path === "." ? chosen(exports) : undefined;
}

/** The first target whose conditions hold. */
function chosen(target: unknown): string | undefined {
  if (typeof target === "string") return target.startsWith("./") ? target : undefined;
  if (!isObject(target)) return undefined;
  for (const [condition, inner] of Object.entries(target)) {
    const found = CONDITIONS.has(condition) ? chosen(inner) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
