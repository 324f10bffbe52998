import type { Cell, CommandPart } from "../../conversation/command.ts";
import { oneLine, shownText } from "../../text/shown-text.ts";
import { markdownInWords } from "./format.ts";

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
      return [part.columns, ...part.rows].map(rowText).filter((row) => row !== "");
    case "bar":
      return [];
  }
}

/** The cells one after the other. */
function rowText(row: readonly Cell[]): string {
  const cells = row.map(cellText);
  if (!cells.some(hasWord)) return "";
  return cells
    .flatMap((cell, index) => {
      if (hasWord(cell)) return [cell];
      // The first is a mark for what follows; an empty cell behind it has a meaning.
      return index === 0 ? [] : ["none"];
    })
    .join(", ");
}

function cellText(cell: Cell): string {
  if (typeof cell === "string") return oneLine(cell);
  return oneLine("code" in cell ? cell.code : cell.strong);
}

function hasWord(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}
