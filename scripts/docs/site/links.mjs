import { posix } from "node:path";

/** @typedef {ReadonlyMap<string, string>} Files the site, by path */

/**
 * The links of pages that lead to nothing: no such file, or no such anchor in it. And anchors that a page has twice.
 *
 * @param {Files} files
 * @returns {string[]}
 */
export function findDeadLinks(files) {
  /** @type {Map<string, Set<string>>} */
  const anchors = new Map();
  const problems = [];
  for (const [path, text] of files) {
    if (!path.endsWith(".html")) continue;
    const ids = readAttributes(text, "id");
    const unique = new Set(ids);
    anchors.set(path, unique);
    const twice = ids.find((id, at) => ids.indexOf(id) !== at);
    if (twice !== undefined) problems.push(`${path} has the anchor "${twice}" twice`);
  }
  for (const path of anchors.keys()) {
    const text = files.get(path) ?? "";
    const links = new Set([...readAttributes(text, "href"), ...readAttributes(text, "src")]);
    for (const link of links) {
      if (/^[a-z]+:/.test(link)) continue;
      const [to = "", anchor] = decodeURI(link).split("#");
      const target = to === "" ? path : posix.join(posix.dirname(path), to);
      if (!files.has(target))
        problems.push(`${path} links to "${link}", and there is no such file`);
      else if (anchor !== undefined && !anchors.get(target)?.has(anchor)) {
        problems.push(`${path} links to "${link}", and there is no such heading`);
      }
    }
  }
  return problems;
}

/**
 * @param {string} html
 * @param {"id" | "href" | "src"} name
 */
function readAttributes(html, name) {
  return [...html.matchAll(new RegExp(`<[a-z][^<>]* ${name}="([^"]*)"`, "g"))].map(
    ([, value = ""]) =>
      value
        .replaceAll("&quot;", '"')
        .replaceAll("&lt;", "<")
        .replaceAll("&gt;", ">")
        .replaceAll("&amp;", "&"),
  );
}
