export const BYTE_ORDER_MARK = "\uFEFF";

export type LineEnd = "" | "\n" | "\r\n";

/** A line of a text: where it starts, what is on it, and how it ends. */
export interface Line {
  start: number;
  text: string;
  /** "" only on a last line that has no line end. */
  end: LineEnd;
}

/** The lines of a text from `from` on. A text that ends with a line end has no further, empty line. */
export function splitLines(text: string, from = 0): Line[] {
  const lines: Line[] = [];
  let start = from;
  while (start < text.length) {
    const feed = text.indexOf("\n", start);
    if (feed < 0) {
      lines.push({ start, text: text.slice(start), end: "" });
      break;
    }
    const isCrlf = feed > start && text.charAt(feed - 1) === "\r";
    const end = isCrlf ? "\r\n" : "\n";
    lines.push({ start, text: text.slice(start, feed + 1 - end.length), end });
    start = feed + 1;
  }
  return lines;
}

export function joinLines(lines: readonly Line[]): string {
  return lines.map((line) => line.text + line.end).join("");
}

/** The line end that most lines have; "" where none has one. */
export function commonEnd(lines: readonly Line[]): LineEnd {
  let crlf = 0;
  let lf = 0;
  for (const { end } of lines) {
    if (end === "\r\n") crlf += 1;
    else if (end === "\n") lf += 1;
  }
  if (crlf + lf === 0) return "";
  return crlf > lf ? "\r\n" : "\n";
}

/** The line that an offset is in: the last one that starts at or before it. */
export function lineAt(lines: readonly Line[], offset: number): number {
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((lines[middle]?.start ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Without spaces and tabs at its end. A loop: the regular expression for this is quadratic. */
export function trimLineEnd(line: string): string {
  let end = line.length;
  while (end > 0 && isBlank(line.charCodeAt(end - 1))) end -= 1;
  return end === line.length ? line : line.slice(0, end);
}

/** The spaces and tabs that a line starts with. */
export function readIndent(line: string): string {
  let end = 0;
  while (end < line.length && isBlank(line.charCodeAt(end))) end += 1;
  return line.slice(0, end);
}

const TAB = 0x09;
const SPACE = 0x20;

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}
