/** What is in these is for programs. */
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

/** What is in these is not markup: it goes on to their own end tag. */
const RAW = new Set(["script", "style", "textarea", "iframe", "noscript"]);

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

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
  ["nbsp", " "],
  ["ensp", " "],
  ["emsp", " "],
  ["thinsp", " "],
  ["shy", ""],
  ["ndash", "–"],
  ["mdash", "—"],
  ["hellip", "…"],
  ["lsquo", "‘"],
  ["rsquo", "’"],
  ["sbquo", "‚"],
  ["ldquo", "“"],
  ["rdquo", "”"],
  ["bdquo", "„"],
  ["laquo", "«"],
  ["raquo", "»"],
  ["lsaquo", "‹"],
  ["rsaquo", "›"],
  ["bull", "•"],
  ["middot", "·"],
  ["copy", "©"],
  ["reg", "®"],
  ["trade", "™"],
  ["deg", "°"],
  ["plusmn", "±"],
  ["times", "×"],
  ["divide", "÷"],
  ["minus", "−"],
  ["larr", "←"],
  ["uarr", "↑"],
  ["rarr", "→"],
  ["darr", "↓"],
  ["sect", "§"],
  ["para", "¶"],
  ["euro", "€"],
  ["pound", "£"],
  ["yen", "¥"],
  ["cent", "¢"],
  ["auml", "ä"],
  ["ouml", "ö"],
  ["uuml", "ü"],
  ["Auml", "Ä"],
  ["Ouml", "Ö"],
  ["Uuml", "Ü"],
  ["szlig", "ß"],
  ["eacute", "é"],
  ["egrave", "è"],
  ["agrave", "à"],
  ["ccedil", "ç"],
  ["ntilde", "ñ"],
]);

const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,15}(?=;)));?/g;
const LAST_CODE_POINT = 0x10ffff;
const DECIMAL = 10;
const HEX = 16;

const TAG_NAME = /[A-Za-z][A-Za-z0-9:-]{0,31}/y;
const ATTRIBUTE = /([^\s=>"'/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?/g;
/** More of a tag is not looked at for a link: its address would be no use. */
const MAX_TAG_CHARS = 8192;

interface Tag {
  name: string;
  closes: boolean;
  /** Between the name and the end of the tag. */
  rest: string;
  end: number;
}

/**
 * What a reader sees of a page, as plain text: headings with `#`, items with `-`, links as
 * `[text](address)` with the address made whole by `base`; scripts, styles and comments
 * left out. Meant to be read, not to be exact. Linear; takes any text.
 */
export function htmlToText(html: string, base: string): string {
  const out = new TextOfPage();
  const links: (string | undefined)[] = [];
  let skipped: { name: string; depth: number } | undefined;
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf("<", at);
    if (open < 0 || open > at) {
      if (!skipped) out.text(decodeEntities(html.slice(at, open < 0 ? html.length : open)));
      if (open < 0) break;
    }
    const afterNoise = endOfNoise(html, open);
    if (afterNoise !== undefined) {
      at = afterNoise;
      continue;
    }
    const tag = readTag(html, open);
    if (!tag) {
      if (!skipped) out.text("<");
      at = open + 1;
      continue;
    }
    at = tag.end;
    if (skipped) {
      if (tag.name === skipped.name) skipped.depth += tag.closes ? -1 : 1;
      if (skipped.depth === 0) skipped = undefined;
    } else if (SKIPPED.has(tag.name)) {
      if (tag.closes || tag.rest.endsWith("/")) continue;
      if (RAW.has(tag.name)) at = endOfRaw(html, tag.name, at);
      else skipped = { name: tag.name, depth: 1 };
    } else {
      render(tag, out, links, base);
    }
  }
  return out.finish();
}

/** References to characters replaced; those that are not known stay as they are. */
export function decodeEntities(text: string): string {
  return text.replace(ENTITY, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return ENTITIES.get(name) ?? whole;
    const code = Number.parseInt(decimal ?? hex ?? "", decimal === undefined ? HEX : DECIMAL);
    if (code === 0 || code > LAST_CODE_POINT) return "\uFFFD";
    return String.fromCodePoint(code);
  });
}

function render(tag: Tag, out: TextOfPage, links: (string | undefined)[], base: string): void {
  const { name, closes } = tag;
  if (PARAGRAPHS.has(name)) out.breakLines(2);
  else if (LINES.has(name)) out.breakLines(1);
  if (name === "pre") out.keepSpaces(!closes);
  if (name === "br") out.newline();
  if (name === "hr") {
    out.text("---");
    out.breakLines(1);
  }
  if ((name === "td" || name === "th") && closes) out.text(" | ");
  if (name === "li" && !closes) out.text("- ");
  if (/^h[1-6]$/.test(name) && !closes) out.text(`${"#".repeat(Number(name[1]))} `);
  if (name === "img") {
    const alt = attributeOf(tag, "alt");
    if (alt) out.text(`[image: ${alt}]`);
  }
  if (name !== "a") return;
  if (!closes) {
    const link = linkOf(tag, base);
    links.push(link);
    if (link !== undefined) out.text("[");
  } else {
    const link = links.pop();
    if (link !== undefined) out.text(`](${link})`);
  }
}

/** The end of a comment, a declaration or a processing instruction that begins at `open`. */
function endOfNoise(html: string, open: number): number | undefined {
  const next = html[open + 1];
  if (next !== "!" && next !== "?") return undefined;
  const [mark, length] = html.startsWith("<!--", open) ? ["-->", 3] : [">", 1];
  const end = html.indexOf(mark, open + 2);
  return end < 0 ? html.length : end + length;
}

/** The tag that begins at `open`. One without an end takes the rest of the page with it. */
function readTag(html: string, open: number): Tag | undefined {
  const closes = html[open + 1] === "/";
  TAG_NAME.lastIndex = open + (closes ? 2 : 1);
  const name = TAG_NAME.exec(html)?.[0];
  if (name === undefined) return undefined;
  const start = TAG_NAME.lastIndex;
  const end = endOfTag(html, start);
  const rest = html.slice(start, Math.min(end, start + MAX_TAG_CHARS)).trim();
  return { name: name.toLowerCase(), closes, rest, end: end + 1 };
}

/** Where the `>` of a tag is that is not in quotes. */
function endOfTag(html: string, start: number): number {
  let quote = "";
  for (let at = start; at < html.length; at++) {
    const char = html[at];
    if (quote) {
      if (char === quote) quote = "";
    } else if (char === ">") return at;
    // A quote that is no value's does not open anything.
    else if ((char === '"' || char === "'") && /=\s*$/.test(html.slice(Math.max(0, at - 4), at)))
      quote = char;
  }
  return html.length;
}

function endOfRaw(html: string, name: string, from: number): number {
  const end = new RegExp(`</${name}[\\s/>]`, "gi");
  end.lastIndex = from;
  const found = end.exec(html);
  if (!found) return html.length;
  const close = html.indexOf(">", found.index);
  return close < 0 ? html.length : close + 1;
}

function attributeOf(tag: Tag, wanted: string): string | undefined {
  for (const [, name, double, single, plain] of tag.rest.matchAll(ATTRIBUTE)) {
    if (name?.toLowerCase() === wanted) return decodeEntities(double ?? single ?? plain ?? "");
  }
  return undefined;
}

/** The address of a link, whole; none for a script, a mail or a place on the same page. */
function linkOf(tag: Tag, base: string): string | undefined {
  const href = attributeOf(tag, "href")?.trim();
  if (href === undefined || href === "" || href.startsWith("#") || !URL.canParse(href, base)) {
    return undefined;
  }
  const url = new URL(href, base);
  return url.protocol === "https:" || url.protocol === "http:" ? url.href : undefined;
}

/** Text in pieces, with white space as a reader sees it. */
class TextOfPage {
  readonly #pieces: string[] = [];
  #inPre = 0;
  /** Line breaks at the end of what was written. */
  #breaks = 2;
  #space = false;

  text(text: string): void {
    if (this.#inPre > 0) {
      this.#write(text);
      return;
    }
    const words = text.replace(/\s+/g, " ");
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
