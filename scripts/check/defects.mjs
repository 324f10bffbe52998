import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const PAGE = "docs/contributing/defects.md";
const HEAD = "|---|---|---|---|---|\n";
const ROW =
  /^\| (.+) \| \[[\w./-]+\]\(\.\.\/\.\.\/([^)]+)\): "(.+?)"(?:, with `.+`)? \| (\w{7,}) \| (\w{7,}|the same) \| yes(?:, (.+))? \|$/;

/**
 * A row of the page.
 *
 * @typedef {object} Defect
 * @property {string} defect
 * @property {string} file of the test, from the root
 * @property {string} title of the test
 * @property {string} redAt the commit at which it fails
 * @property {string} testOf the commit whose test it is
 * @property {string} [change] how the fix was taken out at that commit
 */

/**
 * The rows of the page of defects, and lines of its table that cannot be read.
 *
 * @param {string} root
 * @returns {{ defects: Defect[], unread: string[] }}
 */
export function readDefects(root) {
  const [, table = ""] = readFileSync(join(root, PAGE), "utf8").split(HEAD);
  /** @type {Defect[]} */
  const defects = [];
  /** @type {string[]} */
  const unread = [];
  for (const line of table.split("\n")) {
    if (line === "" || line.startsWith("| **")) continue;
    const row = ROW.exec(line);
    if (!row) {
      unread.push(line);
      continue;
    }
    const [, defect = "", file = "", title = "", redAt = "", of = "", change] = row;
    const testOf = of === "the same" ? redAt : of;
    defects.push({ defect, file, title, redAt, testOf, ...(change && { change }) });
  }
  return { defects, unread };
}

/**
 * Checks that each defect names a test that exists, and a commit at which it was seen to fail.
 *
 * @param {string} root
 * @returns {import("../shared/parts.mjs").Findings}
 */
export function checkDefects(root) {
  const { defects, unread } = readDefects(root);
  const problems = unread.map((line) => `${PAGE}: this is no row of a defect: ${line}`);
  if (defects.length === 0) problems.push(`${PAGE} has no rows.`);
  for (const { defect, file, title } of defects) {
    const path = join(root, file);
    if (!existsSync(path)) problems.push(`${PAGE}: ${file} does not exist (${defect}).`);
    else if (!readFileSync(path, "utf8").includes(title)) {
      problems.push(`${PAGE}: ${file} has no test "${title}".`);
    }
  }
  return { problems };
}
