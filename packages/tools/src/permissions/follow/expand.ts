import type { Word } from "../command/parse.ts";

/** What a text may be once the shell has expanded it. */
export interface Values {
  values: readonly string[];
  /** It may be something else as well. */
  isOpen: boolean;
}

/** Where words are expanded. */
export interface Scope {
  /** What a variable holds. */
  lookup(name: string): Values;
  /** Signs beside blanks at which values are divided. */
  separators?: string;
  /** What a script prints. */
  substitute(script: string): Values;
  /** The files that a pattern finds; undefined where they are too many, or not known. */
  glob(pattern: string): readonly string[] | undefined;
}

export const UNKNOWN: Values = { values: [], isOpen: true };

/** Of a word; with more it is not known. */
const MAX_ALTERNATIVES = 64;
/** A longer word is no path. */
const MAX_WORD_CHARS = 4_096;
/** Braces in braces, and expansions in expansions. */
const MAX_NESTING = 6;
/** Stands for blanks at which a word is divided. */
const SPLIT = "\u0001";

/** What a word that the shell expands becomes: words that are known, and whether there may be others. */
export function expandWord(word: Word, scope: Scope): Values {
  if (word.literal) return { values: [word.text], isOpen: false };
  if (word.text.length > MAX_WORD_CHARS) return UNKNOWN;
  const found: string[] = [];
  const texts = expandBraces(word.text, 0);
  let isOpen = texts.length >= MAX_ALTERNATIVES;
  for (const text of texts) {
    const spelled = spell(text, scope, 0);
    isOpen ||= spelled.isOpen;
    for (const { text: plain, pattern, hasPattern } of spelled.list) {
      const files = hasPattern ? scope.glob(pattern) : [];
      if (!files) isOpen = true;
      else if (files.length > 0) found.push(...files);
      // What is nothing at all is no word, unless there are quotes around it.
      else found.push(...plain.split(SPLIT).filter((each) => each !== "" || /["']/.test(text)));
    }
  }
  return { values: found, isOpen };
}

/** What a value becomes that is assigned: it is not divided, and no files are looked for. */
export function expandValue(text: string, scope: Scope): Values {
  if (text.length > MAX_WORD_CHARS) return UNKNOWN;
  const { list, isOpen } = spell(text, scope, 0);
  return { values: list.map((each) => each.text.replaceAll(SPLIT, " ")), isOpen };
}

/** The variables of which a word has one value at a time, also those of the arguments. */
export function listNames(text: string): string[] {
  return [...text.matchAll(/\$\{?[#!]?(\w+)(?!\w|\[[@*])/g)].map(([, name = ""]) => name);
}

interface Spelling {
  text: string;
  /** The same for a search of files: what was quoted stands behind backslashes. */
  pattern: string;
  hasPattern: boolean;
}

interface Spelled {
  list: readonly Spelling[];
  isOpen: boolean;
}

const NOTHING: Spelling = { text: "", pattern: "", hasPattern: false };

/** A piece of a word, with its quotes. */
interface Piece {
  kind: "plain" | "single" | "double" | "escape" | "parameter" | "command" | "other";
  text: string;
}

/** A word in pieces. `isQuoted`: it is inside of double quotes already. */
function* listPieces(text: string, isQuoted: boolean): Generator<Piece> {
  for (let at = 0; at < text.length;) {
    const end = findEnd(text, at, isQuoted);
    const piece = text.slice(at, end);
    yield { kind: findKind(piece, isQuoted), text: piece };
    at = end;
  }
}

function findKind(piece: string, isQuoted: boolean): Piece["kind"] {
  if (piece.startsWith("\\")) return "escape";
  if (/^\$\((?!\()|^`/.test(piece)) return "command";
  if (/^\$(?:\{|\w|[@*#?!-])/.test(piece)) return "parameter";
  if (isQuoted) return piece.startsWith("$") && piece.length > 1 ? "other" : "plain";
  if (/^\$?'[^\\]*'$/.test(piece) || piece.startsWith("'")) return "single";
  if (/^\$?"/.test(piece)) return "double";
  return /^(?:\$['"(]|[<>]\()/.test(piece) ? "other" : "plain";
}

/** Where the piece that begins here ends. */
function findEnd(text: string, at: number, isQuoted: boolean): number {
  const next = text[at] ?? "";
  if (next === "\\") return at + 2;
  if (next === "`") return skipTo(text, at + 1, "`");
  if (next === "$") {
    const after = text[at + 1] ?? "";
    if (after === "(") return skipBrackets(text, at + 1, "(", ")");
    if (after === "{") return skipBrackets(text, at + 1, "{", "}");
    if (after === "'" && !isQuoted) return skipTo(text, at + 2, "'");
    // A text that may be translated.
    if (after === '"' && !isQuoted) return skipTo(text, at + 2, '"');
    const name = /^\$(?:[A-Za-z_]\w*|\d|[@*#?!$-])/.exec(text.slice(at, at + 256))?.[0];
    return at + (name?.length ?? 1);
  }
  if (isQuoted) return at + 1;
  if (next === "'") return text.indexOf("'", at + 1) + 1 || text.length;
  if (next === '"') return skipTo(text, at + 1, '"');
  if ((next === "<" || next === ">") && text[at + 1] === "(")
    return skipBrackets(text, at + 1, "(", ")");
  return at + 1;
}

function skipTo(text: string, from: number, end: string): number {
  for (let at = from; at < text.length; at = findEnd(text, at, end === '"')) {
    if (text[at] === end) return at + 1;
  }
  return text.length;
}

function skipBrackets(text: string, from: number, open: string, close: string): number {
  let depth = 0;
  for (let at = from; at < text.length;) {
    const next = text[at];
    if (next === open) depth++;
    if (next === close && --depth === 0) return at + 1;
    at = next === open || next === close ? at + 1 : findEnd(text, at, false);
  }
  return text.length;
}

/** The words of a list or a sequence in braces; so many of them. */
function expandBraces(text: string, depth: number, limit: number = MAX_ALTERNATIVES): string[] {
  if (depth > MAX_NESTING) return [text];
  for (let at = 0; at < text.length; at = findEnd(text, at, false)) {
    if (text[at] !== "{") continue;
    const end = skipBrackets(text, at, "{", "}");
    const parts = text[end - 1] === "}" ? splitBraces(text.slice(at + 1, end - 1)) : [];
    if (parts.length < 2) continue;
    const found: string[] = [];
    for (const part of parts) {
      if (found.length >= limit) break;
      const next = text.slice(0, at) + part + text.slice(end);
      found.push(...expandBraces(next, depth + 1, limit - found.length));
    }
    return found;
  }
  return [text];
}

function splitBraces(inner: string): string[] {
  const range = /^(-?\d+|[a-z])\.\.(-?\d+|[a-z])$/i.exec(inner);
  if (range) {
    const [from = "", to = ""] = range.slice(1);
    const isNumber = /\d/.test(from);
    const start = isNumber ? Number(from) : (from.codePointAt(0) ?? 0);
    const end = isNumber ? Number(to) : (to.codePointAt(0) ?? 0);
    const step = start <= end ? 1 : -1;
    const count = Math.min(Math.abs(end - start) + 1, MAX_ALTERNATIVES);
    return Array.from({ length: count }, (_, index) => {
      const value = start + index * step;
      return isNumber ? String(value) : String.fromCodePoint(value);
    });
  }
  const parts: string[] = [];
  let start = 0;
  for (let at = 0; at < inner.length;) {
    if (inner[at] === "{") {
      at = skipBrackets(inner, at, "{", "}");
      continue;
    }
    if (inner[at] === ",") {
      parts.push(inner.slice(start, at));
      start = at + 1;
    }
    at = findEnd(inner, at, false);
  }
  parts.push(inner.slice(start));
  return parts;
}

/** What a text without braces may be. */
function spell(text: string, scope: Scope, depth: number, isQuoted = false): Spelled {
  let list: Spelling[] = [NOTHING];
  let isOpen = depth > MAX_NESTING;
  const add = (values: readonly string[], isActive: boolean): void => {
    const next = list.flatMap((before) =>
      values.map((value): Spelling => ({
        text: before.text + value,
        pattern:
          before.pattern + (isActive ? value : value.replaceAll(/[*?[\]\\]/g, String.raw`\$&`)),
        hasPattern: before.hasPattern || (isActive && /[*?[]/.test(value)),
      })),
    );
    isOpen ||= next.length > MAX_ALTERNATIVES;
    list = next.slice(0, MAX_ALTERNATIVES);
  };
  if (isOpen) return { list: [], isOpen };
  let rest = text;
  if (!isQuoted && text.startsWith("~")) {
    const user = /^~[^/]*/.exec(text)?.[0] ?? "";
    const home = scope.lookup(
      user === "~" ? "HOME" : user === "~+" ? "PWD" : user === "~-" ? "OLDPWD" : "~",
    );
    isOpen ||= home.isOpen;
    add(home.values, false);
    rest = text.slice(user.length);
  }
  for (const { kind, text: piece } of listPieces(rest, isQuoted)) {
    switch (kind) {
      case "plain":
        add([piece], !isQuoted);
        break;
      case "single":
        add([piece.replace(/^\$/, "").slice(1, -1)], false);
        break;
      case "escape": {
        const sign = piece.slice(1);
        const stays = isQuoted && !/^[$`"\\\n]$/.test(sign);
        add([stays ? piece : sign === "\n" ? "" : sign], false);
        break;
      }
      case "double": {
        const inner = spell(piece.replace(/^\$/, "").slice(1, -1), scope, depth + 1, true);
        isOpen ||= inner.isOpen;
        add(
          inner.list.map((each) => each.text),
          false,
        );
        break;
      }
      case "parameter":
      case "command": {
        const { values, isOpen: mayBeMore } =
          kind === "command"
            ? scope.substitute(findScript(piece))
            : readParameter(piece, scope, depth);
        isOpen ||= mayBeMore;
        if (isQuoted) add(values, false);
        else
          add(
            values.map((value) => divide(value, scope)),
            true,
          );
        break;
      }
      default:
        return { list: [], isOpen: true };
    }
  }
  return { list, isOpen };
}

function divide(value: string, { separators = "" }: Scope): string {
  const signs = new Set(separators);
  const plain = [...value].map((sign) => (signs.has(sign) ? " " : sign)).join("");
  return plain.trim().replaceAll(/\s+/g, SPLIT);
}

/** What is inside of `$(...)` or of backquotes. */
function findScript(piece: string): string {
  if (piece.startsWith("$(")) return piece.slice(2, -1);
  return piece.slice(1, -1).replaceAll(/\\([$`\\])/g, "$1");
}

/** `$name`, `${name}` and what can be done to it there. */
function readParameter(piece: string, scope: Scope, depth: number): Values {
  if (!piece.startsWith("${")) return scope.lookup(piece.slice(1));
  const inner = piece.slice(2, -1);
  const [, name = "", , rest = ""] = /^(\w+|[@*])(\[[^\]]*\])?(.*)$/s.exec(inner) ?? [];
  if (name === "") return UNKNOWN;
  const known = scope.lookup(name);
  if (rest === "") return known;
  // The home of a command may be another one: what is around it is elsewhere as well.
  if (name === "HOME") return UNKNOWN;
  const spellRest = (text: string): Values => {
    const { list, isOpen } = spell(text, scope, depth + 1);
    return { values: list.map((each) => each.text), isOpen };
  };
  const [, sign = "", argument = ""] = /^(:?[-=+?]|%%?|##?|\/\/?|\^\^?|,,?)(.*)$/s.exec(rest) ?? [];
  switch (sign) {
    case "-":
    case ":-":
    case "=":
    case ":=": {
      const other = spellRest(argument);
      return {
        values: [...known.values, ...other.values],
        isOpen: known.isOpen || other.isOpen,
      };
    }
    case "+":
    case ":+":
      return spellRest(argument);
    case "?":
    case ":?":
      return known;
    case "%":
    case "%%":
    case "#":
    case "##": {
      const pattern = spellRest(argument).values[0] ?? argument;
      const whole = compilePattern(pattern);
      if (!whole) return UNKNOWN;
      return { ...known, values: known.values.map((value) => cutValue(value, sign, whole)) };
    }
    case "/":
    case "//": {
      const [from = "", to = ""] = argument.split("/");
      const expression = compileExpression(toExpression(from), sign === "//" ? "gs" : "s");
      if (!expression) return UNKNOWN;
      return { ...known, values: known.values.map((value) => value.replace(expression, () => to)) };
    }
    case "^":
    case "^^":
    case ",":
    case ",,":
      return { ...known, isOpen: true };
    default:
      return UNKNOWN;
  }
}

/** A value without its beginning or its end, as far as a pattern matches it. */
function cutValue(value: string, sign: string, whole: RegExp): string {
  const lengths = Array.from({ length: value.length + 1 }, (_, index) => index);
  if (sign.length === 2) lengths.reverse();
  for (const length of lengths) {
    const isEnd = sign.startsWith("%");
    const part = isEnd ? value.slice(value.length - length) : value.slice(0, length);
    if (whole.test(part))
      return isEnd ? value.slice(0, value.length - length) : value.slice(length);
  }
  return value;
}

/** Stars of a pattern; with more a comparison could take forever. */
const MAX_STARS = 6;

/** A pattern of the shell that a whole text has to match; undefined where that is not known. */
export function compilePattern(pattern: string): RegExp | undefined {
  return compileExpression(`^(?:${toExpression(pattern)})$`, "s");
}

function compileExpression(expression: string, flags: string): RegExp | undefined {
  if ((expression.match(/\.\*/g)?.length ?? 0) > MAX_STARS) return undefined;
  try {
    return new RegExp(expression, flags);
  } catch {
    // A range the wrong way round, say.
    return undefined;
  }
}

function toExpression(pattern: string): string {
  return pattern.replaceAll(
    /\\(.)|\[([!^]?)((?:\[:\w+:\]|\\.|[^\]])+)\]|(\*+|\?)|([.+^${}()|\\[\]/])/gs,
    (
      _,
      escaped: string | undefined,
      not: string,
      set: string | undefined,
      sign: string | undefined,
      other: string,
    ) => {
      if (escaped !== undefined) return escaped.replace(/[.*+?^${}()|\\[\]/]/, String.raw`\$&`);
      if (set !== undefined) {
        const inner = set
          .replaceAll(/\[:\w+:\]/g, "A-Za-z0-9_")
          .replaceAll(/[\\\]^[]/g, String.raw`\$&`);
        return `[${not === "" ? "" : "^"}${inner}]`;
      }
      if (sign === undefined) return `\\${other}`;
      return sign === "?" ? "." : ".*";
    },
  );
}
