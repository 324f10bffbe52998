import { toAnchor } from "./browser/anchors.mjs";
import { splitNames } from "./browser/words.mjs";
import { toOutput } from "./sources.mjs";

/**
 * @typedef {import("./markdown.mjs").Page} Page
 * @typedef {import("./browser/search.mjs").SearchIndex} SearchIndex
 */

/** A word that stands in more than this share of the sections finds nothing in particular. */
const MAX_SHARE = 0.2;
/** Longer words are hashes and the like. */
const MAX_WORD_CHARS = 40;
const REFERENCE = "docs/reference/";
/** Lists what its pages have: it would be found for every name. */
const LISTS = new Set([`${REFERENCE}README.md`]);

/**
 * What the search reads: the pages, their sections, and for each word the sections with it. Words of titles are not
 * in it: the browser has the titles.
 *
 * @param {readonly Page[]} pages
 * @returns {SearchIndex}
 */
export function makeSearchIndex(pages) {
  /** @type {SearchIndex["sections"]} */
  const sections = [];
  /** @type {Map<string, number[]>} */
  const places = new Map();
  const listed = pages.filter(({ source }) => !LISTS.has(source));
  for (const [at, { source, sections: own }] of listed.entries()) {
    for (const section of own) {
      const { depth, anchor, title } = section;
      const number = sections.length;
      if (depth === 1) sections.push([at]);
      else sections.push(anchor === toAnchor(title) ? [at, title] : [at, title, anchor]);
      for (const word of new Set(splitNames(readIndexed(source, section)))) {
        if (word.length > MAX_WORD_CHARS || /^\d+$/.test(word)) continue;
        const known = places.get(word);
        if (known === undefined) places.set(word, [number]);
        else known.push(number);
      }
    }
  }
  const most = sections.length * MAX_SHARE;
  const words = [...places].filter(([, numbers]) => numbers.length <= most).toSorted(byWord);
  return {
    pages: listed.map(({ source, title }) => [toOutput(source), title]),
    sections,
    words: Object.fromEntries(words.map(([word, numbers]) => [word, toSteps(numbers)])),
  };
}

/**
 * A page of the reference begins with a list of its names, which have sections of their own. The code in these is
 * declarations: the names in them have sections too.
 *
 * @param {string} source
 * @param {import("./markdown.mjs").Section} section
 */
function readIndexed(source, { depth, text, code }) {
  if (!source.startsWith(REFERENCE)) return `${text} ${code}`;
  return depth < 3 ? "" : text;
}

/**
 * @param {[string, number[]]} left
 * @param {[string, number[]]} right
 */
function byWord([left], [right]) {
  return left < right ? -1 : 1;
}

/** Small numbers in place of large ones: each but the first is the distance from the one before. @param {number[]} numbers */
function toSteps(numbers) {
  return numbers.map((number, at) => number - (numbers[at - 1] ?? 0));
}
