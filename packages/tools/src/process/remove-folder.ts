import { chmod, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "@gyre/ai";

/**
 * Removes a folder with all that is in it, also folders that a command closed to their owner.
 * No program may be running in it any more.
 */
export async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    if (!["EACCES", "EPERM"].includes(errnoOf(error) ?? "")) throw error;
    await openFolders(path);
    await rm(path, { recursive: true, force: true });
  }
}

async function openFolders(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await openFolders(join(folder, entry.name));
  }
}
