import { isUtf8 } from "node:buffer";
import { execFile } from "node:child_process";
import {
  type BigIntStats,
  constants,
  type Dirent,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs";
import { chmod, copyFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { errorMessage } from "@gyre/ai";
import type { ToolEnv } from "../contract/env.ts";
import { findRunningKeys, parseSettings, type Setting } from "../git/config.ts";
import { findLinkedFolders, hasPlainNames, type LinkedFolders } from "../git/index-file.ts";
import { hasExecLines } from "../git/private/rebase-todo.ts";
import { openClosedFolder } from "../process/closed-folder.ts";
import { isWithin } from "../sandbox/places.ts";
import { listAdded } from "../workspace/added.ts";
import { pathIn } from "../workspace/ignore-files.ts";
import { type Listing, type Listings, getListings } from "../workspace/listings.ts";
import { findNameless, identify, leadsToNameless } from "./nameless-repository.ts";
import { moveAside, moveFrom, type PutAside } from "./quarantine.ts";

/** Folders that one look goes through, those nearest to the top first. */
const MAX_FOLDERS = 20_000;
/** The same where all were looked at before the command: what it made is what is more. */
const MAX_NEW_FOLDERS = 200_000;
/** Repositories that one look goes into. An index that names more is put aside. */
const MAX_TREES = 20_000;
/** What there is in a repository, or where one is. */
const SPECIAL_NAMES = new Set([".git", "HEAD", "commondir", "objects", "refs"]);
/** Of packages, only their own folders are looked at. */
const PACKAGES = "node_modules";
/** Before a command, folders that were looked at so short a time ago are not looked at again. */
const FRESH_MS = 250;
/** An index may be split in two. */
const INDEX_FILE = /^(?:index|sharedindex\..+)$/;
/** Of a file that git reads. */
const MAX_FILE_BYTES = 1024 * 1024;
/** A pointer may lead to another one. */
const MAX_POINTERS = 4;
/** Names in the name of a module. */
const MAX_MODULE_NAMES = 8;
/** Folders of git that have what runs in them. */
const INNER_FOLDERS = ["rebase-merge", "worktrees", "modules"];
/**
 * Folders into which the user's own git writes by name: a link there has it write elsewhere, as a
 * reflog into a file that a shell reads. They are looked through for links, which git never makes.
 */
const WRITTEN_FOLDERS = ["logs", "refs", "info", "objects/info", "objects/pack"];
const MAX_WRITTEN_FOLDERS = 5_000;
/** In a folder of git, names that other programs of the user trust: a setting of lazygit, a mark for search paths. */
const TRUSTED_NAMES = ["lazygit.yml", "safe"];
/** The strategies of merges that git brings along: any other is a program, also by a path. */
const STRATEGIES = new Set(["ort", "recursive", "resolve", "octopus", "ours", "subtree"]);
/** Files in them are remotes, as git had them before its config did. git makes none itself. */
const REMOTE_FOLDERS = ["remotes", "branches"];
const CONFIG_TIMEOUT_MS = 10_000;

/** A file by which a repository has git run something, or leads it elsewhere. */
interface GitFile {
  kind:
    | "config"
    | "hook"
    | "todo"
    | "strategy"
    | "options"
    | "index"
    | "link"
    | "pointer"
    | "remote"
    | "trusted"
    | "nameless"
    | "crowded";
  /** Another one after each change. */
  identity: string;
  /** Of a config, and of options. */
  text?: string;
  /** Of a repository that no string leads to: the folder around it, byte for byte. */
  folder?: Buffer;
}

/** By path, absolute. */
export type GitFiles = ReadonlyMap<string, GitFile>;

/** What of a listing matters here. */
interface Marks {
  /** The paths of its folders, from the workspace. */
  folders: readonly string[];
  /** It is itself what git takes for a repository. */
  isRepository: boolean;
  /** It has a `.git`. */
  hasGit: boolean;
}

/**
 * Looks through a workspace for what its repositories have git run: a sandboxed command can make
 * one anywhere, and the user's own git would run it outside. Listings are shared with all that
 * walks through the workspace, so that only folders that changed are read again.
 */
export class GitWatch {
  readonly #env: ToolEnv;
  readonly #listings: Listings;
  readonly #marks = new WeakMap<Listing, Marks>();
  /** By the folder of git: what its index leads to. */
  readonly #linked = new Map<
    string,
    LinkedFolders & { identity: string; files: readonly string[] }
  >();
  /** The last look before a command went through all folders. */
  #wasWhole = false;
  /** What was there before the jobs that still run, or ran since the last command. */
  #beforeJobs: GitFiles | undefined;
  /** What was put aside after jobs. */
  readonly #reported: PutAside[] = [];
  /** Folders of git outside of the workspace, too. */
  readonly #included = new Set<string>();

  constructor(env: ToolEnv) {
    this.#env = env;
    this.#listings = getListings(env.workspace);
  }

  /** Looks at a folder of git that commands can change, wherever it is, from now on. */
  include(folder: string): void {
    this.#included.add(folder);
  }

  /** To be called before a command is started. */
  before(): GitFiles {
    return this.#beforeJobs ?? this.#scanBefore();
  }

  /** To be called before a job is started: what it leaves is found after a later command. */
  beforeJob(): void {
    this.#beforeJobs ??= this.#scanBefore();
  }

  /** To be called when a job has ended: what is put aside is reported by the next `putAside`. */
  async afterJob(hasJobs: () => boolean): Promise<void> {
    try {
      const { moved } = await this.#putAside(this.before(), hasJobs());
      this.#reported.push(...moved);
    } catch {
      // Something changed under it. What was there before is still known: the next command looks again.
    }
  }

  /** To be called after a command: puts aside what came since `before` and has git run something. */
  async putAside(before: GitFiles, hasJobs: boolean): Promise<PutAside[]> {
    const { moved, checkedAt } = await this.#putAside(before, hasJobs);
    // What was put aside is another change, and jobs go on to make some.
    const isLast = moved.length === 0 && !hasJobs;
    this.#listings.checkedAfterCommand = isLast ? checkedAt : -Infinity;
    return [...this.#reported.splice(0), ...moved];
  }

  async #putAside(
    before: GitFiles,
    hasJobs: boolean,
  ): Promise<{ moved: PutAside[]; checkedAt: number }> {
    const checkedAt = performance.now();
    const most = this.#wasWhole ? MAX_NEW_FOLDERS : MAX_FOLDERS;
    const { found: after } = this.#scan(checkedAt, most);
    const moved: PutAside[] = [];
    for (const [path, file] of after) {
      // What is outside a sandboxed command cannot change: it can only lead there.
      if (!this.#isChangeable(path)) continue;
      const old = before.get(path);
      if (old?.identity === file.identity) continue;
      const why = await this.#explain(path, file, old);
      if (why === undefined) continue;
      const shown = file.folder ? `${file.folder.toString()}/.git` : path;
      const about = { path: relative(this.#env.workspace.root, shown), isChange: before.has(path) };
      try {
        const isUsers = file.text !== undefined && about.isChange && this.#isIncluded(path);
        const reduced = isUsers ? this.#reduceConfig(path, file, old) : undefined;
        // One that git cannot change is put aside as a whole.
        const now = (await reduced?.catch(() => undefined)) ?? (await this.#move(path, file));
        moved.push({ ...about, why, now });
      } catch (error) {
        moved.push({ ...about, why, failure: errorMessage(error) });
      }
    }
    this.#beforeJobs = hasJobs ? this.#scan(performance.now(), most).found : undefined;
    return { moved, checkedAt };
  }

  #scanBefore(): GitFiles {
    const { found, isWhole } = this.#scan(performance.now() - FRESH_MS, MAX_FOLDERS);
    this.#wasWhole = isWhole;
    return found;
  }

  #move(path: string, { folder }: GitFile): Promise<string> {
    return folder ? moveFrom(this.#env, folder, ".git") : moveAside(this.#env, path);
  }

  #isIncluded(path: string): boolean {
    return [...this.#included].some((folder) => path === join(folder, "config"));
  }

  /**
   * Takes the keys that run something out of the config of the repository that commands use. It is read-only
   * for them unless the user replaced it meanwhile, and then most of it is the user's. Gives where a copy is.
   */
  async #reduceConfig(path: string, { text = "" }: GitFile, old?: GitFile): Promise<string> {
    const { spoolFolder, environment } = this.#env;
    const id = globalThis.crypto.randomUUID();
    const [aside, work] = [
      join(spoolFolder, `aside-${id}-config`),
      join(spoolFolder, `config-${id}`),
    ];
    await writeFile(aside, text, { encoding: "latin1", flag: "wx", mode: 0o600 });
    await writeFile(work, text, { encoding: "latin1", flag: "wx", mode: 0o600 });
    const made = join(dirname(path), "hooks", `gyre-${id}.sample`);
    try {
      const env = { PATH: environment["PATH"] ?? "", GIT_CONFIG_NOSYSTEM: "1" };
      for (const key of await this.#runningKeys(path, text, old?.text)) {
        const args = ["config", "--file", work, "--unset-all", "--", key];
        await promisify(execFile)("git", args, { cwd: "/", env, timeout: CONFIG_TIMEOUT_MS });
      }
      await copyFile(work, made, constants.COPYFILE_EXCL);
      await chmod(made, statSync(path).mode & 0o777);
      await rename(made, path);
    } finally {
      for (const file of [work, made]) await rm(file, { force: true });
    }
    return aside;
  }

  #isChangeable(path: string): boolean {
    const { root, folders } = this.#env.workspace;
    return [root, ...folders, ...this.#included].some((folder) => isWithin(path, folder));
  }

  /** `notBefore` as for `Listings.list`; `most`: how many folders are looked through. */
  #scan(notBefore: number, most: number): { found: GitFiles; isWhole: boolean } {
    const { root, folders } = this.#env.workspace;
    const found = new Map<string, GitFile>();
    // Breadth first: what is cut off at the limit is what lies deepest.
    const queue = ["", ...listAdded(this.#env.workspace)];
    const trees: string[] = [];
    for (const folder of queue) {
      const marks = this.#markFolder(folder, notBefore);
      if (marks === undefined) continue;
      if (marks.hasGit) trees.push(join(root, folder));
      if (marks.isRepository) addRepository(found, join(root, folder));
      if (isPackage(folder)) continue;
      for (const inner of marks.folders) {
        if (queue.length < most) queue.push(inner);
      }
    }
    const seen = new Set<string>();
    for (const tree of trees) {
      // git itself looks for no repository behind a link.
      const isOwn = [root, ...folders].some((folder) => isWithin(tree, folder));
      if (seen.has(tree) || !isOwn || realPath(tree) !== tree) continue;
      seen.add(tree);
      const folder = addPointed(found, join(tree, ".git"));
      if (folder !== undefined) trees.push(...this.#addLinked(found, tree, folder, seen.size));
    }
    for (const folder of this.#included) addRepository(found, folder);
    return { found, isWhole: queue.length < most };
  }

  /** The working trees inside of one that its index has as repositories of their own. */
  #addLinked(found: Map<string, GitFile>, tree: string, folder: string, count: number): string[] {
    const { names, nameless, files, identity } = this.#linkedFolders(folder);
    for (const name of nameless) {
      const repository = findNameless(tree, name);
      // With a byte that no path has: it is the key of no other file.
      const key = join(tree, name.toString("latin1"), "\0");
      if (repository) found.set(key, { kind: "nameless", ...repository });
    }
    const there = names
      .map((name) => join(tree, name))
      .filter((inner) => readStats(join(inner, ".git")));
    if (count + there.length <= MAX_TREES) return there;
    for (const path of files) found.set(path, { kind: "crowded", identity: `crowded ${identity}` });
    return [];
  }

  /** What is in a folder; nothing if it is gone or closed. */
  #markFolder(folder: string, notBefore: number): Marks | undefined {
    const listing =
      this.#listings.list(folder, notBefore) ??
      (openClosedFolder(join(this.#env.workspace.root, folder))
        ? this.#listings.list(folder, notBefore)
        : undefined);
    if (!listing) return undefined;
    const known = this.#marks.get(listing);
    if (known) return known;
    const folders: string[] = [];
    const special = new Set<string>();
    for (const { name, kind } of listing.entries) {
      if (SPECIAL_NAMES.has(name)) special.add(name);
      if (kind === "folder" && name !== ".git") folders.push(pathIn(folder, name));
    }
    const marks = {
      folders,
      isRepository:
        special.has("HEAD") &&
        (special.has("commondir") || (special.has("objects") && special.has("refs"))),
      hasGit: special.has(".git"),
    };
    this.#marks.set(listing, marks);
    return marks;
  }

  /** What an index has as repositories of their own: git looks into them wherever they are. */
  #linkedFolders(folder: string): LinkedFolders & { identity: string; files: readonly string[] } {
    const files = listEntries(folder)
      .filter((entry) => entry.isFile() && INDEX_FILE.test(entry.name))
      .map(({ name }) => join(folder, name));
    const identity = files.map((path) => identify(lstatSync(path, { bigint: true }))).join(",");
    const known = this.#linked.get(folder);
    if (known?.identity === identity) return known;
    const all = files.map((path) => findLinkedFolders(readFileSync(path)));
    const linked = {
      identity,
      files,
      names: all.flatMap(({ names }) => names),
      nameless: all.flatMap(({ nameless }) => nameless),
    };
    this.#linked.set(folder, linked);
    return linked;
  }

  /** What a file has git do, in the words of the result; nothing if it is harmless. */
  async #explain(
    path: string,
    { kind, text, folder }: GitFile,
    old?: GitFile,
  ): Promise<string | undefined> {
    if (kind === "nameless") {
      return folder
        ? "which is a repository in a folder whose name is no text"
        : "which leads git to a place whose name is no text";
    }
    if (kind === "crowded") return "which names more repositories than can be looked at";
    if (kind === "hook") return "which git runs";
    if (kind === "remote") return "which names a repository that git pushes to";
    if (kind === "link") return "which is a link in a folder of git";
    if (kind === "trusted") return "which programs that use git trust";
    if (kind === "index") {
      return hasEscapingNames(path) ? "which has git write to places outside" : undefined;
    }
    if (kind === "todo") {
      return hasExec(path) ? "which has git run a program (exec)" : undefined;
    }
    if (kind === "strategy") {
      return STRATEGIES.has(readText(path).trim()) ? undefined : "which has git run a program";
    }
    if (kind === "options") {
      const settings = (await this.#listSettings(text ?? "[")) ?? [["options.strategy", ""]];
      const isKnown = ([key, value]: Setting): boolean =>
        key !== "options.strategy" || STRATEGIES.has(value);
      return settings.every(isKnown) ? undefined : "which has git run a program (strategy)";
    }
    if (kind === "config") {
      const keys = await this.#runningKeys(path, text, old?.text);
      if (keys.length === 0) return undefined;
      const isTree = keys.every((key) => key === "core.worktree");
      return `which has git ${isTree ? "write elsewhere" : "run a program"} (${keys.join(", ")})`;
    }
    const target = new Map<string, GitFile>();
    addPointed(target, path);
    target.delete(path);
    for (const [other, file] of target) {
      if (file.kind !== "pointer" && (await this.#explain(other, file)) !== undefined) {
        return `which leads git to settings that run a program (${other})`;
      }
    }
    return undefined;
  }

  /** The keys that run something in a config, or lead git out, and did not with the same value before. */
  async #runningKeys(path: string, text: string | undefined, before = ""): Promise<string[]> {
    // A link, or a pipe, is no config that git made.
    if (text === undefined) return ["not a plain file"];
    const now = await this.#listSettings(text);
    // What this git cannot read another one may.
    if (now === undefined) return ["cannot be read"];
    const leadsOut = ([key, value]: Setting): boolean =>
      key === "core.worktree" && !this.#isOwnTree(resolve(dirname(path), value));
    const running = new Set([...findRunningKeys(now), ...now.filter(leadsOut).map(([key]) => key)]);
    if (running.size === 0 || before === "") return [...running];
    const old = new Set(((await this.#listSettings(before)) ?? []).map((one) => one.join("\n")));
    const added = now.filter((one) => running.has(one[0]) && !old.has(one.join("\n")));
    return [...new Set(added.map(([key]) => key))];
  }

  /** Whether a working tree is one in which commands may change files anyway. */
  #isOwnTree(tree: string): boolean {
    const { root } = this.#env.workspace;
    return isWithin(realPath(tree) ?? tree, root);
  }

  #listSettings(text: string): Promise<Setting[] | undefined> {
    const args = ["config", "--file", "-", "--no-includes", "--null", "--list"];
    const env = {
      PATH: this.#env.environment["PATH"] ?? "",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
    };
    return new Promise((done) => {
      const options = { cwd: "/", env, timeout: CONFIG_TIMEOUT_MS, maxBuffer: 2 * MAX_FILE_BYTES };
      const child = execFile("git", args, options, (error, stdout) => {
        done(error ? undefined : parseSettings(stdout));
      });
      // It may end before it has read all, and says so by its exit code.
      child.stdin?.on("error", () => {});
      child.stdin?.end(text, "latin1");
    });
  }
}

/** The folder of a package, below which nothing is looked for. */
function isPackage(folder: string): boolean {
  if (!folder.includes(PACKAGES)) return false;
  const names = folder.split("/");
  const at = names.indexOf(PACKAGES);
  if (at < 0) return false;
  return names.length - at > (names[at + 1]?.startsWith("@") ? 2 : 1);
}

/** A `.git`: a folder, or a file or link that leads to one. Gives that folder, if it is there. */
function addPointed(found: Map<string, GitFile>, path: string, depth = 0): string | undefined {
  const stats = readStats(path);
  if (stats === undefined || depth > MAX_POINTERS) return undefined;
  if (stats.isDirectory()) {
    addRepository(found, path);
    return path;
  }
  if (stats.isSymbolicLink()) {
    addPointer(found, path, stats, leadsToNameless(path));
    const real = realPath(path);
    return real === undefined || real === path ? undefined : addPointed(found, real, depth + 1);
  }
  const target = /^gitdir: (.+?)[\r\n]*$/s.exec(readText(path))?.[1];
  const place = target === undefined ? undefined : resolve(dirname(path), target);
  addPointer(found, path, stats, !hasText(path) || (place !== undefined && leadsToNameless(place)));
  const real = place === undefined ? undefined : realPath(place);
  return real === undefined ? undefined : addPointed(found, real, depth + 1);
}

/** What leads git elsewhere, perhaps to where nothing can be looked at. */
function addPointer(
  found: Map<string, GitFile>,
  path: string,
  stats: BigIntStats,
  isNameless: boolean,
): void {
  const identity = identify(stats);
  found.set(
    path,
    isNameless
      ? { kind: "nameless", identity: `nameless ${identity}` }
      : { kind: "pointer", identity },
  );
}

function addRepository(found: Map<string, GitFile>, folder: string): void {
  const at = (name: string): string => join(folder, name);
  if (found.has(at("config")) || found.has(at("commondir"))) return;
  addFile(found, at("config"), "config");
  addFile(found, at("config.worktree"), "config");
  const hooks = readStats(at("hooks"));
  if (hooks?.isSymbolicLink()) addFile(found, at("hooks"), "hook");
  for (const { name } of hooks?.isDirectory() ? listEntries(at("hooks")) : []) {
    if (!name.endsWith(".sample")) addFile(found, join(at("hooks"), name), "hook");
  }
  for (const name of REMOTE_FOLDERS) {
    for (const entry of listEntries(at(name))) addFile(found, join(at(name), entry.name), "remote");
  }
  for (const entry of listEntries(folder)) {
    const isHooks = entry.name === "hooks";
    if (entry.isSymbolicLink() && !isHooks) addFile(found, at(entry.name), "link");
    else if (INDEX_FILE.test(entry.name)) addFile(found, at(entry.name), "index");
    else if (TRUSTED_NAMES.includes(entry.name)) addFile(found, at(entry.name), "trusted");
  }
  for (const name of WRITTEN_FOLDERS) addLinks(found, at(name));
  const inner = INNER_FOLDERS.filter((name) => !readStats(at(name))?.isSymbolicLink());
  if (inner.includes("rebase-merge")) {
    addFile(found, at("rebase-merge/git-rebase-todo"), "todo");
    addFile(found, at("rebase-merge/strategy"), "strategy");
  }
  addFile(found, at("sequencer/opts"), "options");
  for (const entry of inner.includes("worktrees") ? listEntries(at("worktrees")) : []) {
    if (entry.isDirectory()) addRepository(found, join(at("worktrees"), entry.name));
  }
  if (inner.includes("modules")) addModules(found, at("modules"));
  const common = at("commondir");
  const stats = readStats(common);
  if (!stats?.isFile()) return;
  const place = resolve(folder, readText(common).trim());
  addPointer(found, common, stats, !hasText(common) || leadsToNameless(place));
  const real = realPath(place);
  if (real !== undefined) addRepository(found, real);
}

/** The links in a folder of git and below. */
function addLinks(found: Map<string, GitFile>, folder: string): void {
  if (readStats(folder)?.isSymbolicLink()) {
    addFile(found, folder, "link");
    return;
  }
  const queue = [folder];
  for (const path of queue) {
    for (const entry of listEntries(path)) {
      const inner = join(path, entry.name);
      if (entry.isSymbolicLink()) addFile(found, inner, "link");
      else if (entry.isDirectory() && queue.length < MAX_WRITTEN_FOLDERS) queue.push(inner);
    }
  }
}

/** The name of a module may have slashes. */
function addModules(found: Map<string, GitFile>, folder: string, depth = 0): void {
  for (const entry of listEntries(folder)) {
    if (!entry.isDirectory()) continue;
    const path = join(folder, entry.name);
    if (readStats(join(path, "HEAD"))) addRepository(found, path);
    else if (depth < MAX_MODULE_NAMES) addModules(found, path, depth + 1);
  }
}

function addFile(found: Map<string, GitFile>, path: string, kind: GitFile["kind"]): void {
  const stats = readStats(path);
  if (stats === undefined) return;
  const target = stats.isSymbolicLink()
    ? statSync(path, { bigint: true, throwIfNoEntry: false })
    : undefined;
  const isRead = kind === "config" || kind === "options";
  const text = isRead ? readPlain(path, stats) : undefined;
  found.set(path, {
    kind,
    identity: identify(stats) + (target ? identify(target) : ""),
    ...(text !== undefined && { text }),
  });
}

/** A config byte by byte (latin1); nothing if it is no plain file of the usual size. */
function readPlain(path: string, stats: BigIntStats): string | undefined {
  if (!stats.isFile() || stats.size > MAX_FILE_BYTES) return undefined;
  try {
    return readFileSync(path, "latin1");
  } catch {
    // Closed to us: then what is in it is not known.
    return undefined;
  }
}

function hasExec(path: string): boolean {
  return !readStats(path)?.isFile() || hasExecLines(readText(path));
}

/** Whether an index has names that git itself would never put there, and checks out all the same. */
function hasEscapingNames(path: string): boolean {
  const stats = readStats(path);
  if (!stats?.isFile()) return true;
  return !hasPlainNames(readFileSync(path));
}

/** What is at a path, links not followed; nothing if it cannot be reached. */
function readStats(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // Below a file, or in a folder that a command closed: git cannot reach it either.
    return undefined;
  }
}

function listEntries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Missing, or closed to us: then also to the user's git, unless that knows the names.
    return openClosedFolder(folder) ? listEntries(folder) : [];
  }
}

function readText(path: string): string {
  const stats = readStats(path);
  if (!stats?.isFile() || stats.size > MAX_FILE_BYTES) return "";
  return readFileSync(path, "utf8");
}

/** Whether what is in a file is text. */
function hasText(path: string): boolean {
  const stats = readStats(path);
  if (!stats?.isFile() || stats.size > MAX_FILE_BYTES) return true;
  return isUtf8(readFileSync(path));
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // It leads nowhere.
    return undefined;
  }
}
