/** Typographic characters and what is typed for them. */
const PLAIN: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "'": "\u2018\u2019\u201a\u201b\u2032",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "...": "\u2026",
    " ": "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
  }).flatMap(([plain, chars]) => [...chars].map((char): [string, string] => [char, plain])),
);
const TYPOGRAPHIC = new RegExp(`[${[...PLAIN.keys()].join("")}]`);
const EACH_TYPOGRAPHIC = new RegExp(TYPOGRAPHIC, "g");

export function isTypographic(text: string): boolean {
  return TYPOGRAPHIC.test(text);
}

/** With quotes, dashes, ellipses and spaces as they are typed. */
export function plainPunctuation(text: string): string {
  return text.replace(EACH_TYPOGRAPHIC, plainChar);
}

export function plainChar(char: string): string {
  return PLAIN.get(char) ?? char;
}

/** Offsets in two lines that are one place in both. */
interface Cut {
  old: number;
  file: number;
}

/** Where two lines, equal but for typography, can be cut at the same place. */
function commonCuts(old: string, file: string): Cut[] {
  const cuts: Cut[] = [{ old: 0, file: 0 }];
  let [i, j, ahead] = [0, 0, 0];
  while (i < old.length && j < file.length) {
    // An ellipsis stands against three characters: the side that is behind goes on.
    if (ahead <= 0) ahead += plainChar(old.charAt(i++)).length;
    while (ahead > 0 && j < file.length) ahead -= plainChar(file.charAt(j++)).length;
    if (ahead === 0) cuts.push({ old: i, file: j });
  }
  return cuts;
}

/** A typographic character that the model writes where the file has another one. */
export type Slips = ReadonlyMap<string, string>;

/** Which characters of the old lines stand for another one in the file, always the same one. */
export function punctuationSlips(pairs: Iterable<readonly [old: string, file: string]>): Slips {
  const slips = new Map<string, string>();
  const torn = new Set<string>();
  for (const [old, file] of pairs) {
    if (!TYPOGRAPHIC.test(old)) continue;
    const cuts = commonCuts(old, file);
    cuts.forEach((cut, index) => {
      const from = cuts[index - 1];
      if (!from) return;
      const written = old.slice(from.old, cut.old);
      const meant = file.slice(from.file, cut.file);
      if (!PLAIN.has(written)) return;
      if ((slips.get(written) ?? meant) === meant) slips.set(written, meant);
      else torn.add(written);
    });
  }
  for (const char of torn) slips.delete(char);
  return slips;
}

export function withoutSlips(text: string, slips: Slips): string {
  if (slips.size === 0) return text;
  return text.replace(EACH_TYPOGRAPHIC, (char) => slips.get(char) ?? char);
}

/**
 * A changed line in the file's typography: what the new line has in common with the old
 * one at its beginning and end is taken from the file as it is there.
 */
export function keepPunctuation(next: string, old: string, file: string, slips: Slips): string {
  const shorter = Math.min(next.length, old.length);
  let head = 0;
  while (head < shorter && next.charAt(head) === old.charAt(head)) head += 1;
  const most = shorter - head;
  let tail = 0;
  while (tail < most && next.at(-1 - tail) === old.at(-1 - tail)) tail += 1;
  const cuts = commonCuts(old, file);
  const before = cuts.findLast((cut) => cut.old <= head) ?? { old: 0, file: 0 };
  const after = cuts.find((cut) => cut.old >= old.length - tail && cut.old >= before.old) ?? {
    old: old.length,
    file: file.length,
  };
  const middle = next.slice(before.old, next.length - (old.length - after.old));
  return file.slice(0, before.file) + withoutSlips(middle, slips) + file.slice(after.file);
}
