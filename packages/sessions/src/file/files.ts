import { randomBytes } from "node:crypto";
import { type FileHandle, link, lstat, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errnoOf } from "@gyre/ai";
import { SessionError } from "../format/types.ts";

/** Only the owner may read a conversation. */
export const FILE_MODE = 0o600;
export const FOLDER_MODE = 0o700;
const DRAFT_BYTES = 8;
const DRAFT_SUFFIX = /^\.[0-9a-f]{16}\.new$/;

/** The errors of file systems without hard links. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set([
  "EPERM",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EMLINK",
]);

export function hasNoLinks(error: unknown): boolean {
  return NO_LINKS.has(errnoOf(error));
}

/** What is at a path: nothing, an empty file, or anything else. */
export async function placeAt(path: string): Promise<"free" | "empty" | "taken"> {
  try {
    const found = await lstat(path);
    return found.isFile() && found.size === 0 ? "empty" : "taken";
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return "free";
    throw error;
  }
}

/**
 * Creates a file with all of its content, on the disk, or not at all. The caller holds the
 * lock. Rejects with `exists` where there is one.
 */
export async function putInPlace(
  path: string,
  fill: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const draft = `${path}.${randomBytes(DRAFT_BYTES).toString("hex")}.new`;
  try {
    const handle = await open(draft, "wx", FILE_MODE);
    try {
      await fill(handle);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await publish(draft, path);
    await syncFolder(dirname(path));
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes what `putInPlace` left beside a file when it was killed. The caller holds the lock. */
export async function removeDrafts(path: string): Promise<void> {
  const folder = dirname(path);
  const name = basename(path);
  for (const other of await readdir(folder)) {
    if (!other.startsWith(name) || !DRAFT_SUFFIX.test(other.slice(name.length))) continue;
    await rm(join(folder, other), { force: true });
  }
}

async function publish(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch (error) {
    if (errnoOf(error) === "EEXIST") throw existsError(path);
    if (!hasNoLinks(error)) throw error;
    if ((await placeAt(path)) !== "free") throw existsError(path);
    await rename(draft, path);
  }
}

export function existsError(path: string): SessionError {
  const what = `There is a file ${path} already. Open it, or choose another name.`;
  return new SessionError("exists", what, { path });
}

/** Writes all of it; what the system takes at once may be less. */
export async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.length - at);
    at += bytesWritten;
  }
}

/** A new name in a folder is safe only once the folder itself is on the disk. */
export async function syncFolder(path: string): Promise<void> {
  let handle: FileHandle;
  try {
    handle = await open(path, "r");
  } catch (error) {
    // Windows opens no folders, and needs no sync of them.
    if (process.platform === "win32") return;
    throw error;
  }
  try {
    await handle.sync();
  } catch (error) {
    if (errnoOf(error) !== "EINVAL" && errnoOf(error) !== "EPERM") throw error;
    // A file system that does not sync folders.
  } finally {
    await handle.close();
  }
}
