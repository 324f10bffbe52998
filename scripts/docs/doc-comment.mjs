/** @typedef {{ tag: string, text: string }} Block */

/** Tags whose words are about a name, which comes first. */
const NAMED_TAGS = new Set(["param", "typeParam", "template", "property"]);

/** @type {Readonly<Record<string, string>>} */
const TITLES = {
  param: "Parameters",
  typeParam: "Type parameters",
  template: "Type parameters",
  property: "Properties",
  returns: "Returns",
  throws: "Throws",
  example: "Example",
  deprecated: "Deprecated",
  see: "See also",
  since: "Since",
  default: "Default",
};

/**
 * A doc comment as Markdown: its words, then what its tags say. An example that is not
 * fenced gets a fence.
 *
 * @param {string} doc without the stars
 * @returns {string}
 */
export function docMarkdown(doc) {
  const [{ text } = { text: "" }, ...tags] = parseBlocks(doc);
  /** @type {Map<string, string[]>} */
  const titled = new Map();
  for (const block of tags) {
    const title = TITLES[block.tag] ?? block.tag;
    titled.set(title, [...(titled.get(title) ?? []), blockMarkdown(block)]);
  }
  const parts = text === "" ? [] : [proseMarkdown(text)];
  for (const [title, texts] of titled) {
    const lists = texts.every((one) => one.startsWith("- "));
    const fenced = texts.some((one) => one.startsWith("```"));
    if (lists || fenced) parts.push(`${title}:`, texts.join(lists ? "\n" : "\n\n"));
    else parts.push(`${title}: ${texts.join(" ")}`);
  }
  return parts.join("\n\n");
}

/**
 * The first sentence of a doc comment, in one line. A comment that begins with a tag has
 * none.
 *
 * @param {string} doc
 * @returns {string}
 */
export function firstSentence(doc) {
  const [paragraph = ""] = (parseBlocks(doc)[0]?.text ?? "").split(/\n\s*\n/, 1);
  const line = proseMarkdown(paragraph.replaceAll(/\s+/g, " ").trim());
  // A full stop in code ends nothing, and neither does one of an abbreviation.
  const whole = /^(?:`[^`]*`|[^`])*?(?<!\b(?:e\.g|i\.e|etc))[.!?](?=\s|$)/.exec(line)?.[0] ?? line;
  return whole.replace(/[:.]$/, "") + ".";
}

/**
 * The words before the first tag, then each tag with its own. A fence hides what looks
 * like a tag.
 *
 * @param {string} doc
 * @returns {Block[]}
 */
function parseBlocks(doc) {
  /** @type {Block[]} */
  const blocks = [{ tag: "", text: "" }];
  let inFence = false;
  for (const line of doc.split("\n")) {
    if (/^\s*```/.test(line)) inFence = !inFence;
    const [, tag, rest = ""] = (inFence ? undefined : /^@(\w+)\b\s?(.*)$/.exec(line)) ?? [];
    const last = blocks.at(-1);
    if (tag !== undefined) blocks.push({ tag, text: rest });
    else if (last !== undefined) last.text += `\n${line}`;
  }
  return blocks.map(({ tag, text }) => ({ tag, text: text.replace(/^\n+/, "").trimEnd() }));
}

/** @param {Block} block */
function blockMarkdown({ tag, text }) {
  if (tag === "example") return text.includes("```") ? text : `\`\`\`ts\n${text}\n\`\`\``;
  if (!NAMED_TAGS.has(tag)) return proseMarkdown(text);
  const [, name = "", words = ""] = /^(\S+)\s*(?:-\s+)?([\s\S]*)$/.exec(text) ?? [];
  return `- \`${name}\`: ${proseMarkdown(words)}`;
}

/**
 * Markdown that says `<T>` and not a tag of HTML: code stays as it is.
 *
 * @param {string} text
 */
function proseMarkdown(text) {
  return text
    .replaceAll(/\{@link(?:code|plain)?\s+([^}|\s]+)[^}]*\}/g, "`$1`")
    .split(/(^```[\s\S]*?^```|^ {4}.*$|`[^`]*`)/m)
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll(/<(?=[\w/!])/g, "&lt;")))
    .join("");
}
