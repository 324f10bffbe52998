/** The score of a matching letter, by its position. */
const MATCH = 1;
const IN_NAME = 3;
const WORD_START = 8;
const NAME_START = 4;
const CONSECUTIVE = 7;
/** The cost of letters between two matching ones, whatever their number. */
const GAP = 2;
/** The score of a query that is the whole name without its extension. */
const WHOLE_NAME = 12;
/** The cost of each letter of a text: the shorter one of two equal matches comes first. */
const PER_LETTER = 0.05;
const NEVER = -1e9;

const SLASH = 0x2f;

/** The texts that contain the letters of a query in order, the best first. */
export function fuzzyRank(query: string, items: readonly string[], limit: number): string[] {
  const needle = toCodes(query);
  if (needle.length === 0) return items.slice(0, limit);
  const isExact = query !== query.toLowerCase();
  const scorer = new Scorer(needle);
  const best: { item: string; score: number }[] = [];
  for (const item of items) {
    const hay = isExact ? item : foldCase(item);
    if (!containsInOrder(hay, needle)) continue;
    const score = scorer.score(hay, item);
    const last = best.at(-1);
    if (best.length >= limit && last && score <= last.score) continue;
    let place = best.length;
    while (place > 0 && score > (best[place - 1]?.score ?? 0)) place -= 1;
    best.splice(place, 0, { item, score });
    if (best.length > limit) best.pop();
  }
  return best.map(({ item }) => item);
}

export function toCodes(query: string): number[] {
  // Spaces only separate the words of a query.
  const letters = query.replaceAll(" ", "");
  return Array.from({ length: letters.length }, (_, index) => letters.charCodeAt(index));
}

/** The text in lower case, if that has the same length: indexes must match. */
function foldCase(text: string): string {
  const small = text.toLowerCase();
  return small.length === text.length ? small : text;
}

/** A quick check that rejects most texts. */
export function containsInOrder(hay: string, needle: readonly number[]): boolean {
  let found = 0;
  const count = needle.length;
  let wanted = needle[0];
  for (let index = 0; index < hay.length; index += 1) {
    if (hay.charCodeAt(index) !== wanted) continue;
    found += 1;
    if (found === count) return true;
    wanted = needle[found];
  }
  return false;
}

/** Finds the best alignment of a query in a text. It reuses its rows, so that a text costs no memory. */
class Scorer {
  readonly #needle: readonly number[];
  /** The best score with the previous letter at each index of the text. */
  #before: number[] = [];
  #now: number[] = [];

  constructor(needle: readonly number[]) {
    this.#needle = needle;
  }

  score(hay: string, item: string): number {
    const { length } = hay;
    // The slash at the end of a folder is not part of its name.
    const end = hay.charCodeAt(length - 1) === SLASH ? length - 1 : length;
    const name = hay.lastIndexOf("/", end - 1) + 1;
    let best = NEVER;
    for (const [letter, code] of this.#needle.entries()) {
      const before = this.#before;
      const now = this.#now;
      best = NEVER;
      // The best score of all indexes that are not directly before this one.
      let far = letter === 0 ? 0 : NEVER;
      for (let index = 0; index < length; index += 1) {
        let score = NEVER;
        if (hay.charCodeAt(index) === code) {
          const near = letter > 0 && index > 0 ? (before[index - 1] ?? NEVER) + CONSECUTIVE : NEVER;
          const from = Math.max(near, letter === 0 ? 0 : far - GAP);
          if (from > NEVER / 2) score = from + scoreLetter(item, index, name);
        }
        now[index] = score;
        if (score > best) best = score;
        const passed = letter > 0 && index > 0 ? (before[index - 1] ?? NEVER) : NEVER;
        if (passed > far) far = passed;
      }
      this.#before = now;
      this.#now = before;
    }
    const dot = hay.indexOf(".", name + 1);
    const stem = (dot < 0 ? end : dot) - name;
    if (
      stem === this.#needle.length &&
      containsInOrder(hay.slice(name, name + stem), this.#needle)
    ) {
      best += WHOLE_NAME;
    }
    return best - length * PER_LETTER;
  }
}

function scoreLetter(item: string, index: number, name: number): number {
  let worth = MATCH;
  if (index >= name) worth += IN_NAME;
  if (isWordStart(item, index)) worth += WORD_START;
  if (index === name) worth += NAME_START;
  return worth;
}

/** An index behind anything but a letter, or a capital behind a small letter. */
function isWordStart(item: string, index: number): boolean {
  if (index === 0) return true;
  const before = item.charCodeAt(index - 1);
  if (!isLetter(before)) return true;
  return isCapital(item.charCodeAt(index)) && !isCapital(before);
}

function isCapital(code: number): boolean {
  return code >= 0x41 && code <= 0x5a;
}

function isLetter(code: number): boolean {
  return (
    isCapital(code) ||
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x30 && code <= 0x39) ||
    code > 0x7f
  );
}
