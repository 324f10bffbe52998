import { type Enclosure, type Language, findLanguage } from "./highlight-languages.ts";
import type { Span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

/** A longer line stays plain: some patterns take quadratic time. */
export const MAX_LINE_CHARS = 2_000;

/** The comment or string that a line begins in. */
export type HighlightState = Enclosure | undefined;

export interface HighlightedLine {
  spans: Span[];
  /** For the next line. */
  state: HighlightState;
}

/** Highlights a line, beginning with the state at the end of the line before. */
export type LineHighlighter = (line: string, state: HighlightState) => HighlightedLine;

/**
 * Highlights the lines of a program one after the other: a comment or string that is open at the end of a line
 * continues in the next. An unknown language stays plain.
 */
export function createHighlighter(
  language: string | undefined,
  theme: Theme,
): (line: string) => Span[] {
  const highlight = createLineHighlighter(language, theme);
  let state: HighlightState;
  return (line) => {
    const { spans, state: next } = highlight(line, state);
    state = next;
    return spans;
  };
}

/** For callers that keep the state, because they highlight an incomplete line again. */
export function createLineHighlighter(language: string | undefined, theme: Theme): LineHighlighter {
  const known = language === undefined ? undefined : findLanguage(language);
  if (!known || theme.keyword === "") return showPlain;
  const pattern = compilePattern(known);
  return (line, state) =>
    line.length > MAX_LINE_CHARS
      ? showPlain(line, state)
      : new LineScan(known, pattern, theme, line).run(state);
}

function showPlain(text: string, state?: HighlightState): HighlightedLine {
  return { spans: text === "" ? [] : [{ text, style: "" }], state };
}

const WORD = "[A-Za-z_\\u00c0-\\u024f][\\w\\u00c0-\\u024f]*";
const NUMBER = "(?<![\\w.])(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\w*";

const NOTHING = "(?!)";

const compiled = new Map<Language, RegExp>();

/** One group for each pattern of a language, in the order of `LineScan.#take`. */
function compilePattern(language: Language): RegExp {
  let pattern = compiled.get(language);
  if (!pattern) {
    const sources = [
      ...language.patterns.map(([source]) => source),
      ...language.enclosures.map(({ open }) => open),
      ...language.lineComments,
      language.numbers ? NUMBER : NOTHING,
      WORD,
    ];
    pattern = new RegExp(sources.map((source) => `(${source})`).join("|"), "g");
    compiled.set(language, pattern);
  }
  return pattern;
}

/** One line, read once from left to right. */
class LineScan {
  readonly #language: Language;
  readonly #pattern: RegExp;
  readonly #theme: Theme;
  readonly #line: string;
  readonly #spans: Span[] = [];
  #at = 0;

  constructor(language: Language, pattern: RegExp, theme: Theme, line: string) {
    this.#language = language;
    this.#pattern = pattern;
    this.#theme = theme;
    this.#line = line;
  }

  run(state: HighlightState): HighlightedLine {
    let open = state && this.#within(state, 0);
    while (!open) {
      this.#pattern.lastIndex = this.#at;
      const found = this.#pattern.exec(this.#line);
      if (!found || found[0] === "") break;
      this.#push(found.index, "");
      open = this.#take(found);
    }
    this.#push(this.#line.length, "");
    return { spans: this.#spans, state: open?.multiline ? open : undefined };
  }

  /** Handles a match. Returns what is still open at the end of the line. */
  #take(found: RegExpExecArray): HighlightState {
    const { patterns, enclosures, lineComments } = this.#language;
    const [text] = found;
    const end = found.index + text.length;
    let index = found.findIndex((group, at) => at > 0 && group !== undefined) - 1;
    const pattern = patterns[index];
    if (pattern) return this.#push(end, this.#theme[pattern[1]]);
    index -= patterns.length;
    const enclosure = enclosures[index];
    if (enclosure) return this.#within(enclosure, end - this.#at);
    index -= enclosures.length;
    if (index < lineComments.length) return this.#push(this.#line.length, this.#theme.comment);
    if (index === lineComments.length) return this.#push(end, this.#theme.number);
    return this.#push(end, this.#wordStyle(text, end));
  }

  #wordStyle(word: string, end: number): string {
    const { calls, capitalTypes, caseless, keywords, types } = this.#language;
    const key = caseless ? word.toLowerCase() : word;
    if (keywords.has(key)) return this.#theme.keyword;
    if (types.has(key)) return this.#theme.type;
    if (calls && this.#line[end] === "(") return this.#theme.call;
    return capitalTypes && /^[A-Z][A-Za-z\d]*[a-z]/.test(word) ? this.#theme.type : "";
  }

  /** Reads up to the end of an enclosure. The first `skip` characters opened it. */
  #within(enclosure: Enclosure, skip: number): HighlightState {
    const { close, escape, role } = enclosure;
    const line = this.#line;
    for (let at = this.#at + skip; at < line.length; at++) {
      if (escape && line[at] === "\\") at++;
      else if (line.startsWith(close, at)) {
        return this.#push(at + close.length, this.#theme[role]);
      }
    }
    this.#push(line.length, this.#theme[role]);
    return enclosure;
  }

  #push(end: number, style: string): undefined {
    if (end > this.#at) this.#spans.push({ text: this.#line.slice(this.#at, end), style });
    this.#at = end;
  }
}
