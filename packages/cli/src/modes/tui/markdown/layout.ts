import { splitClusters, measureWidth } from "../../../text/width.ts";
import type { CodeLine, CodeNode } from "./code.ts";
import { CHARACTER, type Look } from "./inline.ts";
import { findLastAtOrBefore } from "./lines.ts";
import {
  clipUnits,
  countBefore,
  isWithin,
  type LaidRow,
  layoutGap,
  type Range,
  wrapUnits,
} from "./range.ts";
import { layoutTable } from "./table.ts";
import type { Child, ListItem, ListNode, Node, QuoteNode, TextNode } from "./tree.ts";
import { fitRow, joinStyles, row, type Span, span } from "../terminal/row.ts";

/** Narrower than this, text is not indented. */
const MIN_INNER_COLUMNS = 8;
const CODE_INDENT = "  ";
const GOES_ON = "↪ ";

/** Lays out parts below each other for a width: their rows that are within the range. */
export function layoutChildren(
  children: readonly Child[],
  columns: number,
  range: Range,
  look: Look,
): LaidRow[] {
  return children.flatMap(({ gap, node }) => [
    ...(gap ? layoutGap(node.at, range) : []),
    ...layoutNode(node, columns, range, look),
  ]);
}

function layoutNode(node: Node, columns: number, range: Range, look: Look): LaidRow[] {
  switch (node.type) {
    case "text":
      return layoutText(node, columns, range);
    case "code":
      return layoutCode(node, columns, range, look);
    case "list":
      return layoutList(node, columns, range, look);
    case "quote":
      return layoutQuote(node, columns, range, look);
    case "table":
      return layoutTable(node, columns, range, look);
    case "rule": {
      if (!isWithin(node.at, range)) return [];
      const line = row("─".repeat(Math.max(1, columns)), joinStyles(look.style, look.theme.dim));
      return [{ row: line, at: node.at }];
    }
  }
}

function layoutText({ at, units }: TextNode, columns: number, range: Range): LaidRow[] {
  return startAt(at, wrapUnits(clipUnits(units, range.from.at, range.until.at), columns), range);
}

/** The first row begins where the whole does, with the signs that it does not show. */
function startAt(at: number, rows: LaidRow[], range: Range): LaidRow[] {
  const [first] = rows;
  if (first && isWithin(at, range)) rows[0] = { ...first, at };
  return rows;
}

function layoutCode(node: CodeNode, columns: number, range: Range, look: Look): LaidRow[] {
  const dim = joinStyles(look.style, look.theme.dim);
  const hasColors = look.theme.dim !== "";
  const indent = columns > MIN_INNER_COLUMNS ? CODE_INDENT : "";
  const rows: LaidRow[] = [];
  const add = (text: string, at: number): void => {
    const unit = { text, style: dim, at, step: CHARACTER };
    for (const clipped of clipUnits([unit], range.from.at, range.until.at)) {
      rows.push({ row: fitRow(row(indent + clipped.text, dim), columns), at: clipped.at });
    }
  };
  // Without colors the fences distinguish code from text.
  if (!hasColors && node.opening !== undefined) add(node.opening, node.at);
  else if (node.language !== "") add(node.language, node.languageAt);
  else if (node.lines.length === 0 && !node.last && isWithin(node.at, range)) {
    rows.push({ row: [], at: node.at });
  }
  const room = Math.max(1, columns - indent.length);
  const each = (line: CodeLine): void => {
    for (const laid of layoutCodeLine(line, room, range, dim)) {
      rows.push({ row: laid.row.length > 0 ? [span(indent), ...laid.row] : [], at: laid.at });
    }
  };
  // A part of the last line that begins before the range may be within it.
  const first = findLastAtOrBefore(node.lines, ({ at }) => at, range.from.at);
  for (let index = first; ; index++) {
    const line = node.lines[index];
    if (!line || line.at >= range.until.at) break;
    each(line);
  }
  if (node.last) each(node.last);
  if (!hasColors && node.closing) add(node.closing.text, node.closing.at);
  return startAt(node.at, rows, range);
}

/** Lays out a line of code, broken where it is too long. */
function layoutCodeLine(
  line: CodeLine,
  columns: number,
  { from, until }: Range,
  dim: string,
): LaidRow[] {
  const start = countBefore(from.at, line);
  const end = countBefore(until.at, line);
  if (line.at < from.at ? start >= end : line.at >= until.at) return [];
  const rows: LaidRow[] = [];
  const mark = span(columns > MIN_INNER_COLUMNS ? GOES_ON : "", dim);
  const roomBehindMark = columns - mark.text.length;
  let current: Span[] = start > 0 ? [mark] : [];
  let room = start > 0 ? roomBehindMark : columns;
  let rowStart = start;
  let spanEnd = 0;
  for (const { text, style } of line.spans) {
    const spanStart = spanEnd;
    spanEnd += text.length;
    let at = Math.max(start, spanStart);
    let piece = "";
    for (const cluster of splitClusters(text.slice(at - spanStart, Math.max(0, end - spanStart)))) {
      if (cluster.width > room && at > rowStart) {
        rows.push({ row: [...current, span(piece, style)], at: line.at + rowStart * line.step });
        current = [mark];
        room = roomBehindMark;
        rowStart = at;
        piece = "";
      }
      piece += cluster.text;
      room -= cluster.width;
      at += cluster.text.length;
    }
    if (piece !== "") current.push(span(piece, style));
  }
  rows.push({ row: current, at: line.at + rowStart * line.step });
  return rows;
}

function layoutList({ items }: ListNode, columns: number, range: Range, look: Look): LaidRow[] {
  return items.flatMap((item) => [
    ...(item.gap ? layoutGap(item.at, range) : []),
    ...layoutItem(item, columns, range, look),
  ]);
}

function layoutItem(item: ListItem, columns: number, range: Range, look: Look): LaidRow[] {
  const { at, marker } = item;
  const width = measureWidth(marker);
  const markerSpan = span(marker, joinStyles(look.style, look.theme.accent));
  const isNarrow = columns - width < MIN_INNER_COLUMNS;
  const rows = layoutChildren(item.children, isNarrow ? columns : columns - width, range, look);
  const hasMarker = isWithin(at, range);
  if (hasMarker && (isNarrow || rows.length === 0)) {
    return [{ row: [span(marker.trimEnd(), markerSpan.style)], at }, ...rows];
  }
  if (isNarrow) return rows;
  const indent = span(" ".repeat(width));
  return rows.map((laid, index) => {
    if (index === 0 && hasMarker) return { ...laid, at, row: [markerSpan, ...laid.row] };
    return laid.row.length > 0 ? { ...laid, row: [indent, ...laid.row] } : laid;
  });
}

function layoutQuote(node: QuoteNode, columns: number, range: Range, look: Look): LaidRow[] {
  const bar = columns - 2 < MIN_INNER_COLUMNS ? "" : "│ ";
  const sign = span(bar, joinStyles(look.style, look.theme.dim));
  const rows = layoutChildren(node.children, columns - bar.length, range, look);
  const quoted = rows.map((laid) => ({ ...laid, row: [sign, ...laid.row] }));
  return startAt(node.at, quoted, range);
}
