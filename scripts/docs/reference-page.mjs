import { posix } from "node:path";
import { docMarkdown, firstSentence } from "./doc-comment.mjs";
import { byName } from "./libraries.mjs";

/**
 * @typedef {import("./declaration-file.mjs").Declared} Declared
 * @typedef {import("./declaration-file.mjs").Kind} Kind
 * @typedef {import("./libraries.mjs").Documented} Documented
 * @typedef {import("./libraries.mjs").EntryPoint} EntryPoint
 * @typedef {import("./libraries.mjs").Library} Library
 */

/** Where the pages are, from the root. */
export const FOLDER = "docs/reference";

const NOTE =
  "<!-- Written by scripts/docs/reference.mjs from the built types. Edit the doc comments. -->";

/** @type {readonly { kind: Kind, title: string }[]} */
const SECTIONS = [
  { kind: "function", title: "Functions" },
  { kind: "class", title: "Classes" },
  { kind: "interface", title: "Interfaces" },
  { kind: "type", title: "Types" },
  { kind: "const", title: "Constants" },
];

/**
 * The page of an entry point: what it exports in one line each, then each name with its
 * words, its declaration, and the way to what it speaks of.
 *
 * @param {EntryPoint} entry
 * @returns {string}
 */
export function entryPage({ specifier, page, names, others }) {
  const sections = SECTIONS.map(({ kind, title }) => ({
    title,
    names: names.filter(({ declared }) => declared[0]?.kind === kind),
  })).filter((section) => section.names.length > 0);
  const up = posix.relative(posix.dirname(page), "README.md");
  return join([
    `# ${specifier}`,
    NOTE,
    `What \`${specifier}\` exports. [All entry points and names](${up}).`,
    ...sections.flatMap((section) => [
      `**${section.title}**`,
      section.names.map((one) => contentsLine(one, page)).join("\n"),
    ]),
    ...(others.length === 0 ? [] : ["**From elsewhere**", othersList(others, page)]),
    ...sections.flatMap(({ title, names: documented }) => [
      `## ${title}`,
      ...documented.flatMap((one) => renderEntry(one, page)),
    ]),
  ]);
}

/**
 * The page that leads to all others, by entry point and by name.
 *
 * @param {readonly Library[]} libraries
 * @returns {string}
 */
export function indexPage(libraries) {
  const entries = libraries.flatMap((library) => library.entries);
  const names = entries.flatMap((entry) => entry.names).toSorted(byName);
  return join([
    "# Reference",
    NOTE,
    "Every name that the packages export, with its types, as the code declares it. The pages" +
      "\none folder up say what the names are for and how they go together.",
    ...libraries.flatMap(({ name, description, entries: own }) => [
      `## ${name}`,
      `${description}.`,
      own.map((entry) => `- [${entry.specifier}](${entry.page}): ${formatCount(entry)}`).join("\n"),
    ]),
    "## All names",
    names
      .map((one) => `- ${linkTo(one, "README.md")}: ${formatKinds(one)} of \`${one.specifier}\``)
      .join("\n"),
  ]);
}

/**
 * The doc comment of a name: the first that one of its declarations has.
 *
 * @param {Documented} one
 */
export function readDoc({ declared }) {
  return declared.find(({ doc }) => doc !== undefined)?.doc;
}

/** @param {Documented} one */
export function formatKinds({ declared }) {
  return [...new Set(declared.map(({ kind }) => kind))].join(" and ");
}

/** @param {Documented} one */
function formatHeading(one) {
  return `${formatKinds(one)} ${one.name}`;
}

/**
 * Two names may differ in case alone: the kind in the heading keeps their anchors apart.
 *
 * @param {Documented} one
 */
export function toAnchor(one) {
  return formatHeading(one).toLowerCase().replaceAll("$", "").replaceAll(" ", "-");
}

/**
 * @param {Documented} one
 * @param {string} page that the link is on
 */
function linkTo(one, page) {
  const path = one.page === page ? "" : posix.relative(posix.dirname(page), one.page);
  return `[${one.name}](${path}#${toAnchor(one)})`;
}

/**
 * @param {Documented} one
 * @param {string} page
 */
function contentsLine(one, page) {
  const doc = readDoc(one);
  return `- ${linkTo(one, page)}${doc === undefined ? "" : `: ${firstSentence(doc)}`}`;
}

/**
 * @param {EntryPoint["others"]} others
 * @param {string} page
 */
function othersList(others, page) {
  return others
    .map(({ name, home }) => {
      if (typeof home === "string") return `- \`${name}\`, of \`${home}\``;
      const alias = home.name === name ? "" : `\`${name}\`: `;
      return `- ${alias}${linkTo(home, page)}, of \`${home.specifier}\``;
    })
    .join("\n");
}

/**
 * @param {Documented} one
 * @param {string} page
 * @returns {string[]}
 */
function renderEntry(one, page) {
  const doc = readDoc(one);
  const up = posix.relative(posix.dirname(`${FOLDER}/${page}`), one.source);
  const see = one.see.map((other) => linkTo(other, page)).join(", ");
  return [
    `### ${formatHeading(one)}`,
    ...(doc === undefined ? [] : [docMarkdown(doc)]),
    `\`\`\`ts\n${[...one.declared, ...one.parts].map((each) => withDoc(each, doc)).join("\n\n")}\n\`\`\``,
    `${see === "" ? "" : `See: ${see}. `}Source: [${posix.basename(one.source)}](${up}).`,
  ];
}

/**
 * What stands above the block is not repeated in it.
 *
 * @param {Declared} declared
 * @param {string | undefined} above
 */
function withDoc({ doc, text }, above) {
  if (doc === undefined || doc === above) return text;
  const lines = doc.split("\n");
  if (lines.length === 1) return `/** ${doc} */\n${text}`;
  return `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join("\n")}\n */\n${text}`;
}

/** @param {EntryPoint} entry */
function formatCount({ names, others }) {
  const count = names.length + others.length;
  return count === 1 ? "1 name" : `${count} names`;
}

/** @param {readonly string[]} parts */
function join(parts) {
  return `${parts.join("\n\n")}\n`;
}
