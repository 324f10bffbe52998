import { chmodSync, closeSync, constants, fstatSync, openSync } from "node:fs";

/** Holds a folder without the right to list it. */
const O_PATH = 0x200000;
const OWNER_LISTS = 0o400;
const OWNER_ENTERS = 0o100;

/**
 * Lets its owner list a folder that can be entered and not be listed: a command can close one so,
 * and git still finds by name what is in it. Says whether it did. Linux only.
 */
export function openClosedFolder(path: string): boolean {
  if (process.platform !== "linux") return false;
  let fd: number | undefined;
  try {
    fd = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    const { mode, uid } = fstatSync(fd);
    const isClosed = (mode & (OWNER_LISTS | OWNER_ENTERS)) === OWNER_ENTERS;
    if (!isClosed || uid !== process.getuid?.()) return false;
    // By its handle: what is in its place by now is left alone.
    chmodSync(`/proc/self/fd/${fd}`, (mode & 0o7777) | OWNER_LISTS);
    return true;
  } catch {
    // Gone, or not ours: then it stays as it is.
    return false;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
