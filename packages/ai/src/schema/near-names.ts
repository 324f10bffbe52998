const MAX_NAMES = 3;
/** Names longer than this are compared by containment alone; edit distance is quadratic. */
const MAX_EDIT_CHARS = 64;
/** A shorter name is contained in too many others to mean anything. */
const MIN_CONTAINED_CHARS = 3;

/**
 * Up to three of `candidates` that a user who wrote `name` may have meant,
 * the nearest first: other case or separators, a small slip of the keys, one
 * name inside the other. `name` itself is never among them.
 */
export function nearNames(name: string, candidates: Iterable<string>): string[] {
  const wanted = plain(name);
  const near: { candidate: string; distance: number }[] = [];
  for (const candidate of new Set(candidates)) {
    if (candidate === name) continue;
    const distance = computeDistance(wanted, plain(candidate));
    if (distance !== undefined) near.push({ candidate, distance });
  }
  return near
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MAX_NAMES)
    .map((entry) => entry.candidate);
}

/** `readFile`, `read-file` and `READ_FILE` are one name to a hurried writer. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[\s_.:/-]+/g, "");
}

/** Smaller is nearer; undefined is not near at all. */
function computeDistance(a: string, b: string): number | undefined {
  if (a === b) return 0;
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  const contained = short.length >= MIN_CONTAINED_CHARS && long.includes(short);
  const limit = long.length <= 5 ? 1 : long.length <= 8 ? 2 : 3;
  const edits =
    long.length <= MAX_EDIT_CHARS && long.length - short.length <= limit
      ? editDistance(short, long)
      : Number.POSITIVE_INFINITY;
  // A name with more around it is further off than any slip of the keys.
  if (edits <= limit && edits < short.length) return edits;
  if (contained) return long.startsWith(short) ? limit + 1 : limit + 2;
  return undefined;
}

/** Insertions, deletions, replacements and swaps of neighbors that turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let best = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (row > 1 && column > 1 && swapped) best = Math.min(best, at(beforeLast, column - 2) + 1);
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
