import { GrowingText } from "./growing-text.ts";

/** How many objects and arrays may be open inside one another. */
export const MAX_JSON_DEPTH = 256;

/** What is wrong with the input. `position` counts UTF-16 code units from the start of all input. */
export interface PartialJsonError {
  readonly message: string;
  readonly position: number;
}

/** The value, or what is wrong with it and at which character. */
export type PartialJsonResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: string; readonly position: number };

/** The value of a JSON text, or what is wrong with it, by line and column. */
export type JsonTextResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: string; readonly line: number; readonly column: number };

/**
 * Parses a whole text, such as that of a file; a byte order mark is passed over. What is
 * wrong is reported with its place, on every engine, and without a word of the text, which
 * may hold keys.
 */
export function parseJsonText(text: string): JsonTextResult {
  const content = text.replace(/^\uFEFF/, "");
  const parser = new PartialJsonParser();
  parser.feed(content);
  const end = parser.end();
  if (end.ok) return end;
  const before = content.slice(0, end.position).split("\n");
  const column = (before.at(-1)?.length ?? 0) + 1;
  return { ok: false, error: end.error, line: before.length, column };
}

type JsonObject = Record<string, unknown>;

/** What the next character is read as. */
type State =
  | "value"
  | "firstItem"
  | "firstKey"
  | "key"
  | "colon"
  | "next"
  | "done"
  | "string"
  | "escape"
  | "unicode"
  | "number"
  | "literal"
  | "failed";

/** Where in a number's grammar its last character stands. */
type NumberPart =
  | "minus"
  | "zero"
  | "integer"
  | "point"
  | "fraction"
  | "exponent"
  | "exponentSign"
  | "exponentDigits";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const UNICODE_DIGITS = 4;

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

const LITERALS: ReadonlyMap<string, { readonly word: string; readonly value: unknown }> = new Map([
  ["t", { word: "true", value: true }],
  ["f", { word: "false", value: false }],
  ["n", { word: "null", value: null }],
]);

/**
 * Parses JSON that arrives in pieces, such as the arguments of a tool call while a
 * model still writes them. It accepts and refuses exactly what `JSON.parse` does
 * (but for nesting beyond `MAX_JSON_DEPTH`) and makes the same value. A piece costs
 * what its own length costs, no matter how much came before.
 */
export class PartialJsonParser {
  #state: State = "value";
  #error: PartialJsonError | undefined;
  /** How much input came in earlier calls of `feed`. */
  #consumed = 0;

  // The root sits in an array of its own, so that it is stored like any other value.
  readonly #root: unknown[] = [];
  readonly #open: (unknown[] | JsonObject)[] = [];
  #container: unknown[] | JsonObject = this.#root;
  #key = "";

  #isKey = false;
  /** Decoded characters of the string in progress that are not shown yet. */
  #pending = "";
  /** The string in progress as it is shown; absent until a first part is. */
  #shown: GrowingText | undefined;
  #unicode = 0;
  #unicodeDigits = 0;

  #number = "";
  #numberPart: NumberPart = "minus";

  #word = "";
  #wordValue: unknown;
  #matched = 0;

  /**
   * The value as far as it has come, `undefined` before it has begun. It is live:
   * objects and arrays grow in place, so who keeps it copies it. A string shows
   * what has come of it (never half an escape, nor half a surrogate pair); numbers,
   * `true`, `false` and `null` show when they are complete, and a key shows with
   * its value. A key that comes a second time starts its value again.
   */
  get value(): unknown {
    return this.#root[0];
  }

  /** The first error, if there was one. `value` stays at what had been parsed. */
  get error(): PartialJsonError | undefined {
    return this.#error;
  }

  /** Takes the next piece of input. Never throws; after an error, it ignores input. */
  feed(chunk: string): void {
    let at = 0;
    while (at < chunk.length && this.#state !== "failed") {
      at = this.#state === "string" ? this.#readString(chunk, at) : this.#read(chunk, at);
    }
    this.#showString();
    this.#consumed += chunk.length;
  }

  /** Says that the input is complete: only now a number at the root is known to be. */
  end(): PartialJsonResult {
    if (this.#state === "number" && this.#open.length === 0 && this.#numberMayEnd()) {
      this.#endNumber();
    }
    if (this.#state !== "done" && this.#state !== "failed") {
      this.#failUnexpected("end of input", this.#consumed);
    }
    return this.#error === undefined
      ? { ok: true, value: this.value }
      : { ok: false, error: this.#error.message, position: this.#error.position };
  }

  // The hot path: most input is the inside of long strings. All `#read...` methods
  // answer where to go on.
  #readString(chunk: string, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const code = chunk.charCodeAt(at);
      if (code >= SPACE && code !== QUOTE && code !== BACKSLASH) continue;
      this.#pending += chunk.slice(from, at);
      if (code === QUOTE) this.#endString();
      else if (code === BACKSLASH) this.#state = "escape";
      else this.#unexpected(chunk, at);
      return at + 1;
    }
    this.#pending += chunk.slice(from);
    return chunk.length;
  }

  #read(chunk: string, at: number): number {
    const char = chunk.charAt(at);
    switch (this.#state) {
      case "escape":
        return this.#readEscape(chunk, at, char);
      case "unicode":
        return this.#readUnicode(chunk, at, char);
      case "number":
        return this.#readNumber(chunk, at);
      case "literal":
        if (char !== this.#word[this.#matched]) return this.#unexpected(chunk, at);
        if (++this.#matched === this.#word.length) {
          this.#add(this.#wordValue);
          this.#endValue();
        }
        return at + 1;
      default:
        if (char !== " " && char !== "\n" && char !== "\r" && char !== "\t") {
          return this.#readStructure(chunk, at, char);
        }
        return at + 1;
    }
  }

  #readStructure(chunk: string, at: number, char: string): number {
    switch (this.#state) {
      case "firstItem":
        if (char === "]") return this.#close(at);
        return this.#beginValue(chunk, at, char);
      case "value":
        return this.#beginValue(chunk, at, char);
      case "firstKey":
        if (char === "}") return this.#close(at);
        return this.#beginKey(chunk, at, char);
      case "key":
        return this.#beginKey(chunk, at, char);
      case "colon":
        if (char !== ":") return this.#unexpected(chunk, at);
        this.#state = "value";
        return at + 1;
      case "next": {
        const inArray = Array.isArray(this.#container);
        if (char === (inArray ? "]" : "}")) return this.#close(at);
        if (char !== ",") return this.#unexpected(chunk, at);
        this.#state = inArray ? "value" : "key";
        return at + 1;
      }
      default:
        return this.#unexpected(chunk, at);
    }
  }

  #beginValue(chunk: string, at: number, char: string): number {
    if (char === '"') return this.#beginString(at, false);
    if (char === "{") return this.#enter({}, "firstKey", at);
    if (char === "[") return this.#enter([], "firstItem", at);
    const part = numberPartAfter(undefined, char);
    if (part !== undefined) {
      this.#state = "number";
      this.#number = char;
      this.#numberPart = part;
      return at + 1;
    }
    const literal = LITERALS.get(char);
    if (literal === undefined) return this.#unexpected(chunk, at);
    this.#state = "literal";
    this.#word = literal.word;
    this.#wordValue = literal.value;
    this.#matched = 1;
    return at + 1;
  }

  #beginKey(chunk: string, at: number, char: string): number {
    return char === '"' ? this.#beginString(at, true) : this.#unexpected(chunk, at);
  }

  #beginString(at: number, isKey: boolean): number {
    this.#state = "string";
    this.#isKey = isKey;
    return at + 1;
  }

  #endString(): void {
    const piece = this.#pending;
    this.#pending = "";
    if (this.#isKey) {
      this.#key = piece;
      this.#state = "colon";
      return;
    }
    if (this.#shown === undefined) {
      this.#add(piece);
    } else {
      this.#shown.append(piece);
      this.#update(this.#shown.end());
      this.#shown = undefined;
    }
    this.#endValue();
  }

  /** Brings the string in progress up to date in its container, once per piece of input. */
  #showString(): void {
    if (this.#isKey) return;
    if (this.#state !== "string" && this.#state !== "escape" && this.#state !== "unicode") return;
    let piece = this.#pending;
    this.#pending = "";
    // Whether half a surrogate pair finds its other half is decided by what comes next.
    if (isHighSurrogate(piece.charCodeAt(piece.length - 1))) {
      this.#pending = piece.slice(-1);
      piece = piece.slice(0, -1);
    }
    if (this.#shown === undefined) {
      this.#shown = new GrowingText();
      this.#add(this.#shown.append(piece));
    } else if (piece !== "") {
      this.#update(this.#shown.append(piece));
    }
  }

  #readEscape(chunk: string, at: number, char: string): number {
    if (char === "u") {
      this.#state = "unicode";
      this.#unicode = 0;
      this.#unicodeDigits = 0;
      return at + 1;
    }
    const meaning = ESCAPES.get(char);
    if (meaning === undefined) return this.#unexpected(chunk, at);
    this.#pending += meaning;
    this.#state = "string";
    return at + 1;
  }

  #readUnicode(chunk: string, at: number, char: string): number {
    const digit = hexDigit(char);
    if (digit === undefined) return this.#unexpected(chunk, at);
    this.#unicode = this.#unicode * 16 + digit;
    if (++this.#unicodeDigits === UNICODE_DIGITS) {
      this.#pending += String.fromCharCode(this.#unicode);
      this.#state = "string";
    }
    return at + 1;
  }

  #readNumber(chunk: string, from: number): number {
    let at = from;
    while (at < chunk.length) {
      const part = numberPartAfter(this.#numberPart, chunk.charAt(at));
      if (part === undefined) break;
      this.#numberPart = part;
      at++;
    }
    this.#number += chunk.slice(from, at);
    if (at === chunk.length) return at;
    if (!this.#numberMayEnd()) return this.#unexpected(chunk, at);
    this.#endNumber();
    return at;
  }

  #numberMayEnd(): boolean {
    const part = this.#numberPart;
    return (
      part === "zero" || part === "integer" || part === "fraction" || part === "exponentDigits"
    );
  }

  #endNumber(): void {
    this.#add(Number(this.#number));
    this.#number = "";
    this.#endValue();
  }

  #enter(container: unknown[] | JsonObject, state: State, at: number): number {
    if (this.#open.length === MAX_JSON_DEPTH) {
      const position = this.#consumed + at;
      const limit = `at most ${MAX_JSON_DEPTH} levels may be open`;
      this.#fail(`Nested too deep at position ${position}: ${limit}`, position);
      return at + 1;
    }
    this.#add(container);
    this.#open.push(container);
    this.#container = container;
    this.#state = state;
    return at + 1;
  }

  #close(at: number): number {
    this.#open.pop();
    this.#container = this.#open.at(-1) ?? this.#root;
    this.#endValue();
    return at + 1;
  }

  #endValue(): void {
    this.#state = this.#open.length === 0 ? "done" : "next";
  }

  /** Gives the container in progress a new value, under the key in progress if it is an object. */
  #add(value: unknown): void {
    const container = this.#container;
    if (Array.isArray(container)) {
      container.push(value);
    } else if (this.#key in container) {
      // Assigning to an inherited name may do something else than make a property:
      // `__proto__` would set the prototype.
      const own = { value, writable: true, enumerable: true, configurable: true };
      Object.defineProperty(container, this.#key, own);
    } else {
      container[this.#key] = value;
    }
  }

  /** Replaces the value that was added last. */
  #update(value: unknown): void {
    const container = this.#container;
    if (Array.isArray(container)) container[container.length - 1] = value;
    else container[this.#key] = value;
  }

  #unexpected(chunk: string, at: number): number {
    this.#failUnexpected(named(chunk.codePointAt(at)), this.#consumed + at);
    return at + 1;
  }

  #failUnexpected(found: string, position: number): void {
    const message = `Unexpected ${found} at position ${position}: expected ${this.#expected()}`;
    this.#fail(message, position);
  }

  #fail(message: string, position: number): void {
    // What is left of a value must not depend on how the input was cut.
    this.#showString();
    this.#state = "failed";
    this.#error = { message, position };
  }

  #expected(): string {
    switch (this.#state) {
      case "value":
        return "a value";
      case "firstItem":
        return 'a value or "]"';
      case "firstKey":
        return 'a key in double quotes or "}"';
      case "key":
        return "a key in double quotes";
      case "colon":
        return '":" after the key';
      case "number":
        if (!this.#numberMayEnd()) return "a digit";
        return this.#expectedNext();
      case "next":
        return this.#expectedNext();
      case "done":
      case "failed":
        return "nothing after the value";
      case "string":
        return "the rest of the string, with control characters escaped";
      case "escape":
        return 'one of "\\/bfnrtu after the backslash';
      case "unicode":
        return "four hexadecimal digits after \\u";
      case "literal":
        return this.#word;
    }
  }

  #expectedNext(): string {
    return Array.isArray(this.#container) ? '"," or "]"' : '"," or "}"';
  }
}

/** The part of a number that `char` is when it follows `part`; none if it cannot follow. */
function numberPartAfter(part: NumberPart | undefined, char: string): NumberPart | undefined {
  const isDigit = char >= "0" && char <= "9";
  switch (part) {
    case undefined:
      if (char === "-") return "minus";
      return isDigit ? integerPart(char) : undefined;
    case "minus":
      return isDigit ? integerPart(char) : undefined;
    case "integer":
      if (isDigit) return "integer";
      return pointOrExponent(char);
    case "zero":
      return pointOrExponent(char);
    case "point":
      return isDigit ? "fraction" : undefined;
    case "fraction":
      if (isDigit) return "fraction";
      return char === "e" || char === "E" ? "exponent" : undefined;
    case "exponent":
      if (char === "+" || char === "-") return "exponentSign";
      return isDigit ? "exponentDigits" : undefined;
    case "exponentSign":
    case "exponentDigits":
      return isDigit ? "exponentDigits" : undefined;
  }
}

function integerPart(digit: string): NumberPart {
  return digit === "0" ? "zero" : "integer";
}

function pointOrExponent(char: string): NumberPart | undefined {
  if (char === ".") return "point";
  return char === "e" || char === "E" ? "exponent" : undefined;
}

function hexDigit(char: string): number | undefined {
  if (char >= "0" && char <= "9") return char.charCodeAt(0) - 0x30;
  const lower = char.toLowerCase();
  return lower >= "a" && lower <= "f" ? lower.charCodeAt(0) - 0x61 + 10 : undefined;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** A character as a message shows it: by its number if it could not be seen. */
function named(code = 0): string {
  const char = String.fromCodePoint(code);
  return /[\p{C}\p{Z}]/u.test(char)
    ? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`
    : JSON.stringify(char);
}
