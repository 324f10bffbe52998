import { lstat, mkdir, readdir, rm } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import type { Environment } from "../core/environment.ts";
import { carryPaths, copyAll } from "./copy-folder.ts";
import { Repository } from "./repository.ts";

/** All of a folder that is no repository. */
export const MAX_COPY_BYTES: number = 4 * 1024 ** 3;
const FOLDER_MODE = 0o700;

/** A folder in which the files of another one are, to work in it. */
export interface WorkCopy {
  /** `worktree`: of a git repository. */
  kind: "worktree" | "copy";
  /** All of it. */
  folder: string;
  /** Where the folder is that was copied, in it. */
  cwd: string;
  /** The root of what was copied. */
  origin: string;
}

export interface WorkCopyOptions {
  env: Environment;
  /** Also what git ignores, as packages that were installed. Default: false. */
  withIgnored?: boolean;
}

/** Copies that were made, and what they lack. */
export interface MadeCopies {
  copies: readonly WorkCopy[];
  /** What git ignores, and the copies do not have. */
  missing: readonly string[];
}

/**
 * Makes copies of a folder as it is now, what is not committed included: worktrees where it is in a git repository,
 * whole copies elsewhere. `folders` are made for them. Where one cannot be made, none is left.
 */
export async function makeWorkCopies(
  cwd: string,
  folders: readonly string[],
  { env, withIgnored = false }: WorkCopyOptions,
): Promise<MadeCopies> {
  const made: WorkCopy[] = [];
  try {
    const repository = await findRepository(cwd, env);
    if (!repository) {
      for (const folder of folders) made.push(await copyWhole(cwd, folder));
      return { copies: made, missing: [] };
    }
    const { changed, ignored } = await repository.listUncommitted();
    const carried = withIgnored ? [...changed, ...ignored] : changed;
    for (const folder of folders) made.push(await makeWorktree(repository, folder, carried));
    return { copies: made, missing: withIgnored ? [] : ignored };
  } catch (error) {
    for (const copy of made) await removeWorkCopy(copy, env);
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** Removes a copy with all that is in it. */
export async function removeWorkCopy(
  { kind, folder, origin }: WorkCopy,
  env: Environment,
): Promise<void> {
  if (kind === "worktree") {
    const repository = await Repository.find(origin, env).catch(() => undefined);
    await repository?.removeWorktree(folder);
  }
  await rm(folder, { recursive: true, force: true });
}

/** The repository around a folder, if there is something to make a worktree of. */
async function findRepository(cwd: string, env: Environment): Promise<Repository | undefined> {
  const repository = await Repository.find(cwd, env).catch(() => undefined);
  return (await repository?.hasCommit()) ? repository : undefined;
}

async function makeWorktree(
  repository: Repository,
  parent: string,
  carried: readonly string[],
): Promise<WorkCopy> {
  const { root, below } = repository;
  const folder = join(parent, basename(root));
  await mkdir(parent, { recursive: true, mode: FOLDER_MODE });
  await repository.addWorktree(folder);
  await carryPaths(root, folder, carried);
  const cwd = join(folder, below).replace(/[/\\]$/, "");
  // A folder without files is in no commit.
  await mkdir(cwd, { recursive: true });
  return { kind: "worktree", folder, cwd, origin: root };
}

async function copyWhole(origin: string, parent: string): Promise<WorkCopy> {
  if (`${parent}${sep}`.startsWith(origin.endsWith(sep) ? origin : origin + sep)) {
    throw new Error(
      `${origin} cannot be copied: the copies would be in it. Work in a folder below it, or make it a git repository.`,
    );
  }
  const folder = join(parent, basename(origin));
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  for (const name of await readdir(origin)) {
    const from = join(origin, name);
    // A file of this name leads to the repository of the folder that is copied: git would write there.
    if (name === ".git" && (await lstat(from)).isFile()) continue;
    await copyAll(from, join(folder, name), { maxBytes: MAX_COPY_BYTES });
  }
  return { kind: "copy", folder, cwd: folder, origin };
}
