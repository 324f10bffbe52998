import { readFileSync } from "node:fs";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { pack } from "../release/pack.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { listPackages } from "../shared/workspace.mjs";

/**
 * Packs every public package and lets publint read the tarball; its suggestions count.
 *
 * @param {string} root
 * @returns {Promise<import("../shared/parts.mjs").Findings>}
 */
export function checkPublishable(root) {
  return inTemporaryFolder(async (folder) => {
    /** @type {string[]} */
    const problems = [];
    for (const one of listPackages(root)) {
      if (one.manifest.private === true) continue;
      const { tarball } = await pack(one, folder);
      const { messages, pkg } = await publint({
        pack: { tarball: new Uint8Array(readFileSync(tarball)).buffer },
      });
      for (const message of messages) {
        const text = formatMessage(message, pkg, { color: false }) ?? message.code;
        problems.push(`${one.manifest.name}: ${text} (${message.type})`);
      }
    }
    return { problems };
  });
}
