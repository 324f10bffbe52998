import { StringDecoder } from "node:string_decoder";
import type { Clock } from "@gyre/ai";
import { plainText } from "../../../text/plain-text.ts";
import type { TerminalEvent } from "./key.ts";
import { type Decoded, decodeCsi, decodeSs3, createKey, decodeCharacter } from "./key-sequence.ts";

/** An ESC that nothing follows for so long is the key. */
export const ESCAPE_MS = 25;
/** A sequence that has begun is waited for longer: a slow line may cut it in two. */
export const SEQUENCE_MS = 250;
/** A paste that nothing was added to for so long is over: its end was lost. */
export const PASTE_MS = 1_000;
/** A longer sequence is none that we know; it is passed over without being kept. */
export const MAX_SEQUENCE_CHARS = 256;

export interface InputOptions {
  emit: (event: TerminalEvent) => void;
  clock: Pick<Clock, "after">;
}

const ESC = "\x1b";
const PASTE_END = "\x1b[201~";
const CTRL_C = "\x03";
/** The three places that follow a report of the old mouse protocol. */
const OLD_MOUSE_CHARS = 3;
const TEXT = /[^\p{Cc}]+/uy;
const CSI_BODY = /[0-?]*[ -/]*/y;
/** rxvt ends some keys with a sign that elsewhere only stands before the end. */
const RXVT_BODY = /\d+(?=\$)/y;
const SKIPPED_BODY = /[ -?]*/y;
const SS3_BODY = /[0-9;]*/y;
/** The beginnings of strings for programs: answers to questions about colours and the like. */
const STRING_INTRODUCERS = "]PX^_";
const STRING_END = /\p{Cc}/gu;

/** What is passed over until it ends. */
type Skipped = "nothing" | "string" | "sequence";

/**
 * Makes events of what a terminal sends, cut anywhere. What is no key, no character and no
 * answer that we wait for is passed over whole, so that nothing of it is taken for text.
 */
export class InputDecoder {
  readonly #emit: InputOptions["emit"];
  readonly #clock: InputOptions["clock"];
  readonly #utf8 = new StringDecoder("utf8");
  /** What has begun and is not complete. */
  #pending = "";
  #skipped: Skipped = "nothing";
  /** The pieces of a paste that has begun. They are joined at its end: a long one stays linear. */
  #paste: string[] | undefined;
  #expectedPositions = 0;
  #cancelTimer: (() => void) | undefined;

  constructor({ emit, clock }: InputOptions) {
    this.#emit = emit;
    this.#clock = clock;
  }

  /** One report of the cursor will be an answer; otherwise it is a key in some terminals. */
  expectPosition(): void {
    this.#expectedPositions += 1;
  }

  feed(bytes: Buffer | string): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const text = this.#utf8.write(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
    // Nobody pastes that alone: a paste whose end was lost must not hold the program.
    if (this.#paste && text === CTRL_C) this.#breakPaste();
    this.#read(text);
    if (this.#paste) {
      this.#cancelTimer = this.#clock.after(PASTE_MS, () => this.#breakPaste());
      return;
    }
    if (this.#pending === "" && this.#skipped === "nothing") return;
    const isEscape = this.#pending !== "" && this.#pending.replaceAll(ESC, "") === "";
    this.#cancelTimer = this.#clock.after(isEscape ? ESCAPE_MS : SEQUENCE_MS, () => this.#settle());
  }

  /** Nothing more will come: what has begun is taken as it is. */
  end(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#read(this.#utf8.end());
    this.#breakPaste();
    this.#settle();
  }

  /** Takes what is there of a paste as all of it. */
  #breakPaste(): void {
    if (!this.#paste) return;
    this.#paste.push(this.#pending);
    this.#pending = "";
    this.#endPaste();
  }

  #read(piece: string): void {
    const text = this.#pending + piece;
    this.#pending = "";
    let at = 0;
    while (at < text.length) {
      const next = this.#step(text, at);
      if (next === at) break;
      at = next;
    }
    this.#pending = text.slice(at);
  }

  /** Takes what is at a place and gives the place behind it; the same one where it is not complete. */
  #step(text: string, at: number): number {
    if (this.#paste) return this.#readPaste(text, at, this.#paste);
    if (this.#skipped === "string") return this.#skipString(text, at);
    if (this.#skipped === "sequence") return this.#skipSequence(text, at);
    if (text[at] === ESC) return this.#readEscape(text, at);
    const run = matchAt(TEXT, text, at);
    if (run !== "") {
      const shown = plainText(run);
      if (shown !== "") this.#emit({ type: "text", text: shown });
      return at + run.length;
    }
    const control = text[at] ?? "";
    // The second half of the controls is nobody's key.
    if (control <= "\x7f") this.#emit(decodeCharacter(control));
    return at + 1;
  }

  #readEscape(text: string, at: number): number {
    const next = text[at + 1];
    if (next === undefined) return at;
    if (next === ESC) {
      const after = text[at + 2];
      if (after === undefined) return at;
      // Some terminals put an ESC before the sequence of a key that is pressed with Alt.
      if (after === "[" || after === "O") return this.#readSequence(text, at + 1, at, true);
      this.#emit(createKey("escape"));
      return at + 1;
    }
    if (next === "[" || next === "O") return this.#readSequence(text, at, at, false);
    if (STRING_INTRODUCERS.includes(next)) {
      if (at + 2 >= text.length) return at;
      this.#skipped = "string";
      return at + 2;
    }
    const character = String.fromCodePoint(text.codePointAt(at + 1) ?? 0);
    this.#emit(decodeCharacter(character, true));
    return at + 1 + character.length;
  }

  /** `escape` is where ESC, `[` or `O`, and the rest begin; `from` is what to come back to. */
  #readSequence(text: string, escape: number, from: number, alt: boolean): number {
    const isCsi = text[escape + 1] === "[";
    const start = escape + 2;
    const short = isCsi ? matchAt(RXVT_BODY, text, start) : "";
    const body = short || matchAt(isCsi ? CSI_BODY : SS3_BODY, text, start);
    const end = start + body.length;
    if (body.length > MAX_SEQUENCE_CHARS) {
      this.#skipped = "sequence";
      return end;
    }
    const final = text[end];
    if (final === undefined) return from;
    if (isCsi && body === "" && (final === "[" || final === "M")) {
      // A function key of the Linux console, or a mouse.
      const length = final === "[" ? 1 : OLD_MOUSE_CHARS;
      return end + length < text.length ? end + 1 + length : from;
    }
    if (short === "" && !isFinal(final)) return end;
    this.#emitSequence(isCsi, body, final, alt);
    return end + 1;
  }

  #emitSequence(isCsi: boolean, body: string, final: string, alt: boolean): void {
    if (isCsi && final === "~" && body === "200") {
      this.#paste = [];
      return;
    }
    const [, row, column] = /^(\d+);(\d+)$/.exec(body) ?? [];
    if (isCsi && final === "R" && row !== undefined && this.#expectedPositions > 0) {
      this.#expectedPositions -= 1;
      this.#emit({ type: "position", row: fromZero(row), column: fromZero(column) });
      return;
    }
    const decoded: Decoded = isCsi ? decodeCsi(body, final) : decodeSs3(body, final);
    if (decoded?.type === "key") this.#emit(alt ? { ...decoded, alt } : decoded);
    else if (decoded) {
      const shown = plainText(decoded.text);
      if (shown !== "") this.#emit({ type: "text", text: shown });
    }
  }

  #skipString(text: string, at: number): number {
    STRING_END.lastIndex = at;
    const end = STRING_END.exec(text)?.index;
    if (end === undefined) return text.length;
    if (text[end] === ESC && end + 1 === text.length) return end;
    this.#skipped = "nothing";
    if (text[end] === ESC) return text[end + 1] === "\\" ? end + 2 : end;
    // Any other key than the bell ends it too: it may have been no string at all.
    return text[end] === "\x07" || text[end] === "\x9c" ? end + 1 : end;
  }

  #skipSequence(text: string, at: number): number {
    const body = matchAt(SKIPPED_BODY, text, at);
    const final = text[at + body.length];
    if (final === undefined) return text.length;
    this.#skipped = "nothing";
    return at + body.length + (isFinal(final) ? 1 : 0);
  }

  #readPaste(text: string, at: number, pieces: string[]): number {
    const end = text.indexOf(PASTE_END, at);
    if (end >= 0) {
      pieces.push(text.slice(at, end));
      this.#endPaste();
      return end + PASTE_END.length;
    }
    // The end may have been cut in two: what could be its beginning waits.
    const last = text.lastIndexOf(ESC);
    const isCut = last >= at && PASTE_END.startsWith(text.slice(last));
    const next = isCut ? last : text.length;
    if (next > at) pieces.push(text.slice(at, next));
    return next;
  }

  #endPaste(): void {
    const text = plainText(this.#paste?.join("") ?? "");
    this.#paste = undefined;
    if (text !== "") this.#emit({ type: "paste", text });
  }

  /** Nothing followed in time. */
  #settle(): void {
    const pending = this.#pending;
    this.#pending = "";
    this.#skipped = "nothing";
    const escapes = pending.lastIndexOf(ESC) + 1;
    const rest = pending.slice(escapes);
    // The beginning of a sequence alone is its character with Alt; more of it is of no use.
    const alone = rest === "" ? escapes : escapes - 1;
    for (let index = 0; index < alone; index += 1) this.#emit(createKey("escape"));
    if (rest.length === 1) this.#emit(decodeCharacter(rest, true));
  }
}

function isFinal(character: string): boolean {
  return character >= "@" && character <= "~";
}

function fromZero(number = "1"): number {
  return Math.max(0, Number(number) - 1);
}

/** What matches a sticky pattern at a place; empty where nothing does. */
function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}
