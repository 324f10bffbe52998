/** The anchor of a heading, as the usual hosts of repositories make it. @param {string} heading */
export function toAnchor(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-");
}

/**
 * Anchors for the headings of one page, in order: the second of the same text gets `-1`, the third `-2`.
 *
 * @returns {(heading: string) => string}
 */
export function createAnchors() {
  /** @type {Map<string, number>} */
  const counts = new Map();
  return (heading) => {
    const anchor = toAnchor(heading);
    const count = counts.get(anchor) ?? 0;
    counts.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  };
}
