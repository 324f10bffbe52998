import { GrowingText } from "./growing-text.ts";

/** What `end` found unterminated. */
export interface Payload {
  /** The text of one event. */
  data: string;
  /** SSE's event name, or the `:event-type` header of AWS. */
  event?: string;
}

/** Called once for each whole event, in order, while `feed` runs. */
export type OnPayload = (data: string, event: string | undefined) => void;

/**
 * Turns the bytes of a body, cut anywhere, into payloads, in time that is linear in
 * the bytes whatever the cutting. The bytes are read before `feed` returns and may be
 * reused. After a throw, of its own or of the callback, a framing is of no more use.
 */
export interface Framing {
  /** The next bytes of the body. Throws a `FramingError` on what it cannot read. */
  feed(bytes: Uint8Array): void;
  /**
   * The body has ended. Answers with what was left unterminated, if anything readable:
   * it must not be taken as a whole event.
   */
  end(): Payload | undefined;
}

/** One event, or one line, may be this long in UTF-16 code units. */
export const MAX_EVENT_CHARS: number = 64 * 1024 * 1024;

/** The body is not in the format that it should be in, or passes a limit. */
export class FramingError extends Error {
  readonly code = "framing";
  /** How many bytes of the body had been read, at most, when it showed. */
  readonly byte: number;

  constructor(what: string, byte: number) {
    super(`${what} (at byte ${byte} of the response body)`);
    this.name = "FramingError";
    this.byte = byte;
  }
}

/** Throws unless an event of so many characters is within the limit. */
export function checkLength(chars: number, byte: number): void {
  if (chars <= MAX_EVENT_CHARS) return;
  throw new FramingError(`An event is longer than ${MAX_EVENT_CHARS} characters`, byte);
}

/** A chunk of no more bytes than this is cheaper to copy than to decode. */
const SMALL_CHUNK_BYTES = 64;

/** Small chunks wait together up to this many bytes. */
const WAITING_BYTES = 1024;

/** Of a character that is cut, no more bytes than this are there. */
const CUT_CHARACTER_BYTES = 3;

/** Bare JSON between events may be this long. */
const MAX_STRAY_CHARS = 65_536;
const STRAY_START = /^\s*[[{]/;
const STRAY_END = /[\]}]\s*$/;

const BOM = "\uFEFF";

// Given whole characters only and never in stream mode: engines have a quick way for
// that, several times as fast for ASCII as the streaming one.
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** UTF-8 that is whole, as text. What is malformed becomes U+FFFD. */
export function decodeUtf8(bytes: Uint8Array): string {
  return utf8.decode(bytes);
}

/** When text is wanted: with each chunk, or not before a chunk that ends a line. */
export type Wanted = "at once" | "by line";

/**
 * UTF-8, cut anywhere, as text. What is malformed becomes U+FFFD, and one byte order
 * mark at the front is left out.
 */
export class Utf8Reader {
  readonly #byLine: boolean;
  // There is always room for a cut character behind what waits.
  readonly #held = new Uint8Array(WAITING_BYTES + CUT_CHARACTER_BYTES);
  #length = 0;
  #started = false;

  constructor(wanted: Wanted) {
    this.#byLine = wanted === "by line";
  }

  /** The text that can be read now; the rest of it comes with later bytes. */
  read(bytes: Uint8Array): string {
    const length = this.#length;
    if (
      this.#byLine &&
      bytes.length <= SMALL_CHUNK_BYTES &&
      length + bytes.length <= WAITING_BYTES
    ) {
      this.#length += bytes.length;
      return copyLine(bytes, this.#held, length) ? this.#readHeld() : "";
    }
    if (length === 0) return this.#readFrom(bytes, 0);

    const taken = Math.min(this.#held.length - length, bytes.length);
    this.#held.set(bytes.subarray(0, taken), length);
    this.#length += taken;
    const text = this.#readHeld();
    if (taken === bytes.length) return text;
    const back = this.#length;
    this.#length = 0;
    return text + this.#readFrom(bytes, taken - back);
  }

  /** The text of what is left. */
  end(): string {
    const text = this.#decode(this.#held.subarray(0, this.#length));
    this.#length = 0;
    return text;
  }

  #readHeld(): string {
    const length = this.#length;
    const cut = wholeCharacters(this.#held, length);
    const text = this.#decode(this.#held.subarray(0, cut));
    if (cut < length) this.#held.copyWithin(0, cut, length);
    this.#length = length - cut;
    return text;
  }

  #readFrom(bytes: Uint8Array, from: number): string {
    const cut = wholeCharacters(bytes, bytes.length);
    for (let at = cut; at < bytes.length; at++) this.#held[this.#length++] = bytes[at] ?? 0;
    return this.#decode(from === 0 && cut === bytes.length ? bytes : bytes.subarray(from, cut));
  }

  #decode(bytes: Uint8Array): string {
    const text = utf8.decode(bytes);
    if (this.#started || text === "") return text;
    this.#started = true;
    return text.startsWith(BOM) ? text.slice(BOM.length) : text;
  }
}

const LF = 0x0a;
const CR = 0x0d;

/** Copies `bytes`, of which there are few. True if a line ends in them. */
function copyLine(bytes: Uint8Array, to: Uint8Array, at: number): boolean {
  let ends = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    to[at + i] = byte;
    if (byte === LF || byte === CR) ends = true;
  }
  return ends;
}

const FIRST_NOT_ASCII = 0x80;
const FIRST_LEAD = 0xc0;

/**
 * Where `bytes` can be cut so that both parts decode to what the whole does: before a
 * lead byte, or at the end if nothing near it can be a character's beginning.
 */
function wholeCharacters(bytes: Uint8Array, length: number): number {
  const last = Math.max(0, length - CUT_CHARACTER_BYTES);
  for (let at = length - 1; at >= last; at--) {
    const byte = bytes[at] ?? 0;
    if (byte < FIRST_NOT_ASCII) return length;
    if (byte >= FIRST_LEAD) return at;
  }
  return length;
}

const SPACE = 0x20;
const COLON = 0x3a;
const LETTER_A = 0x61;
const LETTER_D = 0x64;
const LETTER_E = 0x65;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const LETTER_V = 0x76;

/** With so many characters of a line its field is known, and where the value begins. */
const FIELD_CHARS = "event: ".length;

/**
 * The event stream format of the WHATWG's HTML standard. An event is dispatched at
 * the end of the blank line after it, also at a lone CR. `id` and `retry` are of no
 * use here and are passed over, as are comments and unknown fields.
 */
export class SseDecoder implements Framing {
  readonly #onPayload: OnPayload;
  readonly #onStray: ((value: unknown) => void) | undefined;
  /** Lines of JSON that belong to no field, as far as they came. */
  #stray = "";
  readonly #reader = new Utf8Reader("by line");
  #bytes = 0;
  // The beginning of a line whose end has not come yet. Only the head is looked at:
  // the tail is joined from pieces, and a look would write all of it out.
  #head = "";
  #tail = "";
  /** The last line ended in CR at the end of a text: an LF now belongs to it. */
  #afterCr = false;
  #event: string | undefined;
  #data: string | undefined;
  /** Holds the data from its second line on. */
  #lines: GrowingText | undefined;

  /** `onStray`: gets JSON that stands between events, in no field, as some services send errors. */
  constructor(onPayload: OnPayload, onStray?: (value: unknown) => void) {
    this.#onPayload = onPayload;
    this.#onStray = onStray;
  }

  feed(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    const text = this.#reader.read(bytes);
    if (text !== "") this.#read(text);
  }

  end(): Payload | undefined {
    const text = this.#reader.end();
    if (text !== "") this.#read(text);
    // A name that is cut could be the name of something else; data that is cut is of use.
    if (this.#head.startsWith("data:")) this.#endLine();
    else if (this.#head !== "") this.#strayLine(this.#head + this.#tail);
    const data = this.#data;
    const event = this.#event;
    this.#head = "";
    this.#tail = "";
    this.#data = undefined;
    this.#event = undefined;
    this.#lines = undefined;
    if (data === undefined) return undefined;
    return event === undefined ? { data } : { data, event };
  }

  #read(text: string): void {
    const size = text.length;
    let at = 0;
    if (this.#afterCr) {
      this.#afterCr = false;
      if (text.charCodeAt(0) === LF) at = 1;
    }
    if (this.#head !== "") at = this.#continue(text);

    const onPayload = this.#onPayload;
    let data = this.#data;
    let event = this.#event;
    // Each is searched for again only when it has been passed, so that a text without
    // the one or the other is searched for it once.
    let lf = -1;
    let cr = -1;
    while (at < size) {
      const first = text.charCodeAt(at);
      if (first === LF || first === CR) {
        at = first === LF ? at + 1 : this.#pass(text, at);
        if (data !== undefined) {
          onPayload(data, event);
          data = undefined;
          if (this.#lines) this.#lines = undefined;
        }
        event = undefined;
        continue;
      }
      if (lf < at) lf = indexOrEnd(text, "\n", at);
      if (cr < at) cr = indexOrEnd(text, "\r", at);
      const end = lf < cr ? lf : cr;
      if (end === size) {
        this.#keep(text.slice(at));
        break;
      }
      checkLength(end - at, this.#bytes);
      const next = end === lf ? end + 1 : this.#pass(text, end);
      const dataAt = dataFrom(text, at, end);
      if (dataAt >= 0) {
        const value = text.slice(dataAt, end);
        data = data === undefined ? value : this.#addLine(data, value);
      } else {
        const eventAt = eventFrom(text, at, end);
        if (eventAt >= 0) event = text.slice(eventAt, end) || undefined;
        else this.#strayLine(text.slice(at, end));
      }
      at = next;
    }
    this.#data = data;
    this.#event = event;
  }

  /** What comes after the line end at `at`. */
  #pass(text: string, at: number): number {
    const next = at + 1;
    if (text.charCodeAt(at) === LF) return next;
    if (next === text.length) this.#afterCr = true;
    return text.charCodeAt(next) === LF ? next + 1 : next;
  }

  /** The line that was begun goes on. Answers where the next one begins. */
  #continue(text: string): number {
    const end = Math.min(indexOrEnd(text, "\n", 0), indexOrEnd(text, "\r", 0));
    this.#keep(text.slice(0, end));
    if (end === text.length) return end;
    this.#endLine();
    return this.#pass(text, end);
  }

  #keep(piece: string): void {
    if (this.#head.length < FIELD_CHARS) this.#head += piece;
    else this.#tail += piece;
    checkLength(this.#head.length + this.#tail.length, this.#bytes);
  }

  #endLine(): void {
    const head = this.#head;
    const tail = this.#tail;
    this.#head = "";
    this.#tail = "";
    const data = dataFrom(head, 0, head.length);
    const event = eventFrom(head, 0, head.length);
    if (data >= 0) {
      const value = head.slice(data) + tail;
      this.#data = this.#data === undefined ? value : this.#addLine(this.#data, value);
    }
    if (event >= 0) this.#event = head.slice(event) + tail || undefined;
    if (data < 0 && event < 0) this.#strayLine(head + tail);
  }

  /** A line that is of neither field: a comment, an unknown field, or a part of bare JSON. */
  #strayLine(line: string): void {
    if (!this.#onStray) return;
    if (this.#stray === "" && !STRAY_START.test(line)) return;
    this.#stray += `${line}\n`;
    if (this.#stray.length > MAX_STRAY_CHARS) this.#stray = "";
    else if (STRAY_END.test(line)) {
      const value = parseOrUndefined(this.#stray);
      if (value === undefined) return;
      this.#stray = "";
      this.#onStray(value);
    }
  }

  #addLine(data: string, value: string): string {
    if (!this.#lines) {
      this.#lines = new GrowingText();
      this.#lines.append(data);
    }
    checkLength(data.length + value.length + 1, this.#bytes);
    return this.#lines.append(`\n${value}`);
  }
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not whole yet, or no JSON at all.
    return undefined;
  }
}

function indexOrEnd(text: string, wanted: string, from: number): number {
  const index = text.indexOf(wanted, from);
  return index === -1 ? text.length : index;
}

// Written out letter by letter: `startsWith` takes longer than all the rest of a line.

/** Where the value begins, if the line from `at` to `end` is of the field `data`; else -1. */
function dataFrom(text: string, at: number, end: number): number {
  if (
    text.charCodeAt(at) !== LETTER_D ||
    text.charCodeAt(at + 1) !== LETTER_A ||
    text.charCodeAt(at + 2) !== LETTER_T ||
    text.charCodeAt(at + 3) !== LETTER_A
  )
    return -1;
  return valueFrom(text, at + "data".length, end);
}

/** The same for the field `event`. */
function eventFrom(text: string, at: number, end: number): number {
  if (
    text.charCodeAt(at) !== LETTER_E ||
    text.charCodeAt(at + 1) !== LETTER_V ||
    text.charCodeAt(at + 2) !== LETTER_E ||
    text.charCodeAt(at + 3) !== LETTER_N ||
    text.charCodeAt(at + 4) !== LETTER_T
  )
    return -1;
  return valueFrom(text, at + "event".length, end);
}

/** Where the value begins after a name that ends at `at`; -1 if the name goes on. */
function valueFrom(text: string, at: number, end: number): number {
  if (at === end) return end;
  if (text.charCodeAt(at) !== COLON) return -1;
  return text.charCodeAt(at + 1) === SPACE ? at + 2 : at + 1;
}
