/**
 * A rule or an exception of `docs/terms.md`.
 *
 * @typedef {"identifiers" | "comments" | "prose"} Place
 * @typedef {{ first: RegExp, phrase: RegExp, instead: string, places: ReadonlySet<Place> }} Rule
 *   `first` is the first word in small letters, `phrase` (sticky) all of it
 * @typedef {{ allowed: RegExp | undefined, files: RegExp }} Exception without `allowed` it is the
 *   whole file
 * @typedef {{ rules: readonly Rule[], exceptions: readonly Exception[] }} Terms
 */

/** @type {readonly Place[]} */
const PLACES = ["identifiers", "comments", "prose"];

/** Where a word begins or ends, also within `camelCase`. */
const EDGE = "(?:(?<![A-Za-z])|(?![A-Za-z])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]))";
/** Blanks, `_`, `-`, and the margin of a comment. */
const GAP = String.raw`[\s*/_-]*`;
/** Before and after the first word of a sentence that asks nothing. */
const OPENING = "(?<=(?:^|[.:;!?\"'`)(|#*/-])\\s*)";
const NO_QUESTION = String.raw`(?![^.!]*\?)`;

/**
 * Reads the tables "Not | Write | Where" and "Allowed | Files | Reason" of the page of terms: the
 * page is the only list there is.
 *
 * @param {string} page
 * @returns {Terms}
 */
export function parseTerms(page) {
  /** @type {Rule[]} */
  const rules = [];
  /** @type {Exception[]} */
  const exceptions = [];
  for (const { head, cells } of tableRows(page)) {
    const [first = "", second = "", third = ""] = cells;
    if (head === "Not") {
      const places = parsePlaces(third);
      for (const text of codeSpans(first)) {
        rules.push({ ...parsePhrase(text), instead: second.replaceAll("`", ""), places });
      }
    } else if (head === "Allowed") {
      if (third === "") throw new Error(`docs/terms.md: "${first}" is allowed without a reason`);
      for (const file of codeSpans(second)) {
        for (const text of codeSpans(first)) {
          exceptions.push({ allowed: parseAllowed(text), files: parseGlob(file) });
        }
      }
    }
  }
  if (rules.length === 0) throw new Error("docs/terms.md has no table with the column Not");
  return { rules, exceptions };
}

/**
 * @param {string} page
 * @returns {{ head: string, cells: string[] }[]} `head`: the name of the table's first column
 */
function tableRows(page) {
  const rows = [];
  let head = "";
  for (const line of page.split("\n")) {
    if (!line.startsWith("|")) {
      head = "";
      continue;
    }
    const cells = line.split("|").slice(1, -1);
    const [first = ""] = cells;
    if (head === "") head = first.trim();
    else if (!/^[\s:-]+$/.test(first)) rows.push({ head, cells: cells.map((cell) => cell.trim()) });
  }
  return rows;
}

/** @param {string} cell @returns {string[]} */
function codeSpans(cell) {
  const spans = [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");
  if (spans.length === 0) throw new Error(`docs/terms.md: no \`code\` in the cell "${cell}"`);
  return spans;
}

/** @param {string} cell @returns {ReadonlySet<Place>} */
function parsePlaces(cell) {
  if (cell === "everywhere") return new Set(PLACES);
  const names = cell.split(",").map((name) => name.trim());
  const places = PLACES.filter((place) => names.includes(place));
  if (places.length === 0 || places.length !== names.length) {
    throw new Error(
      `docs/terms.md: "${cell}" is not "everywhere" or a list of ${PLACES.join(", ")}`,
    );
  }
  return new Set(places);
}

/**
 * A phrase of words. The first has its regular forms, unless there is a hyphen in the phrase; `*`
 * stands for any letters; a capital means the beginning of a sentence.
 *
 * @param {string} source
 */
function parsePhrase(source) {
  const [first = "", ...rest] = source.split(/[^A-Za-z*]+/).filter((word) => word !== "");
  if (first === "") throw new Error(`docs/terms.md: no word in "${source}"`);
  const isOpening = /^[A-Z]/.test(first);
  const forms = isOpening || /[*-]/.test(source) ? first.toLowerCase() : expandForms(first);
  const gap = source.includes("-") ? "-" : GAP;
  const words = [`(?:${forms})`, ...rest.map((word) => word.toLowerCase())]
    .map((word) => `${ignoreCase(word)}${EDGE}`)
    .join(gap);
  const phrase = isOpening ? `${OPENING}(?=[A-Z])${words}${NO_QUESTION}` : words;
  return {
    first: new RegExp(`^(?:${forms.replaceAll("*", "[a-z]*")})$`),
    phrase: new RegExp(phrase, "y"),
  };
}

/** @param {string} expression of small letters, `*` for any of them */
function ignoreCase(expression) {
  return expression
    .replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
    .replaceAll("*", "[A-Za-z]*?");
}

/**
 * What an exception allows. A text with other signs than letters is meant to the letter.
 *
 * @param {string} text
 */
function parseAllowed(text) {
  if (text === "*") return undefined;
  if (/[^A-Za-z* -]/.test(text)) return new RegExp(escape(text), "g");
  return new RegExp(`${EDGE}${parsePhrase(text).phrase.source}`, "g");
}

/** The regular forms of a word of four letters or more. @param {string} word */
function expandForms(word) {
  if (word.length < 4) return word;
  const stem = word.replace(/e$/, "");
  const double = /[^aeiou][aeiou][bdgklmnprt]$/.test(word) ? `${word.slice(-1)}?` : "";
  return `${word}|${word}s|${word}es|${stem}${double}(?:ed|ing)`;
}

/** @param {string} glob `**` is any path, `*` any name */
function parseGlob(glob) {
  const names = { "**/": ".*", "**": ".*", "*": "[^/]*" };
  const expression = glob
    .split(/(\*\*\/?|\*)/)
    .map((part) => Reflect.get(names, part) ?? escape(part))
    .join("");
  return new RegExp(`^${expression}$`);
}

/** @param {string} text */
function escape(text) {
  return text.replaceAll(/[.*+?^$()[\]{}|\\]/g, "\\$&");
}
