/** Something that a terminal obeys. */
export interface Sequence {
  kind: "control" | "escape" | "command";
  /** The control character, or what the sequence ends with. */
  final: string;
  /** Of a command: "?" and the like. */
  prefix: string;
  /** What stands before its end: "(" of a character set, "!" of a command. */
  between: string;
  numbers: readonly number[];
}

/** A command of more characters is left out: none that is known is as long. */
const MAX_COMMAND_CHARS = 256;
const MAX_NUMBER = 0x7fff_ffff;
/** In place of an escape character and one more, as one character. */
const SHORT: Readonly<Record<string, State>> = {
  "\x9b": "command",
  "\x90": "string",
  "\x98": "string",
  "\x9d": "title",
  "\x9e": "string",
  "\x9f": "string",
};
const STARTED_BY: Readonly<Record<string, State>> = {
  "[": "command",
  P: "string",
  X: "string",
  "]": "title",
  "^": "string",
  _: "string",
};
/** Text up to the next control character. */
// eslint-disable-next-line no-control-regex -- these are what a terminal obeys
const TEXT = /[^\x00-\x1f\x7f-\x9f]+/y;
const COMMAND = /^([<-?]?)([\d;:]*)([ -/]*)([@-~])$/;

type State = "text" | "escape" | "command" | "string" | "title";

/** Takes what a program writes apart into text and what a terminal obeys; pieces may end anywhere. */
export class SequenceReader {
  readonly #print: (text: string) => void;
  readonly #obey: (sequence: Sequence) => void;
  #state: State = "text";
  /** What has come of an escape sequence or a command. */
  #held = "";

  constructor(print: (text: string) => void, obey: (sequence: Sequence) => void) {
    this.#print = print;
    this.#obey = obey;
  }

  write(piece: string): void {
    for (let at = 0; at < piece.length;) {
      if (this.#state === "text") {
        TEXT.lastIndex = at;
        const text = TEXT.exec(piece)?.[0] ?? "";
        if (text !== "") this.#print(text);
        at += text.length;
        if (at >= piece.length) return;
      }
      this.#next(piece.charAt(at));
      at++;
    }
  }

  #next(char: string): void {
    const state = this.#state;
    const isString = state === "string" || state === "title";
    if (char === "\x1b") this.#enter("escape");
    else if (char === "\x18" || char === "\x1a") this.#enter("text");
    else if (char >= "\x80" && char <= "\x9f") this.#short(char);
    else if (isString) {
      if (state === "title" && char === "\x07") this.#enter("text");
    } else if (char < " ") this.#report("control", char);
    else if (char === "\x7f") return;
    else if (state === "escape") this.#escape(char);
    else if (state === "command") this.#command(char);
  }

  #enter(state: State): void {
    this.#state = state;
    this.#held = "";
  }

  #short(char: string): void {
    this.#enter(SHORT[char] ?? "text");
    // Index, next line and tab stop are the same as with an escape character.
    const same = { "\x84": "D", "\x85": "E", "\x88": "H" }[char];
    if (same !== undefined) this.#report("escape", same);
  }

  #escape(char: string): void {
    if (char >= " " && char <= "/") {
      if (this.#held.length < MAX_COMMAND_CHARS) this.#held += char;
      return;
    }
    const between = this.#held;
    const started = between === "" ? STARTED_BY[char] : undefined;
    this.#enter(started ?? "text");
    if (started === undefined) this.#report("escape", char, { between });
  }

  #command(char: string): void {
    if (char > "~") {
      this.#enter("text");
      return;
    }
    if (this.#held.length <= MAX_COMMAND_CHARS) this.#held += char;
    if (char < "@") return;
    const whole = COMMAND.exec(this.#held);
    this.#enter("text");
    if (!whole) return;
    const [, prefix = "", numbers = "", between = "", final = ""] = whole;
    this.#report("command", final, { prefix, between, numbers: readNumbers(numbers) });
  }

  #report(kind: Sequence["kind"], final: string, more: Partial<Sequence> = {}): void {
    this.#obey({ kind, final, prefix: "", between: "", numbers: [], ...more });
  }
}

/** What stands behind a colon says more of the number before it, and is left out. */
function readNumbers(text: string): number[] {
  return text.split(";").map((part) => Math.min(MAX_NUMBER, Number.parseInt(part, 10) || 0));
}
