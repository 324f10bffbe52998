import { alignLines } from "@gyre/tools";

/** With more pairs only unique parts and their neighbors are compared. */
const MAX_PAIRS = 1_000_000;
const WORDS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;
/** A line with more words is not compared word by word. */
const MAX_WORDS = 400;
/** With a smaller common share of the longer line, the lines count as unrelated. */
const MIN_SAME_SHARE = 0.3;

/** The index in `old` of each part of `next`, or -1: the longest common subsequence, up to `MAX_PAIRS`. */
export function findCommonParts(old: readonly string[], next: readonly string[]): Int32Array {
  const common = new Int32Array(next.length).fill(-1);
  let [a0, a1, b0, b1] = [0, old.length, 0, next.length];
  while (a0 < a1 && b0 < b1 && old[a0] === next[b0]) common[b0++] = a0++;
  while (a0 < a1 && b0 < b1 && old[a1 - 1] === next[b1 - 1]) common[--b1] = --a1;
  const rows = a1 - a0;
  const columns = b1 - b0;
  if (rows === 0 || columns === 0) return common;
  if (rows * columns > MAX_PAIRS) return alignLines(old, next);
  // most[a][b]: the number of common parts from there on.
  const width = columns + 1;
  const most = new Uint16Array((rows + 1) * width);
  const at = (a: number, b: number): number => most[a * width + b] ?? 0;
  for (let a = rows - 1; a >= 0; a--) {
    for (let b = columns - 1; b >= 0; b--) {
      const isSame = old[a0 + a] === next[b0 + b];
      most[a * width + b] = isSame ? at(a + 1, b + 1) + 1 : Math.max(at(a + 1, b), at(a, b + 1));
    }
  }
  for (let a = 0, b = 0; a < rows && b < columns;) {
    if (old[a0 + a] === next[b0 + b]) common[b0 + b++] = a0 + a++;
    else if (at(a + 1, b) >= at(a, b + 1)) a++;
    else b++;
  }
  return common;
}

/** A piece of a line, and whether the other line has it too. */
export interface LinePart {
  text: string;
  isCommon: boolean;
}

/** Splits a line into parts that another line has, and parts that it has not. Undefined where they are unrelated. */
export function splitParts(line: string, other: string): LinePart[] | undefined {
  const words = line.match(WORDS) ?? [];
  const others = other.match(WORDS) ?? [];
  if (words.length > MAX_WORDS || others.length > MAX_WORDS) return undefined;
  const common = findCommonParts(others, words);
  const parts: LinePart[] = [];
  let same = 0;
  for (const [index, text] of words.entries()) {
    const isCommon = (common[index] ?? -1) >= 0;
    if (isCommon) same += text.trim().length;
    const last = parts.at(-1);
    if (last?.isCommon === isCommon) last.text += text;
    else parts.push({ text, isCommon });
  }
  const longer = Math.max(line.trim().length, other.trim().length);
  return same < longer * MIN_SAME_SHARE ? undefined : parts;
}
