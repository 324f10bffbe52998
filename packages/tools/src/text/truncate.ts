import { estimateTokens } from "@gyre/ai";
import { cutText } from "@gyre/ai/text";
import { grouped } from "./text.ts";

/** Tokens of a page where the application does not say what a result may take. */
export const DEFAULT_PAGE_TOKENS = 10_000;

/** How large a page is: a model gets it whole, and asks for the next one. */
export interface PageLimits {
  maxBytes: number;
  /** As `estimateTokens` counts them. */
  maxTokens: number;
}

/** How much of a text a model is shown. */
export interface LineLimits extends PageLimits {
  maxLines: number;
  /** Of one line, in UTF-16 units; what is longer is cut and marked. */
  maxLineChars: number;
}

/** The part of a text that fits. */
export interface ShownLines {
  /** Without line ends. */
  lines: string[];
  /** How many lines the text has, as far as it was fed. */
  total: number;
  /** How many of the shown lines were cut. */
  cut: number;
  /** The first line that did not fit, 1-based; absent where all did. */
  next?: number;
}

/**
 * Takes a text in pieces and keeps of it the lines from `first` on that are within the
 * limits. What comes after is counted, not kept, and so is all but the head of a long
 * line: memory is bounded by the limits, whatever is fed.
 */
export class LineWindow {
  readonly #first: number;
  readonly #limits: LineLimits;
  readonly #lines: string[] = [];
  readonly #page: PageMeter;
  #cut = 0;
  #next: number | undefined;
  /** Of the line that is being fed: its number, its head and its whole length. */
  #number = 1;
  #head = "";
  #chars = 0;

  constructor(first: number, limits: LineLimits) {
    this.#first = first;
    this.#limits = limits;
    this.#page = new PageMeter(limits);
  }

  /** Nothing that is fed from here on would be shown. */
  get full(): boolean {
    return this.#next !== undefined;
  }

  feed(piece: string): void {
    let start = 0;
    for (;;) {
      const end = piece.indexOf("\n", start);
      this.#extend(piece, start, end < 0 ? piece.length : end);
      if (end < 0) return;
      this.#finishLine();
      start = end + 1;
    }
  }

  end(): ShownLines {
    // A text that ends with a line end has no further, empty line.
    if (this.#chars > 0) this.#finishLine();
    return {
      lines: this.#lines,
      total: this.#number - 1,
      cut: this.#cut,
      ...(this.#next !== undefined && { next: this.#next }),
    };
  }

  #extend(piece: string, start: number, end: number): void {
    // One more than is shown, so that a pair of surrogates at the edge is seen whole.
    const room = this.#limits.maxLineChars + 1 - this.#head.length;
    if (room > 0 && this.#number >= this.#first && !this.full) {
      this.#head += piece.slice(start, Math.min(end, start + room));
    }
    this.#chars += end - start;
  }

  #finishLine(): void {
    if (this.#number >= this.#first && !this.full) this.#keep();
    this.#number += 1;
    this.#head = "";
    this.#chars = 0;
  }

  #keep(): void {
    const { maxLines, maxLineChars } = this.#limits;
    const isCut = this.#chars > maxLineChars;
    const line = isCut
      ? `${cutText(this.#head, maxLineChars)} [cut: ${grouped(this.#chars)} characters]`
      : this.#head;
    // The first line is shown whatever its size: a window that never moves on is no window.
    const fits = this.#page.add(line) || this.#lines.length === 0;
    if (this.#lines.length >= maxLines || !fits) {
      this.#next = this.#number;
      return;
    }
    this.#lines.push(line);
    if (isCut) this.#cut += 1;
  }
}

/** Measures the lines of a page as they are added. */
export class PageMeter {
  readonly #limits: PageLimits;
  #bytes = 0;
  #tokens = 0;

  constructor(limits: PageLimits) {
    this.#limits = limits;
  }

  /** Counts a line with its line end; false where the page has no room for it. */
  add(line: string): boolean {
    this.#bytes += Buffer.byteLength(line) + 1;
    if (this.#bytes > this.#limits.maxBytes) return false;
    this.#tokens += estimateTokens(line) + 1;
    return this.#tokens <= this.#limits.maxTokens;
  }
}

/** The first of `lines` that fit on a page with their line ends. */
export function linesWithin(lines: readonly string[], limits: PageLimits): string[] {
  const page = new PageMeter(limits);
  const end = lines.findIndex((line) => !page.add(line));
  return end < 0 ? [...lines] : lines.slice(0, end);
}

/**
 * A name as it can stand in a list of one name a line: as it is, or as a JSON string
 * where it has something that would forge a line, a color or an order of letters.
 */
export function listedName(name: string): string {
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  const plain = !/[\u0000-\u001f\u007f-\u009f\u2028\u2029\p{Cf}\p{Cs}]/u.test(name);
  if (plain) return name;
  return JSON.stringify(name).replace(
    /[\u007f-\u009f\u2028\u2029\p{Cf}]/gu,
    (char) => `\\u{${char.codePointAt(0)?.toString(16) ?? ""}}`,
  );
}
