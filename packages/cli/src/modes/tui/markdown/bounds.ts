import type { Tokens } from "marked";
import { type Places, SMALLEST_STEP } from "./inline.ts";
import type { LexedBlock, TableNode } from "./tree.ts";

/** What is read again with each frame is no longer than this, whatever a model writes. */
export const MAX_OPEN_CHARS = 8_192;
/** A line that has to be cut is cut at a space, if there is one so near. */
const NEAR_CHARS = 256;

/** A part of what was fed that is read at once. */
export interface Stretch {
  readonly text: string;
  /** It ends within a line that is too long. What follows begins anew. */
  readonly isCut: boolean;
}

/** A text in parts that are not too long: whole lines, but where one line is. */
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

/** Where a block that is too long is cut in two, counted in the block; 0: it is not. */
export function findCut({ start, token }: LexedBlock, source: string, complete: number): number {
  if (source.length - start <= MAX_OPEN_CHARS) return 0;
  if (token.type === "list" && token.items.length > 1) {
    return token.items.slice(0, -1).reduce((sum, { raw }) => sum + raw.length, 0);
  }
  return Math.max(0, source.lastIndexOf("\n", complete - 1) + 1 - start);
}

/** The lines that make rows of a table out of those below. */
export function extractHeader({ raw }: Tokens.Table): string {
  const rule = raw.indexOf("\n") + 1;
  return raw.slice(0, raw.indexOf("\n", rule) + 1);
}

/** Places of a text that has a header before it: the header lies between two places. */
export function placesBehind(header: string, origin: number): Places {
  const rule = header.indexOf("\n") + 1;
  const start = origin + header.length;
  return (offset) => {
    if (offset >= header.length) return origin + offset;
    return start - (offset < rule ? 1 : 0.5) + offset * SMALLEST_STEP;
  };
}

/** None of the header's characters are in the source where they are shown. */
export function withRepeatedHeader(table: TableNode): TableNode {
  const cells = table.header.cells.map((units) =>
    units.map((unit) => ({ ...unit, step: SMALLEST_STEP })),
  );
  return { ...table, header: { ...table.header, cells } };
}
