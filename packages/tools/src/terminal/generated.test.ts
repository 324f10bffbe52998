import { isDeepStrictEqual } from "node:util";
import xterm from "@xterm/headless";
import { expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { createRandom } from "../testing/command-lines.ts";
import { Screen } from "./screen.ts";

/*
 * What programs may write, at random, drawn by a real terminal and by ours, in the same pieces. `GYRE_SCREENS=100000
 * GYRE_SEED=1` chooses how many and which.
 */

const SCROLLBACK_ROWS = 2_000;
const MAX_PARTS = 60;
const MAX_PIECE_CHARS = 40;

type Random = () => number;

interface Size {
  columns: number;
  rows: number;
}

interface Seen {
  rows: string[];
  cursor: { row: number; column: number };
  /** Lines that have left the screen, with what is on it. */
  text: string;
  replies: string;
}

const SIZES = [
  { columns: 12, rows: 5 },
  { columns: 20, rows: 8 },
  { columns: 5, rows: 3 },
];

it("draws what a terminal draws", { tags: "long", timeout: 3_600_000 }, async () => {
  const seed = pickSeed();
  const count = countCases(500, 10_000, "GYRE_SCREENS");
  console.log(`${count} screens with GYRE_SEED=${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < count; nth++) {
    const size = pick(random, SIZES);
    const parts = Array.from({ length: upTo(random, MAX_PARTS) }, () => writePart(random, size));
    const pieces = cut(random, parts.join(""));
    if (await isSame(pieces, size)) continue;
    const fewest = (await isSame(parts, size)) ? pieces : await findFewest(parts, size);
    const about = `screen ${nth} of GYRE_SEED=${seed}: ${JSON.stringify({ size, fewest })}`;
    expect(drawOurs(fewest, size), about).toEqual(await drawTheirs(fewest, size));
  }
});

async function isSame(pieces: readonly string[], size: Size): Promise<boolean> {
  return isDeepStrictEqual(drawOurs(pieces, size), await drawTheirs(pieces, size));
}

/** As few of the parts as it takes to see a difference. */
async function findFewest(parts: readonly string[], size: Size): Promise<readonly string[]> {
  for (const nth of parts.keys()) {
    const fewer = parts.toSpliced(nth, 1);
    if (!(await isSame(fewer, size))) return findFewest(fewer, size);
  }
  return parts;
}

function drawOurs(pieces: readonly string[], { columns, rows }: Size): Seen {
  const screen = new Screen(columns, rows);
  let left = "";
  let replies = "";
  for (const piece of pieces) {
    const drawn = screen.write(piece);
    left += drawn.left;
    replies += drawn.reply;
  }
  const { rows: shown, cursor } = screen;
  const { isAlternate } = screen;
  const text = trimLines(left + screen.end());
  return { rows: shown, cursor, replies, text: isAlternate ? "" : text };
}

async function drawTheirs(pieces: readonly string[], { columns, rows }: Size): Promise<Seen> {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: SCROLLBACK_ROWS,
    allowProposedApi: true,
  });
  let replies = "";
  terminal.onData((text) => (replies += text));
  for (const piece of pieces) terminal.write(piece);
  await new Promise<void>((done) => terminal.write("", done));
  const { active, normal } = terminal.buffer;
  const readRows = (buffer: typeof active, from: number): string[] => {
    const all: string[] = [];
    for (let y = from; y < buffer.length; y++) {
      all.push(buffer.getLine(y)?.translateToString(true) ?? "");
    }
    return all;
  };
  let text = "";
  for (let y = 0; y < normal.length; y++) {
    const line = normal.getLine(y);
    if (y > 0 && line?.isWrapped !== true) text += "\n";
    text += line?.translateToString(true) ?? "";
  }
  const shown = readRows(active, active.baseY).map((row) => row.trimEnd());
  const seen = {
    rows: shown.slice(0, shown.findLastIndex((row) => row !== "") + 1),
    cursor: { row: active.cursorY, column: Math.min(active.cursorX, columns - 1) },
    // No program counts on a column behind the last one.
    replies: replies.replaceAll(`;${columns + 1}R`, `;${columns}R`),
    text: active.type === "alternate" ? "" : trimLines(text),
  };
  terminal.dispose();
  return seen;
}

/** Rows are compared to the letter. Spaces at the end of a line that has left the screen are not. */
function trimLines(text: string): string {
  return text.replaceAll(" ", "").replace(/\n+$/, "");
}

/** Something that a program may write, most of it text. */
function writePart(random: Random, { columns, rows }: Size): string {
  const small = (): number => upTo(random, 4);
  const x = (): number => upTo(random, columns + 2);
  const y = (): number => upTo(random, rows + 2);
  const number = (): string => (random() < 0.3 ? "" : String(small()));
  const makers: readonly (() => string)[] = [
    () => word(random),
    () => word(random),
    () => word(random),
    () => pick(random, ["漢字", "字", "가나", "e\u0301", "n\u0303a", "☃", "äöü", "→"]),
    () => "x".repeat(x()),
    () => pick(random, ["\r\n", "\n", "\r", "\t", "\b", "\x0b", "\x0c", "\x07"]),
    () => pick(random, ["\r\n", "\r\n", "\n"]),
    () => `\x1b[${y()};${x()}${pick(random, ["H", "f"])}`,
    () => pick(random, ["\x1b[H", "\x1b[;H", `\x1b[${y()}H`, `\x1b[;${x()}H`]),
    () => `\x1b[${number()}${pick(random, [..."ABCDEFGad`eIZ"])}`,
    () => `\x1b[${number()}${pick(random, [..."@PXLMST"])}`,
    () => `\x1b[${pick(random, ["", "0", "1", "2"])}K`,
    () => pick(random, ["\x1b[J", "\x1b[2J", "\r\x1b[1J"]),
    () => `\x1b[${y()};${y()}r`,
    () => pick(random, ["\x1b[r", "\x1b[4h", "\x1b[4l", "\x1b[4l"]),
    // Without wide characters: theirs stays half a one under what is written over it.
    () => `\x1b[2K\x1b[?7l${word(random)}${word(random)}\x1b[?7h`,
    () => pick(random, ["\x1bM", "\x1bD", "\x1bE", "\x88", "\x84", "\x85"]),
    () => `\x1b7\x1b[${y()};${x()}H\x1b8`,
    () => `a\x1b[${small()}b`,
    () => pick(random, ["\x1bH", "\x1b[g", "\x1b[3g"]),
    () => pick(random, ["\x1b[?1047h", "\x1b[?1047l", "\x1b[?1047l"]),
    () => `\x1b[?1047l\x1b[?1049h${word(random)}\x1b[?1049l`,
    () => pick(random, ["\x1b(0lqqk\x1b(B", "\x1b)0\x0ex m~\x0f", "\x1b(B"]),
    () => `\x1b[${pick(random, ["31", "0", "1;4", "38;5;9", "38:2::1:2:3", ""])}m`,
    () => pick(random, ["\x1b]0;a title\x07", "\x1b]8;;http://a.b\x1b\\", "\x1bPq#0;2~\x1b\\"]),
    () => pick(random, ["\x1b[6n", "\x1b[5n", "\x1b[c", "\x1b[0c"]),
    () => pick(random, ["\x1b[?25l", "\x1b[?2004h", "\x1b[>4;2m", "\x1b=", "\x1b[ q", "\x1b[?1h"]),
    // What is cut off, or no sequence at all.
    () =>
      pick(random, [
        "\x1b[12\x18",
        "\x1b[3\nA",
        "\x1b\x1b[B",
        "\x1b]0;a\x1b[C",
        "\x9b2C",
        "\x1b[;;H",
      ]),
  ];
  return pick(random, makers)();
}

function word(random: Random): string {
  return pick(random, ["tea", "a b", "  ", "green tea.", "0123456789", "x", "-", " y"]);
}

/** Pieces that end anywhere, but in the middle of a character. */
function cut(random: Random, text: string): string[] {
  const chars = [...text];
  const pieces: string[] = [];
  while (chars.length > 0) pieces.push(chars.splice(0, upTo(random, MAX_PIECE_CHARS)).join(""));
  return pieces;
}

/** From 1. */
function upTo(random: Random, most: number): number {
  return 1 + Math.floor(random() * most);
}

function pick<T>(random: Random, from: readonly T[]): T {
  const one = from[Math.floor(random() * from.length)];
  if (one === undefined) throw new Error("There is nothing to pick from.");
  return one;
}
