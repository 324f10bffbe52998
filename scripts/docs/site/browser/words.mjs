/**
 * The words of a text in lower case, without accents.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function splitWords(text) {
  return findWords(text).map((word) => word.toLowerCase());
}

/**
 * The same with the parts of names: `defineTool` is also found by `tool`.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function splitNames(text) {
  return findWords(text).flatMap((word) => {
    const parts = word.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{N}]+/gu) ?? [];
    const all = parts.length > 1 ? [word, ...parts.filter((part) => part.length > 1)] : [word];
    return all.map((one) => one.toLowerCase());
  });
}

/** @param {string} text */
function findWords(text) {
  const plain = text.normalize("NFKD").replaceAll(/\p{M}/gu, "");
  return (plain.match(/[\p{L}\p{N}_]+/gu) ?? []).filter((word) => word.length > 1);
}
