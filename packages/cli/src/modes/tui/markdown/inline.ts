import {
  Lexer,
  type MarkedToken,
  type Token,
  Tokenizer,
  type Tokens,
  type TokensList,
} from "marked";
import type { Theme } from "../terminal/theme.ts";

/**
 * A piece of shown text with its place: the character at `index` stands for what is at
 * `at + index * step` in the source. What has no characters of its own in the source (the
 * name of a sign, a label) lies between its neighbours.
 */
export interface Unit {
  readonly text: string;
  readonly style: string;
  readonly at: number;
  readonly step: number;
}

/** What all of a text looks like. */
export interface Look {
  readonly theme: Theme;
  /** Below all other styles. */
  readonly style: string;
}

/** From an offset in a text to a place in the whole source. It never goes backwards. */
export type Places = (offset: number) => number;

/** Of a text without characters of its own: enough for many to fit between two places. */
export const SMALLEST_STEP: number = 2 ** -20;

/** Names for characters that models write in running text. Controls cannot be written so. */
const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
  "&#39;": "'",
  "&nbsp;": " ",
};
/** A text, what is within its lists and quotes, and what is within those. */
const READ_DEPTH = 3;
const PIECES = /&(?:amp|lt|gt|quot|apos|#39|nbsp);| *\n */g;

/**
 * What a link is called elsewhere in a text may come long after it was shown, so such
 * definitions are text like any other.
 */
class StreamTokenizer extends Tokenizer {
  override def(): undefined {
    return undefined;
  }
}

/**
 * What is within a list or a quote is read by whoever shows it. Here only as much of it is as
 * tells where it ends: each level would be read once for each level above it.
 */
class ShallowLexer extends Lexer {
  #depth = 0;

  override blockTokens(source: string, tokens?: Token[], isClipped?: boolean): Token[];
  override blockTokens(source: string, tokens?: TokensList, isClipped?: boolean): TokensList;
  override blockTokens(source: string, tokens: Token[] = [], isClipped = false): Token[] {
    if (this.#depth >= READ_DEPTH) {
      tokens.push({ type: "paragraph", raw: source, text: source, tokens: [] });
      return tokens;
    }
    this.#depth++;
    try {
      return super.blockTokens(source, tokens, isClipped);
    } finally {
      this.#depth--;
    }
  }
}

/** A reader of one text; what it has read leaves no trace in the next. */
export function createLexer(): Lexer {
  return new ShallowLexer({ gfm: true, tokenizer: new StreamTokenizer() });
}

/** Styles on top of each other. */
export function joinStyles(...styles: string[]): string {
  return styles.filter((style) => style !== "").join(";");
}

export interface InlineOptions extends Look {
  /** `<br>` ends a line: cells of a table have no other way. */
  breaks?: boolean;
}

/** The text of a paragraph, a heading or a cell, without its signs where there are colours. */
export function readInline(text: string, places: Places, options: InlineOptions): Unit[] {
  const walk = new InlineWalk(places, options);
  walk.tokens(lexInline(text), 0, options.style);
  return walk.units;
}

/** A text as it is, line ends included. */
export function readLiteral(text: string, places: Places, style: string): Unit[] {
  let offset = 0;
  return text.split(/(?<=\n)/).map((line) => {
    const unit = { text: line, style, at: places(offset), step: 1 };
    offset += line.length;
    return unit;
  });
}

function lexInline(text: string): readonly MarkedToken[] {
  try {
    return known(createLexer().inlineTokens(text));
  } catch (error) {
    // Signs nested so deep that no stack can hold them are shown as they are.
    if (error instanceof RangeError) return [{ type: "text", raw: text, text }];
    throw error;
  }
}

class InlineWalk {
  readonly units: Unit[] = [];
  readonly #places: Places;
  readonly #theme: Theme;
  readonly #hasColors: boolean;
  readonly #breaks: boolean;

  constructor(places: Places, { theme, breaks = false }: InlineOptions) {
    this.#places = places;
    this.#theme = theme;
    this.#hasColors = theme.strong !== "";
    this.#breaks = breaks;
  }

  /** `offset` is where the first of them begins. */
  tokens(tokens: readonly MarkedToken[], offset: number, style: string): void {
    let at = offset;
    for (const token of tokens) {
      this.#token(token, at, style);
      at += token.raw.length;
    }
  }

  #token(token: MarkedToken, at: number, style: string): void {
    const { raw } = token;
    switch (token.type) {
      case "strong":
        return this.#marked(token, at, style, this.#theme.strong);
      case "em":
        return this.#marked(token, at, style, this.#theme.emphasis);
      case "del":
        return this.#marked(token, at, style, this.#theme.struck);
      case "codespan":
        return this.#code(raw, at, joinStyles(style, this.#theme.code));
      case "link":
        return this.#link(token, at, style);
      case "image":
        return this.#image(token, at, style);
      case "escape":
        return this.#exact(raw.slice(1), at + 1, style);
      case "br":
        return this.#stand("\n", at, raw.length, style);
      case "html":
        if (this.#breaks && /^<br *\/?>$/i.test(raw)) {
          return this.#stand("\n", at, raw.length, style);
        }
        return this.#text(raw, at, style);
      default:
        return this.#text(raw, at, style);
    }
  }

  /** Bold, emphasis, struck: the signs show where nothing else does. */
  #marked(
    token: Tokens.Strong | Tokens.Em | Tokens.Del,
    at: number,
    style: string,
    own: string,
  ): void {
    const { raw, text, tokens } = token;
    const sign = (raw.length - text.length) / 2;
    if (!this.#hasColors) this.#exact(raw.slice(0, sign), at, style);
    this.tokens(known(tokens), at + sign, joinStyles(style, own));
    if (!this.#hasColors) this.#exact(raw.slice(raw.length - sign), at + raw.length - sign, style);
  }

  #code(raw: string, at: number, style: string): void {
    if (!this.#hasColors) return this.#lines(raw, at, style);
    const sign = /^`*/.exec(raw)?.[0].length ?? 0;
    let start = sign;
    let end = raw.length - sign;
    const hasSpaces = /^[ \n]/.test(raw.slice(start, end)) && /[ \n]$/.test(raw.slice(start, end));
    if (hasSpaces && raw.slice(start, end).trim() !== "") {
      start++;
      end--;
    }
    this.#lines(raw.slice(start, end), at + start, style);
  }

  /** `text (address)`; the address alone where the text is the same. */
  #link(token: Tokens.Link, at: number, style: string): void {
    const { raw, href, text, tokens } = token;
    const isBracketed = raw.startsWith("[");
    const inner = isBracketed || raw.startsWith("<") ? 1 : 0;
    this.tokens(known(tokens), at + inner, joinStyles(style, this.#theme.link));
    if (!isBracketed || text === href || href === "") return;
    const bracket = raw.indexOf("](", inner + text.length);
    const dim = joinStyles(style, this.#theme.dim);
    if (bracket < 0) return this.#stand(` (${href})`, at + raw.length - 1, 1, dim);
    this.#exact(text === "" ? "(" : " (", at + bracket + (text === "" ? 1 : 0), dim);
    this.#address(raw, bracket + 2, href, at, dim);
    this.#exact(")", at + raw.length - 1, dim);
  }

  #image({ raw, href }: Tokens.Image, at: number, style: string): void {
    const bracket = raw.indexOf("](");
    const dim = joinStyles(style, this.#theme.dim);
    if (bracket < 0) return this.#text(raw, at, style);
    this.#stand("[image: ", at, 2, dim);
    this.#text(raw.slice(2, bracket), at + 2, style);
    this.#exact("] ", at + bracket, dim);
    this.#address(raw, bracket + 2, href, at, dim);
  }

  #address(raw: string, from: number, href: string, at: number, style: string): void {
    const found = raw.indexOf(href, from);
    if (found >= 0) this.#exact(href, at + found, style);
    else this.#stand(href, at + from, Math.max(1, raw.length - 1 - from), style);
  }

  /** Running text: line ends are spaces, and a few characters may be written by name. */
  #text(raw: string, at: number, style: string): void {
    let done = 0;
    for (const found of raw.matchAll(PIECES)) {
      const [piece] = found;
      this.#exact(raw.slice(done, found.index), at + done, style);
      this.#stand(ENTITIES[piece] ?? " ", at + found.index, piece.length, style);
      done = found.index + piece.length;
    }
    this.#exact(raw.slice(done), at + done, style);
  }

  /** Code: nothing in it has a meaning but that a line end is a space. */
  #lines(raw: string, at: number, style: string): void {
    let offset = at;
    for (const line of raw.split(/(?<=\n)/)) {
      this.#exact(line.replace("\n", " "), offset, style);
      offset += line.length;
    }
  }

  #exact(text: string, at: number, style: string): void {
    if (text !== "") this.units.push({ text, style, at: this.#places(at), step: 1 });
  }

  /** A text that stands for `length` other characters. */
  #stand(text: string, at: number, length: number, style: string): void {
    if (text === "") return;
    const start = this.#places(at);
    const step = (this.#places(at + length) - start) / text.length;
    this.units.push({ text, style, at: start, step: Math.max(step, SMALLEST_STEP) });
  }
}

/** Without extensions there are no tokens but these. */
export function known(tokens: readonly Token[]): readonly MarkedToken[] {
  return tokens as readonly MarkedToken[];
}
