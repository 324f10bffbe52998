import { posix } from "node:path";
import { Marked } from "marked";
import { createAnchors } from "./browser/anchors.mjs";
import { formatCode } from "./code.mjs";
import { escapeHtml } from "./html.mjs";
import { toOutput } from "./sources.mjs";

/**
 * @typedef {import("marked").Token} Token
 * @typedef {import("marked").Tokens.Code} Code
 * @typedef {import("./sources.mjs").Target} Target
 * @typedef {{ depth: number, anchor: string, title: string }} Heading
 * @typedef {Heading & { text: string, code: string }} Section a heading with what is below it, for the search
 * @typedef {{
 *   source: string, title: string, html: string, headings: Heading[], sections: Section[], summary: string,
 *   targets: Target[], problems: string[],
 * }} Page `targets`: what its links lead to
 */

const WEB = /^(?:https?|mailto):/;
/** An entity that the page itself has written. */
const ESCAPED_ENTITY = /&amp;(#\d{1,7}|#[Xx][\da-fA-F]{1,6}|\w+);/g;
/** The length of a page's description, in characters. */
const MAX_SUMMARY = 160;

/**
 * A page of Markdown as HTML. HTML in it is a problem, comments aside: nothing of a page gets past the escaping.
 *
 * @param {string} source
 * @param {string} text
 * @param {(path: string) => Target} findTarget what a relative link leads to
 * @param {(address: string) => boolean} isDead whether an address on the web only stands in for one
 * @returns {Page}
 */
export function renderMarkdown(source, text, findTarget, isDead) {
  const nameAnchor = createAnchors();
  /** @type {Heading[]} */
  const headings = [];
  /** @type {Target[]} */
  const targets = [];
  /** @type {string[]} */
  const problems = [];
  /** @type {Set<Code>} */
  const outputs = new Set();

  /**
   * @param {string} href
   * @returns {{ href: string } | { file: string } | undefined}
   */
  const resolve = (href) => {
    if (WEB.test(href)) return isDead(href) ? undefined : { href };
    if (/^[a-z]+:/i.test(href)) {
      problems.push(`${source}: links to "${href}", which is no address of a page`);
      return undefined;
    }
    const [path = "", anchor] = href.split("#");
    const target = findTarget(path);
    targets.push(target);
    if ("missing" in target) {
      problems.push(`${source}: links to "${href}", and there is no ${target.missing}`);
      return undefined;
    }
    if ("file" in target) return target;
    if ("address" in target) return { href: target.address };
    const output = "page" in target ? target.page : target.asset;
    return { href: linkBetween(source, output) + (anchor === undefined ? "" : `#${anchor}`) };
  };

  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: raw }) {
        const inner = this.parser.parseInline(tokens);
        const anchor = nameAnchor(raw);
        const title = readText(tokens);
        headings.push({ depth, anchor, title });
        const link =
          depth === 1
            ? ""
            : ` <a class="anchor" href="#${escapeHtml(anchor)}" aria-label="Link to: ${escapeHtml(title)}">#</a>`;
        return `<h${depth} id="${escapeHtml(anchor)}">${inner}${link}</h${depth}>\n`;
      },
      code(token) {
        const [language = ""] = (token.lang ?? "").split(/\s/, 1);
        return formatCode(token.text, {
          language,
          ...(outputs.has(token) && { caption: "prints" }),
        });
      },
      html({ text: raw }) {
        if (/^\s*(?:<!--[\s\S]*?-->\s*)+$/.test(raw)) return "";
        problems.push(`${source}: HTML is not shown: ${raw.trim().slice(0, 60)}`);
        return escapeHtml(raw);
      },
      // The library's own lets text through as it is where it takes a tag before it for the beginning of a script.
      text(token) {
        if ("tokens" in token && token.tokens !== undefined) {
          return this.parser.parseInline(token.tokens);
        }
        return escapeHtml(token.text).replaceAll(ESCAPED_ENTITY, "&$1;");
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens);
        const found = resolve(href);
        if (found === undefined) return inner;
        if ("href" in found) return `<a href="${escapeHtml(found.href)}">${inner}</a>`;
        return nameFile(found.file, inner, readText(tokens));
      },
      image({ href, text: alt }) {
        const found = resolve(href);
        if (found === undefined || !("href" in found)) return escapeHtml(alt);
        return `<img src="${escapeHtml(found.href)}" alt="${escapeHtml(alt)}" loading="lazy">`;
      },
    },
  });
  const tokens = marked.lexer(text);
  for (const output of listOutputs(tokens)) outputs.add(output);
  const html = wrapTables(marked.parser(tokens));
  const title = headings.find(({ depth }) => depth === 1)?.title;
  if (title === undefined) problems.push(`${source}: there is no heading of the first level`);
  const sections = readSections(tokens, headings);
  const summary = readSummary(tokens);
  return {
    source,
    title: title ?? source,
    html,
    headings,
    sections,
    summary,
    targets,
    problems,
  };
}

/**
 * The way from one page to another file of the site.
 *
 * @param {string} from source
 * @param {string} to source
 */
export function linkBetween(from, to) {
  return from === to
    ? encodeURI(posix.basename(toOutput(to)))
    : encodeURI(posix.relative(posix.dirname(toOutput(from)), toOutput(to)));
}

/**
 * A source file that has no address: its name, or what the page calls it and then its path.
 *
 * @param {string} file
 * @param {string} inner HTML of the link
 * @param {string} text of the link
 */
function nameFile(file, inner, text) {
  const code = `<code class="file">${escapeHtml(file)}</code>`;
  return text === file || text === posix.basename(file) ? code : `${inner} (${code})`;
}

/**
 * The blocks that show what the block before them prints.
 *
 * @param {readonly Token[]} tokens
 * @returns {Code[]}
 */
function listOutputs(tokens) {
  const blocks = tokens.filter(
    /** @returns {token is Code} */ (token) =>
      token.type === "code" && typeof token["lang"] === "string",
  );
  return blocks.filter(({ lang }, at) => {
    const before = blocks[at - 1]?.lang ?? "";
    return lang === "text" && /^(?:tsx?$|sh run)/.test(before);
  });
}

/** A wide table scrolls by itself, not the page. @param {string} html */
function wrapTables(html) {
  return html
    .replaceAll(
      "<table>",
      '<div class="table" tabindex="0" role="region" aria-label="Table"><table>',
    )
    .replaceAll("</table>", "</table></div>");
}

/**
 * The text of tokens, without marks.
 *
 * @param {readonly Token[] | undefined} tokens
 * @returns {string}
 */
export function readText(tokens) {
  return (tokens ?? [])
    .map((token) => {
      if (token.type === "html" || token.type === "space") return "";
      if (token.type === "table")
        return readTable(/** @type {import("marked").Tokens.Table} */ (token));
      if (token.type === "list") return readText(token["items"]);
      if (token.type === "br") return " ";
      return "tokens" in token && token.tokens !== undefined
        ? readText(token.tokens) + (isBlock(token) ? " " : "")
        : "text" in token
          ? unescapeText(String(token.text)) + (isBlock(token) ? " " : "")
          : "";
    })
    .join("");
}

/** @param {Token} token */
function isBlock({ type }) {
  return ["paragraph", "list_item", "code", "blockquote", "heading"].includes(type);
}

/** @param {import("marked").Tokens.Table} table */
function readTable({ header, rows }) {
  return [header, ...rows].flatMap((row) => row.map(({ tokens }) => readText(tokens))).join(" ");
}

/** The lexer has some characters as entities. @param {string} text */
function unescapeText(text) {
  return text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}

/**
 * @param {readonly Token[]} tokens
 * @param {readonly Heading[]} headings
 * @returns {Section[]}
 */
function readSections(tokens, headings) {
  /** @type {Section[]} */
  const sections = [];
  let next = 0;
  for (const token of tokens) {
    const heading = headings[next];
    const last = sections.at(-1);
    if (token.type === "heading" && heading !== undefined) {
      sections.push({ ...heading, text: "", code: "" });
      next += 1;
    } else if (last !== undefined) {
      last[token.type === "code" ? "code" : "text"] += `${readText([token])} `;
    }
  }
  return sections;
}

/** The first paragraph, for a page's description. @param {readonly Token[]} tokens */
function readSummary(tokens) {
  const first = tokens.find(({ type }) => type === "paragraph");
  const text = readText(first === undefined ? [] : [first])
    .replaceAll(/\s+/g, " ")
    .trim();
  return text.length <= MAX_SUMMARY ? text : `${text.slice(0, MAX_SUMMARY - 1)}…`;
}
