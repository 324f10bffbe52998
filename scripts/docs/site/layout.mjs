import { posix } from "node:path";
import { escapeHtml } from "./html.mjs";
import { linkBetween } from "./markdown.mjs";
import { START, toOutput } from "./sources.mjs";

/**
 * @typedef {import("./markdown.mjs").Page} Page
 * @typedef {import("./navigation.mjs").Entry} Entry
 * @typedef {import("./navigation.mjs").Group} Group
 * @typedef {{ groups: readonly Group[], children: ReadonlyMap<string, readonly Entry[]>, order: readonly string[] }} Navigation
 *   `children`: the pages of a folder, by the page that lists them; `order`: the pages one after the other
 */

/** Scripts and styles from the site alone, no frames, no forms, no connection to anywhere. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'";
/** A page with more headings lists those of the second level alone. */
const MAX_CONTENTS = 40;

/**
 * @param {Page} page
 * @param {Navigation} navigation
 * @param {(source: string) => string} findTitle
 */
export function formatPage(page, navigation, findTitle) {
  const { source, title, html, summary } = page;
  const up = posix.relative(posix.dirname(toOutput(source)), "") || ".";
  const heading = source === START ? "Gyre" : `${title} - Gyre`;
  return `<!doctype html>
<html lang="en" data-root="${up}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escapeHtml(summary)}">
<title>${escapeHtml(heading)}</title>
<link rel="icon" href="${up}/icon.svg">
<link rel="stylesheet" href="${up}/site.css">
<script src="${up}/site.js"></script>
</head>
<body>
<a class="skip" href="#site-content">Skip to the content</a>
<header>
<a class="home" href="${up}/index.html">Gyre</a>
<search><label class="unseen" for="site-query">Search the guide</label><input id="site-query" type="search" placeholder="Search" autocomplete="off" spellcheck="false" aria-keyshortcuts="/" aria-controls="site-results"><div id="site-results" hidden></div></search>
<button id="site-theme" type="button" hidden>Dark</button>
<button id="site-menu" type="button" aria-expanded="false" aria-controls="site-navigation" hidden>Menu</button>
</header>
<div class="columns">
<nav id="site-navigation" aria-label="Pages">
${formatNavigation(page, navigation)}</nav>
<main id="site-content" tabindex="-1">
<article>
${html}</article>
${formatNeighbors(source, navigation.order, findTitle)}<footer><p>From <code class="file">${escapeHtml(source)}</code></p></footer>
</main>
${formatContents(page)}</div>
<p id="site-status" class="unseen" role="status"></p>
</body>
</html>
`;
}

/**
 * @param {Page} page
 * @param {Navigation} navigation
 */
function formatNavigation({ source }, { groups, children }) {
  return groups
    .map(({ title, items }) => {
      const entries = items.flatMap((item) => item.entries);
      const isHere = entries.some(
        (entry) =>
          entry.source === source ||
          children.get(entry.source)?.some((child) => child.source === source),
      );
      const lines = items.map(({ label, entries: own }) =>
        label === undefined
          ? own.map((entry) => formatEntry(entry, source, children)).join("")
          : `<li><span>${escapeHtml(label)}</span><ul>${own.map((entry) => formatEntry(entry, source, children)).join("")}</ul></li>\n`,
      );
      return `<details${isHere || source === START ? " open" : ""}><summary>${escapeHtml(title)}</summary><ul>\n${lines.join("")}</ul></details>\n`;
    })
    .join("");
}

/**
 * A line of the navigation. The pages of a folder are shown while one of them is open.
 *
 * @param {Entry} entry
 * @param {string} current
 * @param {Navigation["children"]} children
 */
function formatEntry(entry, current, children) {
  const own = children.get(entry.source) ?? [];
  const isOpen = entry.source === current || own.some(({ source }) => source === current);
  const below =
    isOpen && own.length > 0
      ? `<ul>${own.map((child) => `<li>${formatLink(child, current)}</li>`).join("")}</ul>`
      : "";
  return `<li>${formatLink(entry, current)}${below}</li>\n`;
}

/**
 * @param {Entry} entry
 * @param {string} current
 */
function formatLink({ text, source, anchor }, current) {
  const href = linkBetween(current, source) + (anchor === undefined ? "" : `#${anchor}`);
  const here = source === current && anchor === undefined ? ' aria-current="page"' : "";
  return `<a href="${escapeHtml(href)}"${here}>${escapeHtml(text)}</a>`;
}

/**
 * The pages before and after this one.
 *
 * @param {string} source
 * @param {readonly string[]} order
 * @param {(source: string) => string} findTitle
 */
function formatNeighbors(source, order, findTitle) {
  const at = order.indexOf(source);
  const before = at > 0 ? order[at - 1] : undefined;
  const after = source === START ? order[0] : at >= 0 ? order[at + 1] : undefined;
  if (before === undefined && after === undefined) return "";
  /** @param {string | undefined} to @param {"prev" | "next"} rel */
  const link = (to, rel) =>
    to === undefined
      ? ""
      : `<a rel="${rel}" href="${escapeHtml(linkBetween(source, to))}">${escapeHtml(findTitle(to))}</a>`;
  return `<nav class="neighbors" aria-label="Next page">${link(before, "prev")}${link(after, "next")}</nav>\n`;
}

/** The headings of a page. @param {Page} page */
function formatContents({ headings }) {
  const below = headings.filter(({ depth }) => depth === 2 || depth === 3);
  const shown = below.length <= MAX_CONTENTS ? below : below.filter(({ depth }) => depth === 2);
  if (shown.length < 2) return "";
  const lines = shown.map(
    ({ depth, anchor, title }) =>
      `<li class="depth-${depth}"><a href="#${escapeHtml(anchor)}">${escapeHtml(title)}</a></li>`,
  );
  return `<nav id="site-contents" aria-label="On this page"><p>On this page</p><ul>${lines.join("\n")}</ul></nav>\n`;
}
