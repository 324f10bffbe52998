import type { Cell, CommandPart } from "@gyre/coding/internal/conversation/command";
import { oneLine } from "@gyre/coding/internal/text/shown-text";

/** A bar is no wider, however wide the terminal is. */
const MAX_BAR_COLUMNS = 60;
const MIN_BAR_COLUMNS = 10;
/** What a code block is indented by, at most. */
const MARGIN_COLUMNS = 8;
const MIN_FENCE = 3;
/** Marks the part of a bar that no segment takes. */
export const FREE_MARK = "·";

/** What a command shows, as Markdown for a view of this width. */
export function partsMarkdown(parts: readonly CommandPart[], columns: number): string {
  return parts.map((part) => partMarkdown(part, columns)).join("\n\n");
}

function partMarkdown(part: CommandPart, columns: number): string {
  switch (part.type) {
    case "text":
      return part.markdown;
    case "warning":
      return escapeMarks(part.text);
    case "code":
      return codeBlock(part.text);
    case "table":
      return table(part.columns, part.rows);
    case "bar": {
      const room = Math.min(MAX_BAR_COLUMNS, columns - MARGIN_COLUMNS);
      return codeBlock(drawBar(part, Math.max(MIN_BAR_COLUMNS, room)));
    }
  }
}

/** Text as inline code, taken literally. */
export function asCode(text: string): string {
  const line = oneLine(text);
  const runs = line.match(/`+/g) ?? [];
  const fence = "`".repeat(Math.max(0, ...runs.map(({ length }) => length)) + 1);
  return runs.length === 0 ? `${fence}${line}${fence}` : `${fence} ${line} ${fence}`;
}

/** Text of others: everything that Markdown would take for a mark is escaped. */
export function escapeMarks(text: string): string {
  return oneLine(text).replace(/[\\`*_[\]<>|~#]/g, "\\$&");
}

function cellText(cell: Cell): string {
  if (typeof cell === "string") return escapeMarks(cell);
  if ("strong" in cell) return `**${escapeMarks(cell.strong)}**`;
  return asCode(cell.code).replaceAll("|", "\\|");
}

function table(columns: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [
    line(columns),
    line(columns.map(() => "---")),
    ...rows.map((row) => line(row.map(cellText))),
  ].join("\n");
}

/** Lines as they are, in a block of code that nothing in them ends. */
function codeBlock(text: string): string {
  const runs = text.match(/`+/g) ?? [];
  const fence = "`".repeat(Math.max(MIN_FENCE, ...runs.map(({ length }) => length + 1)));
  return `${fence}\n${text}\n${fence}`;
}

/** Segments one after the other, as wide as they are large. A segment that is not empty takes a column at least. */
export function drawBar(
  { segments, whole }: Pick<Extract<CommandPart, { type: "bar" }>, "segments" | "whole">,
  columns: number,
): string {
  let bar = "";
  let sum = 0;
  for (const { mark, value } of segments) {
    if (value <= 0) continue;
    sum += value;
    const end = Math.max(bar.length + 1, Math.round((sum / whole) * columns));
    bar += mark.repeat(Math.max(0, Math.min(columns, end) - bar.length));
  }
  return bar + FREE_MARK.repeat(columns - bar.length);
}
