import { fit } from "../../../core/terminal.ts";
import { splitClusters, measureWidth } from "../../../text/width.ts";

/** A position in a text: the line, and the code units before it in the line. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A part of a text, from one position up to another. */
export interface Selection {
  readonly from: Position;
  readonly to: Position;
}

/** A row of the screen: which line of the text, and which of its rows. */
export interface RowPlace {
  readonly line: number;
  readonly row: number;
}

/*
 * A sign stands for a text that is not shown. These characters have no meaning of their own, never combine with a
 * neighbor to one character, and are removed from what the user types.
 */
const FIRST_SIGN = 0xe01f0;
const LAST_SIGN = 0xe0fff;
export const MAX_SIGNS: number = LAST_SIGN - FIRST_SIGN + 1;
export const SIGNS = /[\u{e01f0}-\u{e0fff}]/gu;

const ASCII = /^[\x20-\x7e]*$/;
const SPACE = 0x20;
/** Scripts without spaces: a row may end behind any character. */
const UNSPACED = /^[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u{20000}-\u{3fffd}]/u;
/** Longer lines are not broken from their beginning with each key. */
const LONG_LINE_CHARS = 1_000;
/** Used until the width of the screen is known. */
const DEFAULT_COLUMNS = 80;
/** Characters of the lines whose layout is cached; beyond them the cache is cleared. */
const MAX_KNOWN_CHARS = 4_000_000;

export function signAt(index: number): string {
  return String.fromCodePoint(FIRST_SIGN + index);
}

function isSign(cluster: string): boolean {
  const code = cluster.codePointAt(0) ?? 0;
  return code >= FIRST_SIGN && code <= LAST_SIGN;
}

/**
 * Breaks lines into rows. A break drops nothing, so that each position of the text has one on the screen; spaces that
 * do not fit hang behind the end of their row.
 */
export class TextRows {
  readonly #getLabel: (sign: string) => string;
  #columns = DEFAULT_COLUMNS;
  #known = new Map<string, LineLayout>();
  #knownChars = 0;
  /** The long line that was broken last: most of it is often the same next time. */
  #long: LineLayout | undefined;
  /** How many characters of the first line are not shown. */
  hidden = 0;

  constructor(getLabel: (sign: string) => string) {
    this.#getLabel = getLabel;
  }

  get columns(): number {
    return this.#columns;
  }

  set columns(columns: number) {
    if (columns !== this.#columns) this.forget();
    this.#columns = Math.max(1, columns);
  }

  /** Where the rows of a line begin. The first begins at 0. */
  starts(lines: readonly string[], line: number): readonly number[] {
    const text = lines[line] ?? "";
    const hidden = line === 0 ? this.hidden : 0;
    const known = this.#known.get(text);
    if (known?.hidden === hidden) return known.starts;
    const layout = { text, hidden, starts: this.#breakLine(text, hidden) };
    this.#knownChars += text.length + 1;
    if (this.#knownChars > MAX_KNOWN_CHARS) this.forget();
    this.#known.set(text, layout);
    if (text.length > LONG_LINE_CHARS) this.#long = layout;
    return layout.starts;
  }

  findRow(lines: readonly string[], { line, column }: Position): RowPlace {
    const starts = this.starts(lines, line);
    return { line, row: starts.findLastIndex((start) => start <= column) };
  }

  /** The row above or below; undefined beyond the first and the last. */
  findNeighbor(
    lines: readonly string[],
    { line, row }: RowPlace,
    step: -1 | 1,
  ): RowPlace | undefined {
    const next = row + step;
    if (next >= 0 && next < this.starts(lines, line).length) return { line, row: next };
    const other = line + step;
    if (other < 0 || other >= lines.length) return undefined;
    return { line: other, row: step > 0 ? 0 : this.starts(lines, other).length - 1 };
  }

  /** The columns of its row before a position. */
  findColumn(lines: readonly string[], position: Position): number {
    const { row } = this.findRow(lines, position);
    const { start, clusters } = this.#row(lines, { line: position.line, row });
    let at = start;
    let used = 0;
    for (const { text, width } of clusters) {
      if (at >= position.column) break;
      at += text.length;
      used += width;
    }
    return Math.min(used, this.#columns);
  }

  /** The position in a row that is nearest to a column and not behind it. */
  findPosition(lines: readonly string[], place: RowPlace, column: number): Position {
    const { start, clusters, isLast } = this.#row(lines, place);
    let at = start;
    let used = 0;
    for (const [index, { text, width }] of clusters.entries()) {
      // The end of a row is the beginning of the next.
      if (used + width > column || (!isLast && index === clusters.length - 1)) break;
      at += text.length;
      used += width;
    }
    return { line: place.line, column: at };
  }

  /** The visible parts of a row: texts, and labels of signs, each selected or not. */
  readRow(lines: readonly string[], place: RowPlace, selection?: Selection): RowPart[] {
    const parts: RowPart[] = [];
    let used = 0;
    const { start, clusters, isLast } = this.#row(lines, place);
    let at = start;
    for (const { text, width } of clusters) {
      used += width;
      if (used > this.#columns) break;
      const isLabel = isSign(text);
      const shown = isLabel ? fit(this.#getLabel(text), this.#columns) : text;
      const isSelected = isWithin({ line: place.line, column: at }, selection);
      at += text.length;
      const last = parts.at(-1);
      if (last && !isLabel && !last.isLabel && last.isSelected === isSelected) last.text += shown;
      else parts.push({ text: shown, isLabel, isSelected });
    }
    // A selected line end is seen where it is all of a line.
    const isEmpty = parts.length === 0 && isLast;
    if (isEmpty && isWithin({ line: place.line, column: at }, selection)) {
      parts.push({ text: " ", isLabel: false, isSelected: true });
    }
    return parts;
  }

  /** Clears the cache: labels of signs may have changed. */
  forget(): void {
    this.#known = new Map();
    this.#knownChars = 0;
    this.#long = undefined;
  }

  #row(
    lines: readonly string[],
    { line, row }: RowPlace,
  ): { start: number; clusters: SizedCluster[]; isLast: boolean } {
    const starts = this.starts(lines, line);
    const hidden = line === 0 ? this.hidden : 0;
    const start = Math.max(hidden, starts[row] ?? 0);
    const text = (lines[line] ?? "").slice(start, starts[row + 1]);
    return { start, clusters: this.#clusters(text), isLast: row + 1 >= starts.length };
  }

  #clusters(text: string): SizedCluster[] {
    const clusters: SizedCluster[] = splitClusters(text);
    if (text.search(SIGNS) < 0) return clusters;
    return clusters.map((cluster) => {
      if (!isSign(cluster.text)) return cluster;
      return {
        text: cluster.text,
        width: Math.min(measureWidth(this.#getLabel(cluster.text)), this.#columns),
      };
    });
  }

  #breakLine(line: string, hidden: number): readonly number[] {
    const kept = line.length > LONG_LINE_CHARS ? this.#reuseStarts(line, hidden) : [0];
    const from = Math.max(hidden, kept.at(-1) ?? 0);
    const text = line.slice(from);
    const isAscii = ASCII.test(text);
    if (text.length <= this.#columns && isAscii) return kept;
    const breaks = new Breaks(this.#columns, kept, from);
    if (isAscii) {
      // No objects for characters: such a line may be long.
      for (let index = 0; index < text.length; index += 1) {
        if (text.charCodeAt(index) === SPACE) breaks.space();
        else breaks.take(1, 1, false);
      }
    } else {
      for (const cluster of this.#clusters(text)) {
        if (cluster.text === " ") breaks.space();
        else breaks.take(cluster.text.length, cluster.width, UNSPACED.test(cluster.text));
      }
    }
    return breaks.starts;
  }

  /** The beginnings of rows that a long line has in common with the last one. */
  #reuseStarts(line: string, hidden: number): number[] {
    const last = this.#long;
    if (last?.hidden !== hidden) return [0];
    const same = countSamePrefix(last.text, line);
    // The content of a row decided where it ends: so that has to be the same too.
    const next = last.starts.findIndex((start) => start > same);
    const count = (next < 0 ? last.starts.length : next) - 1;
    return count > 0 ? last.starts.slice(0, count) : [0];
  }
}

/** A piece of a row. */
interface RowPart {
  text: string;
  readonly isLabel: boolean;
  readonly isSelected: boolean;
}

/** An end of the selection at the end of a line is not within. */
function isWithin({ line, column }: Position, selection: Selection | undefined): boolean {
  if (!selection) return false;
  const { from, to } = selection;
  const isBehind = line > from.line || (line === from.line && column >= from.column);
  return isBehind && (line < to.line || (line === to.line && column < to.column));
}

interface LineLayout {
  readonly text: string;
  readonly hidden: number;
  readonly starts: readonly number[];
}

interface SizedCluster {
  readonly text: string;
  readonly width: number;
}

/** Finds where rows begin, character by character. */
class Breaks {
  readonly starts: number[];
  readonly #columns: number;
  #at: number;
  #used = 0;
  /** The last place where the row may end, and the columns before it. */
  #break = 0;
  #usedAtBreak = 0;

  /** `starts` are the rows before, and the one that begins at `from`. */
  constructor(columns: number, starts: number[], from: number) {
    this.#columns = columns;
    this.starts = starts;
    this.#at = from;
  }

  space(): void {
    this.#at += 1;
    this.#used += 1;
    this.#mayBreak();
  }

  take(length: number, width: number, isBreakable: boolean): void {
    if (isBreakable) this.#mayBreak();
    if (this.#used + width > this.#columns && this.#usedAtBreak > 0) this.#end();
    if (this.#used + width > this.#columns && this.#used > 0) {
      this.#mayBreak();
      this.#end();
    }
    this.#at += length;
    this.#used += width;
    if (isBreakable) this.#mayBreak();
  }

  #mayBreak(): void {
    this.#break = this.#at;
    this.#usedAtBreak = this.#used;
  }

  #end(): void {
    this.starts.push(this.#break);
    this.#used -= this.#usedAtBreak;
    this.#usedAtBreak = 0;
  }
}

function countSamePrefix(one: string, other: string): number {
  const end = Math.min(one.length, other.length);
  let same = 0;
  while (same < end && one.charCodeAt(same) === other.charCodeAt(same)) same += 1;
  return same;
}
