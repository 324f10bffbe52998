import { shownText } from "@gyre/coding/internal/text/shown-text";
import { findCommonParts, splitParts } from "./line-diff.ts";
import { fitRow, joinStyles, type Row, row, type Span, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { wrapRows } from "../terminal/wrap.ts";

/** The most rows of a diff; the lines without room are counted. */
export const MAX_DIFF_ROWS = 20;
/** Lines that are shown around a change. */
const CONTEXT_LINES = 2;
/** With less room than this for the text there are no line numbers. */
const MIN_TEXT_COLUMNS = 20;
/** For the sign and the space behind it. */
const SIGN_COLUMNS = 2;

/** A line of a diff. `note` is a remark, `gap` stands for lines that are left out. */
export type DiffLine =
  | { type: "added" | "removed"; number: number; text: string; other?: string }
  | { type: "same"; number: number; text: string }
  | { type: "note"; text: string }
  | { type: "gap" };

/** The changes of one file. */
export interface DiffFile {
  path: string;
  lines: readonly DiffLine[];
  /** How many further lines are only counted. */
  more?: number;
}

export interface DiffOptions {
  theme: Theme;
  columns: number;
  /** Default `MAX_DIFF_ROWS`. */
  maxRows?: number;
  /** Columns before each row. Default 2. */
  indent?: number;
  /** How to see the lines without room; follows their count. */
  hint?: string;
  /** Sanitizes a line of a file. Default `shownText`. */
  shown?: (text: string) => string;
}

/**
 * The files of a diff as rows with line numbers, signs and colors. Where one line replaced another, the differing words
 * stand out. Several files have their names above them. Accepts any text, and lays out no more rows than `maxRows`.
 */
export function fileRows(files: readonly DiffFile[], options: DiffOptions): Row[] {
  const { theme, columns, maxRows = MAX_DIFF_ROWS, indent = 2, hint } = options;
  const rows: Row[] = [];
  const margin = " ".repeat(indent);
  let hidden = 0;
  for (const { path, lines, more = 0 } of files) {
    hidden += more;
    if (rows.length >= maxRows) {
      hidden += countLines(lines);
      continue;
    }
    const shown = (options.shown ?? shownText)(path).replaceAll("\n", " ");
    if (files.length > 1) rows.push([span(margin), span(shown, theme.strong)]);
    const digits = countDigits(lines);
    const hasNumbers = columns - indent - digits - 1 - SIGN_COLUMNS >= MIN_TEXT_COLUMNS;
    for (const [index, line] of lines.entries()) {
      const some = lineRows(line, options, margin, hasNumbers ? digits : 0);
      const room = maxRows - rows.length;
      if (some.length > room) {
        // A line that is longer than all rows is truncated.
        if (index === 0) rows.push(...some.slice(0, room));
        hidden += countLines(lines.slice(index));
        break;
      }
      rows.push(...some);
    }
  }
  if (hidden > 0) {
    const how = hint === undefined ? "" : ` (${hint})`;
    rows.push(row(`${margin}… ${hidden} more ${hidden === 1 ? "line" : "lines"}${how}`, theme.dim));
  }
  return rows.map((each) => fitRow(each, columns));
}

/** Counts the lines of a file, without gaps and notes. */
export function countLines(lines: readonly DiffLine[]): number {
  return lines.filter(({ type }) => type !== "gap" && type !== "note").length;
}

function countDigits(lines: readonly DiffLine[]): number {
  let highest = 0;
  for (const line of lines) if ("number" in line) highest = Math.max(highest, line.number);
  return String(highest).length;
}

function lineRows(
  line: DiffLine,
  options: DiffOptions,
  margin: string,
  digits: number,
): readonly Row[] {
  const { theme, columns, maxRows = MAX_DIFF_ROWS, shown = shownText } = options;
  const blank = `${margin}${digits > 0 ? " ".repeat(digits + 1) : ""}`;
  if (line.type === "gap") return [row(`${blank}⋮`, theme.dim)];
  if (line.type === "note") return [row(`${blank}  ${shown(line.text)}`, theme.dim)];
  // The rest of the line has no room in any row.
  const most = columns * (maxRows + 1);
  const text = shown(line.text.slice(0, most));
  const other = "other" in line ? line.other : undefined;
  const number = digits > 0 ? `${String(line.number).padStart(digits)} ` : "";
  const style = getLineStyle(line, theme);
  const spans =
    other === undefined
      ? [span(text, style)]
      : markChanges(text, shown(other.slice(0, most)), style, theme);
  return wrapRows(spans, columns, {
    first: [span(`${margin}${number}`, theme.dim), span(`${SIGNS[line.type]} `, style)],
    rest: [span(`${blank}  `)],
  });
}

const SIGNS = { added: "+", removed: "-", same: " " } as const;

function getLineStyle({ type }: DiffLine, theme: Theme): string {
  if (type === "added") return theme.added;
  return type === "removed" ? theme.removed : theme.dim;
}

/** Marks the words that the other line does not have. */
function markChanges(text: string, other: string, style: string, theme: Theme): Span[] {
  const strong = joinStyles(style, theme.selected);
  const parts = splitParts(text, other);
  if (!parts) return [span(text, style)];
  return parts.map((part) => span(part.text, part.isCommon ? style : strong));
}

/** Counts added and removed lines. */
export function countChanges(files: readonly DiffFile[]): { added: number; removed: number } {
  const types = files.flatMap(({ lines }) => lines.map(({ type }) => type));
  const count = (wanted: DiffLine["type"]): number =>
    types.filter((type) => type === wanted).length;
  return { added: count("added"), removed: count("removed") };
}

const PLACE = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** The files of a unified diff. Other text is skipped; it never throws. */
export function parseDiff(diff: string): DiffFile[] {
  const files: { path: string; lines: DiffLine[] }[] = [];
  const rows = diff.replace(/\n$/, "").split("\n");
  let file: (typeof files)[number] | undefined;
  // Lines of the place that are still to come; a file that is made or removed has no places.
  let left = { old: 0, next: 0 };
  let at = { old: 1, next: 1 };
  const isInside = (): boolean => left.old > 0 || left.next > 0;
  for (const [index, text] of rows.entries()) {
    const following = rows[index + 1] ?? "";
    if (!isInside() && text.startsWith("--- ") && following.startsWith("+++ ")) {
      file = { path: parsePath(text, following), lines: [] };
      files.push(file);
      at = { old: 1, next: 1 };
      const hasPlaces = (rows[index + 2] ?? "").startsWith("@@");
      left = hasPlaces ? { old: 0, next: 0 } : { old: Infinity, next: Infinity };
      continue;
    }
    const place = isInside() ? null : PLACE.exec(text);
    if (place) {
      if (!file) files.push((file = { path: "", lines: [] }));
      if (file.lines.length > 0) file.lines.push({ type: "gap" });
      const [, from, old = "1", to, next = "1"] = place;
      left = { old: Number(old), next: Number(next) };
      at = { old: Number(from), next: Number(to) };
      continue;
    }
    if (!file || (text.startsWith("+++ ") && file.lines.length === 0)) continue;
    const line = parseLine(text, at, left);
    if (line) file.lines.push(line);
  }
  return files.map(({ path, lines }) => ({ path, lines: pairLines(keepNearChanges(lines)) }));
}

/** The lines of a unified diff as they are written, and what each does. Names of files do nothing. */
export function diffLines(diff: string): { text: string; kind?: "added" | "removed" }[] {
  const rows = diff.split("\n");
  // Lines of the place that are still to come; without places, all are of the file.
  let left = { old: Infinity, next: Infinity };
  let isName = false;
  return rows.map((text, index) => {
    const isInside = left.old > 0 || left.next > 0;
    const place = isInside && left.old !== Infinity ? null : PLACE.exec(text);
    if (place) {
      const [, , old = "1", , next = "1"] = place;
      left = { old: Number(old), next: Number(next) };
      return { text };
    }
    const isSecondName = isName;
    const mayBeName = !isInside || left.old === Infinity;
    isName = mayBeName && text.startsWith("--- ") && (rows[index + 1] ?? "").startsWith("+++ ");
    if (isName || isSecondName) {
      left = { old: Infinity, next: Infinity };
      return { text };
    }
    const sign = text.charAt(0);
    if (!isInside || sign === "\\") return { text };
    if (sign !== "-") left.next -= 1;
    if (sign !== "+") left.old -= 1;
    if (sign === "+") return { text, kind: "added" };
    return sign === "-" ? { text, kind: "removed" } : { text };
  });
}

function parsePath(before: string, after: string): string {
  const name = after === "+++ /dev/null" ? before : after;
  return name.slice("+++ ".length).replace(/^[ab]\//, "");
}

interface Counts {
  old: number;
  next: number;
}

function parseLine(row: string, at: Counts, left: Counts): DiffLine | undefined {
  const text = row.slice(1).replace(/\r$/, "");
  const sign = row.charAt(0);
  if (sign === "\\") return { type: "note", text: "(no line end at the end of the file)" };
  if (row.startsWith("[cut")) return { type: "note", text: row };
  if (left.old <= 0 && left.next <= 0) return undefined;
  if (sign === "+") {
    left.next -= 1;
    return { type: "added", number: at.next++, text };
  }
  left.old -= 1;
  if (sign === "-") return { type: "removed", number: at.old++, text };
  left.next -= 1;
  at.old += 1;
  return { type: "same", number: at.next++, text };
}

/** The changes between two texts, with the lines around them. */
export function diffTexts(before: string, after: string): DiffLine[] {
  const old = splitText(before);
  const next = splitText(after);
  const common = findCommonParts(old, next);
  const lines: DiffLine[] = [];
  let a = 0;
  const removeUpTo = (end: number): void => {
    for (; a < end; a++) lines.push({ type: "removed", number: a + 1, text: old[a] ?? "" });
  };
  for (let b = 0; b < next.length;) {
    let behind = b;
    while (behind < next.length && (common[behind] ?? -1) < 0) behind++;
    removeUpTo(common[behind] ?? old.length);
    for (; b < behind; b++) lines.push({ type: "added", number: b + 1, text: next[b] ?? "" });
    if (b < next.length) lines.push({ type: "same", number: b + 1, text: next[b++] ?? "" });
    a++;
  }
  removeUpTo(old.length);
  return pairLines(keepNearChanges(lines));
}

function splitText(text: string): string[] {
  return text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
}

/** Drops the lines that are far from any change. */
function keepNearChanges(lines: readonly DiffLine[]): DiffLine[] {
  const near: DiffLine[] = [];
  const isChange = (index: number): boolean => {
    const type = lines[index]?.type;
    return type === "added" || type === "removed";
  };
  // The index of the next change, from each line on.
  const ahead = Array.from(lines, () => Infinity);
  for (let index = lines.length - 1, next = Infinity; index >= 0; index--) {
    if (isChange(index)) next = index;
    ahead[index] = next;
  }
  let last = -Infinity;
  for (const [index, line] of lines.entries()) {
    if (isChange(index)) last = index;
    const isNear = Math.min(index - last, (ahead[index] ?? Infinity) - index) <= CONTEXT_LINES;
    const isKept = line.type === "same" ? isNear : line.type !== "gap";
    if (isKept) near.push(line);
    else if (near.length > 0 && near.at(-1)?.type !== "gap") near.push({ type: "gap" });
  }
  if (near.at(-1)?.type === "gap") near.pop();
  return near;
}

/** Pairs removed lines with as many added lines that follow them. */
function pairLines(lines: readonly DiffLine[]): DiffLine[] {
  const all = [...lines];
  for (let start = 0; start < all.length;) {
    const middle = runEnd(all, start, "removed");
    const end = runEnd(all, middle, "added");
    if (middle - start === end - middle) {
      for (let index = start; index < middle; index++) pair(all, index, index + middle - start);
    }
    start = Math.max(end, start + 1);
  }
  return all;
}

function runEnd(lines: readonly DiffLine[], start: number, type: DiffLine["type"]): number {
  let end = start;
  while (lines[end]?.type === type) end++;
  return end;
}

function pair(lines: DiffLine[], a: number, b: number): void {
  const removed = lines[a];
  const added = lines[b];
  if (removed?.type !== "removed" || added?.type !== "added") return;
  lines[a] = { ...removed, other: added.text };
  lines[b] = { ...added, other: removed.text };
}
