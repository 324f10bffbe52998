import { toUrl } from "@gyre/ai";
import { Tokenizer, type TokenizerCallbacks } from "htmlparser2";

/** The content of these is for programs. */
const SKIPPED = new Set([
  "script",
  "style",
  "template",
  "noscript",
  "svg",
  "math",
  "iframe",
  "object",
  "select",
  "textarea",
]);

/** Have rules of their own for tags: `<svg/>` is empty, `<div/>` is not. */
const FOREIGN = new Set(["svg", "math"]);

/** Begin and end a line. */
const LINES = new Set([
  "address",
  "article",
  "aside",
  "blockquote",
  "body",
  "dd",
  "details",
  "div",
  "dl",
  "dt",
  "fieldset",
  "figcaption",
  "figure",
  "footer",
  "form",
  "header",
  "hr",
  "li",
  "main",
  "nav",
  "ol",
  "section",
  "summary",
  "table",
  "tbody",
  "thead",
  "title",
  "tr",
  "ul",
]);

/** With an empty line around them. */
const PARAGRAPHS = new Set(["p", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "table", "title"]);

/** A longer address or description is not shown. */
const MAX_ATTRIBUTE_CHARS = 8192;

/**
 * Converts a page to plain text as a reader sees it: headings with `#`, items with `-`, links
 * as `[text](address)` with the address resolved against `base`; scripts, styles and comments
 * left out. Meant to be read, not to be exact. Linear in the page; takes any text.
 */
export function htmlToText(html: string, base: string): string {
  const reader = new PageReader(html, base);
  // The tokenizer alone: the library's parser looks for open tags in all that are open, which
  // is quadratic for a deep page.
  const tokenizer = new Tokenizer({}, reader);
  tokenizer.write(html);
  tokenizer.end();
  return reader.out.finish();
}

/** Takes the tags and texts of a page in their order. */
class PageReader implements TokenizerCallbacks {
  readonly out = new PageText();
  readonly #html: string;
  readonly #base: string;
  readonly #links: (string | undefined)[] = [];
  /** What is skipped now, and how many of its kind are open. */
  #skipped: { name: string; depth: number } | undefined;
  #tag = "";
  #attribute = "";
  #value = "";
  #href: string | undefined;
  #alt: string | undefined;

  constructor(html: string, base: string) {
    this.#html = html;
    this.#base = base;
  }

  isInForeignContext(): boolean {
    return this.#skipped !== undefined && FOREIGN.has(this.#skipped.name);
  }

  ontext(start: number, end: number): void {
    if (!this.#skipped) this.out.add(this.#html.slice(start, end));
  }

  ontextentity(codePoint: number): void {
    if (!this.#skipped) this.out.add(String.fromCodePoint(codePoint));
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#html.slice(start, end).toLowerCase();
    this.#href = undefined;
    this.#alt = undefined;
  }

  onattribname(start: number, end: number): void {
    this.#attribute = this.#html.slice(start, end).toLowerCase();
    this.#value = "";
  }

  onattribdata(start: number, end: number): void {
    if (this.#value.length <= MAX_ATTRIBUTE_CHARS) this.#value += this.#html.slice(start, end);
  }

  onattribentity(codePoint: number): void {
    if (this.#value.length <= MAX_ATTRIBUTE_CHARS) this.#value += String.fromCodePoint(codePoint);
  }

  onattribend(): void {
    if (this.#value.length > MAX_ATTRIBUTE_CHARS) return;
    // Of two attributes with one name the first counts.
    if (this.#attribute === "href") this.#href ??= this.#value;
    else if (this.#attribute === "alt") this.#alt ??= this.#value;
  }

  onselfclosingtag(): void {
    if (!FOREIGN.has(this.#tag)) this.onopentagend();
  }

  onopentagend(): void {
    const name = this.#tag;
    const skipped = this.#skipped;
    if (skipped) {
      if (name === skipped.name) skipped.depth++;
    } else if (SKIPPED.has(name)) this.#skipped = { name, depth: 1 };
    else this.#open(name);
  }

  onclosetag(start: number, end: number): void {
    const name = this.#html.slice(start, end).toLowerCase();
    const skipped = this.#skipped;
    if (skipped) {
      if (name === skipped.name && --skipped.depth === 0) this.#skipped = undefined;
    } else if (!SKIPPED.has(name)) this.#close(name);
  }

  oncomment(): void {}
  oncdata(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}
  onend(): void {}

  #open(name: string): void {
    const { out } = this;
    this.#breakAround(name);
    if (name === "pre") out.keepSpaces(true);
    else if (name === "br") out.newline();
    else if (name === "hr") {
      out.add("---");
      out.breakLines(1);
    } else if (name === "li") out.add("- ");
    else if (/^h[1-6]$/.test(name)) out.add(`${"#".repeat(Number(name[1]))} `);
    else if (name === "img") {
      if (this.#alt) out.add(`[image: ${this.#alt}]`);
    } else if (name === "a") {
      const link = resolveLink(this.#href, this.#base);
      this.#links.push(link);
      if (link !== undefined) out.add("[");
    }
  }

  #close(name: string): void {
    const { out } = this;
    this.#breakAround(name);
    if (name === "pre") out.keepSpaces(false);
    else if (name === "br") out.newline();
    else if (name === "td" || name === "th") out.add(" | ");
    else if (name === "a") {
      const link = this.#links.pop();
      if (link !== undefined) out.add(`](${link})`);
    }
  }

  #breakAround(name: string): void {
    if (PARAGRAPHS.has(name)) this.out.breakLines(2);
    else if (LINES.has(name)) this.out.breakLines(1);
  }
}

/** The whole address of a link; undefined for a script, a mail or a place on the same page. */
function resolveLink(given: string | undefined, base: string): string | undefined {
  const href = given?.trim();
  if (href === undefined || href === "" || href.startsWith("#")) return undefined;
  const url = toUrl(href, base);
  return url?.protocol === "https:" || url?.protocol === "http:" ? url.href : undefined;
}

const SOFT_HYPHEN = "\u00AD";

/** Text in pieces, with white space as a reader sees it. */
class PageText {
  readonly #pieces: string[] = [];
  #inPre = 0;
  /** Line breaks at the end of what was written. */
  #breaks = 2;
  #space = false;

  add(text: string): void {
    const visible = text.replaceAll(SOFT_HYPHEN, "");
    if (this.#inPre > 0) {
      this.#write(visible);
      return;
    }
    const words = visible.replace(/\s+/g, " ");
    if (words.startsWith(" ")) this.#space = true;
    const trimmed = words.trim();
    if (trimmed === "") return;
    this.#write((this.#space && this.#breaks === 0 ? " " : "") + trimmed);
    this.#space = words.endsWith(" ");
  }

  newline(): void {
    this.#write("\n");
    this.#space = false;
  }

  breakLines(count: number): void {
    while (this.#breaks < count) this.#write("\n");
    this.#space = false;
  }

  keepSpaces(keep: boolean): void {
    this.#inPre = Math.max(0, this.#inPre + (keep ? 1 : -1));
  }

  finish(): string {
    return this.#pieces.join("").trim();
  }

  #write(piece: string): void {
    if (piece === "") return;
    this.#pieces.push(piece);
    let breaks = 0;
    while (piece[piece.length - 1 - breaks] === "\n") breaks++;
    this.#breaks = breaks === piece.length ? this.#breaks + breaks : breaks;
  }
}
