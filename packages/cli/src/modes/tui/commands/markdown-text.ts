import { oneLine } from "../panels/text.ts";
import { asCode } from "./session-words.ts";

/** A text of others within a cell of a table: all that Markdown would take for a mark is escaped. */
export function cell(text: string): string {
  return oneLine(text).replace(/[\\`*_[\]<>|~#]/g, "\\$&");
}

/** A name or a path within a cell, as it is. */
export function codeCell(text: string): string {
  return asCode(text).replaceAll("|", "\\|");
}

/** A table in Markdown; cells are Markdown already. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(columns), line(columns.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Lines as they are, in a block of code that nothing in them ends. */
export function codeBlock(text: string): string {
  const MIN_FENCE = 3;
  const runs = text.match(/`+/g) ?? [];
  const fence = "`".repeat(Math.max(MIN_FENCE, ...runs.map(({ length }) => length + 1)));
  return `${fence}\n${text}\n${fence}`;
}
