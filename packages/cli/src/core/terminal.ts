import type { Environment } from "@gyre/coding/internal/core/environment";
import { measureWidth, splitClusters, takeClusters } from "../text/width.ts";

/** Text is wrapped at the terminal's width, but never for a narrower or wider one than these. */
export const MIN_COLUMNS = 40;
export const MAX_COLUMNS = 120;
const DEFAULT_COLUMNS = 80;

/** A place to write to. `process.stdout` is one; so is an object in a test. */
export interface Output {
  write(text: string): unknown;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  readonly isTTY?: boolean | undefined;
}

export type StyleName = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Puts a style on a text; the text itself where there are no colors. */
export type Style = Readonly<Record<StyleName, (text: string) => string>>;

/** What the terminal can do, decided once. */
export interface Terminal {
  readonly columns: number;
  readonly hasColors: boolean;
  readonly style: Style;
  /** The line that the cursor is in may be written again. */
  readonly live: boolean;
  write(text: string): void;
}

/** Looks at an output and its environment. A width is read now: a later resize is not followed. */
export function openTerminal(output: Output, env: Environment): Terminal {
  const isTerminal = output.isTTY === true && env["TERM"] !== "dumb";
  const hasColors = wantsColor(isTerminal, env);
  return {
    columns: Math.min(MAX_COLUMNS, Math.max(MIN_COLUMNS, output.columns || DEFAULT_COLUMNS)),
    hasColors,
    style: styleFor(hasColors),
    live: isTerminal,
    write: (text) => void output.write(text),
  };
}

/** FORCE_COLOR takes precedence over NO_COLOR, as in Node itself; with neither, a terminal has colors. */
function wantsColor(isTerminal: boolean, env: Environment): boolean {
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return isTerminal && !env["NO_COLOR"];
}

function styleFor(color: boolean): Style {
  const paint =
    (on: number, off: number) =>
    (text: string): string =>
      color && text !== "" ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return {
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    cyan: paint(36, 39),
  };
}

/** The text if it fits into `columns`, else as much of it as does, with an ellipsis. */
export function fit(text: string, columns: number): string {
  if (measureWidth(text) <= columns) return text;
  return `${head(text, columns - 1)}…`;
}

function head(text: string, columns: number): string {
  return takeClusters(splitClusters(text), columns).join("");
}

/**
 * Wraps a text between words as it arrives. A word is held back until its end is known,
 * so `end` must be called to get the last one. Each line begins with `indent`.
 */
export class Wrapper {
  readonly #columns: number;
  readonly #indent: string;
  #word = "";
  #used = 0;
  #gap = "";

  constructor(columns: number, indent: string) {
    this.#columns = Math.max(1, columns - measureWidth(indent));
    this.#indent = indent;
  }

  /** What can be written by now. */
  feed(text: string): string {
    let out = "";
    for (const character of text) {
      if (character !== " " && character !== "\n") {
        this.#word += character;
        continue;
      }
      out += this.#placeWord();
      if (character === " ") this.#gap += " ";
      else {
        out += "\n";
        this.#used = 0;
        this.#gap = "";
      }
    }
    return out;
  }

  /** The rest of the text; the wrapper is then as new. */
  end(): string {
    const out = this.#placeWord();
    this.#used = 0;
    this.#gap = "";
    return out;
  }

  #placeWord(): string {
    let out = "";
    while (this.#word !== "") {
      const gap = this.#used > 0 ? this.#gap : "";
      this.#gap = "";
      const width = measureWidth(this.#word);
      if (this.#used > 0 && this.#used + gap.length + width > this.#columns) {
        out += "\n";
        this.#used = 0;
        continue;
      }
      // A word that no line can hold is broken; a character wider than the line goes alone.
      const piece =
        width <= this.#columns
          ? this.#word
          : head(this.#word, this.#columns) || String.fromCodePoint(this.#word.codePointAt(0) ?? 0);
      out += (this.#used === 0 ? this.#indent : gap) + piece;
      this.#used += gap.length + measureWidth(piece);
      this.#word = this.#word.slice(piece.length);
    }
    return out;
  }
}

/** A whole text, wrapped; its last line has no end. */
export function wrap(text: string, columns: number, indent: string): string {
  const wrapper = new Wrapper(columns, indent);
  return wrapper.feed(text) + wrapper.end();
}
