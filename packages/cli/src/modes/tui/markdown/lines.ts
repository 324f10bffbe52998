import { shownText } from "@gyre/coding/internal/text/shown-text";
import type { LexedBlock } from "./tree.ts";

/** A line that is not complete, always on one row. */
export function showLine(raw: string): string {
  const isHalf = /[\ud800-\udbff]$/.test(raw);
  return shownText(isHalf ? raw.slice(0, -1) : raw).replaceAll("\n", " ");
}

export function findLineEnd(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end < 0 ? text.length : end;
}

export function skipEmptyLines(text: string, start: number): number {
  const empty = /(?: *\n)+/y;
  empty.lastIndex = start;
  return empty.test(text) ? empty.lastIndex : start;
}

/** Whether no further text changes that a block begins here. It takes two lines to recognize a table. */
export function isSettled({ start, token }: LexedBlock, source: string, complete: number): boolean {
  const end = findLineEnd(source, start);
  if (token.type !== "table") return end < complete;
  return end < complete && findLineEnd(source, end + 1) < complete;
}

/** Where each line of a text begins. */
export function findLineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/** The index of the last of some sorted items that is not behind a value; 0 where all are. */
export function findLastAtOrBefore<T>(
  sorted: readonly T[],
  getPlace: (item: T) => number,
  value: number,
): number {
  let low = 0;
  let high = Math.max(0, sorted.length - 1);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const item = sorted[middle];
    if (item !== undefined && getPlace(item) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}
