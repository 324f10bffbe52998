import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mustRun } from "../shared/command.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Packs a package as it is published: with its pages of the guide.
 *
 * @param {import("../shared/workspace.mjs").Package} one
 * @param {string} into a folder that is there
 * @returns {Promise<{ tarball: string, bytes: number }>}
 */
export async function pack(one, into) {
  // What it needs is missing where packages are still to be installed.
  const { stagePackage } = await import("./stage.mjs");
  const output = await inTemporaryFolder((folder) => {
    stagePackage(root, one, folder);
    return mustRun("npm", ["pack", "--json", "--pack-destination", into], { cwd: folder });
  });
  /** @type {[{ filename: string }]} */
  const [{ filename }] = JSON.parse(output);
  const tarball = join(into, filename);
  return { tarball, bytes: statSync(tarball).size };
}
