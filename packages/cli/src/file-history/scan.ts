import { type BigIntStats, lstatSync } from "node:fs";
import { join } from "node:path";
import { walkFiles, type Workspace } from "@gyre/tools";
import type { GitFiles } from "./git-contents.ts";
import { isMissing } from "./store.ts";

/** More files of a folder are not looked at. */
export const MAX_FILES = 20_000;
/** So many files are looked at in one go: a key that is pressed meanwhile waits for no more. */
const FILES_A_GO = 64;

export interface ScannedFile {
  path: string;
  stats: BigIntStats;
  /** An ignore file leaves it out, and git tracks it all the same. */
  isIgnored: boolean;
}

export interface ScanOptions {
  git: GitFiles | undefined;
  signal: AbortSignal;
  maxFiles?: number;
}

/** The files and links of a folder, some at a time. */
export interface Scan extends AsyncIterable<readonly ScannedFile[]> {
  /** There are more than were given. */
  readonly isPartial: boolean;
}

/** What no ignore file leaves out, and what git tracks. Nothing is read, no link is followed. */
export function scanFiles(workspace: Workspace, options: ScanOptions): Scan {
  const { git, signal, maxFiles = MAX_FILES } = options;
  const state = { isPartial: false };
  return {
    get isPartial() {
      return state.isPartial;
    },
    async *[Symbol.asyncIterator]() {
      const seen = new Set<string>();
      const isFull = (): boolean => (state.isPartial ||= seen.size >= maxFiles);
      const walk = walkFiles(workspace, "", { signal });
      for await (const entries of walk) {
        const paths = entries.flatMap(({ path, kind }) =>
          kind === "file" || kind === "link" ? [path] : [],
        );
        for (const some of inGoes(paths)) {
          if (isFull()) return;
          for (const path of some) seen.add(path);
          yield statted(workspace, some, false);
          await yieldAfter(some);
        }
      }
      state.isPartial = walk.stopped;
      const tracked = [...(git?.entries.keys() ?? [])].filter((path) => !seen.has(path));
      for (const some of inGoes(tracked)) {
        if (isFull()) return;
        for (const path of some) seen.add(path);
        yield await filesAt(workspace, some, true);
        await yieldAfter(some);
      }
    },
  };
}

function* inGoes(paths: readonly string[]): Generator<string[]> {
  for (let at = 0; at < paths.length; at += FILES_A_GO) yield paths.slice(at, at + FILES_A_GO);
}

/** The files at some paths, ignored or not; not those that a folder leads to that is a link. */
export async function filesAt(
  workspace: Workspace,
  paths: readonly string[],
  isIgnored: boolean,
): Promise<ScannedFile[]> {
  const found: string[] = [];
  for (const path of paths) {
    const resolved = await workspace
      .resolve(`./${path}`, { keepLink: true })
      // Not there, or out of the folder.
      .catch(() => undefined);
    if (resolved?.exists && resolved.path === path) found.push(path);
  }
  return statted(workspace, found, isIgnored);
}

function statted(
  workspace: Workspace,
  paths: readonly string[],
  isIgnored: boolean,
): ScannedFile[] {
  return paths.flatMap((path) => {
    const stats = statPath(join(workspace.root, path));
    return stats && !stats.isDirectory() ? [{ path, stats, isIgnored }] : [];
  });
}

/** Nothing for one that went away meanwhile. */
function statPath(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Lets what else is to be done come first; fewer files are over in no time. */
async function yieldAfter(paths: readonly string[]): Promise<void> {
  if (paths.length < FILES_A_GO) return;
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}
