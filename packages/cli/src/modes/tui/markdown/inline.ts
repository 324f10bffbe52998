import {
  Lexer,
  type MarkedToken,
  type Token,
  Tokenizer,
  type Tokens,
  type TokensList,
} from "marked";
import { type FindLinks, linkSpans } from "../terminal/hyperlinks.ts";
import { joinStyles, type Span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

/**
 * Places per character of the source. A place is the offset of a character times this, plus a rank: what stands for
 * no character (an empty row, a border, a label) has a rank between two characters. Places are integers, so that
 * comparing them is exact.
 */
export const CHARACTER: number = 2 ** 20;

/** From an offset in a text to a place in the whole source. It never goes backwards. */
export type Places = (offset: number) => number;

/** A piece of shown text: the character at `index` has the place `at + index * step`. */
export interface Unit extends Span {
  readonly at: number;
  readonly step: number;
}

/** What all of a text looks like. */
export interface Look {
  readonly theme: Theme;
  /** Below all other styles. */
  readonly style: string;
  /** Finds links in a text as it is shown. Default: nothing is a link. */
  readonly links?: FindLinks | undefined;
}

/** The entities that models write in running text. None of them stands for a control character. */
const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
  "&#39;": "'",
  "&nbsp;": " ",
};
/** A text, the inside of its lists and quotes, and the inside of those. */
const READ_DEPTH = 3;
const PIECES = /&(?:amp|lt|gt|quot|apos|#39|nbsp);| *\n */g;

/** The definition of a link may arrive long after the link was shown, so definitions are text like any other. */
class StreamTokenizer extends Tokenizer {
  override def(): undefined {
    return undefined;
  }
}

/**
 * Reads the inside of lists and quotes only as far as it takes to find their end. The tree builder reads it again, and
 * would otherwise read each level once for each level above it.
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

/** Creates a lexer for one text, so that no state of one text reaches the next. */
export function createLexer(): Lexer {
  return new ShallowLexer({ gfm: true, tokenizer: new StreamTokenizer() });
}

export interface InlineOptions extends Look {
  /** `<br>` ends a line: cells of a table have no other way. */
  breaks?: boolean;
}

/** The text of a paragraph, a heading or a cell. With colors its signs (`**`, `` ` ``) are left out. */
export function readInline(text: string, places: Places, options: InlineOptions): Unit[] {
  const walk = new InlineWalk(places, options);
  walk.tokens(lexInline(text), 0, options.style);
  return options.links ? linkSpans(walk.units, options.links, cutUnit) : walk.units;
}

function cutUnit(unit: Unit, from: number, to: number): Unit {
  return { ...unit, text: unit.text.slice(from, to), at: unit.at + from * unit.step };
}

/** A text as it was written, line ends included. */
export function readLiteral(text: string, places: Places, style: string): Unit[] {
  let offset = 0;
  return text.split(/(?<=\n)/).map((line) => {
    const unit = { text: line, style, at: places(offset), step: CHARACTER };
    offset += line.length;
    return unit;
  });
}

function lexInline(text: string): readonly MarkedToken[] {
  try {
    return asMarkedTokens(createLexer().inlineTokens(text));
  } catch (error) {
    // Signs nested too deep for the stack are shown as they were written.
    if (error instanceof RangeError) return [{ type: "text", raw: text, text }];
    throw error;
  }
}

class InlineWalk {
  readonly units: Unit[] = [];
  readonly #places: Places;
  /** Of characters that are in the source: less where all of the text is between two characters. */
  readonly #step: number;
  readonly #theme: Theme;
  readonly #hasColors: boolean;
  readonly #breaks: boolean;

  constructor(places: Places, { theme, breaks = false }: InlineOptions) {
    this.#places = places;
    this.#step = Math.max(1, places(1) - places(0));
    this.#theme = theme;
    this.#hasColors = theme.strong !== "";
    this.#breaks = breaks;
  }

  /** `offset` is where the first token begins. */
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

  /** Bold, emphasis, struck: without colors the signs stay. */
  #marked(
    token: Tokens.Strong | Tokens.Em | Tokens.Del,
    at: number,
    style: string,
    own: string,
  ): void {
    const { raw, text, tokens } = token;
    const sign = (raw.length - text.length) / 2;
    if (!this.#hasColors) this.#exact(raw.slice(0, sign), at, style);
    this.tokens(asMarkedTokens(tokens), at + sign, joinStyles(style, own));
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

  /** `text (address)`; only the address where the text is the same. */
  #link(token: Tokens.Link, at: number, style: string): void {
    const { raw, href, text, tokens } = token;
    const isBracketed = raw.startsWith("[");
    const inner = isBracketed || raw.startsWith("<") ? 1 : 0;
    this.tokens(asMarkedTokens(tokens), at + inner, joinStyles(style, this.#theme.link));
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

  /** Running text: line ends are spaces, and entities their characters. */
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

  /** Code: a line end is a space, all else is literal. */
  #lines(raw: string, at: number, style: string): void {
    let offset = at;
    for (const line of raw.split(/(?<=\n)/)) {
      this.#exact(line.replace("\n", " "), offset, style);
      offset += line.length;
    }
  }

  #exact(text: string, at: number, style: string): void {
    if (text !== "") this.units.push({ text, style, at: this.#places(at), step: this.#step });
  }

  /** A text that stands for `length` other characters. */
  #stand(text: string, at: number, length: number, style: string): void {
    if (text === "") return;
    const start = this.#places(at);
    const step = Math.ceil((this.#places(at + length) - start) / text.length);
    this.units.push({ text, style, at: start, step: Math.max(1, step) });
  }
}

/** Without extensions marked makes no tokens but these. */
export function asMarkedTokens(tokens: readonly Token[]): readonly MarkedToken[] {
  return tokens as readonly MarkedToken[];
}
