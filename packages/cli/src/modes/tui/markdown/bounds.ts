import type { Tokens } from "marked";
import { CHARACTER, type Places } from "./inline.ts";
import type { LexedBlock } from "./tree.ts";

/** The text that each frame reads again is no longer than this, whatever a model writes. */
export const MAX_OPEN_CHARS = 8_192;
/** A line that is too long is cut at a space, if there is one this near. */
const NEAR_CHARS = 256;

/** A part of the text that is read at once. */
export interface Stretch {
  readonly text: string;
  /** It ends within a line that is too long. The rest of the line begins a new block. */
  readonly isCut: boolean;
}

/** Splits a text into parts of whole lines; only a line that is too long is divided. */
export function splitStretches(text: string): Stretch[] {
  const stretches: Stretch[] = [];
  let start = 0;
  while (text.length - start > MAX_OPEN_CHARS) {
    const most = start + MAX_OPEN_CHARS;
    const lines = text.lastIndexOf("\n", most - 1) + 1;
    const isCut = lines <= start;
    const end = isCut ? cutLine(text, most) : lines;
    stretches.push({ text: text.slice(start, end), isCut });
    start = end;
  }
  return [...stretches, { text: text.slice(start), isCut: false }];
}

function cutLine(text: string, most: number): number {
  const space = text.lastIndexOf(" ", most - 1) + 1;
  if (space > most - NEAR_CHARS) return space;
  const isWithinPair = /[\ud800-\udbff]/.test(text.charAt(most - 1));
  return isWithinPair ? most - 1 : most;
}

/** Where to cut a block that is too long, as an offset in the block; 0: nowhere. */
export function findCut({ start, token }: LexedBlock, source: string, complete: number): number {
  if (source.length - start <= MAX_OPEN_CHARS) return 0;
  if (token.type === "list" && token.items.length > 1) {
    return token.items.slice(0, -1).reduce((sum, { raw }) => sum + raw.length, 0);
  }
  return Math.max(0, source.lastIndexOf("\n", complete - 1) + 1 - start);
}

/** The lines that make a table of the rows below them. */
export function extractHeader({ raw }: Tokens.Table): string {
  const rule = raw.indexOf("\n") + 1;
  return raw.slice(0, raw.indexOf("\n", rule) + 1);
}

/** Places of a header and the text behind it, which begins at offset `start`. The header is between two characters. */
export function createPlacesBehind(header: string, start: number): Places {
  return (offset) =>
    offset < header.length
      ? (start - 1) * CHARACTER + offset
      : (start + offset - header.length) * CHARACTER;
}
