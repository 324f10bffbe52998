import type { Unit } from "./inline.ts";
import type { Row } from "../terminal/row.ts";
import { wrapSpans } from "../terminal/wrap.ts";

/** A place in a source where a row begins: the rows above show everything before it. */
export interface Place {
  readonly at: number;
  /** Within a row of a table, where each of its cells goes on. */
  readonly cells?: readonly number[];
  /** How wide the columns of the table were at that width of the whole. */
  readonly table?: { readonly columns: number; readonly widths: readonly number[] };
}

export interface LaidRow extends Place {
  readonly row: Row;
}

/** What is shown: from a place on, up to another. */
export interface Range {
  readonly from: Place;
  readonly until: Place;
}

export const START: Place = { at: Number.NEGATIVE_INFINITY };
export const END: Place = { at: Number.POSITIVE_INFINITY };

export function isWithin(at: number, { from, until }: Range): boolean {
  return at >= from.at && at < until.at;
}

/** The empty row before a place: it has the last rank of the character before. */
export function layoutGap(at: number, range: Range): LaidRow[] {
  return isWithin(at - 1, range) ? [{ row: [], at: at - 1 }] : [];
}

/**
 * The characters whose places are not before `from`, and before `until`. A break between rows drops spaces or one
 * line end, so both sides go without them.
 */
export function clipUnits(units: readonly Unit[], from: number, until: number): Unit[] {
  const clipped: Unit[] = [];
  let previous = "\n";
  let isCut = false;
  for (const unit of units) {
    const first = countBefore(from, unit);
    const end = countBefore(until, unit);
    previous = unit.text[first - 1] ?? previous;
    isCut ||= end < unit.text.length;
    // Spaces at the beginning of a line stay.
    const isBreak = clipped.length === 0 && previous !== "\n";
    const spaces = isBreak ? (/^ */.exec(unit.text.slice(first, end))?.[0].length ?? 0) : 0;
    const text = unit.text.slice(first + spaces, end);
    if (text !== "") clipped.push({ ...unit, text, at: unit.at + (first + spaces) * unit.step });
  }
  return isCut ? removeBreak(clipped) : clipped;
}

function removeBreak(units: Unit[]): Unit[] {
  const last = units.pop();
  if (!last) return units;
  const text = last.text.endsWith("\n") ? last.text.slice(0, -1) : last.text.replace(/ +$/, "");
  if (text === "" && last.text.startsWith(" ")) return removeBreak(units);
  return text === "" ? units : [...units, { ...last, text }];
}

/** Counts the characters of a text that come before a place. */
export function countBefore(
  place: number,
  { at, step, text }: { at: number; step: number; text: string },
): number {
  return Math.min(text.length, Math.max(0, Math.ceil((place - at) / step)));
}

/** The rows of a text with their places. */
export function wrapUnits(units: readonly Unit[], columns: number): LaidRow[] {
  const last = units.at(-1);
  if (!last) return [];
  let index = 0;
  let before = 0;
  return wrapSpans(units, Math.max(1, columns)).map(({ row, start }) => {
    let unit = units[index];
    while (unit && before + unit.text.length <= start) {
      before += unit.text.length;
      unit = units[++index];
    }
    const end = last.at + last.text.length * last.step;
    return { row, at: unit ? unit.at + (start - before) * unit.step : end };
  });
}
