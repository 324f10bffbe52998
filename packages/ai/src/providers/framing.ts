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

const BOM = "\uFEFF";

// Given whole characters only and never told to stream: engines have a quick way for
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
