import type { Block } from "../tui/ui/block.ts";
import { counted } from "../../text/tool-text.ts";
import { type Row, textOfRow } from "../tui/terminal/row.ts";

/** What lays itself out is laid out for this width. */
export const LAYOUT_COLUMNS = 80;
const MS_PER_SECOND = 1_000;
const SECONDS_PER_MINUTE = 60;
const FENCE = /^\s*(?:`{3,}|~{3,})/;
const ESCAPED = /\\([\\`*_[\]<>|~#])/g;
const CODE = /(`+) ?(.+?) ?\1/g;
const BETWEEN_CELLS = /(?<!\\)\|/;

/** How long something took: "1.2 seconds", "2 minutes 5 seconds". */
export function timeInWords(ms: number): string {
  const seconds = ms / MS_PER_SECOND;
  if (seconds < SECONDS_PER_MINUTE) return `${seconds.toFixed(1)} seconds`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / SECONDS_PER_MINUTE);
  return `${counted(minutes, "minute")} ${counted(whole % SECONDS_PER_MINUTE, "second")}`;
}

/**
 * Markdown of our own as lines to be read aloud: a row of a table is its cells one after the
 * other, and lines that only draw something are left out.
 */
export function markdownInWords(markdown: string): string {
  const lines: string[] = [];
  for (const line of markdown.split("\n")) {
    const text = line.startsWith("|") ? rowInWords(line) : stripMarks(line);
    const isEmpty = line.trim() === "";
    const isDrawn = !isEmpty && (FENCE.test(line) || !hasWord(text));
    if (isDrawn || (isEmpty && lines.at(-1) === "")) continue;
    lines.push(isEmpty ? "" : text);
  }
  return lines.join("\n").trim();
}

function rowInWords(line: string): string {
  return cellsInWords(line.split(BETWEEN_CELLS).slice(1, -1).map(stripMarks));
}

/** The cells of a row one after the other; empty where none has a word. */
export function cellsInWords(cells: readonly string[]): string {
  if (!cells.some(hasWord)) return "";
  return cells
    .flatMap((cell, index) => {
      if (hasWord(cell)) return [cell];
      // The first is a mark for what follows; the others have a meaning where they stand.
      return index === 0 ? [] : ["none"];
    })
    .join(", ");
}

function stripMarks(text: string): string {
  return text.replace(CODE, "$2").replace(ESCAPED, "$1").trim();
}

function hasWord(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}

/** What a block shows, as lines. */
export function blockText(block: Block): string {
  return rowsText(block.rows(LAYOUT_COLUMNS));
}

export function rowsText(rows: readonly Row[]): string {
  return rows.map((row) => textOfRow(row).trimEnd()).join("\n");
}

/** The label of a choice: signs that only a picture explains become words. */
export function labelInWords(label: string): string {
  return label
    .replace(/^\[x\] /, "on: ")
    .replace(/^\[ \] /, "off: ")
    .replaceAll(" · ", ", ");
}
