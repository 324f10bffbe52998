import { type BigIntStats, lstatSync } from "node:fs";
import { join } from "node:path";
import { walkFolders, type WalkedFolder, type Workspace } from "@gyre/tools";
import { StatPool } from "./stat-pool.ts";
import type { FileGroup } from "./stat-shard.ts";
import { isMissing } from "./lines/store.ts";

/** More files of a folder are not looked at. */
export const MAX_FILES = 300_000;
/** A walk through so many files goes through folders as well. */
const ENTRIES_A_FILE = 2;
/** The group of files that an ignore file leaves out: no folder has this name. */
const IGNORED = "\0";

export interface ScanOptions {
  /** Files that are looked at though an ignore file leaves them out: the same object, the same files. */
  also: Iterable<string>;
  signal: AbortSignal;
  /** See `Slices`. */
  restMs: () => number;
  /** See `walkFolders`. */
  notBefore?: number;
  /** Called now and then with the number of files that were listed, before they are looked at. */
  onListed?: (files: number) => void;
  /** Called with each file that is new, gone, has changed or may have: also where the scan fails. */
  report: (path: string) => void;
}

interface KnownFolder {
  kept: WalkedFolder["kept"];
  names: readonly string[];
}

/**
 * Finds the files of a workspace that changed since the last time: what no ignore file leaves
 * out, and what is named beside that. Nothing is read, no link is followed. Folders are asked for
 * the time of their last change, and are read where that is another one; files are asked one by
 * one, by threads that begin with what was there before.
 */
export class FileScan {
  readonly #workspace: Workspace;
  readonly #maxFiles: number;
  readonly #pool: StatPool;
  #folders = new Map<string, KnownFolder>();
  /** The paths of all files that no ignore file leaves out. */
  readonly #listed = new Set<string>();
  #ignored: ReadonlySet<string> = new Set();
  #also: Iterable<string> | undefined;

  constructor(workspace: Workspace, limits: { maxFiles?: number; maxOwnFiles?: number } = {}) {
    this.#workspace = workspace;
    this.#maxFiles = limits.maxFiles ?? MAX_FILES;
    this.#pool = new StatPool(workspace.root, limits.maxOwnFiles);
  }

  /** Whether an ignore file leaves it out. */
  isIgnored(path: string): boolean {
    return this.#ignored.has(path);
  }

  /** Looks at all. `isPartial`: there are more files than are looked at. */
  async run({ also, report, ...options }: ScanOptions): Promise<{ isPartial: boolean }> {
    const early = this.#pool.look().then((paths) => paths.forEach(report));
    // It is waited for below, also where the walk fails first.
    early.catch(() => {});
    try {
      const { folders, isPartial } = await this.#walk(options);
      const groups = this.#update(folders, also);
      this.#pool.set(groups);
      await early;
      const keys = groups.map(({ key }) => key);
      if (keys.length > 0) (await this.#pool.look(keys)).forEach(report);
      return { isPartial };
    } finally {
      await early;
    }
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #walk({ onListed, ...options }: Omit<ScanOptions, "also" | "report">): Promise<{
    folders: Map<string, KnownFolder>;
    isPartial: boolean;
  }> {
    const folders = new Map<string, KnownFolder>();
    let left = this.#maxFiles;
    const walk = walkFolders(this.#workspace, {
      ...options,
      maxEntries: this.#maxFiles * ENTRIES_A_FILE,
    });
    for await (const batch of walk) {
      for (const { path, kept } of batch) {
        const known = this.#folders.get(path);
        const names = known?.kept === kept ? known.names : listFiles(kept);
        if (names.length > left) {
          folders.set(path, { kept: [], names: names.slice(0, left) });
          return { folders, isPartial: true };
        }
        left -= names.length;
        folders.set(path, names === known?.names ? known : { kept, names });
      }
      onListed?.(this.#maxFiles - left);
    }
    return { folders, isPartial: walk.stopped };
  }

  /** Takes over what a walk found. Gives the groups that are not as they were. */
  #update(folders: Map<string, KnownFolder>, also: Iterable<string>): FileGroup[] {
    const groups: FileGroup[] = [];
    const gone: string[] = [];
    for (const [path, { names }] of this.#folders) {
      if (folders.has(path)) continue;
      gone.push(path);
      for (const name of names) this.#listed.delete(formatPrefix(path) + name);
    }
    for (const [path, folder] of folders) {
      const last = this.#folders.get(path);
      if (last === folder) continue;
      const prefix = formatPrefix(path);
      for (const name of last?.names ?? []) this.#listed.delete(prefix + name);
      for (const name of folder.names) this.#listed.add(prefix + name);
      groups.push({ key: path, prefix, names: folder.names });
    }
    this.#folders = folders;
    this.#pool.drop(gone);
    if (groups.length === 0 && gone.length === 0 && also === this.#also) return groups;
    this.#also = also;
    const ignored = new Set<string>();
    for (const path of also) if (!this.#listed.has(path)) ignored.add(path);
    if (!isSameSet(ignored, this.#ignored)) {
      groups.push({ key: IGNORED, prefix: "", names: [...ignored] });
    }
    this.#ignored = ignored;
    return groups;
  }
}

function listFiles(kept: WalkedFolder["kept"]): string[] {
  return kept.flatMap(({ name, kind }) => (kind === "file" || kind === "link" ? [name] : []));
}

function formatPrefix(folder: string): string {
  return folder === "" ? "" : `${folder}/`;
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  if (a.size !== b.size) return false;
  for (const one of a) if (!b.has(one)) return false;
  return true;
}

/**
 * What is at a path now; nothing for what is gone, a folder, or, where an ignore file leaves it
 * out, behind a folder that is a link: through that no walk leads.
 */
export async function statFile(
  workspace: Workspace,
  path: string,
  isIgnored: boolean,
): Promise<BigIntStats | undefined> {
  if (isIgnored) {
    const resolved = await workspace
      .resolve(`./${path}`, { keepLink: true })
      // Not there, or out of the folder.
      .catch(() => undefined);
    if (!resolved?.exists || resolved.path !== path) return undefined;
  }
  try {
    const stats = lstatSync(join(workspace.root, path), { bigint: true });
    return stats.isDirectory() ? undefined : stats;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
