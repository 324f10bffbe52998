import { shownLine } from "@gyre/coding/internal/text/shown-text";
import { type Row, span } from "../terminal/row.ts";

/** What is read of a line. */
const MAX_CHARS = 4_000;
const COLORS = String.raw`\x1b\[([\d;]*)m`;
const RESET: ReadonlySet<number> = new Set([0]);
/** Bold, dim, italic, underlined, inverse, struck, and the ends of these; the colors of the terminal. */
const PLAIN: ReadonlySet<number> = new Set([
  ...[1, 2, 3, 4, 7, 9, 22, 23, 24, 27, 29],
  ...range(30, 37),
  39,
  ...range(40, 47),
  49,
  ...range(90, 97),
  ...range(100, 107),
]);
const EXTENDED: ReadonlySet<number> = new Set([38, 48]);
const INDEXED = 5;
const TRUE_COLOR = 2;
const MAX_VALUE = 255;

/** The first line that a program printed: its colors stay, and nothing else that a terminal obeys. */
export function parseStyledLine(output: string, hasColors: boolean): Row {
  const [line = ""] = output.trimStart().slice(0, MAX_CHARS).split(/\r?\n/, 1);
  const pieces = line.split(new RegExp(COLORS));
  let style = "";
  return pieces.flatMap((piece, index) => {
    if (index % 2 === 1) {
      style = addStyle(style, piece);
      return [];
    }
    const text = shownLine(piece);
    return text === "" ? [] : [span(text, hasColors ? style : "")];
  });
}

/** Adds the parameters of a sequence to a style; those that are not known are left out. */
function addStyle(before: string, parameters: string): string {
  const numbers = parameters.split(";").map(Number);
  let parts = before === "" ? [] : [before];
  for (let at = 0; at < numbers.length; at++) {
    const number = numbers[at] ?? 0;
    if (RESET.has(number)) parts = [];
    else if (PLAIN.has(number)) parts.push(String(number));
    else if (EXTENDED.has(number)) {
      const count = { [INDEXED]: 2, [TRUE_COLOR]: 4 }[numbers[at + 1] ?? 0] ?? 0;
      const values = numbers.slice(at + 1, at + 1 + count);
      const isWhole = count > 0 && values.length === count;
      if (isWhole && values.every((value) => value <= MAX_VALUE)) {
        parts.push([number, ...values].join(";"));
      }
      at += Math.max(1, count);
    }
  }
  return parts.join(";");
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
