import { chmod, readdir, rm } from "node:fs/promises";
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
    await openFolders(Buffer.from(path));
    await rm(path, { recursive: true, force: true });
  }
}

/** The removal that failed goes on with what it has begun: what is gone meanwhile is as wanted. */
async function openFolders(folder: Buffer): Promise<void> {
  try {
    await chmod(folder, 0o700);
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: "buffer" })) {
      const path = Buffer.concat([folder, Buffer.from("/"), entry.name]);
      if (entry.isDirectory()) await openFolders(path);
    }
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
