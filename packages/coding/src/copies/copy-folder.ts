import { constants, type Stats } from "node:fs";
import { cp, lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "@gyre/ai";

export interface CopyOptions {
  /** Throws where there is more. Default: any. */
  maxBytes?: number;
}

/**
 * Copies a folder or a file as it is, in place of what is there: links are not followed, and blocks are shared where
 * the file system can do that.
 */
export async function copyAll(
  from: string,
  to: string,
  { maxBytes = Infinity }: CopyOptions = {},
): Promise<void> {
  let bytes = 0;
  await cp(from, to, {
    recursive: true,
    verbatimSymlinks: true,
    preserveTimestamps: true,
    mode: constants.COPYFILE_FICLONE,
    filter: async (path) => {
      const stats = await lstat(path);
      bytes += stats.isFile() ? stats.size : 0;
      if (bytes > maxBytes) throw new TooLargeError(from, maxBytes);
      return isCopied(stats);
    },
  });
}

/** Has paths of one folder be in another what they are in the first; also those that are not there any more. */
export async function carryPaths(
  from: string,
  to: string,
  paths: readonly string[],
): Promise<void> {
  const there: string[] = [];
  // What is gone makes room first: a folder may be a file by now.
  for (const path of paths) {
    if (await isThere(from, path)) there.push(path);
    else if (await isThere(to, path)) await rm(join(to, path), { recursive: true });
  }
  for (const path of there) {
    await rm(join(to, path), { recursive: true, force: true });
    await copyAll(join(from, path), join(to, path));
  }
}

/** Whether a path is in a folder, and not where a link on the way leads. */
async function isThere(folder: string, path: string): Promise<boolean> {
  const names = path.split(/[/\\]/).filter((name) => name !== "");
  for (const [index] of names.entries()) {
    const stats = await lstat(join(folder, ...names.slice(0, index + 1))).catch(
      (error: unknown) => {
        if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return undefined;
        throw error;
      },
    );
    if (!stats) return false;
    if (index < names.length - 1 && !stats.isDirectory()) return false;
  }
  return true;
}

/** There is more to copy than is copied. */
export class TooLargeError extends Error {
  constructor(folder: string, maxBytes: number) {
    super(`${folder} has more than ${maxBytes / 1024 ** 3} GB, which are not copied.`);
    this.name = "TooLargeError";
  }
}

/** A socket or a pipe is no file to copy. */
function isCopied(stats: Stats): boolean {
  return stats.isFile() || stats.isDirectory() || stats.isSymbolicLink();
}
