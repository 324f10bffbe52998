/** A pattern that cannot be used, in words for the one who wrote it. */
export class PatternError extends Error {
  readonly code = "bad_pattern";
  constructor(pattern: string, problem: string) {
    super(
      `The pattern ${JSON.stringify(pattern)} is no regular expression that works here: ${problem} ` +
        "Escape what is meant as it is with \\, or set literal to true.",
    );
    this.name = "PatternError";
  }
}

export interface PatternOptions {
  ignoreCase?: boolean;
  /** The pattern is text to look for, not a regular expression. */
  literal?: boolean;
}

// What ripgrep means by \d, \s and \w: of all scripts, not of ASCII alone.
const DIGIT = String.raw`\p{Nd}`;
const SPACE = String.raw`\p{White_Space}`;
const WORD = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}`;
const WORD_START = `(?<![${WORD}])(?=[${WORD}])`;
const WORD_END = `(?<=[${WORD}])(?![${WORD}])`;

/** Escapes that stand for something by themselves, outside of brackets. */
const ANCHORS: Readonly<Record<string, string>> = {
  b: `(?:${WORD_START}|${WORD_END})`,
  B: `(?!${WORD_START}|${WORD_END})`,
  "<": WORD_START,
  ">": WORD_END,
  A: String.raw`(?<![\s\S])`,
  z: String.raw`(?![\s\S])`,
  Z: String.raw`(?![\s\S])`,
};

/** Escapes for sets of characters, in brackets and outside, as what stands in brackets. */
const SETS: Readonly<Record<string, string>> = {
  d: DIGIT,
  D: `[^${DIGIT}]`,
  s: SPACE,
  S: `[^${SPACE}]`,
  w: WORD,
  W: `[^${WORD}]`,
};

/** Escapes for one character. */
const CONTROLS: Readonly<Record<string, number>> = {
  t: 0x09,
  r: 0x0d,
  f: 0x0c,
  v: 0x0b,
  a: 0x07,
  e: 0x1b,
};

const POSIX_SETS: Readonly<Record<string, string>> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: String.raw`\u{0}-\u{7f}`,
  blank: String.raw`\t `,
  cntrl: String.raw`\u{0}-\u{1f}\u{7f}`,
  digit: "0-9",
  graph: String.raw`\u{21}-\u{7e}`,
  lower: "a-z",
  print: String.raw`\u{20}-\u{7e}`,
  punct: String.raw`\u{21}-\u{2f}\u{3a}-\u{40}\u{5b}-\u{60}\u{7b}-\u{7e}`,
  space: String.raw`\t\n\v\f\r `,
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};

/** Throws on a pattern that speaks of line ends: lines are searched one at a time. */
export function checkPattern(pattern: string, literal: boolean): void {
  const speaksOfLines = literal
    ? /[\n\r]/.test(pattern)
    : /[\n\r]|^(?:[^\\]|\\[^])*?\\[nr]/.test(pattern);
  if (speaksOfLines) {
    throw new PatternError(
      pattern,
      "it has a line end in it, and lines are searched one at a time.",
    );
  }
}

/**
 * A pattern as ripgrep reads it, as a regular expression of JavaScript for one line
 * without its end. Where the two languages mean different things by the same signs,
 * ripgrep's meaning is kept; what JavaScript cannot express is a `PatternError`.
 */
export function toRegExp(pattern: string, options: PatternOptions = {}): RegExp {
  const { literal = false, ignoreCase = false } = options;
  checkPattern(pattern, literal);
  const source = literal ? [...pattern].map(exactly).join("") : "";
  const translated = literal ? { source, ignoreCase } : new Translation(pattern).result(ignoreCase);
  try {
    return new RegExp(translated.source, translated.ignoreCase ? "vi" : "v");
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*\/[a-z]*: /s, "") : "";
    throw new PatternError(pattern, `${reason}.`);
  }
}

/** One character that means itself, in brackets and outside. */
function exactly(char: string): string {
  return /^[0-9A-Za-z]$/.test(char) ? char : codePoint(char.codePointAt(0) ?? 0);
}

function codePoint(code: number): string {
  return `\\u{${code.toString(16)}}`;
}

/** Reads a pattern once from left to right. */
class Translation {
  readonly #pattern: string;
  readonly #chars: readonly string[];
  #at = 0;
  #anyChar = String.raw`[^\n\r]`;
  #ignoreCase = false;

  constructor(pattern: string) {
    this.#pattern = pattern;
    this.#chars = [...pattern];
  }

  result(ignoreCase: boolean): { source: string; ignoreCase: boolean } {
    this.#readFlags();
    let source = "";
    while (this.#at < this.#chars.length) source += this.#next();
    return { source, ignoreCase: ignoreCase || this.#ignoreCase };
  }

  /** Takes what matches here, if it does. */
  #take(expected: RegExp): RegExpExecArray | undefined {
    const rest = this.#chars.slice(this.#at).join("");
    const match = expected.exec(rest);
    if (!match) return undefined;
    this.#at += [...match[0]].length;
    return match;
  }

  #fail(problem: string): never {
    throw new PatternError(this.#pattern, problem);
  }

  /** `(?i)` and the like at the start hold for all of the pattern. */
  #readFlags(): void {
    const flags = this.#take(/^\(\?([a-zA-Z]+)\)/)?.[1] ?? "";
    for (const flag of flags) {
      if (flag === "i") this.#ignoreCase = true;
      else if (flag === "s") this.#anyChar = String.raw`[\s\S]`;
      else if (flag !== "m" && flag !== "u") this.#fail(`the flag ${flag} is not known here.`);
    }
  }

  #next(): string {
    const char = this.#chars[this.#at] ?? "";
    this.#at += 1;
    switch (char) {
      case "\\":
        return this.#escape();
      case "[":
        return this.#brackets();
      case ".":
        return this.#anyChar;
      // A carriage return inside of a line counts as its end, as it does for ripgrep.
      case "^":
        return String.raw`(?<![^\n\r])`;
      case "$":
        return String.raw`(?![^\n\r])`;
      case "(":
        return this.#group();
      case "{":
        return this.#repetition();
      case ")":
      case "|":
      case "*":
      case "+":
      case "?":
        return char;
      default:
        return exactly(char);
    }
  }

  #group(): string {
    if (this.#chars[this.#at] !== "?") return "(";
    const kind = this.#take(/^\?(?::|=|!|<=|<!|P?<[A-Za-z_]\w*>)/)?.[0];
    if (kind === undefined) this.#fail("a group that starts with (? is not known here.");
    return `(${kind.replace("?P<", "?<")}`;
  }

  #repetition(): string {
    const counts = this.#take(/^(\d*)(,?)(\d*)\}/);
    const [, from = "", comma = "", to = ""] = counts ?? [];
    if (counts && from + to !== "") return `{${from || "0"}${comma}${to}}`;
    // Counts nothing, so it is a brace.
    if (counts) this.#at -= [...counts[0]].length;
    return exactly("{");
  }

  #escape(): string {
    const char = this.#chars[this.#at];
    if (char === undefined) this.#fail("it ends with a \\.");
    const anchor = ANCHORS[char];
    const isNumber = /[1-9]/.test(char);
    if (anchor !== undefined || isNumber || char === "k") this.#at += 1;
    if (anchor !== undefined) return anchor;
    if (isNumber) return `\\${char}${this.#take(/^\d+/)?.[0] ?? ""}(?:)`;
    if (char === "k") return `\\k${this.#take(/^<\w+>/)?.[0] ?? this.#fail("\\k has no name.")}`;
    const { set, code } = this.#charEscape();
    return set === undefined ? codePoint(code) : `[${set}]`;
  }

  /** An escape that means one character, or a set of them. Stands behind the backslash. */
  #charEscape(): { set?: string; code: number } {
    const char = this.#chars[this.#at] ?? this.#fail("it ends with a \\.");
    const property = this.#take(/^([pP])(?:\{(\^?)([\w= ]+)\}|([A-Z]))/);
    if (property) return { set: this.#property(property), code: 0 };
    const hex = this.#take(/^(?:[xuU]\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))/);
    if (hex) return { code: Number.parseInt(hex[1] ?? hex[2] ?? hex[3] ?? "", 16) };
    this.#at += 1;
    const set = SETS[char];
    if (set !== undefined) return { set, code: 0 };
    const control = CONTROLS[char];
    if (control !== undefined) return { code: control };
    if (/^[0-9A-Za-z]$/.test(char)) this.#fail(`the escape \\${char} is not known here.`);
    return { code: char.codePointAt(0) ?? 0 };
  }

  #property([, letter, not, long, short]: RegExpExecArray): string {
    const name = long ?? short ?? "";
    const escape = (letter === "P") === (not === "^") ? "p" : "P";
    for (const full of [name, `Script=${name}`]) {
      const source = `\\${escape}{${full}}`;
      if (isValid(`[${source}]`)) return source;
    }
    return this.#fail(`the property ${name} is not known here.`);
  }

  #brackets(): string {
    const negated = this.#take(/^\^/) !== undefined;
    let inside = "";
    for (let isFirst = true; ; isFirst = false) {
      const char = this.#chars[this.#at];
      if (char === undefined) this.#fail("a [ has no ].");
      if (char === "]" && !isFirst) break;
      if (this.#take(/^(?:&&|--|~~)/))
        this.#fail("what && -- ~~ do in brackets is not known here.");
      inside += this.#member();
    }
    this.#at += 1;
    return `[${negated ? "^" : ""}${inside}]`;
  }

  /** One character, range or set in brackets. */
  #member(): string {
    const posix = this.#take(/^\[:(\^?)([a-z]+):\]/);
    if (posix) {
      const set = POSIX_SETS[posix[2] ?? ""];
      if (set === undefined) this.#fail(`${posix[0]} is not known.`);
      return `[${posix[1] ?? ""}${set}]`;
    }
    // Sets in sets where the brackets come out even, else a bracket: this is ambiguous.
    if (this.#chars[this.#at] === "[" && this.#closingAhead() > 1)
      this.#fail("a [ in brackets can mean two things. Write it as \\[.");
    const from = this.#one();
    if (from.set !== undefined) return `[${from.set}]`;
    if (!this.#take(/^-(?!\])/)) return codePoint(from.code);
    const to = this.#one();
    if (to.set !== undefined) return `${codePoint(from.code)}${codePoint(0x2d)}[${to.set}]`;
    if (to.code < from.code) this.#fail("a range in brackets is the wrong way round.");
    return `${codePoint(from.code)}-${codePoint(to.code)}`;
  }

  #closingAhead(): number {
    const rest = this.#chars.slice(this.#at).join("");
    return rest.replace(/\\[^]/g, "").split("]").length - 1;
  }

  #one(): { set?: string; code: number } {
    const char = this.#chars[this.#at] ?? this.#fail("a [ has no ].");
    this.#at += 1;
    if (char !== "\\") return { code: char.codePointAt(0) ?? 0 };
    if (this.#take(/^b/)) return { code: 0x08 };
    return this.#charEscape();
  }
}

function isValid(source: string): boolean {
  try {
    return new RegExp(source, "v") instanceof RegExp;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
