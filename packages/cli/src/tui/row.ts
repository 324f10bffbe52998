import { clustersOf, isSureWidth, widthOf } from "../width.ts";

/** A piece of a row. `style` is what stands in a sequence for styles (`1;36`); empty: none. */
export interface Span {
  readonly text: string;
  readonly style: string;
}

/** One row of the screen: no line ends, nothing that a terminal obeys. */
export type Row = readonly Span[];

export const EMPTY_ROW: Row = [];

export function span(text: string, style = ""): Span {
  return { text, style };
}

/** A row of one style. */
export function row(text: string, style = ""): Row {
  return text === "" ? EMPTY_ROW : [{ text, style }];
}

export function textOfRow(spans: Row): string {
  return spans.map(({ text }) => text).join("");
}

export function widthOfRow(spans: Row): number {
  let width = 0;
  for (const { text } of spans) width += widthOf(text);
  return width;
}

/** The row if it fits, else as much of it as does, with an ellipsis. */
export function fitRow(spans: Row, columns: number): Row {
  if (widthOfRow(spans) <= columns) return spans;
  const fitted: Span[] = [];
  let left = columns - 1;
  for (const { text, style } of spans) {
    let kept = "";
    for (const cluster of clustersOf(text)) {
      left -= cluster.width;
      if (left < 0) return [...fitted, { text: `${kept}…`, style }];
      kept += cluster.text;
    }
    fitted.push({ text: kept, style });
  }
  return fitted;
}

/** As many spaces as bring the row to a width. */
export function padRow(spans: Row, columns: number, style = ""): Row {
  const missing = columns - widthOfRow(spans);
  return missing > 0 ? [...spans, { text: " ".repeat(missing), style }] : spans;
}

/**
 * The row as it is written to a terminal that is at column `from`. Behind a character that
 * terminals do not agree on, the column is set, so that what follows stands where it should.
 */
export function ansiOf(spans: Row, from = 0): string {
  let out = "";
  let column = from;
  for (const { text, style } of spans) {
    if (text === "") continue;
    if (style !== "") out += `\x1b[${style}m`;
    if (isPlain(text)) {
      out += text;
      column += text.length;
    } else {
      for (const cluster of clustersOf(text)) {
        out += cluster.text;
        column += cluster.width;
        if (!isSureWidth(cluster.text)) out += `\x1b[${column + 1}G`;
      }
    }
    if (style !== "") out += "\x1b[m";
  }
  return out;
}

function isPlain(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}
