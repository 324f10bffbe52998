import { existsSync } from "node:fs";
import { join } from "node:path";
import { formatCode } from "./code.mjs";
import { escapeHtml } from "./html.mjs";
import { linkBetween } from "./markdown.mjs";
import { readSource, START } from "./sources.mjs";

/** @typedef {import("./markdown.mjs").Page} Page */

const PROGRAMS = "docs/programs";
const EXAMPLES = "examples/README.md";

/**
 * What programs of the guide print, one text for each process, by their path.
 *
 * @param {string} root
 * @returns {Map<string, string[]>}
 */
export function readPrints(root) {
  const file = `${PROGRAMS}/prints.json`;
  if (!existsSync(join(root, file))) return new Map();
  /** @type {Record<string, string[]>} */
  const prints = JSON.parse(readSource(root, file));
  return new Map(Object.entries(prints).map(([name, texts]) => [`${PROGRAMS}/${name}.ts`, texts]));
}

/**
 * A program to read and copy, with what it prints.
 *
 * @param {string} source
 * @param {string} text
 * @param {readonly string[]} prints one for each process
 * @returns {Page}
 */
export function makeProgramPage(source, text, prints) {
  const title = source.replace(/^docs\//, "");
  const [language = ""] = /[^.]+$/.exec(source) ?? [];
  const outputs = prints.map((output, at) => {
    const caption = prints.length === 1 ? "prints" : `process ${at + 1} prints`;
    // One that is killed in the middle has nothing to show.
    return output === "" ? "" : formatCode(output.trimEnd(), { language: "text", caption });
  });
  const { home, note } = describeOrigin(source);
  const code = formatCode(text.trimEnd(), { language });
  const heading = { depth: 1, anchor: "program", title };
  return {
    source,
    title,
    html: `<h1 id="program">${escapeHtml(title)}</h1>\n<p>${note}</p>\n${code}${outputs.join("")}`,
    headings: [heading],
    sections: [{ ...heading, text: "", code: text }],
    summary: `The program ${title}`,
    targets: [{ page: home }],
    problems: [],
  };
}

/**
 * The page that a program belongs to, and a sentence with a link to it.
 *
 * @param {string} source
 */
function describeOrigin(source) {
  const [, example] = /^examples\/([\w-]+)\.ts$/.exec(source) ?? [];
  const home = source.startsWith("examples/") ? EXAMPLES : START;
  const href = linkBetween(source, home);
  if (example !== undefined) {
    return { home, note: `<a href="${href}#${example}">Examples</a> has what it prints.` };
  }
  return home === EXAMPLES
    ? { home, note: `A file of one of the <a href="${href}">examples</a>.` }
    : { home, note: `One of the programs of <a href="${href}">the guide</a>, which a test runs.` };
}
