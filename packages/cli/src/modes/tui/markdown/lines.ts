import { shownText } from "../../../text/shown-text.ts";
import type { LexedBlock } from "./tree.ts";

/** A line that is not complete, on one row whatever is in it. */
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

/** Whether what follows can change that a block begins here. A table is told by two lines. */
export function isSettled({ start, token }: LexedBlock, source: string, complete: number): boolean {
  const end = findLineEnd(source, start);
  if (token.type !== "table") return end < complete;
  return end < complete && findLineEnd(source, end + 1) < complete;
}
