import type { IBuffer, IBufferCell, Terminal } from "@xterm/headless";

/** How a piece of a row looks. Absent: as the terminal has it by default. */
export interface Look {
  /** A number of the terminal's 256 colors, or `#rrggbb`. */
  foreground?: number | string;
  background?: number | string;
  bold?: true;
  dim?: true;
  italic?: true;
  underline?: true;
  inverse?: true;
  struck?: true;
}

/** Neighboring cells that look the same. */
export interface Piece {
  text: string;
  /** From 0; `columns` is how many cells it takes. */
  column: number;
  columns: number;
  look: Look;
}

/** The rows that are on the screen, spaces at their ends taken away. */
export function screenText(terminal: Terminal): string[] {
  const { active } = terminal.buffer;
  return textRows(active, active.baseY, terminal.rows);
}

/** The rows that have left the screen at its top, the oldest first. `from`: those behind it. */
export function scrollbackText(terminal: Terminal, from = 0): string[] {
  const { normal } = terminal.buffer;
  return textRows(normal, from, Math.max(0, normal.baseY - from));
}

/** The rows of the screen with their looks; pieces of spaces that cannot be seen are left out. */
export function styledScreen(terminal: Terminal): Piece[][] {
  const { active } = terminal.buffer;
  return Array.from({ length: terminal.rows }, (_, row) => readPieces(active, active.baseY + row));
}

/**
 * How often a screen or its scrollback was wiped: erasing all of it, erasing what is below
 * the upper left corner, or a reset of the terminal.
 */
export function fullClearsIn(written: string): number {
  // eslint-disable-next-line no-control-regex -- these are what a terminal obeys
  return [...written.matchAll(/\x1b\[[23]J|\x1bc|\x1b\[(?:1?(?:;1?)?)[Hf]\x1b\[0?J/g)].length;
}

/** What a terminal obeys, by what it does. Links, titles and modes move nothing. */
export function cursorMovesIn(written: string): string[] {
  // eslint-disable-next-line no-control-regex -- these are what a terminal obeys
  return [...written.matchAll(/\x1b\[[\d;]*[ABCDEFGHJKLMPSTXdefr@]|\x1b[78MDE]|\x08/g)].map(
    ([sequence]) => sequence,
  );
}

/** The parts of sequences for styles that set a color; those for bold and such are none. */
export function findColors(written: string): string[] {
  // eslint-disable-next-line no-control-regex -- it is what colors are made of
  return [...written.matchAll(/\x1b\[([\d;:]*)m/g)]
    .flatMap(([, codes = ""]) => codes.split(/[;:]/))
    .filter((code) => /^(?:[34][0-8]|9[0-7]|10[0-7])$/.test(code));
}

function textRows(buffer: IBuffer, from: number, count: number): string[] {
  return Array.from(
    { length: count },
    (_, row) =>
      buffer
        .getLine(from + row)
        ?.translateToString(true)
        .trimEnd() ?? "",
  );
}

function readPieces(buffer: IBuffer, row: number): Piece[] {
  const line = buffer.getLine(row);
  const pieces: Piece[] = [];
  if (line === undefined) return pieces;
  const cell = buffer.getNullCell();
  let lastKey = "";
  for (let column = 0; column < line.length; column++) {
    line.getCell(column, cell);
    const width = cell.getWidth();
    // The right half of a wide character.
    if (width === 0) continue;
    const look = readLook(cell);
    const text = cell.getChars() || " ";
    const key = JSON.stringify(look);
    const last = pieces.at(-1);
    if (last !== undefined && key === lastKey) {
      last.text += text;
      last.columns += width;
    } else pieces.push({ text, column, columns: width, look });
    lastKey = key;
  }
  return pieces.filter(({ text, look }) => text.trim() !== "" || isVisible(look));
}

/** Whether even a space shows it. */
function isVisible({ background, inverse, underline, struck }: Look): boolean {
  return background !== undefined || inverse === true || underline === true || struck === true;
}

function readLook(cell: IBufferCell): Look {
  const look: Look = {};
  if (!cell.isFgDefault()) look.foreground = formatColor(cell.getFgColor(), cell.isFgRGB());
  if (!cell.isBgDefault()) look.background = formatColor(cell.getBgColor(), cell.isBgRGB());
  if (cell.isBold() !== 0) look.bold = true;
  if (cell.isDim() !== 0) look.dim = true;
  if (cell.isItalic() !== 0) look.italic = true;
  if (cell.isUnderline() !== 0) look.underline = true;
  if (cell.isInverse() !== 0) look.inverse = true;
  if (cell.isStrikethrough() !== 0) look.struck = true;
  return look;
}

function formatColor(value: number, isRgb: boolean): number | string {
  return isRgb ? `#${value.toString(16).padStart(6, "0")}` : value;
}
