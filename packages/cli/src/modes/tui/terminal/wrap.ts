import { splitClusters, measureWidth } from "../../../text/width.ts";
import { EMPTY_ROW, type Row, type Span, widthOfRow, withText } from "./row.ts";

/** A row with the offset in the joined text where it begins. */
export interface WrappedRow {
  readonly row: Row;
  readonly start: number;
}

export interface WrapOptions {
  /** The indents of the first row and of all others. Default: none. */
  first?: Row;
  rest?: Row;
}

interface Word {
  /** Its pieces, without the spaces before it. */
  spans: Span[];
  width: number;
  /** Where the spaces before it begin, and where it does. */
  gapAt: number;
  at: number;
  gap: Span[];
  gapWidth: number;
  /** It begins a new line. */
  isNewLine: boolean;
}

/**
 * Breaks a text between words, and between any two characters of scripts without spaces. A word that is longer than a
 * row is broken anywhere. A line end in the text begins a row. Spaces at a break are dropped; those at the beginning
 * of a line stay.
 */
export function wrapSpans(
  spans: readonly Span[],
  columns: number,
  { first = EMPTY_ROW, rest = first }: WrapOptions = {},
): WrappedRow[] {
  const rows: WrappedRow[] = [];
  let current: Span[] = [...first];
  let room = Math.max(1, columns - widthOfRow(first));
  let used = 0;
  let start = 0;
  const flush = (next: number): void => {
    rows.push({ row: mergeSpans(current), start });
    current = [...rest];
    room = Math.max(1, columns - widthOfRow(rest));
    used = 0;
    start = next;
  };
  for (const word of splitWords(spans)) {
    if (word.isNewLine) flush(word.gapAt);
    const isFirst = used === 0;
    // Spaces at the end of a line do not begin another row.
    if (word.spans.length === 0 && !isFirst && used + word.gapWidth > room) continue;
    if (!isFirst && used + word.gapWidth + word.width > room) flush(word.at);
    else if (isFirst && word.gapWidth >= room) start = word.at;
    else {
      current.push(...word.gap);
      used += word.gapWidth;
    }
    if (used + word.width <= room) {
      current.push(...word.spans);
      used += word.width;
      continue;
    }
    let at = word.at;
    for (const piece of word.spans) {
      for (const cluster of splitClusters(piece.text)) {
        if (used > 0 && used + cluster.width > room) flush(at);
        current.push(withText(piece, cluster.text));
        used += cluster.width;
        at += cluster.text.length;
      }
    }
  }
  rows.push({ row: mergeSpans(current), start });
  return rows;
}

/** The rows without their offsets. */
export function wrapRows(spans: readonly Span[], columns: number, options?: WrapOptions): Row[] {
  return wrapSpans(spans, columns, options).map(({ row }) => row);
}

/** The rows of a text in one style. */
export function wrapText(
  text: string,
  columns: number,
  style = "",
  options: WrapOptions = {},
): Row[] {
  return wrapRows([{ text, style }], columns, options);
}

/** Words, each with the spaces before it. In scripts without spaces each character is a word. */
function splitWords(spans: readonly Span[]): Word[] {
  const words: Word[] = [];
  let word = newWord(0, false);
  let at = 0;
  const push = (isNewLine: boolean): void => {
    words.push(word);
    word = newWord(at, isNewLine);
  };
  for (const each of spans) {
    // Pieces: line ends, spaces, single wide characters, runs of everything else.
    for (const [piece] of each.text.matchAll(PIECES)) {
      if (piece === "\n") {
        at += 1;
        push(true);
        continue;
      }
      if (piece.startsWith(" ")) {
        if (word.spans.length > 0) push(false);
        word.gap.push(withText(each, piece));
        word.gapWidth += piece.length;
        at += piece.length;
        word.at = at;
        continue;
      }
      if (isBreakable(piece) && word.spans.length > 0) push(false);
      word.spans.push(withText(each, piece));
      word.width += measureWidth(piece);
      at += piece.length;
      if (isBreakable(piece)) push(false);
    }
  }
  if (word.spans.length > 0 || word.gap.length > 0 || word.isNewLine) words.push(word);
  return words;
}

/** Scripts without spaces between words. */
const UNSPACED = "[\\u3040-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7a3\\u{20000}-\\u{3fffd}]";
const PIECES = new RegExp(
  `\\n| +|${UNSPACED}[\\u3001\\u3002\\uff01\\uff0c\\uff1f]?|(?:(?!${UNSPACED})[^ \\n])+`,
  "gu",
);
const BREAKABLE = new RegExp(`^${UNSPACED}`, "u");

function isBreakable(piece: string): boolean {
  return BREAKABLE.test(piece);
}

function newWord(at: number, isNewLine: boolean): Word {
  return { spans: [], width: 0, gapAt: at, at, gap: [], gapWidth: 0, isNewLine };
}

/** Joins neighbors of the same style and link. */
function mergeSpans(spans: readonly Span[]): Row {
  const out: Span[] = [];
  for (const each of spans) {
    const last = out.at(-1);
    if (last?.style === each.style && last.link === each.link)
      out[out.length - 1] = withText(last, last.text + each.text);
    else out.push(each);
  }
  return out;
}
