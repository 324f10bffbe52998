// Holds the tree to docs/terms.md: `node scripts/check/words.mjs --help`.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { splitSource } from "./source-parts.mjs";
import { parseTerms } from "./terms.mjs";

/**
 * @typedef {import("./terms.mjs").Place} Place
 * @typedef {import("./terms.mjs").Rule} Rule
 * @typedef {import("./terms.mjs").Terms} Terms
 * @typedef {{ file: string, line: number, word: string, instead: string }} Finding
 * @typedef {{ file: string, line: number, name: string }} NamedFunction
 * @typedef {{ words?: number, of?: number }} Budget absent means 0
 * @typedef {{ problems: readonly string[], figures: readonly string[] }} Comparison
 * @typedef {{ text: string, lower: string, start: number }} Word
 * @typedef {(lower: string) => readonly Rule[]} RuleFinder the rules whose first word this is
 */

const BUDGET_FILE = "scripts/check/words-budget.json";
/** Folders of what a program wrote or others made, and hidden ones. */
const SKIPPED_FOLDER = /^(?:node_modules|dist|bundle|fixtures|\..*)$/;
/** Generated from the comments in the sources. */
const GENERATED = /^docs\/reference\//;
const SOURCES = /\.(?:ts|tsx|mts|mjs|js)$/;
const WORD = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g;

/**
 * @param {string} root
 * @returns {Comparison}
 */
export function checkWords(root) {
  const { findings, functions } = inspectTree(root);
  return compareWithBudget(countByArea(findings, functions), readBudgets(root));
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
  const lineAt = createLineFinder(source);
  /** @type {(Finding & { at: number })[]} */
  const found = [];
  /** @param {string} text @param {number} start @param {Place} place */
  const inspect = (text, start, place) => {
    /** @type {Word[] | undefined} */
    let words;
    for (const match of text.matchAll(WORD)) {
      const rules = rulesFor(match[0].toLowerCase());
      if (rules.length === 0) continue;
      words ??= splitWords(text);
      const at = words.findIndex((word) => word.start === match.index);
      const rule = rules.find(
        ({ pattern, places }) => places.has(place) && matches(pattern, text, words ?? [], at),
      );
      if (rule === undefined || isAllowed(exceptions, text, words, at)) continue;
      const last = words[at + rule.pattern.words.length - 1] ?? { start: 0, text: "" };
      const word = text.slice(match.index, last.start + last.text.length);
      found.push({
        file,
        line: start < 0 ? 1 : lineAt(start + match.index),
        word: word.replaceAll(/[\s*/]+/g, " "),
        instead: rule.instead,
        at: start + match.index,
      });
    }
  };

  inspect(file.slice(file.lastIndexOf("/") + 1), -1, "identifiers");
  if (!SOURCES.test(file)) {
    inspect(source, 0, "prose");
    return { findings: found.map(withoutOffset), functions: [] };
  }
  const { code, comments, strings } = splitSource(source);
  for (const match of code.matchAll(/[A-Za-z_$][\w$]*/g))
    inspect(match[0], match.index, "identifiers");
  for (const { text, start } of comments) inspect(text, start, "comments");
  for (const { text, start } of strings) {
    // `\n` and `\b` are no letters of the word behind them.
    inspect(text.replaceAll(/\\[a-zA-Z]/g, "  "), start, "prose");
  }
  const functions = findFunctions(code).map(({ name, start }) => ({
    file,
    line: lineAt(start),
    name,
  }));
  return { findings: found.toSorted((a, b) => a.at - b.at).map(withoutOffset), functions };
}

/** @param {Finding & { at: number }} found @returns {Finding} */
function withoutOffset({ file, line, word, instead }) {
  return { file, line, word, instead };
}

/** @param {readonly Rule[]} rules @returns {RuleFinder} */
function createRuleFinder(rules) {
  /** @type {Map<string, readonly Rule[]>} */
  const known = new Map();
  return (lower) => {
    let found = known.get(lower);
    if (found === undefined) {
      found = rules.filter(({ pattern }) => pattern.words[0]?.test(lower));
      known.set(lower, found);
    }
    return found;
  };
}

/** @param {string} text @returns {Word[]} */
function splitWords(text) {
  return [...text.matchAll(WORD)].map((match) => ({
    text: match[0],
    lower: match[0].toLowerCase(),
    start: match.index,
  }));
}

/**
 * Whether a pattern matches the words from an index on.
 *
 * @param {import("./terms.mjs").Pattern} pattern
 * @param {string} text
 * @param {readonly Word[]} words
 * @param {number} at
 */
function matches({ words: expected, gap, opensSentence }, text, words, at) {
  for (const [index, expression] of expected.entries()) {
    const word = words[at + index];
    if (word === undefined || !expression.test(word.lower)) return false;
    const before = words[at + index - 1];
    if (index === 0 || before === undefined) continue;
    if (!gap.test(text.slice(before.start + before.text.length, word.start))) return false;
  }
  return !opensSentence || opensStatement(text, words[at]);
}

/** Whether a word is the first of a sentence that asks nothing. @param {string} text @param {Word | undefined} word */
function opensStatement(text, word) {
  if (word === undefined || !/^[A-Z]/.test(word.text)) return false;
  const before = text.slice(0, word.start).trimEnd();
  if (!/(?:^|[.:;!?"'`)(|#*/-])$/.test(before)) return false;
  return !/^[^.!]*\?/.test(text.slice(word.start));
}

/**
 * Whether the word at an index is part of a text that an exception allows.
 *
 * @param {readonly import("./terms.mjs").Exception[]} exceptions
 * @param {string} text
 * @param {readonly Word[]} words
 * @param {number} at
 */
function isAllowed(exceptions, text, words, at) {
  const start = words[at]?.start ?? 0;
  return exceptions.some(({ allowed }) => {
    if (typeof allowed !== "string") {
      return allowed?.words.some((_, index) => matches(allowed, text, words, at - index));
    }
    const found = text.lastIndexOf(allowed, start);
    return found >= 0 && start < found + allowed.length;
  });
}

/**
 * Functions, methods and arrow functions whose name ends in `Of`.
 *
 * @param {string} code without comments and strings
 * @returns {{ name: string, start: number }[]}
 */
export function findFunctions(code) {
  return [...code.matchAll(/[A-Za-z_$][\w$]*[a-z0-9]Of\b/g)]
    .filter((match) => declaresFunction(code, match.index, match.index + match[0].length))
    .map((match) => ({ name: match[0], start: match.index }));
}

/** @param {string} code @param {number} start @param {number} end of the name */
function declaresFunction(code, start, end) {
  const before = code.slice(Math.max(0, start - 60), start);
  const after = code.slice(end, end + 2000);
  if (/\bfunction\s*\*?\s*$/.test(before)) return true;
  const isVariable = /\b(?:const|let)\s+$/.test(before);
  const isMember =
    /(?:^|[{};,(]|\*\/)\s*(?:(?:export|async|static|private|public|protected|override|readonly|abstract)\s+)*\*?\s*#?$/.test(
      before,
    );
  if (isVariable || isMember) {
    const value =
      after.match(/^\s*(?::[^=;]*(?:=>[^=;]*)*)?=\s*(?!=|>)(?:async\s+)?/) ??
      after.match(/^\s*:\s*(?:async\s+)?/);
    if (value !== null && (isVariable ? value[0].includes("=") : true)) {
      const rest = after.slice(value[0].length);
      if (/^function\b/.test(rest) || /^[A-Za-z_$][\w$]*\s*=>/.test(rest)) return true;
      const close = closingParen(rest);
      if (close !== undefined && /^\s*(?::[^;=]*)?=>/.test(rest.slice(close))) return true;
    }
  }
  if (!isMember) return false;
  const close = closingParen(after);
  return close !== undefined && /^\s*(?:\{|:)/.test(after.slice(close));
}

/** The offset behind a list of parameters, with type parameters before it, if there is one. @param {string} text */
function closingParen(text) {
  let start = text.search(/\S/);
  if (text[start] === "<") {
    const open = text.indexOf("(", start);
    if (open < 0 || !/^<[^;{}]*>\s*$/.test(text.slice(start, open))) return undefined;
    start = open;
  }
  if (text[start] !== "(") return undefined;
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    else if (text[at] === ")") depth -= 1;
    if (depth === 0) return at + 1;
  }
  return undefined;
}

/** @param {string} source @returns {(offset: number) => number} */
function createLineFinder(source) {
  /** @type {number[] | undefined} */
  let starts;
  return (offset) => {
    starts ??= [0, ...[...source.matchAll(/\n/g)].map((match) => match.index + 1)];
    return starts.findLastIndex((start) => start <= offset) + 1;
  };
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

/** The part of the tree that has a budget of its own. @param {string} file */
function nameArea(file) {
  const [first = "", second = "", third] = file.split("/");
  if (first === "packages" && third !== undefined) return `packages/${second}`;
  if (["sim", "recorded", "bench"].includes(first)) return "tests";
  return file.includes("/") ? first : "root";
}

/**
 * @param {readonly Finding[]} findings
 * @param {readonly NamedFunction[]} functions
 * @returns {Record<string, Required<Budget>>}
 */
export function countByArea(findings, functions) {
  /** @type {Record<string, Required<Budget>>} */
  const counts = {};
  for (const { file } of findings) (counts[nameArea(file)] ??= { words: 0, of: 0 }).words += 1;
  for (const { file } of functions) (counts[nameArea(file)] ??= { words: 0, of: 0 }).of += 1;
  return counts;
}

/**
 * @param {Readonly<Record<string, Required<Budget>>>} counts
 * @param {Readonly<Record<string, Budget>>} budgets
 * @returns {Comparison}
 */
export function compareWithBudget(counts, budgets) {
  const problems = [];
  const figures = [];
  for (const area of [...new Set([...Object.keys(counts), ...Object.keys(budgets)])].toSorted()) {
    const count = counts[area] ?? { words: 0, of: 0 };
    const budget = { words: 0, of: 0, ...budgets[area] };
    const kinds = /** @type {const} */ ([
      ["words", "words that docs/terms.md replaces", "--list"],
      ["of", "functions named …Of", "--of"],
    ]);
    for (const [kind, what, option] of kinds) {
      if (count[kind] > budget[kind]) {
        problems.push(
          `${area}: ${count[kind]} ${what}, budget ${budget[kind]}; see node scripts/check/words.mjs ${option} ${area}`,
        );
      } else if (count[kind] < budget[kind]) {
        figures.push(
          `${area}: ${count[kind]} ${what}, budget ${budget[kind]}; lower it: node scripts/check/words.mjs --lower`,
        );
      }
    }
  }
  return { problems, figures };
}

/** @param {string} root @returns {Record<string, Budget>} */
function readBudgets(root) {
  return JSON.parse(readFileSync(join(root, BUDGET_FILE), "utf8"));
}

/**
 * The budgets brought down to the counts: none goes up, and one of 0 is left out.
 *
 * @param {Readonly<Record<string, Budget>>} budgets
 * @param {Readonly<Record<string, Required<Budget>>>} counts
 * @param {string} [only] the area whose budget is lowered; all by default
 * @returns {Record<string, Budget>}
 */
export function lowerBudgets(budgets, counts, only = "") {
  /** @type {Record<string, Budget>} */
  const lowered = {};
  for (const [area, budget] of Object.entries(budgets)) {
    if (only !== "" && area !== only) {
      lowered[area] = budget;
      continue;
    }
    const words = Math.min(budget.words ?? 0, counts[area]?.words ?? 0);
    const of = Math.min(budget.of ?? 0, counts[area]?.of ?? 0);
    if (words + of > 0) lowered[area] = { ...(words > 0 && { words }), ...(of > 0 && { of }) };
  }
  return lowered;
}

const HELP = `node scripts/check/words.mjs                what npm run check says
node scripts/check/words.mjs --list PATH    the words that docs/terms.md replaces, below a folder or in a file
node scripts/check/words.mjs --of PATH      the functions named …Of
node scripts/check/words.mjs --counts       how many of both there are, by area
node scripts/check/words.mjs --lower [AREA] brings the budgets, or that of one area, down to the counts
`;

/** @param {string} root @param {readonly string[]} args @returns {number} the exit code */
function main(root, [option, path = ""]) {
  const below = path.replace(/^\.\//, "").replace(/\/$/, "");
  if (option === "--list") {
    for (const { file, line, word, instead } of inspectTree(root, below).findings) {
      console.log(`${file}:${line}: "${word}": write ${instead}`);
    }
  } else if (option === "--of") {
    for (const { file, line, name } of inspectTree(root, below).functions) {
      console.log(`${file}:${line}: ${name}`);
    }
  } else if (option === "--counts" || option === "--lower") {
    const { findings, functions } = inspectTree(root);
    const counts = countByArea(findings, functions);
    if (option === "--counts") console.table(counts);
    else {
      const lowered = lowerBudgets(readBudgets(root), counts, below);
      writeFileSync(join(root, BUDGET_FILE), formatBudgets(lowered));
    }
  } else if (option === undefined) {
    const { problems, figures } = checkWords(root);
    for (const line of [...figures, ...problems]) console.log(line);
    return problems.length === 0 ? 0 : 1;
  } else {
    console.log(HELP);
    return option === "--help" ? 0 : 2;
  }
  return 0;
}

/** One line an area. @param {Readonly<Record<string, Budget>>} budgets */
function formatBudgets(budgets) {
  const lines = Object.entries(budgets)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([area, { words, of }]) => {
      const fields = Object.entries({ words, of }).filter(([, count]) => count !== undefined);
      return `  "${area}": { ${fields.map(([name, count]) => `"${name}": ${count}`).join(", ")} }`;
    });
  return `{\n${lines.join(",\n")}\n}\n`;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = main(fileURLToPath(new URL("../..", import.meta.url)), argv.slice(2));
}
