import { measureWidth } from "./width.ts";

const GAP = "  ";

/** Rows with their cells below each other. The column at the index `right` is aligned to the right. */
export function alignColumns(rows: readonly (readonly string[])[], right?: number): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, measureWidth(cell));
    }
  }
  return rows.map((row) => {
    const padded = row.map((cell, column) => {
      const space = " ".repeat((widths[column] ?? 0) - measureWidth(cell));
      return column === right ? space + cell : cell + space;
    });
    return padded.join(GAP).trimEnd();
  });
}
