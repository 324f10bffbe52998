import { errnoOf } from "@gyre/ai";
import { constants } from "node:fs";
import {
  copyFile,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  rmdir,
  unlink,
} from "node:fs/promises";
import { join } from "node:path";

/** Of a tree: what git keeps for a rebase, and more than that. */
const MAX_ENTRIES = 20_000;
const MAX_DEPTH = 16;
/** Of a file: an index of a million files is smaller. */
export const MAX_COPIED_BYTES: number = 512 * 1024 * 1024;

/**
 * Commands that still run may put links in the place of folders meanwhile. So each folder is
 * opened without following one, and reached by its handle.
 */
async function withFolder<T>(path: string, use: (held: string) => Promise<T>): Promise<T> {
  const folder = await open(
    path,
    constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
  );
  try {
    return await use(heldPath(folder));
  } finally {
    await folder.close();
  }
}

function heldPath({ fd }: FileHandle): string {
  return `/proc/self/fd/${fd}`;
}

/** Copies a plain file; no link is followed, and nothing that is there is overwritten. */
export async function copyPlain(from: string, to: string): Promise<void> {
  const file = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error(`${from} is not a plain file.`);
    if (stats.size > MAX_COPIED_BYTES) throw new Error(`${from} is too large to be copied.`);
    await copyFile(heldPath(file), to, constants.COPYFILE_EXCL);
  } finally {
    await file.close();
  }
}

/** Whether it was made here: another session, in another worktree of the same repository, may make it at the same time. */
export async function makeIfMissing(make: () => Promise<unknown>): Promise<boolean> {
  try {
    await make();
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** Copies folders and plain files; links and others are left out. `to` is made. */
export async function copyTree(from: string, to: string): Promise<void> {
  let left = MAX_ENTRIES;
  const copy = async (source: string, target: string, depth: number): Promise<void> => {
    await mkdir(target);
    await withFolder(source, async (held) => {
      for (const entry of await readdir(held, { withFileTypes: true })) {
        if (--left < 0 || depth > MAX_DEPTH) throw new Error(`${from} is too large to be copied.`);
        const [at, next] = [join(held, entry.name), join(target, entry.name)];
        if (entry.isDirectory()) await copy(at, next, depth + 1);
        else if (entry.isFile()) await copyPlain(at, next);
      }
    });
  };
  await copy(from, to, 0);
}

/** Removes a folder with all that is in it. */
export async function removeTree(path: string): Promise<void> {
  await withFolder(path, async (held) => {
    for (const entry of await readdir(held, { withFileTypes: true })) {
      const at = join(held, entry.name);
      await (entry.isDirectory() ? removeTree(at) : unlink(at));
    }
  });
  await rmdir(path);
}

/** Another one after each change of what is in a folder. */
export async function describeTree(path: string): Promise<string> {
  const lines: string[] = [];
  const list = async (folder: string, name: string): Promise<void> => {
    await withFolder(folder, async (held) => {
      for (const entry of await readdir(held, { withFileTypes: true })) {
        if (lines.length > MAX_ENTRIES) return;
        const at = join(held, entry.name);
        const stats = await lstat(at, { bigint: true });
        const below = `${name}/${entry.name}`;
        if (entry.isDirectory()) {
          lines.push(below);
          await list(at, below);
        } else lines.push(`${below} ${stats.ino} ${stats.size} ${stats.ctimeNs}`);
      }
    });
  };
  await list(path, "");
  return lines.sort().join("\n");
}
