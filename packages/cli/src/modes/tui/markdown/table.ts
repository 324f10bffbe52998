import { measureWidth } from "../../../text/width.ts";
import type { Look, Unit } from "./inline.ts";
import {
  clipUnits,
  END,
  isWithin,
  type LaidRow,
  layoutGap,
  type Range,
  START,
  wrapUnits,
} from "./range.ts";
import type { TableNode, TableRow } from "./tree.ts";
import {
  EMPTY_ROW,
  joinStyles,
  padRow,
  type Row,
  row,
  type Span,
  span,
  widthOfRow,
} from "../terminal/row.ts";

/** A column that would be narrower than this makes a list of the table. */
const MIN_CELL_COLUMNS = 3;
/** A border and a space on each side of a cell; the last border is one more. */
const BORDER_COLUMNS = 3;

/** The part of a table's row that is within the range. */
interface ClippedRow {
  /** The place of its first line; each further line is one rank behind. */
  readonly at: number;
  readonly cells: readonly (readonly Unit[])[];
  /** Where the part of each cell begins. */
  readonly starts: readonly number[];
}

/**
 * Lays out a table with borders that fits the width: columns shrink and cells wrap. Without enough room for that,
 * each cell gets a line of its own behind its header.
 */
export function layoutTable(node: TableNode, columns: number, range: Range, look: Look): LaidRow[] {
  const kept = keepWidths(node, columns, range);
  const widths = kept ?? computeWidths(node, columns);
  if (!widths) return layoutCells(node, columns, range);
  const dim = joinStyles(look.style, look.theme.dim);
  const table = { columns, widths };
  const rows: LaidRow[] = [];
  const border = (left: string, cross: string, right: string, at: number): void => {
    const line = left + widths.map((width) => "─".repeat(width + 2)).join(cross) + right;
    if (isWithin(at, range)) rows.push({ row: row(line, dim), at, table });
  };
  border("┌", "┬", "┐", node.at);
  rows.push(...layoutBoxedRow(node.header, node, table, range, dim));
  border("├", "┼", "┤", node.ruleAt);
  for (const each of node.rows) rows.push(...layoutBoxedRow(each, node, table, range, dim));
  border("└", "┴", "┘", node.end - 1);
  return rows;
}

/** A table whose beginning has left the screen keeps its columns while the width is the same. */
function keepWidths(
  node: TableNode,
  columns: number,
  { from }: Range,
): readonly number[] | undefined {
  const isOurs = from.at > node.at && from.at < node.end && from.table?.columns === columns;
  const widths = isOurs ? from.table?.widths : undefined;
  return widths?.length === node.header.cells.length ? widths : undefined;
}

/** The widest columns shrink first. Undefined: there is not enough room for borders. */
function computeWidths({ header, rows }: TableNode, columns: number): number[] | undefined {
  const natural = header.cells.map((cell, index) => {
    const least = Math.max(MIN_CELL_COLUMNS, measureCell(cell));
    return rows.reduce((widest, { cells }) => Math.max(widest, measureCell(cells[index])), least);
  });
  const room = columns - natural.length * BORDER_COLUMNS - 1;
  if (room < natural.length * MIN_CELL_COLUMNS) return undefined;
  let left = room;
  let limit = Number.POSITIVE_INFINITY;
  const ascending = natural.toSorted((a, b) => a - b);
  for (const [index, width] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (width > share) {
      limit = share;
      break;
    }
    left -= width;
  }
  return natural.map((width) => Math.min(width, limit));
}

function measureCell(cell: readonly Unit[] = []): number {
  const text = cell.map(({ text }) => text).join("");
  return Math.max(...text.split("\n").map((line) => measureWidth(line)));
}

function layoutBoxedRow(
  tableRow: TableRow,
  { align }: TableNode,
  table: { columns: number; widths: readonly number[] },
  range: Range,
  dim: string,
): LaidRow[] {
  const clipped = clipRow(tableRow, range);
  if (!clipped) return [];
  const cells = table.widths.map((width, index) => wrapUnits(clipped.cells[index] ?? [], width));
  const height = Math.max(1, ...cells.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) => {
    const spans = cells.flatMap((lines, index): Span[] => {
      const text = alignText(lines[line]?.row ?? EMPTY_ROW, table.widths[index] ?? 0, align[index]);
      return [span(index === 0 ? "│ " : " │ ", dim), ...text];
    });
    const starts = cells.map((lines, index) => lines[line]?.at ?? findCellEnd(clipped, index));
    return {
      row: [...spans, span(" │", dim)],
      at: clipped.at + line,
      table,
      ...(line > 0 && { cells: starts }),
    };
  });
}

/** The place behind a cell so far: text may still be added to the last one. */
function findCellEnd({ cells, starts }: ClippedRow, index: number): number {
  const last = cells[index]?.at(-1);
  return last ? last.at + last.text.length * last.step : (starts[index] ?? START.at);
}

function alignText(text: Row, width: number, align: TableNode["align"][number] | undefined): Row {
  const missing = width - widthOfRow(text);
  if (missing <= 0 || (align !== "right" && align !== "center")) return padRow(text, width);
  const before = align === "right" ? missing : missing >> 1;
  return padRow([span(" ".repeat(before)), ...text], width);
}

/** One line for each cell: `header: value`. */
function layoutCells(node: TableNode, columns: number, range: Range): LaidRow[] {
  // A table without rows is its header.
  const rows = node.rows.length > 0 ? node.rows : [node.header];
  return rows.flatMap((tableRow, index) => {
    const clipped = clipRow(tableRow, range);
    const gap = index > 0 ? layoutGap(tableRow.at, range) : [];
    if (!clipped) return gap;
    let line = 0;
    const laid = clipped.cells.flatMap((cell, cellIndex) => {
      const header = node.header.cells[cellIndex] ?? [];
      const isWhole = cell[0]?.at === tableRow.cells[cellIndex]?.[0]?.at;
      const label = tableRow !== node.header && isWhole ? createLabel(header, cell) : [];
      return wrapUnits([...label, ...cell], columns).map((each, first) => ({
        row: each.row,
        at: clipped.at + line++,
        cells: clipped.cells.map((_, other) => {
          if (other < cellIndex) return findCellEnd(clipped, other);
          const isBegun = other === cellIndex && first > 0;
          return isBegun ? each.at : (clipped.starts[other] ?? START.at);
        }),
      }));
    });
    return [...gap, ...laid];
  });
}

/** A header before a value, with the place of the value. */
function createLabel(header: readonly Unit[], cell: readonly Unit[]): Unit[] {
  const [first] = cell;
  if (!first) return [];
  const label = [...header, { text: ": ", style: "", at: 0, step: 0 }];
  return label.map((unit) => ({ ...unit, at: first.at, step: 0 }));
}

function clipRow(tableRow: TableRow, { from, until }: Range): ClippedRow | undefined {
  const { at, cells, end } = tableRow;
  if (at >= until.at || (end <= from.at && at < from.at)) return undefined;
  const isCut = at < from.at;
  const starts = cells.map((_, index) => (isCut ? (from.cells?.[index] ?? from.at) : START.at));
  const clipped = cells.map((cell, index) => {
    const end = until.at < tableRow.end ? (until.cells?.[index] ?? until.at) : END.at;
    return clipUnits(cell, starts[index] ?? START.at, end);
  });
  if (isCut && clipped.every(({ length }) => length === 0)) return undefined;
  return { at: isCut ? from.at : at, cells: clipped, starts };
}
