import { shownText } from "@gyre/coding/internal/text/shown-text";
import { type Block, cacheRows, type OpenBlock } from "../ui/block.ts";
import type { Format } from "./formatters.ts";
import {
  createPlacesBehind,
  extractHeader,
  findCut,
  splitStretches,
  type Stretch,
} from "./bounds.ts";
import { type CodeNode, CodeReader, parseFence, replaceCode } from "./code.ts";
import { CHARACTER, type Look, type Places } from "./inline.ts";
import { layoutChildren } from "./layout.ts";
import { findLastAtOrBefore, findLineEnd, isSettled, showLine, skipEmptyLines } from "./lines.ts";
import { END, type LaidRow, type Place, START } from "./range.ts";
import {
  type Child,
  hasEmptyLineBefore,
  type LexedBlock,
  lexBlocks,
  type Node,
  buildNode,
} from "./tree.ts";
import type { FindLinks } from "../terminal/hyperlinks.ts";
import { type Row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

export interface MarkdownOptions {
  theme: Theme;
  /** Below all other styles: dim, for a thought. */
  style?: string;
  /** Columns that stay free at the left. Default: none. */
  indent?: number;
  /** Finds links in a text as it is shown. Default: nothing is a link. */
  links?: FindLinks | undefined;
  /** Formats the code of a block that has ended. Default: code stays as it was written. */
  format?: Format;
  /** Called when rows have changed without new text. */
  changed?: () => void;
}

/** A part that only a formatter can still change. */
interface Piece {
  child: Child;
  /** The place behind its last character. */
  readonly end: number;
  readonly formatting?: AbortController;
  laid?: { readonly columns: number; readonly from: number; readonly rows: readonly LaidRow[] };
}

/**
 * Shows Markdown while it is written. Each frame reads only the last block again: a block that another one follows
 * is laid out once.
 */
export class MarkdownBlock implements OpenBlock {
  readonly #options: MarkdownOptions;
  readonly #look: Look;
  /** The deltas since the last layout, which joins them: joining each would not be linear. */
  #parts: string[] = [];
  /** The incomplete line as it arrived: an escape sequence in it may be incomplete too. */
  #rawLine = "";
  /** Complete lines that belong to no finished part, and the offset where they begin. */
  #lines = "";
  #base = 0;
  #pieces: Piece[] = [];
  #open: Child[] = [];
  /** The place behind the last visible character. */
  #end = 0;
  #reader: CodeReader | undefined;
  /** The number of the list item at a place, where the items before it were dropped. */
  #number: { at: number; number: number } | undefined;
  /** The header of the table at an offset, where the rows before it were dropped. */
  #header: { at: number; text: string } | undefined;
  #from: Place = START;
  #isFirst = true;
  #isEnded = false;
  /** What ends with the stretch that is being read. */
  #ends: "nothing" | "block" | "text" = "nothing";
  #hasNews = false;
  #laid: readonly LaidRow[] = [];
  #shown: { columns: number; rows: readonly Row[] } | undefined;

  constructor(options: MarkdownOptions) {
    this.#options = options;
    const { links, style = "", theme } = options;
    this.#look = { theme, style, links };
  }

  /** Adds to the text. The work is done by the next `rows`. */
  feed(delta: string): void {
    if (delta === "") return;
    this.#parts.push(delta);
    this.#hasNews = true;
  }

  /** The text is complete. */
  end(): void {
    this.#isEnded = true;
    this.#hasNews = true;
  }

  rows(columns: number): readonly Row[] {
    if (this.#hasNews) this.#read();
    if (this.#shown?.columns !== columns) {
      const open = this.#layout(this.#open, columns, this.#from, END);
      this.#laid = [...this.#pieces.flatMap((piece) => this.#layoutPiece(piece, columns)), ...open];
      this.#shown = { columns, rows: this.#laid.map(({ row }) => row) };
    }
    return this.#shown.rows;
  }

  freeze(count: number): Block {
    const from = this.#from;
    const until = this.#laid[count] ?? this.#endPlace();
    const children = [...this.#pieces.map(({ child }) => child), ...this.#open]
      .filter(({ node }) => node.at <= until.at)
      .map((child) => ({ ...child, node: copyWithin(child.node, from, until) }));
    if (count > 0) {
      this.#from = until;
      this.#pieces = this.#pieces.filter((piece) => {
        if (piece.child.node.at < until.at) piece.formatting?.abort();
        return piece.end > until.at;
      });
      this.#shown = undefined;
    }
    return cacheRows((columns) =>
      count > 0 ? this.#layout(children, columns, from, until).map(({ row }) => row) : [],
    );
  }

  #endPlace(): Place {
    const table = this.#laid.at(-1)?.table;
    return { at: Math.max(this.#end, this.#from.at), ...(table && { table }) };
  }

  #layoutPiece(piece: Piece, columns: number): readonly LaidRow[] {
    const from = this.#from.at >= piece.child.node.at ? this.#from : START;
    if (piece.laid?.columns !== columns || piece.laid.from !== from.at) {
      const rows = this.#layout([piece.child], columns, from, END);
      piece.laid = { columns, from: from.at, rows };
    }
    return piece.laid.rows;
  }

  #layout(children: readonly Child[], columns: number, from: Place, until: Place): LaidRow[] {
    const { indent = 0 } = this.#options;
    const rows = layoutChildren(children, columns - indent, { from, until }, this.#look);
    if (indent === 0) return rows;
    const margin = span(" ".repeat(indent));
    return rows.map((laid) =>
      laid.row.length > 0 ? { ...laid, row: [margin, ...laid.row] } : laid,
    );
  }

  #read(): void {
    this.#hasNews = false;
    this.#shown = undefined;
    const stretches = splitStretches(this.#rawLine + this.#parts.join(""));
    this.#parts = [];
    stretches.forEach((stretch, index) => {
      const isEnd = this.#isEnded && index === stretches.length - 1;
      this.#ends = isEnd ? "text" : stretch.isCut ? "block" : "nothing";
      this.#readStretch(stretch);
    });
  }

  #readStretch({ isCut, text: raw }: Stretch): void {
    const complete = this.#ends === "nothing" ? raw.lastIndexOf("\n") + 1 : raw.length;
    this.#lines += shownText(raw.slice(0, complete));
    this.#rawLine = raw.slice(complete);
    const text = this.#lines + showLine(this.#rawLine);
    const done = this.#readText(text, this.#lines.length);
    this.#lines = this.#lines.slice(done);
    this.#base += done;
    // The line continues: there is no empty row within it.
    if (isCut && !this.#reader) this.#isFirst = true;
  }

  /** Returns how much of the text belongs to finished parts. */
  #readText(text: string, complete: number): number {
    let done = 0;
    this.#open = [];
    for (;;) {
      if (!this.#reader) {
        done = skipEmptyLines(text, done);
        done = this.#openFence(text, done, complete);
      }
      if (this.#reader) {
        done = this.#readCode(this.#reader, text, done, complete);
        if (this.#reader) return done;
        continue;
      }
      if (done >= text.length) return done;
      const next = this.#readBlocks(text, done, complete);
      if (!next.goesOn) return next.done;
      done = next.done;
    }
  }

  /** Reads a complete line that opens a block of code, if there is one. Returns the offset behind it. */
  #openFence(text: string, start: number, complete: number): number {
    const end = findLineEnd(text, start);
    if (end >= complete && this.#ends === "nothing") return start;
    const line = text.slice(start, end);
    const fence = parseFence(line);
    if (!fence) return start;
    this.#reader = new CodeReader(fence, this.#toPlace(start), this.#look, line);
    return Math.min(end + 1, text.length);
  }

  #readCode(reader: CodeReader, text: string, start: number, complete: number): number {
    let at = start;
    while (at < complete) {
      const end = findLineEnd(text, at);
      const line = text.slice(at, end);
      const next = Math.min(end + 1, text.length);
      if (reader.isEnd(line)) {
        reader.close(line, this.#toPlace(at));
        this.#reader = undefined;
        this.#finishCode(reader.node(), reader.text, this.#toPlace(end));
        return next;
      }
      reader.take(line, this.#toPlace(at));
      at = next;
    }
    if (this.#ends === "text") {
      this.#reader = undefined;
      this.#finish(reader.node(), this.#toPlace(at));
      return at;
    }
    // An incomplete line that may become the closing fence is not shown as code.
    const last = text.slice(at);
    const isShown = last !== "" && !reader.mayEnd(last);
    const node = reader.node(isShown ? { text: last, at: this.#toPlace(at) } : undefined);
    this.#open = [{ node, gap: !this.#isFirst }];
    this.#end = this.#toPlace(isShown ? text.length : at);
    return at;
  }

  /** Finishes the blocks that another one follows; the others stay open. */
  #readBlocks(text: string, start: number, complete: number): { done: number; goesOn: boolean } {
    const header = this.#header?.at === this.#base + start ? this.#header.text : "";
    const source = header + text.slice(start);
    const origin = start - header.length;
    const places = createPlacesBehind(header, this.#base + start);
    const blocks = lexBlocks(source);
    let index = 0;
    for (; index < blocks.length; index++) {
      const block = blocks[index];
      const next = blocks[index + 1];
      const isOver = next ? isSettled(next, source, complete - origin) : this.#ends !== "nothing";
      if (!block || !isOver) break;
      const at = Math.max(start, origin + block.start);
      const afterFence = this.#openFence(text, at, complete);
      if (this.#reader) {
        const end = this.#readCode(this.#reader, text, afterFence, complete);
        if (next && end <= origin + next.start) continue;
        return { done: end, goesOn: true };
      }
      this.#finishBlock(block, source, places);
    }
    const open = blocks.slice(index);
    const [first, second] = open;
    if (!first) return { done: text.length, goesOn: false };
    const at = Math.max(start, origin + first.start);
    if (this.#openFence(text, at, complete) > at) {
      this.#reader = undefined;
      return { done: at, goesOn: true };
    }
    const cut = second ? 0 : first.start + findCut(first, source, complete - origin);
    if (cut > first.start + header.length) {
      for (const { end, start: from, token } of lexBlocks(source.slice(first.start, cut))) {
        const block = { token, start: first.start + from, end: first.start + end };
        this.#finishBlock(block, source, places);
      }
      this.#continueBlock(first, source, cut, this.#base + origin + cut);
      return { done: origin + cut, goesOn: true };
    }
    for (const block of open) {
      const node = this.#buildNode(block, source, places);
      if (node) this.#open.push({ node, gap: !this.#isFirst || this.#open.length > 0 });
    }
    this.#end = this.#toPlace(origin + (open.at(-1)?.end ?? 0));
    return {
      done: second ? at : at + this.#countHidden(first, this.#base + at),
      goesOn: false,
    };
  }

  #buildNode(block: LexedBlock, source: string, places: Places): Node | undefined {
    const number = this.#findNumber(places(block.start));
    return buildNode(block, source, places, this.#look, number);
  }

  #findNumber(at: number): number | undefined {
    return this.#number?.at === at ? this.#number.number : undefined;
  }

  #finishBlock(block: LexedBlock, source: string, places: Places): void {
    const node = this.#buildNode(block, source, places);
    if (node) this.#finish(node, places(block.end));
  }

  /** The place of an offset in the text that is read. */
  #toPlace(offset: number): number {
    return (this.#base + offset) * CHARACTER;
  }

  /** The text at an offset continues a block that was cut there. */
  #continueBlock({ start, token }: LexedBlock, source: string, cut: number, at: number): void {
    this.#isFirst = !hasEmptyLineBefore(source, cut);
    if (token.type === "table") this.#header = { at, text: extractHeader(token) };
    if (token.type !== "list") return;
    const first = this.#findNumber((at - cut + start) * CHARACTER) ?? Number(token.start);
    this.#number = { at: at * CHARACTER, number: first + token.items.length - 1 };
  }

  /** Counts the characters of the open block that have left the screen and need not be read again. */
  #countHidden({ token }: LexedBlock, at: number): number {
    if (token.type !== "list") return 0;
    let offset = 0;
    let before = 0;
    let index = 0;
    // One item before the visible ones stays: whether a space follows it depends on it.
    for (; index < token.items.length; index++) {
      const end = offset + (token.items[index]?.raw.length ?? 0);
      if ((at + end) * CHARACTER > this.#from.at) break;
      before = offset;
      offset = end;
    }
    if (before === 0) return 0;
    const first = this.#findNumber(at * CHARACTER) ?? Number(token.start);
    this.#number = { at: (at + before) * CHARACTER, number: first + index - 1 };
    return before;
  }

  #finish(node: Node, end: number, formatting?: AbortController): Piece {
    const child = { node, gap: !this.#isFirst };
    const piece: Piece = { child, end, ...(formatting && { formatting }) };
    this.#isFirst = false;
    this.#end = end;
    if (end > this.#from.at) this.#pieces.push(piece);
    return piece;
  }

  #finishCode(node: CodeNode, code: string, end: number): void {
    const { format } = this.#options;
    if (!format || node.language === "" || code === "" || this.#from.at > node.at) {
      this.#finish(node, end);
      return;
    }
    const formatting = new AbortController();
    const piece = this.#finish(node, end, formatting);
    void format(node.language, code, formatting.signal).then(
      (formatted) => this.#replace(piece, node, code, formatted),
      // Code that cannot be formatted stays as it was written.
      () => {},
    );
  }

  #replace(piece: Piece, node: CodeNode, code: string, formatted: string | undefined): void {
    const text = formatted === undefined ? code : shownText(formatted);
    const isFrozen = this.#from.at > node.at || !this.#pieces.includes(piece);
    if (isFrozen || text.trimEnd() === code.trimEnd()) return;
    const end = node.closing?.at ?? piece.end;
    piece.child = { ...piece.child, node: replaceCode(node, text, end, this.#look) };
    delete piece.laid;
    this.#shown = undefined;
    this.#options.changed?.();
  }
}

/** While code is open its reader still adds lines, so that a frozen part needs a copy of its own. */
function copyWithin(node: Node, from: Place, until: Place): Node {
  if (node.type !== "code") return node;
  const lines = node.lines.slice(findLastAtOrBefore(node.lines, ({ at }) => at, from.at));
  return { ...node, lines: lines.filter(({ at }) => at < until.at) };
}
