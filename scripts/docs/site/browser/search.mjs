import { toAnchor } from "./anchors.mjs";
import { splitNames, splitWords } from "./words.mjs";

/**
 * `pages`: address and title. `sections`: the number of the page, and of a section below its first heading the title,
 * and the anchor where it is not that of the title. `words`: the sections with a word, each but the first as the distance from the one before.
 *
 * @typedef {{
 *   pages: [string, string][], sections: [page: number, title?: string, anchor?: string][], words: Record<string, number[]>,
 * }} SearchIndex
 * @typedef {{ href: string, page: string, section: string, score: number }} Hit
 */

export const MAX_HITS = 12;

/** What a word counts in the title of a page, for its first section and for the others, in a section's title, in the text. */
const SCORES = { first: 30, page: 12, title: 20, text: 2 };
/** What the beginning of a word counts of a whole one. */
const BEGINNING = 0.4;

/**
 * The search in an index: the sections that have every word of a query, the best first. A word of the query may be
 * the beginning of a word.
 *
 * @param {SearchIndex} index
 * @returns {(query: string) => Hit[]}
 */
export function createSearch({ pages, sections, words }) {
  const pageTitles = pages.map(([, title]) => splitNames(title));
  const titles = sections.map(([, title]) => (title === undefined ? undefined : splitNames(title)));
  const known = Object.entries(words);

  /** What one word counts in each section. @param {string} word */
  const scoreSections = (word) => {
    const inText = sections.map(() => 0);
    for (const [one, steps] of known) {
      const share = compareWords(one, word);
      if (share === 0) continue;
      let at = 0;
      for (const step of steps) {
        at += step;
        inText[at] = Math.max(inText[at] ?? 0, share * SCORES.text);
      }
    }
    const pageScores = pageTitles.map((title) => scoreTitle(title, word));
    return sections.map(([page], at) => {
      const title = titles[at];
      const ofPage = pageScores[page] ?? 0;
      const ofTitle =
        title === undefined
          ? ofPage * SCORES.first
          : scoreTitle(title, word) * SCORES.title + ofPage * SCORES.page;
      return ofTitle + (inText[at] ?? 0);
    });
  };

  return (query) => {
    const wanted = new Set(splitWords(query));
    if (wanted.size === 0) return [];
    const scores = [...wanted].map(scoreSections);
    /** @type {Hit[]} */
    const hits = [];
    for (const [at, [page, title, anchor]] of sections.entries()) {
      const own = scores.map((score) => score[at] ?? 0);
      if (own.includes(0)) continue;
      const [address, pageTitle] = pages[page] ?? ["", ""];
      const place = title === undefined ? "" : `#${anchor ?? toAnchor(title)}`;
      const href = encodeURI(address + place);
      const score = own.reduce((sum, one) => sum + one);
      hits.push({ href, page: pageTitle, section: title ?? "", score });
    }
    return hits.sort((left, right) => right.score - left.score).slice(0, MAX_HITS);
  };
}

/**
 * The best word of a title. A word of a short title says more about it.
 *
 * @param {readonly string[]} title
 * @param {string} word
 */
function scoreTitle(title, word) {
  let best = 0;
  for (const one of title) best = Math.max(best, compareWords(one, word));
  return best / (1 + title.length / 10);
}

/**
 * @param {string} known
 * @param {string} word
 */
function compareWords(known, word) {
  if (known === word) return 1;
  return known.startsWith(word) ? BEGINNING : 0;
}
