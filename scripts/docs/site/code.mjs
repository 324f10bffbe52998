import { createHighlighter } from "../../../packages/cli/dist/modes/tui/markdown/highlight.js";
import { escapeHtml } from "./html.mjs";

/** The highlighter of the terminal has a style for each kind of word. Here a style is the name of a class. */
const NAMES = [
  "accent",
  "added",
  "bad",
  "call",
  "code",
  "comment",
  "dim",
  "emphasis",
  "good",
  "heading",
  "keyword",
  "link",
  "number",
  "prompt",
  "removed",
  "selected",
  "string",
  "strong",
  "struck",
  "subheading",
  "title",
  "type",
  "warning",
];

const CLASSES =
  /** @type {import("../../../packages/cli/dist/modes/tui/terminal/theme.js").Theme} */ (
    /** @type {unknown} */ (Object.fromEntries(NAMES.map((name) => [name, name])))
  );

/**
 * Code as HTML, its words in elements with a class. An unknown language stays plain.
 *
 * @param {string} code
 * @param {string} language
 */
export function highlightCode(code, language) {
  const highlight = createHighlighter(language, CLASSES);
  const lines = code.split("\n").map((line) =>
    highlight(line)
      .map(({ text, style }) =>
        style === "" ? escapeHtml(text) : `<span class="${style}">${escapeHtml(text)}</span>`,
      )
      .join(""),
  );
  return lines.join("\n");
}

/**
 * A block of code. It can be focused, so that the arrow keys scroll one that is wide.
 *
 * @param {string} code
 * @param {{ language: string, caption?: string }} options `caption`: of the output of the block before it
 */
export function formatCode(code, { language, caption }) {
  const inner = highlightCode(code, language);
  const label = caption === undefined ? "Code" : "Output";
  const pre = `<pre tabindex="0" role="region" aria-label="${label}"><code>${inner}\n</code></pre>`;
  return caption === undefined
    ? `<div class="code">${pre}</div>\n`
    : `<figure class="output"><figcaption>${escapeHtml(caption)}</figcaption>${pre}</figure>\n`;
}
