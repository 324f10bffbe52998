import { statSync } from "node:fs";
import { join } from "node:path";
import { mustRun } from "../shared/command.mjs";

/**
 * Packs a package as npm would publish it.
 *
 * @param {import("../shared/workspace.mjs").Package} one
 * @param {string} into a folder that is there
 * @returns {Promise<{ tarball: string, bytes: number }>}
 */
export async function pack({ folder }, into) {
  const output = await mustRun("npm", ["pack", "--json", "--pack-destination", into], {
    cwd: folder,
  });
  /** @type {[{ filename: string }]} */
  const [{ filename }] = JSON.parse(output);
  const tarball = join(into, filename);
  return { tarball, bytes: statSync(tarball).size };
}
