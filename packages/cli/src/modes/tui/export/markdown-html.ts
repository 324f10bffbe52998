import { toUrl } from "@gyre/ai";
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { asMarkedTokens } from "../markdown/inline.ts";
import { createHighlighter } from "../markdown/highlight.ts";
import { htmlProse, htmlText } from "./html-text.ts";
import { NO_COLORS, type Theme } from "../terminal/theme.ts";

/** Longer texts are shown as they were written. */
const MAX_MARKDOWN_CHARS = 500_000;
/** Quotes and lists nested on one line. Such a text is not meant for readers. */
const TOO_DEEP = /^[ \t]{0,3}(?:(?:>|[-*+][ \t])[ \t]{0,3}){50}/m;
const MAX_HEADING = 6;
/** The page has two levels of its own above the headings of an answer. */
const HEADINGS_ABOVE = 2;
/** The CSS class of each highlighted piece. */
const CLASSES: Theme = {
  ...NO_COLORS,
  keyword: "keyword",
  string: "string",
  number: "number",
  comment: "comment",
  type: "type",
  call: "call",
  added: "added",
  removed: "removed",
};
const LINKED = new Set(["http:", "https:", "mailto:"]);

/**
 * Markdown as HTML without tags from the text: HTML in the text is shown as text, links go to the web or to a mail
 * address, and an image becomes a link.
 */
export function markdownHtml(text: string): string {
  if (text.length > MAX_MARKDOWN_CHARS || TOO_DEEP.test(text)) return plainHtml(text);
  try {
    return blocks(new Lexer({ gfm: true }).lex(text));
  } catch (error) {
    // Lists nested too deep for the stack.
    if (error instanceof RangeError) return plainHtml(text);
    throw error;
  }
}

/** A text as it was written. */
export function plainHtml(text: string): string {
  return `<pre class="text">${htmlText(text)}</pre>`;
}

function blocks(tokens: readonly Token[]): string {
  return asMarkedTokens(tokens).map(html).join("");
}

function inline(tokens: readonly Token[] | undefined, text: string): string {
  return tokens ? blocks(tokens) : htmlProse(text);
}

function html(token: MarkedToken): string {
  switch (token.type) {
    case "space":
    case "def":
      return "";
    case "br":
      return "<br>";
    case "hr":
      return "<hr>";
    case "paragraph":
      return `<p>${blocks(token.tokens)}</p>`;
    case "text":
      return inline(token.tokens, token.text);
    case "escape":
    case "html":
      return htmlText(token.text);
    case "strong":
    case "em":
    case "del":
    case "blockquote":
      return `<${token.type}>${blocks(token.tokens)}</${token.type}>`;
    case "codespan":
      return `<code>${htmlText(token.text)}</code>`;
    case "code":
      return `<pre class="code"><code>${codeHtml(token)}</code></pre>`;
    case "heading": {
      const level = Math.min(MAX_HEADING, token.depth + HEADINGS_ABOVE);
      return `<h${level}>${blocks(token.tokens)}</h${level}>`;
    }
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "list":
      return listHtml(token);
    case "list_item":
      return `<li>${blocks(token.tokens)}</li>`;
    case "table":
      return tableHtml(token);
    case "link":
      return linkHtml(token.href, blocks(token.tokens));
    case "image":
      return linkHtml(token.href, htmlText(token.text || token.href));
  }
}

function codeHtml({ lang, text }: Tokens.Code): string {
  const [language] = (lang ?? "").trim().split(/[\s,{]/, 1);
  const highlight = createHighlighter(language, CLASSES);
  return text
    .split("\n")
    .map((line) =>
      highlight(line)
        .map(({ text: piece, style }) => {
          const inside = htmlText(piece);
          return style === "" ? inside : `<span class="${style}">${inside}</span>`;
        })
        .join(""),
    )
    .join("\n");
}

function listHtml({ items, ordered, start }: Tokens.List): string {
  const inside = items.map((item) => `<li>${blocks(item.tokens)}</li>`).join("");
  if (!ordered) return `<ul>${inside}</ul>`;
  const from = typeof start === "number" && start !== 1 ? ` start="${start}"` : "";
  return `<ol${from}>${inside}</ol>`;
}

function tableHtml({ header, rows }: Tokens.Table): string {
  const cells = (row: readonly Tokens.TableCell[], tag: "th" | "td"): string =>
    row
      .map(({ align, tokens }) => {
        const side = align === "right" || align === "center" ? ` class="${align}"` : "";
        return `<${tag}${side}>${blocks(tokens)}</${tag}>`;
      })
      .join("");
  const body = rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("");
  return `<table><thead><tr>${cells(header, "th")}</tr></thead><tbody>${body}</tbody></table>`;
}

function linkHtml(href: string, inside: string): string {
  const url = toUrl(href);
  if (!url || !LINKED.has(url.protocol)) return inside;
  return `<a href="${htmlText(url.href)}" rel="noopener noreferrer">${inside}</a>`;
}
