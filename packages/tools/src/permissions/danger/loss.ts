import {
  type BigIntStats,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { type GitIndexEntry, parseGitIndex } from "../../git/index-file.ts";
import { locateRepository } from "../../git/locate.ts";
import type { Word } from "../command/parse.ts";
import { isMadeAgain } from "../follow/made-again.ts";
import { listOperands } from "./options.ts";
import { ifThere } from "../follow/if-there.ts";

/** Files that are looked at before a removal counts as one of too much. */
const MAX_FILES = 2_000;
const MAX_INDEX_BYTES: number = 64 * 1024 * 1024;

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
      return { targets, isRecursive: false };
    case "install":
      return { targets: targets.slice(-1).filter(({ literal }) => literal), isRecursive: false };
    case "ln":
      return targets.length === 2 && targets[1]?.literal
        ? { targets: targets.slice(1), isRecursive: false }
        : undefined;
    case "mv": {
      const folder = args
        .find((arg) => arg.startsWith("--target-directory="))
        ?.slice("--target-directory=".length);
      return findMoved(folder === undefined ? targets : [...targets, toWord(folder)]);
    }
    case "rsync":
      return args.includes("--remove-source-files")
        ? { targets: targets.slice(0, -1), isRecursive: true }
        : undefined;
    default:
      return undefined;
  }
}

function toWord(text: string): Word {
  return { text, literal: true, prefix: text };
}

/** A file that is replaced, or what leaves the workspace for good. */
function findMoved(targets: readonly Word[]): Removal | undefined {
  const last = targets.at(-1);
  if (!last || targets.length < 2) return undefined;
  // What is made again is removed without a question.
  const isGone = /^\/(?:tmp|dev)\//.test(`${last.text}/`) || isMadeAgain(lastPart(last.text));
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
    const stats = ifThere(() => lstatSync(path, { bigint: true }));
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

/** Whether a file is one that the agent made: younger than the session, and not from git. */
export function isOwnFile(
  path: string,
  { root, since }: Pick<LossContext, "root" | "since">,
): boolean {
  const stats = ifThere(() => statSync(path, { bigint: true }));
  if (!stats?.isFile() || stats.birthtimeMs < BigInt(Math.floor(since))) return false;
  return !new KnownByGit(root).has(path, stats);
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
    // Git has no files behind links.
    const real = join(realpathSync(dirname(path)), basename(path));
    const entry = this.#index.entries.get(relative(this.#index.tree, real).split(sep).join("/"));
    return entry !== undefined && entry.size === size && entry.mtimeNs === mtimeNs;
  }
}

function readIndex(
  root: string,
): { tree: string; entries: ReadonlyMap<string, GitIndexEntry> } | undefined {
  const place = locateRepository(root);
  if (!place) return undefined;
  const path = join(place.folder, "index");
  const stats = ifThere(() => statSync(path));
  if (!stats?.isFile() || stats.size > MAX_INDEX_BYTES) return undefined;
  const entries = parseGitIndex(readFileSync(path));
  return entries && { tree: place.tree, entries };
}
