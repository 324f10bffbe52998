import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The loop is to be read in one sitting. */
export const MAX_LOOP_LINES = 300;

/**
 * @param {string} root
 * @returns {import("./parts.mjs").Findings}
 */
export function checkLoopLines(root) {
  const file = "packages/agent/src/loop/loop.ts";
  const lines = codeLines(readFileSync(join(root, file), "utf8"));
  const figure = `${file}: ${lines} lines of code of at most ${MAX_LOOP_LINES}`;
  return lines > MAX_LOOP_LINES ? { problems: [figure] } : { problems: [], figures: [figure] };
}

/**
 * Counts the lines that hold code: not blank, and not comment alone.
 *
 * @param {string} source
 * @returns {number}
 */
export function codeLines(source) {
  let count = 0;
  let inComment = false;
  for (const line of source.split("\n")) {
    let rest = line.trim();
    while (rest !== "") {
      if (inComment) {
        const end = rest.indexOf("*/");
        inComment = end < 0;
        rest = inComment ? "" : rest.slice(end + 2).trim();
      } else if (rest.startsWith("/*")) {
        inComment = true;
        rest = rest.slice(2);
      } else {
        if (!rest.startsWith("//")) count += 1;
        break;
      }
    }
  }
  return count;
}
