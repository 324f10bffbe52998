/** Between anchors it is looked again for anchors, so many times: each is one more pass. */
const MAX_DEPTH = 8;

/**
 * For each line of `next` the line of `old` that it is, or -1: equal lines only, in the
 * same order on both sides. Lines that are the only ones of their kind hold it together,
 * their equal neighbors follow; what is left is not guessed at.
 */
export function alignLines(old: readonly string[], next: readonly string[]): Int32Array {
  const aligned = new Int32Array(next.length).fill(-1);
  const gaps: Gap[] = [{ a0: 0, a1: old.length, b0: 0, b1: next.length, depth: 0 }];
  for (let gap = gaps.pop(); gap; gap = gaps.pop()) {
    let { a0, a1, b0, b1 } = gap;
    while (a0 < a1 && b0 < b1 && old[a0] === next[b0]) aligned[b0++] = a0++;
    while (a0 < a1 && b0 < b1 && old[a1 - 1] === next[b1 - 1]) aligned[--b1] = --a1;
    if (a0 === a1 || b0 === b1 || gap.depth === MAX_DEPTH) continue;
    const depth = gap.depth + 1;
    const anchors = increasing(onlyOnes(old, next, { a0, a1, b0, b1, depth }));
    if (anchors.length === 0) continue;
    for (const { a, b } of anchors) {
      aligned[b] = a;
      gaps.push({ a0, a1: a, b0, b1: b, depth });
      a0 = a + 1;
      b0 = b + 1;
    }
    gaps.push({ a0, a1, b0, b1, depth });
  }
  return aligned;
}

interface Gap {
  a0: number;
  a1: number;
  b0: number;
  b1: number;
  depth: number;
}

interface Pair {
  a: number;
  b: number;
}

const SEVERAL = -2;
const NONE = -1;

/** Lines that are once in each part, by their place in `old`. */
function onlyOnes(old: readonly string[], next: readonly string[], gap: Gap): Pair[] {
  const found = new Map<string, Pair>();
  for (let a = gap.a0; a < gap.a1; a++) {
    const line = old[a] ?? "";
    const pair = found.get(line);
    if (pair) pair.a = SEVERAL;
    else found.set(line, { a, b: NONE });
  }
  for (let b = gap.b0; b < gap.b1; b++) {
    const pair = found.get(next[b] ?? "");
    if (pair) pair.b = pair.b === NONE ? b : SEVERAL;
  }
  return [...found.values()].filter(({ a, b }) => a >= 0 && b >= 0);
}

/** The longest part of the pairs, which are in the order of `a`, in which `b` grows too. */
function increasing(pairs: readonly Pair[]): Pair[] {
  // tails[n]: of the runs of n + 1 pairs found so far, the pair at the end of the lowest one.
  const tails: number[] = [];
  const before = new Int32Array(pairs.length).fill(NONE);
  pairs.forEach(({ b }, index) => {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pairs[tails[middle] ?? 0]?.b ?? 0) < b) low = middle + 1;
      else high = middle;
    }
    before[index] = low > 0 ? (tails[low - 1] ?? NONE) : NONE;
    tails[low] = index;
  });
  const run: Pair[] = [];
  for (let at = tails.at(-1) ?? NONE; at >= 0; at = before[at] ?? NONE) {
    const pair = pairs[at];
    if (pair) run.push(pair);
  }
  return run.reverse();
}
