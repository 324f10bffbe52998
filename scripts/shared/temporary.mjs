import { mkdtemp, rm } from "node:fs/promises";
import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Gives `use` an empty folder and takes it away afterwards, whatever happened.
 *
 * @template T
 * @param {(folder: string) => T | Promise<T>} use
 * @returns {Promise<T>}
 */
export async function inTemporaryFolder(use) {
  const folder = await mkdtemp(join(realpathSync(tmpdir()), "gyre-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
