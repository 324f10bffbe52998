/** What is searched: a tool by its name and what it says of itself. */
export interface Searched {
  name: string;
  description?: string;
}

/** BM25: how soon more of a word stops to count, and how much a long text counts less. */
const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;
/** A word of the name counts as so many of the description. */
const NAME_WEIGHT = 4;
/** The beginning of a word that was asked for counts as a part of it. */
const PREFIX_WEIGHT = 0.5;
const MIN_PREFIX_CHARS = 3;
/** Of a description: what comes later says little of what a tool is for. */
const MAX_SEARCHED_CHARS = 2_000;

/** Those that fit the words of a query, the best first; of equals the earlier first. */
export function ranked<T extends Searched>(query: string, tools: readonly T[]): T[] {
  const asked = [...new Set(splitWords(query))];
  const documents = tools.map((tool) => countWords(tool));
  const lengths = documents.map((counts) => [...counts.values()].reduce((sum, n) => sum + n, 0));
  const average = lengths.reduce((sum, n) => sum + n, 0) / Math.max(1, tools.length);
  const scores = tools.map(() => 0);
  for (const word of asked) {
    const found = documents.map((counts) => frequency(word, counts));
    const having = found.filter((n) => n > 0).length;
    const rarity = Math.log(1 + (tools.length - having + 0.5) / (having + 0.5));
    for (const [index, count] of found.entries()) {
      const relative = (lengths[index] ?? 0) / Math.max(1, average);
      const damping = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * relative);
      scores[index] =
        (scores[index] ?? 0) + (rarity * count * (SATURATION + 1)) / (count + damping);
    }
  }
  return tools
    .map((tool, index) => ({ tool, score: scores[index] ?? 0 }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ tool }) => tool);
}

function countWords({ name, description = "" }: Searched): Map<string, number> {
  const counts = new Map<string, number>();
  const add = (text: string, weight: number): void => {
    for (const word of splitWords(text)) counts.set(word, (counts.get(word) ?? 0) + weight);
  };
  add(name, NAME_WEIGHT);
  add(description.slice(0, MAX_SEARCHED_CHARS), 1);
  return counts;
}

function frequency(word: string, counts: ReadonlyMap<string, number>): number {
  let sum = counts.get(word) ?? 0;
  if (word.length < MIN_PREFIX_CHARS) return sum;
  for (const [other, count] of counts) {
    if (other.length < MIN_PREFIX_CHARS || other === word) continue;
    if (other.startsWith(word) || word.startsWith(other)) sum += count * PREFIX_WEIGHT;
  }
  return sum;
}

/** `createIssue`, `create_issue` and "create issue" are the same two words. */
function splitWords(text: string): string[] {
  const parted = text.replace(/(\p{Ll}|\d)(\p{Lu})/gu, "$1 $2").toLowerCase();
  return parted.match(/[\p{L}\p{N}]+/gu) ?? [];
}
