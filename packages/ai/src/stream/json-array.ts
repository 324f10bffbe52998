import { GrowingText } from "./growing-text.ts";
import {
  checkLength,
  type Framing,
  FramingError,
  type OnPayload,
  type Payload,
  Utf8Reader,
} from "./sse.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** What may stand between elements at this point of the body. */
type Expected =
  | "an array or an object"
  | 'an object or "]"'
  | 'a "," or "]"'
  | "an object"
  | "the end";

/**
 * A JSON array of objects that comes bit by bit: each object is dispatched with its
 * closing brace. A body that is one object, as of an error, is dispatched as that.
 * Whether the inside of an object is JSON is for its reader to find out.
 */
export class JsonArrayDecoder implements Framing {
  readonly #onPayload: OnPayload;
  // By line would not do: an object may be whole before its line is.
  readonly #reader = new Utf8Reader("at once");
  #bytes = 0;
  #expected: Expected = "an array or an object";
  /** The beginning of an object whose end has not come yet. */
  #rest: GrowingText | undefined;
  #depth = 0;
  #inString = false;
  #escaped = false;

  constructor(onPayload: OnPayload) {
    this.#onPayload = onPayload;
  }

  /** The closing bracket was seen, or the closing brace of a body that is one object. */
  get complete(): boolean {
    return this.#expected === "the end" && this.#depth === 0;
  }

  feed(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    this.#read(this.#reader.read(bytes));
  }

  end(): Payload | undefined {
    this.#read(this.#reader.end());
    const data = this.#rest?.end();
    this.#rest = undefined;
    return data === undefined ? undefined : { data };
  }

  #read(text: string): void {
    let at = 0;
    while (at < text.length)
      at = this.#depth > 0 ? this.#inside(text, at) : this.#between(text, at);
  }

  /** Reads one character that is in no object, or enters one. */
  #between(text: string, at: number): number {
    const code = text.charCodeAt(at);
    if (SPACES.has(code)) return at + 1;
    const expected = this.#expected;
    if (code === OPEN_OBJECT && expected !== 'a "," or "]"' && expected !== "the end") {
      this.#expected = expected === "an array or an object" ? "the end" : 'a "," or "]"';
      this.#rest = new GrowingText();
      return this.#inside(text, at);
    }
    if (code === OPEN_ARRAY && expected === "an array or an object") {
      this.#expected = 'an object or "]"';
    } else if (code === COMMA && expected === 'a "," or "]"') {
      this.#expected = "an object";
    } else if (
      code === CLOSE_ARRAY &&
      (expected === 'a "," or "]"' || expected === 'an object or "]"')
    ) {
      this.#expected = "the end";
    } else {
      const found = JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0));
      throw new FramingError(`Expected ${expected} of a JSON body, got ${found}`, this.#bytes);
    }
    return at + 1;
  }

  /** Reads what belongs to the object. Answers where it ends, or the end of the text. */
  #inside(text: string, from: number): number {
    let depth = this.#depth;
    let inString = this.#inString;
    let escaped = this.#escaped;
    let at = from;
    do {
      const code = text.charCodeAt(at++);
      if (escaped) escaped = false;
      else if (code === BACKSLASH) escaped = inString;
      else if (code === QUOTE) inString = !inString;
      else if (inString) continue;
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++;
      else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) depth--;
    } while (depth > 0 && at < text.length);
    this.#depth = depth;
    this.#inString = inString;
    this.#escaped = escaped;

    const data = (this.#rest ??= new GrowingText()).append(text.slice(from, at));
    checkLength(data.length, this.#bytes);
    if (depth === 0) {
      this.#rest = undefined;
      this.#onPayload(data, undefined);
    }
    return at;
  }
}
