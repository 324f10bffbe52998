// Holds the tree to docs/terms.md: `node scripts/check/words.mjs --help`.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { parseSync } from "rolldown/utils";
import { lineFinder, walk } from "./imports.mjs";
import { parseTerms } from "./terms.mjs";

/**
 * @typedef {import("./terms.mjs").Place} Place
 * @typedef {import("./terms.mjs").Rule} Rule
 * @typedef {import("./imports.mjs").Node} Node
 * @typedef {import("./terms.mjs").Terms} Terms
 * @typedef {{ file: string, line: number, word: string, instead: string }} Finding
 * @typedef {{ file: string, line: number, name: string }} NamedFunction
 * @typedef {(lower: string) => readonly Rule[]} RuleFinder the rules whose first word this is
 */

/** Functions that only read a part or a property of what they are given. */
const ACCESSORS = new Set(["callsOf", "errnoOf", "outcomeOf", "textOf"]);
/** Folders of what a program wrote or others made, and hidden ones. */
const SKIPPED_FOLDER = /^(?:node_modules|dist|bundle|fixtures|\..*)$/;
/** Generated from the comments in the sources. */
const GENERATED = /^docs\/reference\//;
const SOURCES = /\.(?:ts|tsx|mts|mjs|js)$/;
const WORD = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g;

/**
 * @param {string} root
 * @returns {import("../shared/parts.mjs").Findings}
 */
export function checkWords(root) {
  const { findings, functions } = inspectTree(root);
  const wrong = functions.filter(({ name }) => !ACCESSORS.has(name));
  return {
    problems: [
      ...findings.map(formatFinding),
      ...wrong.map((one) => `${formatFunction(one)}: begin with a verb`),
    ],
  };
}

/** @param {Finding} finding */
function formatFinding({ file, line, word, instead }) {
  return `${file}:${line}: "${word}": write ${instead}`;
}

/** @param {NamedFunction} one */
function formatFunction({ file, line, name }) {
  return `${file}:${line}: ${name}`;
}

/**
 * Everything in the tree that the page of terms does not allow, and every function named `…Of`.
 *
 * @param {string} root
 * @param {string} [below] a folder or file below the root
 */
export function inspectTree(root, below = "") {
  const terms = parseTerms(readFileSync(join(root, "docs/terms.md"), "utf8"));
  const rulesFor = createRuleFinder(terms.rules);
  /** @type {Finding[]} */
  const findings = [];
  /** @type {NamedFunction[]} */
  const functions = [];
  for (const file of listFiles(root)) {
    if (below !== "" && file !== below && !file.startsWith(`${below}/`)) continue;
    const source = readFileSync(join(root, file), "utf8");
    const seen = inspectFile(file, source, terms, rulesFor);
    findings.push(...seen.findings);
    functions.push(...seen.functions);
  }
  return { findings, functions };
}

/**
 * @param {string} file
 * @param {string} source
 * @param {Terms} terms
 * @param {RuleFinder} [rulesFor]
 * @returns {{ findings: Finding[], functions: NamedFunction[] }}
 */
export function inspectFile(file, source, terms, rulesFor = createRuleFinder(terms.rules)) {
  const exceptions = terms.exceptions.filter(({ files }) => files.test(file));
  if (exceptions.some(({ allowed }) => allowed === undefined))
    return { findings: [], functions: [] };
  const lineAt = lineFinder(source);
  const { pieces, functions } = SOURCES.test(file)
    ? splitSource(file, source)
    : {
        pieces: [{ text: source, start: 0, place: /** @type {Place} */ ("prose") }],
        functions: [],
      };
  /** @type {Finding[]} */
  const findings = [];
  const name = file.slice(file.lastIndexOf("/") + 1);
  for (const { text, start, place } of [
    { text: name, start: -1, place: "identifiers" },
    ...pieces,
  ]) {
    for (const { 0: first, index } of text.matchAll(WORD)) {
      for (const { phrase, places, instead } of rulesFor(first.toLowerCase())) {
        phrase.lastIndex = index;
        const found = places.has(/** @type {Place} */ (place)) && phrase.exec(text);
        if (!found || exceptions.some(({ allowed }) => covers(allowed, text, index))) continue;
        const line = start < 0 ? 1 : lineAt(start + index);
        findings.push({ file, line, word: found[0].replaceAll(/[\s*/]+/g, " "), instead });
        break;
      }
    }
  }
  return {
    findings,
    functions: functions.map(({ name, start }) => ({ file, line: lineAt(start), name })),
  };
}

/** @param {readonly Rule[]} rules @returns {RuleFinder} */
function createRuleFinder(rules) {
  /** @type {Map<string, readonly Rule[]>} */
  const known = new Map();
  return (lower) => {
    const found = known.get(lower) ?? rules.filter(({ first }) => first.test(lower));
    known.set(lower, found);
    return found;
  };
}

/**
 * Whether the word at an offset is part of a text that an exception allows.
 *
 * @param {RegExp | undefined} allowed
 * @param {string} text
 * @param {number} at
 */
function covers(allowed, text, at) {
  return [...text.matchAll(allowed ?? /$^/g)].some(
    ({ 0: found, index }) => index <= at && at < index + found.length,
  );
}

/**
 * The identifiers, comments and strings of a source, in order, and its functions whose name ends
 * in `Of`. Runs of `//` comments on lines of their own are one, so that a sentence can wrap; the
 * text of a template counts as a string.
 *
 * @param {string} file
 * @param {string} source
 */
export function splitSource(file, source) {
  const { program, comments, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  /** @type {Map<number, { text: string, start: number, place: Place }>} by `start` */
  const pieces = new Map();
  /** @type {{ name: string, start: number }[]} */
  const functions = [];
  let end = 0;
  let lines = { text: "", start: 0 };
  for (const { type, ...comment } of comments) {
    const text = source.slice(comment.start, comment.end);
    const between = source.slice(end, comment.start);
    if (type === "Line" && lines.text !== "" && /^\n[ \t]*$/.test(between)) {
      lines.text += between + text;
    } else {
      const piece = { text, start: comment.start, place: /** @type {Place} */ ("comments") };
      pieces.set(comment.start, piece);
      lines = type === "Line" ? piece : { text: "", start: 0 };
    }
    end = comment.end;
  }
  walk(/** @type {Node} */ (/** @type {unknown} */ (program)), (node) => {
    const { type, start } = node;
    if (type === "Identifier" || type === "PrivateIdentifier") {
      pieces.set(start, { text: String(node["name"]), start, place: "identifiers" });
    } else if (type === "Literal" || type === "TemplateElement") {
      // `\n` and `\b` are no letters of the word behind them.
      const text = source.slice(start, Number(node["end"])).replaceAll(/\\[a-zA-Z]/g, "  ");
      pieces.set(start, { text, start, place: "prose" });
    }
    const name = Reflect.get(node["id"] ?? node["key"] ?? {}, "name");
    if (/[a-z0-9]Of$/.test(name) && isFunction(node)) functions.push({ name, start });
  });
  return { pieces: [...pieces.values()].toSorted((a, b) => a.start - b.start), functions };
}

/** Whether a declaration or a member is a function, or has the type of one. @param {Node} node */
function isFunction(node) {
  const type = Reflect.get(node["typeAnnotation"] ?? {}, "typeAnnotation");
  return [node, node["init"], node["value"], type].some((one) =>
    /Function|TSMethodSignature/.test(Reflect.get(one ?? {}, "type")),
  );
}

/** Sources and Markdown pages, by path from the root. @param {string} root @param {string} [folder] @returns {string[]} */
export function listFiles(root, folder = "") {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return SKIPPED_FOLDER.test(entry.name) ? [] : listFiles(root, path);
    const isRead = entry.isFile() && (SOURCES.test(path) || path.endsWith(".md"));
    return isRead && !GENERATED.test(path) ? [path] : [];
  });
}

const HELP = `node scripts/check/words.mjs              what npm run check says
node scripts/check/words.mjs --list PATH  the words that docs/terms.md replaces, below a folder or in a file
node scripts/check/words.mjs --of PATH    the functions named …Of`;

/** @param {string} root @param {readonly string[]} args @returns {number} the exit code */
function main(root, [option, path = ""]) {
  const below = path.replace(/^\.\//, "").replace(/\/$/, "");
  if (option === "--list") {
    for (const one of inspectTree(root, below).findings) console.log(formatFinding(one));
  } else if (option === "--of") {
    for (const one of inspectTree(root, below).functions) console.log(formatFunction(one));
  } else if (option === undefined) {
    const { problems } = checkWords(root);
    for (const line of problems) console.log(line);
    return problems.length === 0 ? 0 : 1;
  } else {
    console.log(HELP);
    return option === "--help" ? 0 : 2;
  }
  return 0;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = main(fileURLToPath(new URL("../..", import.meta.url)), argv.slice(2));
}
