import { posix } from "node:path";
import { lexer } from "marked";
import { readText } from "./markdown.mjs";

/**
 * The order of the pages, which docs/README.md alone has: its sections, and in each the items of its list.
 *
 * @typedef {import("marked").Token} Token
 * @typedef {{ text: string, source: string, anchor?: string }} Entry
 * @typedef {{ label?: string, entries: Entry[] }} Item `label`: what the entries have in common
 * @typedef {{ title: string, items: Item[] }} Group
 */

/**
 * @param {string} text of the page that orders the others
 * @param {string} source
 * @returns {Group[]}
 */
export function readNavigation(text, source) {
  /** @type {Group[]} */
  const groups = [];
  for (const token of lexer(text)) {
    if (token.type === "heading" && token["depth"] === 2) {
      groups.push({ title: readText(token.tokens), items: [] });
    } else if (token.type === "list") {
      groups
        .at(-1)
        ?.items.push(...token["items"].map((/** @type {Token} */ item) => readItem(item, source)));
    }
  }
  return groups;
}

/**
 * The pages that a page in a folder lists, of the same folder: the entry points of the reference, the decisions.
 *
 * @param {string} text
 * @param {string} source
 * @returns {Entry[]}
 */
export function readChildren(text, source) {
  const folder = `${posix.dirname(source)}/`;
  /** @type {Map<string, Entry>} */
  const found = new Map();
  for (const entry of listLinks(lexer(text), source)) {
    const isOwn = entry.source.startsWith(folder) && entry.source !== source;
    if (isOwn && entry.anchor === undefined && !found.has(entry.source))
      found.set(entry.source, entry);
  }
  return [...found.values()];
}

/** The pages in their order, each once. @param {readonly Group[]} groups */
export function listInOrder(groups) {
  const entries = groups.flatMap(({ items }) => items).flatMap((item) => item.entries);
  return [...new Map(entries.map((entry) => [entry.source, entry])).keys()];
}

/**
 * @param {Token} item
 * @param {string} source
 * @returns {Item}
 */
function readItem(item, source) {
  const inline = findInline(item);
  const before = inline.slice(
    0,
    inline.findIndex(({ type }) => type === "link"),
  );
  const [label = ""] = readText(before).split(/[,:]/, 1);
  const entries = listLinks(inline, source);
  return label.trim() === "" ? { entries } : { label: label.trim(), entries };
}

/** What stands in the item's line. @param {Token} item @returns {Token[]} */
function findInline(item) {
  const children = "tokens" in item ? (item.tokens ?? []) : [];
  const [only] = children;
  const isWrapped = only !== undefined && (only.type === "text" || only.type === "paragraph");
  return isWrapped && "tokens" in only ? (only.tokens ?? []) : children;
}

/**
 * The relative links in tokens, in order.
 *
 * @param {readonly Token[]} tokens
 * @param {string} source
 * @returns {Entry[]}
 */
function listLinks(tokens, source) {
  return tokens.flatMap((token) => {
    if (token.type === "link")
      return toEntry(/** @type {import("marked").Tokens.Link} */ (token), source);
    if (token.type === "list") return listLinks(token["items"], source);
    if (token.type === "table") {
      const { rows } = /** @type {import("marked").Tokens.Table} */ (token);
      return rows.flat().flatMap((cell) => listLinks(cell.tokens, source));
    }
    return "tokens" in token ? listLinks(token.tokens ?? [], source) : [];
  });
}

/**
 * @param {import("marked").Tokens.Link} link
 * @param {string} from
 * @returns {Entry[]}
 */
function toEntry({ href, tokens }, from) {
  if (/^[a-z]+:/i.test(href)) return [];
  const [path = "", anchor] = href.split("#");
  const source = path === "" ? from : posix.join(posix.dirname(from), path);
  const text = readText(tokens).replaceAll(/\s+/g, " ");
  return [anchor === undefined ? { text, source } : { text, source, anchor }];
}
