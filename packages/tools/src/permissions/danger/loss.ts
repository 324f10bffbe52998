import { type BigIntStats, lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { type GitIndexEntry, parseGitIndex } from "../../git/index-file.ts";
import { locateRepository } from "../../git/locate.ts";
import type { Word } from "../command/parse.ts";
import { listOperands } from "./options.ts";

/** Files that are looked at before a removal counts as one of too much. */
const MAX_FILES = 2_000;
const MAX_INDEX_BYTES: number = 64 * 1024 * 1024;

/** Folders and files that programs make again. */
const MADE_AGAIN =
  /^(?:node_modules|bower_components|dist|build|out|target|coverage|tmp|temp|\.tmp|\.cache|\.next|\.nuxt|\.output|\.turbo|\.parcel-cache|\.vite|\.svelte-kit|\.angular|__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.tox|\.nox|\.nyc_output|\.gradle|\.eslintcache|\.DS_Store|.*\.(?:egg-info|log|tmp|temp|bak|orig|rej|swp|swo|pyc|pyo|o|obj|class|tsbuildinfo)|.*~)$/;

/** Whether programs make a file or a folder of that name again. */
export function isMadeAgain(name: string): boolean {
  return MADE_AGAIN.test(name);
}

/** What a removal is about. */
export interface Removal {
  targets: readonly Word[];
  isRecursive: boolean;
}

/** What a command would remove or empty, if it is known to do that. */
export function findRemoval(program: string, words: readonly Word[]): Removal | undefined {
  const args = words.map(({ text }) => text);
  const isOption = ({ text }: Word): boolean => /^-./.test(text);
  const targets = words.filter((word) => !isOption(word));
  switch (program) {
    case "rm":
      return { targets, isRecursive: args.some((arg) => /^-[a-zA-Z]*[rR]|^--r/.test(arg)) };
    case "rimraf":
    case "del":
    case "del-cli":
    case "trash":
    case "trash-put":
      return { targets, isRecursive: true };
    case "npx":
      return listOperands(program, args)[0] === "rimraf" ||
        listOperands(program, args)[0] === "del-cli"
        ? { targets: targets.slice(1), isRecursive: true }
        : undefined;
    case "unlink":
    case "truncate":
      return {
        targets: targets.filter(({ text }) => !/^\d+[KMG]?$/.test(text)),
        isRecursive: false,
      };
    case "cp":
    case "install":
    case "ln":
      return targets.length === 2 && targets[1]?.literal
        ? { targets: targets.slice(1), isRecursive: false }
        : undefined;
    case "mv":
      return findMoved(targets);
    default:
      return undefined;
  }
}

/** A file that is replaced, or what leaves the workspace for good. */
function findMoved(targets: readonly Word[]): Removal | undefined {
  const last = targets.at(-1);
  if (!last || targets.length < 2) return undefined;
  const isGone = /^\/(?:tmp|dev)\//.test(`${last.text}/`);
  const git = targets.filter(({ text }) => /(?:^|\/)\.git(?:\/|$)/.test(text));
  return {
    // The name that a pattern or a variable gives is most often a new one.
    targets: isGone ? targets.slice(0, -1) : [...git, ...(last.literal ? [last] : [])],
    isRecursive: isGone || git.length > 0,
  };
}

/** What is known of the folder that something is removed from. */
export interface LossContext {
  /** The real path of the workspace. */
  root: string;
  /** Where paths of the command begin, absolute. */
  cwd: string;
  /** What was made after it is the agent's own. */
  since: number;
}

/**
 * What a removal would take that neither git nor a program brings back: the first such file, as it was
 * written. Files that git has as they are, that builds make again and that are younger than
 * the session are no loss.
 */
export function findLoss(
  { targets, isRecursive }: Removal,
  context: LossContext,
): string | undefined {
  const known = new KnownByGit(context.root);
  for (const { text, literal, prefix } of targets) {
    const path = literal ? text : prefix;
    if (literal) {
      if (isLost(join(rooted(path, context), "."), isRecursive, context, known)) return text;
      continue;
    }
    if (isMadeAgain(lastPart(text)) && !/[$`]/.test(text)) continue;
    if (path.split("/").slice(0, -1).some(isMadeAgain)) continue;
    // A pattern in a folder: as if all of that were named.
    const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/") + 1) : "";
    if (/[$`]/.test(text) || folder === "" || folder === "./") return text;
    if (isLost(rooted(folder, context), true, context, known)) return text;
  }
  return undefined;
}

function lastPart(path: string): string {
  return path.replace(/\/+$/, "").replace(/^.*\//s, "");
}

function rooted(path: string, { cwd }: LossContext): string {
  return path.startsWith("/") ? path : join(cwd, path);
}

function isLost(
  absolute: string,
  isRecursive: boolean,
  context: LossContext,
  known: KnownByGit,
): boolean {
  const inside = relative(context.root, absolute).split(sep);
  if (inside.includes(".git") || (isRecursive && inside.join("") === "")) return true;
  const isMade = inside.some(isMadeAgain);
  const waiting = [absolute];
  let seen = 0;
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (!stats) continue;
    if (++seen > MAX_FILES) return true;
    if (stats.isDirectory()) {
      // Without -r a folder stays.
      if (!isRecursive) continue;
      const names = readdirSync(path);
      if (names.includes(".git")) return true;
      if (!isMade)
        waiting.push(...names.filter((name) => !isMadeAgain(name)).map((name) => join(path, name)));
      continue;
    }
    const isYoung = stats.birthtimeMs >= BigInt(Math.floor(context.since));
    if (
      !isMade &&
      !isYoung &&
      !stats.isSymbolicLink() &&
      stats.size > 0n &&
      !known.has(path, stats)
    ) {
      return true;
    }
  }
  return false;
}

/** The files whose contents git has. Read when the first is asked about. */
class KnownByGit {
  readonly #root: string;
  #index: { tree: string; entries: ReadonlyMap<string, GitIndexEntry> } | undefined;
  #isRead = false;

  constructor(root: string) {
    this.#root = root;
  }

  has(path: string, { size, mtimeNs }: BigIntStats): boolean {
    if (!this.#isRead) this.#index = readIndex(this.#root);
    this.#isRead = true;
    if (!this.#index) return false;
    const entry = this.#index.entries.get(relative(this.#index.tree, path).split(sep).join("/"));
    return entry !== undefined && entry.size === size && entry.mtimeNs === mtimeNs;
  }
}

function readIndex(
  root: string,
): { tree: string; entries: ReadonlyMap<string, GitIndexEntry> } | undefined {
  const place = locateRepository(root);
  if (!place) return undefined;
  const path = join(place.folder, "index");
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile() || stats.size > MAX_INDEX_BYTES) return undefined;
  const entries = parseGitIndex(readFileSync(path));
  return entries && { tree: place.tree, entries };
}
