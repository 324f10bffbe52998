import type { FileHandle } from "node:fs/promises";
import { cutText } from "@gyre/ai/text";
import { grouped } from "../../text/text.ts";
import { TEXT_HEAD_BYTES, textEncoding } from "../../text/encoding.ts";
import { withTimeLimit } from "../../text/time-limit.ts";

/** Of a longer line, only so much is searched. */
export const MAX_SEARCHED_LINE_BYTES: number = 8 * 1024 * 1024;
/** Of a file in UTF-16, only so much is searched. */
export const MAX_UTF16_BYTES: number = 16 * 1024 * 1024;
/** What is shown of a line. */
export const SHOWN_LINE_CHARS = 500;
/** What is shown of a long line before a match in it. */
const SHOWN_BEFORE_CHARS = 100;

const PIECE_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** A line as it is shown: of the match, or near one. */
export interface ShownLine {
  number: number;
  text: string;
  isMatch: boolean;
}

/** Decides about a line: where in it the match is, in UTF-16 units, or -1 for none. */
export type LineTest = (number: number, text: () => string) => number;

export interface LineSearchOptions {
  what: string;
  test: LineTest;
  /** The search ends after so many matches. */
  maxMatches: number;
  /** Lines to show before and after each match. */
  context: number;
  signal: AbortSignal;
  /** Asked between pieces: true ends the search. */
  expired: () => boolean;
}

/**
 * Finds lines of an opened file, and those around them. Nothing in a file that is no
 * text. Lines end with a line feed; one at the end of the file, and a carriage return
 * before it, do not count. Reads piece by piece, and no further than it has to.
 */
export async function searchLines(
  handle: FileHandle,
  options: LineSearchOptions,
): Promise<ShownLine[]> {
  const collector = new Collector(options);
  const lines = new LineSplitter();
  for await (const piece of pieces(handle)) {
    options.signal.throwIfAborted();
    const whole = lines.feed(piece);
    withTimeLimit(options.what, () => {
      for (const line of whole) collector.take(line);
    });
    if (collector.done || options.expired()) return collector.shown;
  }
  const last = lines.end();
  if (last) withTimeLimit(options.what, () => collector.take(last));
  return collector.shown;
}

/** The bytes of a text file, as UTF-8 without a byte order mark. None of one that is no text. */
async function* pieces(handle: FileHandle): AsyncGenerator<Buffer> {
  const first = await readAt(handle, PIECE_BYTES, 0);
  const head = first.subarray(0, TEXT_HEAD_BYTES);
  const encoding = textEncoding(head);
  if (encoding === "utf-16le" || encoding === "utf-16be") {
    const bytes = await readAt(handle, MAX_UTF16_BYTES, 0);
    yield Buffer.from(new TextDecoder(encoding).decode(bytes));
    return;
  }
  // Not by `encoding`: bytes that are no UTF-8 are searched too, as ripgrep does.
  if (head.includes(0)) return;
  const mark = first[0] === 0xef && first[1] === 0xbb && first[2] === 0xbf ? 3 : 0;
  yield first.subarray(mark);
  let position = first.length;
  while (position > 0) {
    const piece = await readAt(handle, PIECE_BYTES, position);
    if (piece.length === 0) return;
    position += piece.length;
    yield piece;
  }
}

async function readAt(handle: FileHandle, maxBytes: number, from: number): Promise<Buffer> {
  const found: Buffer[] = [];
  let length = 0;
  while (length < maxBytes) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, maxBytes - length));
    const { bytesRead } = await handle.read(piece, 0, piece.length, from + length);
    if (bytesRead === 0) break;
    found.push(piece.subarray(0, bytesRead));
    length += bytesRead;
  }
  return found.length === 1 && found[0] ? found[0] : Buffer.concat(found);
}

/** Cuts bytes into lines. What is beyond the longest line is dropped. */
class LineSplitter {
  #open: Buffer[] = [];
  #openBytes = 0;

  feed(piece: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (;;) {
      const end = piece.indexOf(LINE_FEED, start);
      if (end < 0) break;
      const tail = piece.subarray(start, end);
      lines.push(this.#open.length > 0 ? this.#close(tail) : tail);
      start = end + 1;
    }
    if (start < piece.length) this.#keep(piece.subarray(start));
    return lines;
  }

  end(): Buffer | undefined {
    return this.#open.length > 0 ? this.#close(Buffer.alloc(0)) : undefined;
  }

  #keep(part: Buffer): void {
    const room = MAX_SEARCHED_LINE_BYTES - this.#openBytes;
    if (room <= 0) return;
    this.#open.push(part.subarray(0, room));
    this.#openBytes += Math.min(part.length, room);
  }

  #close(tail: Buffer): Buffer {
    this.#keep(tail);
    const line = Buffer.concat(this.#open);
    this.#open = [];
    this.#openBytes = 0;
    return line;
  }
}

/** Puts together what is shown of a file. */
class Collector {
  readonly #options: LineSearchOptions;
  readonly shown: ShownLine[] = [];
  /** The last lines that are not shown yet, as many as are shown before a match. */
  #before: { number: number; line: Buffer }[] = [];
  #number = 0;
  #matches = 0;
  /** Lines to show after the last match. */
  #after = 0;

  constructor(options: LineSearchOptions) {
    this.#options = options;
  }

  get done(): boolean {
    return this.#matches >= this.#options.maxMatches && this.#after === 0;
  }

  take(line: Buffer): void {
    if (this.done) return;
    const { test, maxMatches, context } = this.#options;
    this.#number += 1;
    let decoded: string | undefined;
    const text = (): string => (decoded ??= decodeLine(line));
    const at = this.#matches < maxMatches ? test(this.#number, text) : -1;
    if (at >= 0) {
      for (const { number, line } of this.#before) this.#show(number, decodeLine(line), 0, false);
      this.#before = [];
      this.#show(this.#number, text(), at, true);
      this.#matches += 1;
      this.#after = context;
    } else if (this.#after > 0) {
      this.#show(this.#number, text(), 0, false);
      this.#after -= 1;
    } else if (context > 0) {
      this.#before.push({ number: this.#number, line });
      if (this.#before.length > context) this.#before.shift();
    }
  }

  #show(number: number, text: string, at: number, isMatch: boolean): void {
    this.shown.push({ number, text: cutAround(text, at), isMatch });
  }
}

function decodeLine(line: Buffer): string {
  const end = line.at(-1) === CARRIAGE_RETURN ? line.length - 1 : line.length;
  return line.toString("utf8", 0, end);
}

/** What is shown of a line: all of it, or the part around the match. */
function cutAround(text: string, at: number): string {
  if (text.length <= SHOWN_LINE_CHARS) return text;
  const isNear = at <= SHOWN_LINE_CHARS - SHOWN_BEFORE_CHARS;
  let start = isNear ? 0 : at - SHOWN_BEFORE_CHARS;
  const code = text.charCodeAt(start);
  if (code >= 0xdc00 && code <= 0xdfff) start += 1;
  const part = cutText(text.slice(start), SHOWN_LINE_CHARS);
  const size = `${grouped(text.length)} characters`;
  return `${start > 0 ? "…" : ""}${part}${start + part.length < text.length ? "…" : ""} [cut: ${size}]`;
}
