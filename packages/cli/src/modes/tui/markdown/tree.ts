import type { MarkedToken, Tokens } from "marked";
import { joinStyles } from "../terminal/row.ts";
import { type CodeNode, parseCode } from "./code.ts";
import {
  readInline,
  asMarkedTokens,
  readLiteral,
  type Look,
  createLexer,
  type Places,
  type Unit,
} from "./inline.ts";
import { findLastAtOrBefore, findLineStarts } from "./lines.ts";

/** Lists and quotes within each other; deeper ones are shown as they were written. */
const MAX_DEPTH = 12;

/** A part of a text, ready to be laid out. `at` is its place in the source. */
export type Node = TextNode | CodeNode | ListNode | QuoteNode | TableNode | RuleNode;

export interface TextNode {
  readonly type: "text";
  readonly at: number;
  readonly units: readonly Unit[];
}

export interface ListItem {
  readonly at: number;
  readonly marker: string;
  /** An empty row separates it from the item before. */
  readonly gap: boolean;
  readonly children: readonly Child[];
}

export interface ListNode {
  readonly type: "list";
  readonly at: number;
  readonly items: readonly ListItem[];
}

export interface QuoteNode {
  readonly type: "quote";
  readonly at: number;
  readonly children: readonly Child[];
}

export interface TableRow {
  readonly at: number;
  readonly end: number;
  readonly cells: readonly (readonly Unit[])[];
}

export interface TableNode {
  readonly type: "table";
  readonly at: number;
  readonly end: number;
  readonly header: TableRow;
  /** Where the line below the header is. */
  readonly ruleAt: number;
  readonly rows: readonly TableRow[];
  readonly align: readonly ("left" | "right" | "center" | null)[];
}

export interface RuleNode {
  readonly type: "rule";
  readonly at: number;
}

/** A part with what is before it. */
export interface Child {
  readonly node: Node;
  /** An empty row separates it from the part before. */
  readonly gap: boolean;
}

/** A block of a source, from `start` up to `end`, spaces behind it left out. */
export interface LexedBlock {
  readonly token: MarkedToken;
  readonly start: number;
  readonly end: number;
}

export function lexBlocks(source: string): LexedBlock[] {
  const blocks: LexedBlock[] = [];
  let start = 0;
  for (const token of lexSource(source)) {
    if (token.type !== "space") {
      blocks.push({ token, start, end: start + token.raw.trimEnd().length });
    }
    start += token.raw.length;
  }
  return blocks;
}

function lexSource(source: string): readonly MarkedToken[] {
  try {
    return asMarkedTokens(createLexer().blockTokens(source, []));
  } catch (error) {
    // Blocks nested too deep for the stack are shown as they were written.
    if (error instanceof RangeError)
      return [{ type: "html", raw: source, text: source, pre: true, block: true }];
    throw error;
  }
}

interface TreeContext {
  readonly look: Look;
  /** How many lists and quotes are around. */
  readonly depth: number;
  /** The number of the first item of a list, in place of its own. */
  readonly number?: number | undefined;
}

/** The node of a block; undefined where it shows nothing. A list counts from `number`, if given. */
export function buildNode(
  { token, start, end }: LexedBlock,
  source: string,
  places: Places,
  look: Look,
  number?: number,
): Node | undefined {
  const context = { look, depth: 0, number };
  return readNode(token, source.slice(start, end), shiftPlaces(places, start), context);
}

function readNode(
  token: MarkedToken,
  raw: string,
  places: Places,
  { look, depth, number }: TreeContext,
): Node | undefined {
  const { style } = look;
  const at = places(0);
  switch (token.type) {
    case "code":
      return parseCode(raw, places, look);
    case "hr":
      return { type: "rule", at };
    case "heading":
      return readHeading(token, raw, places, look);
    case "list":
      if (depth >= MAX_DEPTH) break;
      return readList(token, raw, places, { look, depth, number });
    case "blockquote": {
      if (depth >= MAX_DEPTH) break;
      const inner = createInnerPlaces(token.text, token.raw, places);
      const children = readChildren(token.text, inner, { look, depth: depth + 1 });
      return children.length > 0 ? { type: "quote", at, children } : undefined;
    }
    case "table":
      return readTable(token, raw, places, look);
    case "html":
      break;
    default: {
      const lead = Math.max(0, raw.search(/\S/));
      const text = raw.slice(lead);
      return textNode(at, readInline(text, shiftPlaces(places, lead), look));
    }
  }
  return textNode(at, readLiteral(raw, places, style));
}

/** Within a list, empty rows are where they are in the source; elsewhere between all blocks. */
function readChildren(
  source: string,
  places: Places,
  context: TreeContext,
  isList = false,
): Child[] {
  const children: Child[] = [];
  for (const { token, start, end } of lexBlocks(source)) {
    const node = readNode(token, source.slice(start, end), shiftPlaces(places, start), context);
    if (!node) continue;
    const gap = children.length > 0 && (!isList || hasEmptyLineBefore(source, start));
    children.push({ node, gap });
  }
  return children;
}

function readHeading(
  { depth, text }: Tokens.Heading,
  raw: string,
  places: Places,
  look: Look,
): Node | undefined {
  const { style, theme } = look;
  const at = places(0);
  const inner = shiftPlaces(places, Math.max(0, raw.indexOf(text)));
  const own = [theme.title, theme.heading][depth - 1] ?? theme.subheading;
  const units = readInline(text, inner, { ...look, style: joinStyles(style, own) });
  if (own !== "") return textNode(at, units);
  const signs = { text: `${"#".repeat(depth)} `, style, at, step: 1 };
  return textNode(at, [signs, ...units]);
}

function readList(
  list: Tokens.List,
  raw: string,
  places: Places,
  { look, depth, number }: TreeContext,
): Node {
  const first = number ?? (list.start === "" ? 1 : list.start);
  const items: ListItem[] = [];
  let start = 0;
  for (const item of list.items) {
    const inner = createInnerPlaces(item.text, item.raw, shiftPlaces(places, start));
    items.push({
      at: places(start),
      marker: formatMarker(item, list.ordered ? first + items.length : undefined),
      gap: items.length > 0 && hasEmptyLineBefore(raw, start),
      children: readChildren(item.text, inner, { look, depth: depth + 1 }, true),
    });
    start += item.raw.length;
  }
  return { type: "list", at: places(0), items };
}

function readTable(
  { align, header, rows }: Tokens.Table,
  raw: string,
  places: Places,
  look: Look,
): Node {
  const { style, theme } = look;
  const starts = findLineStarts(raw);
  const buildRow = (
    line: number,
    cells: readonly Tokens.TableCell[],
    cellStyle: string,
  ): TableRow => {
    const start = starts[line] ?? raw.length;
    const end = Math.max(start, (starts[line + 1] ?? raw.length + 1) - 1);
    const text = raw.slice(start, end);
    let done = 0;
    const units = cells.map((cell) => {
      const found = text.indexOf(cell.text, done);
      // The source does not contain the text of a cell with escapes: its places are near.
      const inner = shiftPlaces(places, start + (found < 0 ? done : found));
      if (found >= 0) done = found + cell.text.length;
      return readInline(cell.text, inner, { ...look, style: cellStyle, breaks: true });
    });
    return { at: places(start), end: places(end), cells: units };
  };
  const head = buildRow(0, header, joinStyles(style, theme.strong));
  return {
    type: "table",
    at: places(0),
    end: places(raw.length),
    // Behind the border above it.
    header: { ...head, at: head.at + 1 },
    ruleAt: places(starts[1] ?? raw.length),
    rows: rows.map((cells, index) => buildRow(index + 2, cells, style)),
    align,
  };
}

function textNode(at: number, units: readonly Unit[]): TextNode | undefined {
  return units.some(({ text }) => text.trim() !== "") ? { type: "text", at, units } : undefined;
}

function formatMarker({ checked, raw, task }: Tokens.ListItem, number: number | undefined): string {
  const box = task ? (checked ? "☑ " : "☐ ") : "";
  if (number === undefined) return box || "• ";
  return `${number}${/^\s*\d+\)/.test(raw) ? ")" : "."} ${box}`;
}

function shiftPlaces(places: Places, start: number): Places {
  return (offset) => places(start + offset);
}

/** Places of a text that was made from the lines of another by removing their beginnings. */
function createInnerPlaces(inner: string, outer: string, places: Places): Places {
  const starts = findLineStarts(inner);
  const outerStarts = findLineStarts(outer);
  return (offset) => {
    const line = findLastAtOrBefore(starts, (start) => start, offset);
    const outerStart = outerStarts[line] ?? outer.length;
    const outerEnd = (outerStarts[line + 1] ?? outer.length + 1) - 1;
    const innerEnd = (starts[line + 1] ?? inner.length + 1) - 1;
    return places(Math.max(outerStart, outerEnd - (innerEnd - offset)));
  };
}

/** Whether there is an empty line before a place. */
export function hasEmptyLineBefore(source: string, at: number): boolean {
  return /\n[ \t]*\n[ \t]*$/.test(source.slice(Math.max(0, at - 200), at));
}
