import { type Cluster, splitClusters, isSureWidth, measureWidth } from "../../../text/width.ts";

/** A piece of a row. `style` has SGR parameters (`1;36`); empty: none. */
export interface Span {
  readonly text: string;
  readonly style: string;
  /** Where it leads, in terminals that have links: printable ASCII. */
  readonly link?: string;
}

/** One row of the screen, without line ends and control sequences. */
export type Row = readonly Span[];

export const EMPTY_ROW: Row = [];

export function span(text: string, style = ""): Span {
  return { text, style };
}

/** The span with another text. */
export function withText({ style, link }: Span, text: string): Span {
  return link === undefined ? { text, style } : { text, style, link };
}

/** Styles on top of each other. */
export function joinStyles(...styles: readonly string[]): string {
  return styles.filter((style) => style !== "").join(";");
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
  for (const { text } of spans) width += measureWidth(text);
  return width;
}

/** The row if it fits, else its beginning with an ellipsis. */
export function fitRow(spans: Row, columns: number): Row {
  if (widthOfRow(spans) <= columns) return spans;
  const fitted: Span[] = [];
  let left = columns - 1;
  for (const each of spans) {
    let kept = "";
    for (const cluster of splitClusters(each.text)) {
      left -= cluster.width;
      if (left < 0) return [...fitted, withText(each, `${kept}…`)];
      kept += cluster.text;
    }
    fitted.push(each);
  }
  return fitted;
}

/** Adds spaces up to a width. */
export function padRow(spans: Row, columns: number, style = ""): Row {
  const missing = columns - widthOfRow(spans);
  return missing > 0 ? [...spans, { text: " ".repeat(missing), style }] : spans;
}

/** One visible character of a row. */
export interface Cell extends Cluster {
  readonly style: string;
  readonly link?: string;
}

export function splitCells(spans: Row): Cell[] {
  return spans.flatMap(({ text, style, link }) => {
    const own = link === undefined ? { style } : { style, link };
    return splitClusters(text).map((cluster) => ({ ...cluster, ...own }));
  });
}

const WRAP_OFF = "\x1b[?7l";
const WRAP_ON = "\x1b[?7h";

/**
 * The output for cells from column `from` on. Terminals disagree on the width of some characters: the column is set
 * behind them, and wrapping is off, so that the rest of the row is in its place.
 */
export function formatCells(cells: readonly Cell[], from = 0): string {
  let out = "";
  let style = "";
  let column = from;
  let isUnsure = false;
  let link: string | undefined;
  for (const cell of cells) {
    if (cell.link !== link) {
      link = cell.link;
      out += formatLink(link);
    }
    if (cell.style !== style) {
      // Most styles follow plain text, so the difference to the last style is not computed.
      if (style !== "") out += "\x1b[m";
      if (cell.style !== "") out += `\x1b[${cell.style}m`;
      style = cell.style;
    }
    column += cell.width;
    if (isPlain(cell.text) || isSureWidth(cell.text)) out += cell.text;
    else {
      isUnsure = true;
      const room = cell.width === 2 ? "\x1b[2X" : "";
      out += `${room}${cell.text}\x1b[${column + 1}G`;
    }
  }
  if (style !== "") out += "\x1b[m";
  if (link !== undefined) out += formatLink(undefined);
  return isUnsure ? WRAP_OFF + out + WRAP_ON : out;
}

function formatLink(target = ""): string {
  return `\x1b]8;;${target}\x07`;
}

function isPlain(text: string): boolean {
  return text.length === 1 && text >= " " && text <= "~";
}
