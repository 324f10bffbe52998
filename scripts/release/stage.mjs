import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, posix } from "node:path";
import { makeLlms } from "../docs/llms.mjs";
import { slimPackage } from "./slim.mjs";
import { isInternal } from "../shared/workspace.mjs";
import { formatAddress, readAddresses } from "../shared/addresses.mjs";

/** Leads to the pages of a package. */
const INDEX = "docs/README.md";
/** Relative links and pictures of a page. */
const LINK = /\]\(((?!#|[a-z]+:)[^)\s]+)\)/g;

/**
 * Copies a package into a folder as it is published: with the pages of the guide that its README
 * links to, the programs that these link to, and with links that work where it is installed. Others lead to the repository.
 *
 * @param {string} root
 * @param {import("../shared/workspace.mjs").Package} one
 * @param {string} into
 */
export function stagePackage(root, { room, folder }, into) {
  cpSync(folder, into, { recursive: true, filter: (path) => basename(path) !== "node_modules" });
  hideInternal(join(into, "package.json"));
  slimPackage(into);
  const addresses = readAddresses(root);
  const readme = join(folder, "README.md");
  if (addresses === undefined || !existsSync(readme)) return;
  const text = readFileSync(readme, "utf8");
  const home = `packages/${room}`;
  const pages = new Set(
    [...text.matchAll(LINK)]
      .map(([, link = ""]) => resolveLink(home, link).path)
      .filter((path) => /^docs\/[\w-]+\.md$/.test(path) && path !== INDEX),
  );
  /** Programs that the README or its pages link to. */
  const programs = new Set(
    [[text, home], ...[...pages].map((path) => [readFileSync(join(root, path), "utf8"), "docs"])]
      .flatMap(([page = "", from = ""]) =>
        [...page.matchAll(LINK)].map(([, link = ""]) => resolveLink(from, link).path),
      )
      .filter((path) => /^docs\/programs\/[\w-]+\.\w+$/.test(path)),
  );
  const shipped = new Set([...pages, ...programs]);
  /** @param {string} page @param {string} from its folder in the repository @param {string} at its folder in the package */
  const rewrite = (page, from, at) =>
    page.replaceAll(LINK, (_, link) => {
      const { path, anchor } = resolveLink(from, link);
      if (shipped.has(path)) return `](${posix.relative(at, path)}${anchor})`;
      return `](${formatAddress(addresses, path)}${anchor})`;
    });
  writeFileSync(join(into, "README.md"), rewrite(text, home, ""));
  mkdirSync(join(into, "docs"), { recursive: true });
  for (const path of pages) {
    const page = readFileSync(join(root, path), "utf8");
    writeFileSync(join(into, path), rewrite(page, "docs", "docs"));
  }
  writeFileSync(join(into, INDEX), makeIndex(root, pages));
  if (programs.size > 0) mkdirSync(join(into, "docs/programs"));
  for (const path of programs) cpSync(join(root, path), join(into, path));
  writeFileSync(join(into, "llms.txt"), makeLlms(root, shipped));
}

/**
 * The list of the pages with their headings, for a reader that looks for one: the program has its place in its prompt.
 *
 * @param {string} root
 * @param {ReadonlySet<string>} pages
 */
function makeIndex(root, pages) {
  const lines = [...pages].toSorted().map((path) => {
    const page = readFileSync(join(root, path), "utf8").replaceAll(/^```[^]*?^```/gm, "");
    const [title = "", ...headings] = [...page.matchAll(/^##? (.*)$/gm)].map(([, text = ""]) =>
      text.trim(),
    );
    return `- [${title}](${basename(path)}): ${headings.join("; ")}\n`;
  });
  return `# Pages\n\n${lines.join("")}`;
}

/** The condition by which our own tests find the sources, which are not published. */
const SOURCE = "@gyre/source";

/**
 * What only our own programs import is no entry point of what is published, nor are the sources.
 *
 * @param {string} file a package.json
 */
function hideInternal(file) {
  const manifest = JSON.parse(readFileSync(file, "utf8"));
  if (!manifest.exports) return;
  const points = Object.entries(manifest.exports)
    .filter(([path]) => !isInternal(path))
    .map(([path, target]) => {
      if (typeof target === "string") return [path, target];
      const { [SOURCE]: _source, ...published } = target;
      return [path, published];
    });
  const exports = Object.fromEntries(points);
  writeFileSync(file, JSON.stringify({ ...manifest, exports }, null, 2));
}

/**
 * @param {string} from a folder of the repository
 * @param {string} link
 */
function resolveLink(from, link) {
  const [path = "", anchor] = link.split("#");
  const at = posix.normalize(posix.join(from, path));
  return { path: at.replace(/\/$/, ""), anchor: anchor === undefined ? "" : `#${anchor}` };
}
