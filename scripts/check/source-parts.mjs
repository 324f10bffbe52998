/**
 * A piece of a source with the offset at which it begins.
 *
 * @typedef {{ text: string, start: number }} Piece
 * @typedef {{ code: string, comments: Piece[], strings: Piece[] }} SourceParts `code` is the source
 *   with every comment, string and regular expression blanked out, but for quotes and slashes: offsets
 *   stay the same
 */

/** A slash after one of these begins a regular expression; after any other word it divides. */
const BEFORE_REGEX =
  /(?:^|[^\w$.])(?:return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield|instanceof)$/;

/** Runs of `//` comments on lines of their own make one comment, so that a sentence can wrap. */
const LINE_COMMENTS = /\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*/y;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const QUOTED = { '"': /"(?:[^"\\\n]|\\[\s\S])*"?/y, "'": /'(?:[^'\\\n]|\\[\s\S])*'?/y };
const TEMPLATE_TEXT = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*/y;
const NEXT = /["'`/{}]/g;

/**
 * Splits a TypeScript or JavaScript source into code, comments and strings, without parsing it.
 * The text of a template counts as a string, the expressions in it as code.
 *
 * @param {string} source
 * @returns {SourceParts}
 */
export function splitSource(source) {
  /** @type {Piece[]} */
  const comments = [];
  /** @type {Piece[]} */
  const strings = [];
  /** @type {string[]} */
  const code = [];
  /** For each brace that is open: whether it is the `${` of a template. @type {boolean[]} */
  const braces = [];
  let at = 0;

  /** @param {Piece[]} list @param {number} start @param {number} end */
  const take = (list, start, end) => {
    const blank = list === comments ? /[^\n]/g : /[^\n"'/]/g;
    code.push(source.slice(at, start), source.slice(start, end).replaceAll(blank, " "));
    list.push({ text: source.slice(start, end), start });
    at = end;
  };
  /** @param {number} start where the text of the template goes on */
  const takeTemplate = (start) => {
    const end = findEnd(TEMPLATE_TEXT, source, start);
    take(strings, start, end);
    const isExpression = source.startsWith("${", end);
    if (isExpression) braces.push(true);
    NEXT.lastIndex = end + (isExpression ? 2 : 1);
  };

  NEXT.lastIndex = 0;
  for (let match = NEXT.exec(source); match !== null; match = NEXT.exec(source)) {
    const start = match.index;
    const sign = match[0];
    if (sign === "{") braces.push(false);
    else if (sign === "}") {
      if (braces.pop() === true) takeTemplate(start + 1);
    } else if (sign === "`") takeTemplate(start + 1);
    else if (sign === "/") {
      if (source[start + 1] === "/") take(comments, start, findEnd(LINE_COMMENTS, source, start));
      else if (source[start + 1] === "*") {
        const close = source.indexOf("*/", start + 2);
        take(comments, start, close < 0 ? source.length : close + 2);
      } else if (beginsRegex(code, source.slice(at, start))) {
        take(strings, start, findEnd(REGEX, source, start));
      }
      NEXT.lastIndex = Math.max(at, start + 1);
    } else {
      take(strings, start, findEnd(QUOTED[sign === '"' ? '"' : "'"], source, start));
      NEXT.lastIndex = at;
    }
  }
  code.push(source.slice(at));
  return { code: code.join(""), comments, strings };
}

/** @param {RegExp} pattern sticky @param {string} source @param {number} start */
function findEnd(pattern, source, start) {
  pattern.lastIndex = start;
  return pattern.test(source) ? pattern.lastIndex : start;
}

/**
 * Whether a slash begins a regular expression, by what stands before it.
 *
 * @param {readonly string[]} code the pieces of code so far
 * @param {string} last what follows them
 */
function beginsRegex(code, last) {
  let before = last.trimEnd();
  for (let index = code.length - 1; before === "" && index >= 0; index -= 1) {
    before = (code[index] ?? "").trimEnd();
  }
  return !/[\w$)\]}"'`/]$/.test(before) || BEFORE_REGEX.test(before.slice(-12));
}
