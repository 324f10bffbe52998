// llms.txt: the pages of the guide with their addresses, for programs that read them. Written from
// docs/README.md: `node scripts/docs/llms.mjs`.
import { readFileSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { formatAddress, readAddresses } from "../shared/addresses.mjs";

const FILE = "llms.txt";

/**
 * The text of the file: what the project is, then each section of the guide with its pages.
 *
 * @param {string} root
 * @param {ReadonlySet<string>} [shipped] pages that stand beside the file, and are linked to there
 */
export function makeLlms(root, shipped = new Set()) {
  const addresses = readAddresses(root);
  if (addresses === undefined) throw new Error("There are no addresses.");
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [title = "", summary = ""] = readme.split(/\n\n+/);
  const guide = readFileSync(join(root, "docs/README.md"), "utf8");
  const sections = guide.split(/^## /m).slice(1);
  const parts = sections.map((section) => {
    const [heading = ""] = section.split("\n", 1);
    const links = [...section.matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g)].flatMap(
      ([, text = "", target = ""]) => {
        const path = posix.normalize(posix.join("docs", target));
        const isShipped = shipped.has(path.replace(/#.*$/, ""));
        // In an installed package a program is there, or is not listed.
        if (shipped.size > 0 && !isShipped && path.startsWith("docs/programs/")) return [];
        const address = isShipped ? path : formatAddress(addresses, path);
        return `- [${text.replaceAll(/\s+/g, " ")}](${address})`;
      },
    );
    return `## ${heading}\n\n${links.join("\n")}\n`;
  });
  return `${title}\n\n> ${summary.replaceAll("\n", " ")}\n\n${parts.join("\n")}`;
}

/**
 * @param {string} root
 * @returns {import("../shared/parts.mjs").Findings}
 */
export function checkLlms(root) {
  const written = readFileSync(join(root, FILE), "utf8");
  const problems =
    written === makeLlms(root) ? [] : [`${FILE} is old: run node scripts/docs/llms.mjs`];
  return { problems };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  writeFileSync(join(root, FILE), makeLlms(root));
}
