import type { Cell, CommandPart } from "@gyre/coding/internal/conversation/command";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import { cellsInWords, markdownInWords } from "./format.ts";

/** What a command shows, as lines to be read aloud. A bar is left out: a table has its numbers. */
export function partLines(part: CommandPart): string[] {
  switch (part.type) {
    case "text":
      return [markdownInWords(shownText(part.markdown))];
    case "warning":
      return [`Warning: ${oneLine(part.text)}`];
    case "code":
      return [shownText(part.text)];
    case "table":
      return [part.columns, ...part.rows]
        .map((row) => cellsInWords(row.map(cellText)))
        .filter((row) => row !== "");
    case "bar":
      return [];
  }
}

function cellText(cell: Cell): string {
  if (typeof cell === "string") return oneLine(cell);
  return oneLine("code" in cell ? cell.code : cell.strong);
}
