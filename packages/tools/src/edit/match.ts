import { EditError } from "./error.ts";
import { type IndentPair, reindented, reindents } from "./indent.ts";
import { withoutLineNumbers } from "./numbers.ts";
import {
  isTypographic,
  keepPunctuation,
  plainChar,
  plainPunctuation,
  punctuationSlips,
  withoutSlips,
} from "./punctuation.ts";
import { type Rewriting, rewrite } from "./rewrite.ts";
import {
  BYTE_ORDER_MARK,
  commonEnd,
  readIndent,
  type Line,
  lineAt,
  splitLines,
  trimLineEnd,
} from "../text/line-ends.ts";

/** At most this many places are reported where there are too many. */
export const MAX_REPORTED_PLACES = 20;
/** Lines that are looked at for an indent that fits; with more, the text says too little. */
const MAX_INDENT_LINES = 1_000_000;

export interface Edit {
  oldText: string;
  newText: string;
}

/** What had to be overlooked to find an old text, the strictest first. */
export type Tolerance =
  | "exact"
  | "line ends"
  | "byte order mark"
  | "trailing white space"
  | "punctuation"
  | "line numbers"
  | "indentation";

/** Where an edit applies, and what is to be there. */
export interface EditMatch {
  start: number;
  end: number;
  replacement: string;
  tolerance: Tolerance;
}

export interface MatchRules {
  /** The old text is whole lines. */
  wholeLines?: boolean;
  /** Whether a place may be the one, by its first line and the line behind it, from 0. */
  accept?: (firstLine: number, behind: number) => boolean;
}

export type MatchOutcome =
  | { type: "found"; match: EditMatch }
  | { type: "missing" }
  /** Places as lines, from 1; at most one more than `MAX_REPORTED_PLACES`. */
  | { type: "several"; places: LineRange[]; tolerance: Tolerance };

/** First and last line, from 1. */
export interface LineRange {
  first: number;
  last: number;
}

/** A place in the file at which an old text was found. */
interface Place {
  start: number;
  end: number;
}

type Level = "line ends" | "trailing white space" | "punctuation";
const LEVELS: readonly Level[] = ["line ends", "trailing white space", "punctuation"];

const NORMAL: Readonly<Record<Level, (line: string) => string>> = {
  "line ends": (line) => line,
  "trailing white space": trimLineEnd,
  punctuation: (line) => trimLineEnd(plainPunctuation(line)),
};

/** The text of a file, in the forms in which it is searched: each is made once, if needed. */
export class EditedText {
  readonly text: string;
  /** Without a byte order mark. */
  readonly lines: readonly Line[];
  readonly #forms = new Map<Level, Form>();
  #codes: Uint16Array | undefined;
  #isTypographic: boolean | undefined;
  #trimmed: readonly string[] | undefined;

  constructor(text: string) {
    this.text = text;
    this.lines = splitLines(text, text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0);
  }

  get codes(): Uint16Array {
    return (this.#codes ??= toCharCodes(this.text));
  }

  get isTypographic(): boolean {
    return (this.#isTypographic ??= isTypographic(this.text));
  }

  /** Lines without white space around them. */
  get trimmed(): readonly string[] {
    return (this.#trimmed ??= this.lines.map(trimmedLine));
  }

  form(level: Level): Form {
    let form = this.#forms.get(level);
    if (!form) this.#forms.set(level, (form = new Form(this, NORMAL[level])));
    return form;
  }

  /** The lines that a place is on. */
  findLines({ start, end }: Place): LineRange {
    const last = Math.max(start, end - 1);
    return { first: lineAt(this.lines, start) + 1, last: lineAt(this.lines, last) + 1 };
  }
}

/**
 * Finds the one place that an edit means. A tolerance is tried only where none of the
 * stricter ones finds anything, and what it finds has to be one place. Nothing is taken
 * for being similar. Throws `EditError` ("unclear") where the place is clear and what
 * the new text should be is not.
 */
export function findMatch(file: EditedText, edit: Edit, rules: MatchRules = {}): MatchOutcome {
  const exact = exactPlaces(file, edit.oldText, rules);
  const [only] = exact;
  if (exact.length > 1) return several(file, exact, "exact");
  if (only) {
    const replacement = adaptLineEnds(file, only, edit);
    return { type: "found", match: { ...only, replacement, tolerance: "exact" } };
  }

  const bare = withoutMark(edit);
  for (const level of LEVELS) {
    const isMark = level === "line ends" && bare.oldText !== edit.oldText;
    const outcome = inForms(file, [bare], level, rules, isMark ? "byte order mark" : level);
    if (outcome) return outcome;
    // White space alone is everywhere once white space is overlooked.
    if (bare.oldText.trim() === "") return { type: "missing" };
  }

  const unnumbered = withoutLineNumbers(bare);
  if (unnumbered === "unclear") return unclearNumbers(file, bare, rules);
  for (const level of LEVELS) {
    const whole = { ...rules, wholeLines: true };
    const outcome = inForms(file, unnumbered.filter(saysSomething), level, whole, "line numbers");
    if (outcome) return outcome;
  }
  return (
    byIndent(file, [bare], rules) ??
    byIndent(file, unnumbered.filter(saysSomething), rules) ?? { type: "missing" }
  );
}

function saysSomething(edit: Edit): boolean {
  return edit.oldText.trim() !== "";
}

function several(file: EditedText, places: readonly Place[], tolerance: Tolerance): MatchOutcome {
  return { type: "several", places: places.map((place) => file.findLines(place)), tolerance };
}

function withoutMark({ oldText, newText }: Edit): Edit {
  if (!oldText.startsWith(BYTE_ORDER_MARK)) return { oldText, newText };
  const mark = BYTE_ORDER_MARK.length;
  return {
    oldText: oldText.slice(mark),
    newText: newText.startsWith(BYTE_ORDER_MARK) ? newText.slice(mark) : newText,
  };
}

/** The old text may still be found without its numbers: then it is a pity, else it is missing. */
function unclearNumbers(file: EditedText, edit: Edit, rules: MatchRules): MatchOutcome {
  const alone = withoutLineNumbers({ oldText: edit.oldText, newText: "" });
  if (alone === "unclear") return { type: "missing" };
  const whole = { ...rules, wholeLines: true };
  const isThere = alone
    .filter(saysSomething)
    .some(({ oldText }) => file.form("punctuation").places(oldText, whole).length > 0);
  if (!isThere) return { type: "missing" };
  throw new EditError(
    "unclear",
    "oldText has line numbers on every line, and it is unclear which numbers in newText are " +
      "line numbers. Leave line numbers out of both.",
  );
}

// ---- exact

function exactPlaces(file: EditedText, oldText: string, rules: MatchRules): Place[] {
  const { text } = file;
  const places: Place[] = [];
  for (const start of findAll(file.codes, toCharCodes(oldText))) {
    const end = start + oldText.length;
    // Half of a line end is not found: the next level takes it whole.
    if (splitsLineEnd(text, start) || splitsLineEnd(text, end)) continue;
    if (rules.wholeLines && !(isLineStart(file, start) && isLineEnd(text, end))) continue;
    if (!isAccepted(file, { start, end }, rules)) continue;
    places.push({ start, end });
    if (places.length > MAX_REPORTED_PLACES) break;
  }
  return places;
}

function splitsLineEnd(text: string, offset: number): boolean {
  return text.charAt(offset - 1) === "\r" && text.charAt(offset) === "\n";
}

function isLineStart(file: EditedText, offset: number): boolean {
  return offset === (file.lines[0]?.start ?? 0) || file.text.charAt(offset - 1) === "\n";
}

function isLineEnd(text: string, offset: number): boolean {
  if (offset === text.length || text.charAt(offset - 1) === "\n") return true;
  const next = text.charAt(offset) === "\r" ? text.charAt(offset + 1) : text.charAt(offset);
  return next === "\n";
}

function isAccepted(file: EditedText, place: Place, rules: MatchRules): boolean {
  if (!rules.accept) return true;
  const { first, last } = file.findLines(place);
  return rules.accept(first - 1, last);
}

/**
 * The new text of an exact match. It is as written, but for this: an old text within a
 * line says nothing about line ends, so that new ones are those of the line.
 */
function adaptLineEnds(file: EditedText, place: Place, { oldText, newText }: Edit): string {
  if (oldText.includes("\n") || !newText.includes("\n")) return newText;
  const end = file.lines[lineAt(file.lines, place.start)]?.end || commonEnd(file.lines);
  if (end === "") return newText;
  return newText.replaceAll("\r\n", "\n").replaceAll("\n", end);
}

// ---- forms of the text that leave something out

/** A file's lines, each in a normal form and ended by a line feed, and the way back to the file. */
class Form {
  readonly #file: EditedText;
  readonly #normal: (line: string) => string;
  readonly #codes: Uint16Array;
  /** Where the lines start in this form, and behind them where it ends. */
  readonly #starts: Int32Array;

  constructor(file: EditedText, normal: (line: string) => string) {
    this.#file = file;
    this.#normal = normal;
    this.#starts = new Int32Array(file.lines.length + 1);
    const normals = file.lines.map((line, index) => {
      const text = normal(line.text);
      this.#starts[index + 1] = (this.#starts[index] ?? 0) + text.length + 1;
      return text;
    });
    normals.push("");
    this.#codes = toCharCodes(normals.join("\n"));
  }

  /** Where an old text is found in this form, in the file's offsets. */
  places(oldText: string, rules: MatchRules): Place[] {
    const { needle, isCut } = this.#toNeedle(oldText);
    const places: Place[] = [];
    for (const start of findAll(this.#codes, toCharCodes(needle))) {
      const end = start + needle.length;
      const endsLine = this.#codes[end] === LINE_FEED || this.#codes[end - 1] === LINE_FEED;
      if (isCut && this.#codes[end] !== LINE_FEED) continue;
      if (rules.wholeLines && !(endsLine && this.#starts[this.#lineAt(start)] === start)) continue;
      const place = { start: this.#source(start), end: this.#source(end) };
      // Skip a place that begins or ends within one character of the file.
      if (place.start === undefined || place.end === undefined) continue;
      const { start: from, end: to } = place;
      if (!isAccepted(this.#file, { start: from, end: to }, rules)) continue;
      places.push({ start: from, end: to });
      if (places.length > MAX_REPORTED_PLACES) break;
    }
    return places;
  }

  /** An old text in this form. `isCut`: white space at its very end was left out. */
  #toNeedle(oldText: string): { needle: string; isCut: boolean } {
    const lines = splitLines(oldText);
    let isCut = false;
    const texts = lines.map((line) => {
      // Space at the very end may be the indent of a line that goes on: then it counts.
      if (line.end === "" && line.text.trim() === "") return line.text;
      const text = this.#normal(line.text);
      if (line.end === "")
        isCut = text === trimLineEnd(text) && line.text !== trimLineEnd(line.text);
      return text;
    });
    if (lines.at(-1)?.end !== "") texts.push("");
    return { needle: texts.join("\n"), isCut };
  }

  #lineAt(offset: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The offset in the file; undefined inside of a character. */
  #source(offset: number): number | undefined {
    const index = this.#lineAt(offset);
    const line = this.#file.lines[index];
    if (!line) return this.#file.text.length;
    const column = offset - (this.#starts[index] ?? 0);
    const length = (this.#starts[index + 1] ?? 0) - (this.#starts[index] ?? 0) - 1;
    if (column === 0) return line.start;
    if (column === length) return line.start + line.text.length;
    if (this.#normal !== NORMAL.punctuation) return line.start + column;
    let reached = 0;
    let at = 0;
    while (reached < column) reached += plainChar(line.text.charAt(at++)).length;
    return reached === column ? line.start + at : undefined;
  }
}

/** The outcome at one level; undefined where nothing is found. */
function inForms(
  file: EditedText,
  edits: readonly Edit[],
  level: Level,
  rules: MatchRules,
  tolerance: Tolerance,
): MatchOutcome | undefined {
  // Without such characters the form is the one that was just searched.
  if (level === "punctuation" && !file.isTypographic) {
    edits = edits.filter(({ oldText }) => isTypographic(oldText));
  }
  const found = edits.flatMap((edit) =>
    file
      .form(level)
      .places(edit.oldText, rules)
      .map((place) => ({ edit, place })),
  );
  const [only] = found;
  if (!only) return undefined;
  if (found.length > 1) {
    return several(
      file,
      found.map(({ place }) => place),
      tolerance,
    );
  }
  const { edit, place } = only;
  const rewriting = createRewriting(file, edit, place);
  rewriting.adapt = adaptTo(level, rewriting);
  const replacement = rewrite(rewriting) ?? edit.newText;
  return { type: "found", match: { ...place, replacement, tolerance } };
}

function createRewriting(file: EditedText, edit: Edit, { start, end }: Place): Rewriting {
  return {
    pieces: splitLines(file.text.slice(start, end)),
    old: splitLines(edit.oldText),
    next: splitLines(edit.newText),
    end: commonEnd(file.lines),
    adapt: (line) => line,
  };
}

/** How lines of new text are adapted when the old text was found at a level. */
function adaptTo(level: Level, { pieces, old }: Rewriting): Rewriting["adapt"] {
  const clean = level === "line ends" ? (line: string): string => line : trailingAs(pieces, old);
  if (level !== "punctuation") return clean;
  const slips = punctuationSlips(
    old.map((line, index) => [trimLineEnd(line.text), pieces[index]?.text ?? ""] as const),
  );
  return (line, before) =>
    before
      ? keepPunctuation(clean(line), trimLineEnd(before.old), before.file, slips)
      : withoutSlips(clean(line), slips);
}

/** With trailing space on every line of the old text and on none of the file's, it is a slip. */
function trailingAs(pieces: readonly Line[], old: readonly Line[]): (line: string) => string {
  const isSlip =
    old.every(({ text }) => text.trim() === "" || trimLineEnd(text) !== text) &&
    pieces.every(({ text }) => trimLineEnd(text) === text);
  return isSlip ? trimLineEnd : (line) => line;
}

// ---- indentation

/** The outcome with every line of the old text indented differently by one rule. */
function byIndent(
  file: EditedText,
  edits: readonly Edit[],
  rules: MatchRules,
): MatchOutcome | undefined {
  const found = edits.flatMap((edit) => indentPlaces(file, edit, rules));
  const [only] = found;
  if (!only) return undefined;
  if (found.length > 1) return several(file, found, "indentation");
  const { edit, pairs, ...place } = only;
  const rewriting = createRewriting(file, edit, place);
  const clean = trailingAs(rewriting.pieces, rewriting.old);
  const replacements = reindents(pairs).map((reindent) =>
    rewrite({
      ...rewriting,
      adapt: (line, before) => keepIndent(clean(line), before) ?? reindented(clean(line), reindent),
    }),
  );
  const [replacement] = replacements;
  if (replacement === undefined || replacements.some((other) => other !== replacement)) {
    const { first, last } = file.findLines(place);
    throw new EditError(
      "unclear",
      `oldText is at lines ${first}-${last} with other indentation, and it is unclear how ` +
        "newText has to be indented there. Copy the indentation of the file exactly.",
    );
  }
  return { type: "found", match: { ...place, replacement, tolerance: "indentation" } };
}

/** A line that is indented as the one in its place keeps what the file has there. */
function keepIndent(
  line: string,
  before: { old: string; file: string } | undefined,
): string | undefined {
  const indent = readIndent(line);
  if (!before || indent !== readIndent(before.old) || indent.length === line.length)
    return undefined;
  return readIndent(before.file) + line.slice(indent.length);
}

interface IndentPlace extends Place {
  edit: Edit;
  pairs: readonly IndentPair[];
}

function indentPlaces(file: EditedText, edit: Edit, rules: MatchRules): IndentPlace[] {
  const old = splitLines(edit.oldText);
  const ids = new Map<string, number>();
  const wanted = Int32Array.from(old, (line) => {
    const text = trimmedLine(line);
    const id = ids.get(text) ?? ids.size;
    ids.set(text, id);
    return id;
  });
  const lines = Int32Array.from(file.trimmed, (text) => ids.get(text) ?? -1);
  const places: IndentPlace[] = [];
  let looked = 0;
  for (const at of findAll(lines, wanted)) {
    const [first, last] = [file.lines[at], file.lines[at + old.length - 1]];
    if (!first || !last) continue;
    looked += old.length;
    const isTooMuch = looked > MAX_INDENT_LINES;
    const pairs = isTooMuch ? [] : indentPairs(file, old, at);
    const ended = old.at(-1)?.end === "" ? 0 : last.end.length;
    const place = { start: first.start, end: last.start + last.text.length + ended };
    // What was not looked at counts as a place: better one too many than a wrong one.
    if (!(isTooMuch || reindents(pairs).length > 0) || !isAccepted(file, place, rules)) continue;
    places.push({ ...place, edit, pairs });
    if (places.length > MAX_REPORTED_PLACES) break;
  }
  return places;
}

/** The indents of the lines that are not blank. */
function indentPairs(file: EditedText, old: readonly Line[], at: number): IndentPair[] {
  const pairs: IndentPair[] = [];
  for (const [index, line] of old.entries()) {
    if (file.trimmed[at + index] === "") continue;
    pairs.push({
      old: readIndent(line.text),
      file: readIndent(file.lines[at + index]?.text ?? ""),
    });
  }
  return pairs;
}

function trimmedLine(line: Line): string {
  return trimLineEnd(line.text).slice(readIndent(line.text).length);
}

// ---- search

const LINE_FEED = 0x0a;

function toCharCodes(text: string): Uint16Array {
  const codes = new Uint16Array(text.length);
  for (let index = 0; index < text.length; index++) codes[index] = text.charCodeAt(index);
  return codes;
}

/**
 * All places of `needle` in `hay`, also those that overlap, in time linear in both:
 * `indexOf` is not, for a text that repeats itself.
 */
export function* findAll(
  hay: ArrayLike<number>,
  needle: ArrayLike<number>,
): Generator<number, void, void> {
  const length = needle.length;
  if (length === 0) return;
  // For each part of the needle from its beginning: how long the longest beginning is
  // that is also its end.
  const borders = new Int32Array(length);
  for (let index = 1, border = 0; index < length; index++) {
    while (border > 0 && needle[index] !== needle[border]) border = borders[border - 1] ?? 0;
    if (needle[index] === needle[border]) border += 1;
    borders[index] = border;
  }
  let matched = 0;
  for (let index = 0; index < hay.length; index++) {
    while (matched > 0 && hay[index] !== needle[matched]) matched = borders[matched - 1] ?? 0;
    if (hay[index] === needle[matched]) matched += 1;
    if (matched < length) continue;
    yield index + 1 - length;
    matched = borders[length - 1] ?? 0;
  }
}
