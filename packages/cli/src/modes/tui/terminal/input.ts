import { StringDecoder } from "node:string_decoder";
import type { Clock } from "@gyre/ai";
import { plainText } from "@gyre/coding/internal/text/plain-text";
import type { DecodedEvent } from "./key.ts";
import { type Decoded, decodeCsi, decodeSs3, createKey, decodeCharacter } from "./key-sequence.ts";

/** An ESC that nothing follows for this time is the key. */
export const ESCAPE_MS = 25;
/** The rest of a sequence may take longer: a slow line may divide it. */
export const SEQUENCE_MS = 250;
/** A paste without new text for this time is over: its end was lost. */
export const PASTE_MS = 1_000;
/** Longer sequences are unknown; they are skipped without buffering. */
const MAX_SEQUENCE_CHARS = 256;
/** Longer answers of the terminal are not taken. */
const MAX_ANSWER_CHARS = 64 * 1024;

export interface InputOptions {
  emit: (event: DecodedEvent) => void;
  clock: Pick<Clock, "after">;
}

const ESC = "\x1b";
const PASTE_END = "\x1b[201~";
const CTRL_C = "\x03";
/** The characters that follow a report of the old mouse protocol. */
const OLD_MOUSE_CHARS = 3;
const TEXT = /[^\p{Cc}]+/uy;
const CSI_BODY = /[0-?]*[ -/]*/y;
/** rxvt ends some keys with a sign that elsewhere only precedes the end. */
const RXVT_BODY = /\d+(?=\$)/y;
const SKIPPED_BODY = /[ -?]*/y;
const SS3_BODY = /[0-9;]*/y;
/** Begin strings for programs, such as answers to questions about colors. */
const STRING_INTRODUCERS = "]PX^_";
const STRING_END = /\p{Cc}/gu;

/** What the decoder skips until its end. */
type Skipped = "nothing" | "string" | "sequence";

/**
 * Decodes the bytes of a terminal, divided anywhere, into events. Unknown sequences and unexpected answers are skipped
 * as a whole, so that no part of them becomes text.
 */
export class InputDecoder {
  readonly #emit: InputOptions["emit"];
  readonly #clock: InputOptions["clock"];
  readonly #utf8 = new StringDecoder("utf8");
  /** An incomplete sequence. */
  #pending = "";
  #skipped: Skipped = "nothing";
  /** The pieces of an open paste, joined at its end: joining each would not be linear. */
  #paste: string[] | undefined;
  #expectedPositions = 0;
  /** How many callers wait for answers. */
  #expectedAnswers = 0;
  /** The pieces of an answer that is a string. */
  #answer: { parts: string[]; chars: number } | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor({ emit, clock }: InputOptions) {
    this.#emit = emit;
    this.#clock = clock;
  }

  /** The next report of the cursor is an answer; without this call it is a key of some terminals. */
  expectPosition(): void {
    this.#expectedPositions += 1;
  }

  /** Answers of the terminal are events until the returned function is called. */
  expectAnswers(): () => void {
    this.#expectedAnswers += 1;
    let isWaiting = true;
    return () => {
      if (isWaiting) this.#expectedAnswers -= 1;
      isWaiting = false;
    };
  }

  feed(bytes: Buffer | string): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const text = this.#utf8.write(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
    // Ctrl-C alone is not a part of a paste: a paste whose end was lost must not block the program.
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

  /** The input is over: incomplete sequences are handled as they are. */
  end(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#read(this.#utf8.end());
    this.#breakPaste();
    this.#settle();
  }

  /** Ends a paste without its end sequence. */
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

  /** Handles the text at an offset. Returns the offset behind it; the same one where it is incomplete. */
  #step(text: string, at: number): number {
    if (this.#paste) return this.#readPaste(text, at, this.#paste);
    if (this.#skipped === "string") return this.#skipString(text, at);
    if (this.#skipped === "sequence") return this.#skipSequence(text, at);
    if (text[at] === ESC) return this.#readEscape(text, at);
    const run = matchAt(TEXT, text, at);
    if (run !== "") {
      this.#emitText("text", run);
      return at + run.length;
    }
    const control = text[at] ?? "";
    // No key sends the second half of the controls.
    if (control <= "\x7f") this.#emit(decodeCharacter(control));
    return at + 1;
  }

  #readEscape(text: string, at: number): number {
    const next = text[at + 1];
    if (next === undefined) return at;
    if (next === ESC) {
      const after = text[at + 2];
      if (after === undefined) return at;
      // Some terminals send an ESC before the sequence of a key with Alt.
      if (after === "[" || after === "O") return this.#readSequence(text, at + 1, at, true);
      this.#emit(createKey("escape"));
      return at + 1;
    }
    if (next === "[" || next === "O") return this.#readSequence(text, at, at, false);
    if (STRING_INTRODUCERS.includes(next)) {
      if (at + 2 >= text.length) return at;
      this.#skipped = "string";
      this.#answer =
        next === "]" && this.#expectedAnswers > 0 ? { parts: [], chars: 0 } : undefined;
      return at + 2;
    }
    const character = String.fromCodePoint(text.codePointAt(at + 1) ?? 0);
    this.#emit(decodeCharacter(character, true));
    return at + 1 + character.length;
  }

  /** `escape` is the offset of the sequence; `from` is returned where it is incomplete. */
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
    if (isCsi && body === "" && (final === "I" || final === "O")) {
      this.#emit({ type: "focus", isFocused: final === "I" });
      return;
    }
    const [, row, column] = /^(\d+);(\d+)$/.exec(body) ?? [];
    if (isCsi && final === "R" && row !== undefined && this.#expectedPositions > 0) {
      this.#expectedPositions -= 1;
      this.#emit({ type: "position", row: fromZero(row), column: fromZero(column) });
      return;
    }
    if (isCsi && body.startsWith("?") && this.#expectedAnswers > 0) {
      this.#emit({ type: "answer", text: `[${body}${final}` });
      return;
    }
    const decoded: Decoded = isCsi ? decodeCsi(body, final) : decodeSs3(body, final);
    if (decoded?.type === "key") this.#emit(alt ? { ...decoded, alt } : decoded);
    else if (decoded) this.#emitText("text", decoded.text);
  }

  #emitText(type: "text" | "paste", raw: string): void {
    const text = plainText(raw);
    if (text !== "") this.#emit({ type, text });
  }

  #skipString(text: string, at: number): number {
    STRING_END.lastIndex = at;
    const end = STRING_END.exec(text)?.index;
    this.#collect(text.slice(at, end));
    if (end === undefined) return text.length;
    if (text[end] === ESC && end + 1 === text.length) return end;
    this.#skipped = "nothing";
    const last = text[end];
    const isWhole = last === ESC ? text[end + 1] === "\\" : last === "\x07" || last === "\x9c";
    this.#endAnswer(isWhole);
    // Any other control ends it too: it may not have been a string at all.
    if (!isWhole) return end;
    return last === ESC ? end + 2 : end + 1;
  }

  #collect(piece: string): void {
    if (!this.#answer) return;
    this.#answer.parts.push(piece);
    this.#answer.chars += piece.length;
    if (this.#answer.chars > MAX_ANSWER_CHARS) this.#answer = undefined;
  }

  #endAnswer(isWhole: boolean): void {
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer && isWhole) this.#emit({ type: "answer", text: `]${answer.parts.join("")}` });
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
    // The end may be divided: its possible beginning waits for the rest.
    const last = text.lastIndexOf(ESC);
    const isCut = last >= at && PASTE_END.startsWith(text.slice(last));
    const next = isCut ? last : text.length;
    if (next > at) pieces.push(text.slice(at, next));
    return next;
  }

  #endPaste(): void {
    const text = this.#paste?.join("") ?? "";
    this.#paste = undefined;
    this.#emitText("paste", text);
  }

  /** The time for an incomplete sequence is over. */
  #settle(): void {
    const pending = this.#pending;
    this.#pending = "";
    this.#skipped = "nothing";
    this.#answer = undefined;
    const escapes = pending.lastIndexOf(ESC) + 1;
    const rest = pending.slice(escapes);
    // An introducer alone is its character with Alt; longer beginnings are dropped.
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

/** The match of a sticky pattern at an offset; empty where there is none. */
function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}
