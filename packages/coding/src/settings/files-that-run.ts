import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, extname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { isAddress, readMcpServers } from "@gyre/mcp";
import { findCommandFiles, type ProjectCommand } from "../core/command-files.ts";
import { parseHooks } from "./hooks.ts";
import {
  findPackage,
  findPlugin,
  type PluginEntry,
  PluginError,
  readManifest,
} from "./plugin-entry.ts";
import { describeCode } from "./file.ts";
import type { Settings } from "./settings.ts";
import { computeFingerprint, type TrustedFile } from "./trust.ts";

/** What one project may have trusted. Past this it is better bundled. */
const MAX_FILES = 5000;
const MAX_BYTES = 67_108_864;
const MODULES = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);
/** What a name without an ending may stand for. */
const ENDINGS = [
  "",
  ".js",
  ".cjs",
  ".mjs",
  ".ts",
  ".json",
  ".node",
  "/index.js",
  "/index.cjs",
  "/index.json",
  "/index.node",
];

/** A text that may name a file beside the module: an import, or data that it reads. */
const RELATIVE = /(["'`])(\.{1,2}(?:\/[^"'`\n]*)?)\1/g;
/** A module that is imported by its name, or by a path from the root. */
const BY_NAME =
  /\b(?:from|import|require|resolve)\s*\(?\s*(?:\/\*.*?\*\/\s*)?(["'`])([^"'`.\n][^"'`\n]*)\1/g;
const DEPENDENCIES = ["dependencies", "optionalDependencies", "peerDependencies"] as const;

/**
 * All that runs because of a project's settings, to be trusted by its content: each plugin
 * with what it imports by name or path, all files of packages, and the files that commands
 * of hooks and servers name. What is not there is left out, and makes a difference once it is. Throws
 * `PluginError` for what cannot be followed.
 */
export function filesThatRun(settings: Settings, folder: string): TrustedFile[] {
  try {
    return walked(settings, folder);
  } catch (error) {
    if (error instanceof PluginError) throw error;
    throw new PluginError(`what it runs cannot be read: ${describeCode(error)}`, { cause: error });
  }
}

function walked(settings: Settings, folder: string): TrustedFile[] {
  const walk = new Walk(folder);
  for (const path of settings.plugins ?? []) {
    const entry = foundPlugin(path);
    if (!entry) continue;
    if (entry.folder === undefined) walk.file(entry.file);
    else walk.package(entry.folder);
  }
  const { files } = findCommandFiles(listCommands(settings), folder);
  const own = join(folder, ".gyre") + sep;
  for (const file of files) {
    if (file.startsWith(own)) walk.file(file);
    else walk.named(file);
  }
  return walk.files();
}

/**
 * All that a project's settings run and that only the user may change while they are
 * trusted, absolute: also files that are named and not there yet.
 */
export function placesThatRun(settings: Settings, folder: string): string[] {
  const { files, missing } = findCommandFiles(listCommands(settings), folder);
  const read = tryFiles(settings, folder);
  const trusted = typeof read === "string" ? [] : read.map(({ name }) => resolve(folder, name));
  return [...new Set([...trusted, ...files, ...missing])];
}

/**
 * Remembers what commands of a project run as it is now. The returned function says what is
 * different since: a sentence without its end, and undefined where nothing is. `since`: what
 * that sentence calls the present.
 */
export function watchFiles(
  { hooks, mcp }: Settings,
  folder: string,
  since = "it was trusted",
): () => string | undefined {
  const settings = { ...(hooks && { hooks }), ...(mcp && { mcp }) };
  const before = tryFiles(settings, folder);
  if (typeof before === "string") return () => before;
  const prints = toPrints(before);
  return () => {
    const after = tryFiles(settings, folder);
    if (typeof after === "string") return after;
    const now = toPrints(after);
    const names = [...new Set([...prints.keys(), ...now.keys()])];
    const changed = names.filter((name) => prints.get(name) !== now.get(name));
    if (changed.length === 0) return undefined;
    return `${changed.join(", ")} has changed since ${since}`;
  };
}

function toPrints(files: readonly TrustedFile[]): ReadonlyMap<string, string> {
  return new Map(files.map((file) => [file.name, computeFingerprint([file])]));
}

/** The files, or why they cannot be followed. */
function tryFiles(settings: Settings, folder: string): TrustedFile[] | string {
  try {
    return filesThatRun(settings, folder);
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    return error.message;
  }
}

/** What hooks and servers of a project run. */
function listCommands({ hooks, mcp }: Settings): ProjectCommand[] {
  const servers = mcp === undefined ? [] : Object.values(readMcpServers(mcp).servers);
  return [
    ...(hooks ? parseHooks(hooks).hooks.map(({ command }) => ({ command })) : []),
    ...servers.flatMap((server) => {
      if (isAddress(server)) return [];
      const { command, args = [], cwd, env = {} } = server;
      // Variables may name files too: NODE_OPTIONS does.
      const words = [command, ...args, ...Object.values(env)];
      return [{ command: words, ...(cwd !== undefined && { cwd }) }];
    }),
  ];
}

/** Nothing where it is not there: the loader reports that. */
function foundPlugin(path: string): PluginEntry | undefined {
  try {
    return findPlugin(path);
  } catch (error) {
    if (error instanceof PluginError) return undefined;
    throw error;
  }
}

class Walk {
  readonly #folder: string;
  readonly #files = new Map<string, Buffer>();
  readonly #packages = new Set<string>();
  readonly #named = new Set<string>();
  #bytes = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  files(): TrustedFile[] {
    return [...this.#files].map(([path, content]) => ({
      name: relative(this.#folder, path).replaceAll(sep, "/"),
      content,
    }));
  }

  /**
   * A file that a command names, with the project's own modules that it imports by a path. Its
   * packages are not followed: a server has many, and is installed again and again.
   */
  named(file: string): void {
    this.file(file, { isFollowed: false });
    const path = realpathSync(file);
    if (path.includes(`${sep}node_modules${sep}`) || !MODULES.has(extname(path))) return;
    if (this.#named.has(path)) return;
    this.#named.add(path);
    const text = readFileSync(path, "utf8");
    for (const [, , name = ""] of text.matchAll(RELATIVE)) {
      for (const one of writtenAs(name)) {
        const near = resolve(dirname(path), one);
        const found = ENDINGS.map((ending) => near + ending).find(isFile);
        if (found !== undefined) this.named(found);
      }
    }
  }

  file(named: string, { isFollowed = true }: { isFollowed?: boolean } = {}): void {
    // As Node has it: what a link leads to imports what is beside it there.
    const path = realpathSync(named);
    if (this.#files.has(path)) return;
    const stats = statSync(path);
    if (!stats.isFile()) throw new PluginError(`${path} is not a file`);
    this.#bytes += stats.size;
    if (this.#files.size >= MAX_FILES || this.#bytes > MAX_BYTES) {
      throw new PluginError(
        `what it runs has more than ${MAX_FILES} files or ${MAX_BYTES} bytes. Bundle it`,
      );
    }
    const content = readFileSync(path);
    this.#files.set(path, content);
    if (isFollowed && MODULES.has(extname(path))) this.#imports(path, content.toString("utf8"));
  }

  package(folder: string): void {
    const real = realpathSync(folder);
    if (this.#packages.has(real)) return;
    this.#packages.add(real);
    this.#addFolder(real);
    const manifest = readManifest(real);
    for (const kind of DEPENDENCIES) {
      for (const name of Object.keys(manifest[kind] ?? {})) this.#byName(name, real);
    }
  }

  #addFolder(folder: string): void {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      // What is installed in it is followed from where it is imported.
      if (entry.name === "node_modules") continue;
      if (entry.isDirectory()) this.#addFolder(path);
      else if (isFile(path)) this.file(path);
      else throw new PluginError(`${path} is neither a file nor a folder, and cannot be trusted`);
    }
  }

  #imports(path: string, text: string): void {
    const folder = dirname(path);
    for (const [, , name = ""] of text.matchAll(RELATIVE)) {
      for (const one of writtenAs(name)) this.#near(resolve(folder, one));
    }
    for (const [, , name = ""] of text.matchAll(BY_NAME)) {
      if (name.startsWith("#")) {
        throw new PluginError(`${path} imports "${name}", which is not followed. Write the path`);
      }
      const place = name.startsWith("file:") ? toPath(name) : name;
      if (isAbsolute(place)) for (const one of writtenAs(place)) this.#near(one);
      else this.#byName(name, folder);
    }
  }

  /** What a path without an ending stands for; of a folder, what its manifest says. */
  #near(path: string): void {
    const found = ENDINGS.map((ending) => path + ending).find(isFile);
    if (found !== undefined) this.file(found);
    const manifest = join(path, "package.json");
    if (!isFile(manifest)) return;
    const { main } = readManifest(path);
    if (typeof main !== "string") return;
    this.file(manifest);
    const begin = ENDINGS.map((ending) => join(path, main) + ending).find(isFile);
    if (begin !== undefined) this.file(begin);
  }

  #byName(name: string, from: string): void {
    const [first = "", second = ""] = name.split("/");
    if (isBuiltin(name) || /[:\s]/.test(name)) return;
    const whole = first.startsWith("@") ? `${first}/${second}` : first;
    const own = ownPackage(from);
    if (own?.name === whole && !this.#packages.has(own.folder)) {
      throw new PluginError(
        `${from} imports its own package "${whole}", which is not followed. Write the path`,
      );
    }
    const found = findPackage(whole, from);
    if (found !== undefined) this.package(found);
  }
}

/** A name and what it means where it is an address: without a query, and with `%20` as a blank. */
function writtenAs(name: string): ReadonlySet<string> {
  const plain = name.replace(/[?#].*$/, "");
  return new Set([name, plain, unescaped(plain)]);
}

function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    // Then it is no address.
    return name;
  }
}

function toPath(address: string): string {
  try {
    return fileURLToPath(address);
  } catch {
    // Nothing can be loaded from there.
    return address;
  }
}

/** The package that a folder is in, if its files may import each other by its name. */
function ownPackage(from: string): { name: unknown; folder: string } | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    if (isFile(join(folder, "package.json"))) {
      const { name, exports } = readManifest(folder);
      return exports === undefined ? undefined : { name, folder };
    }
    if (folder === dirname(folder)) return undefined;
  }
}

function isFile(path: string): boolean {
  // Below what is a file itself, there is nothing.
  return existsSync(path) && statSync(path).isFile();
}
