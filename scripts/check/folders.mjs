import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { readModule } from "./imports.mjs";

/** Source files directly in one folder. A larger folder has a second purpose: split it. */
export const MAX_FILES_IN_FOLDER = 16;

/** Below these, every folder is checked. */
const ROOTS = ["action", "packages", "tests", "scripts"];
const IGNORED = new Set(["node_modules", "dist", "bundle", "testing", "fixtures"]);

/**
 * Folders have one purpose, so they are small, and imports between two folders go one way
 * only, types and dynamic imports included. Tests and test doubles (`testing/`) may import
 * what they like.
 *
 * @param {string} root
 * @returns {import("../shared/parts.mjs").Findings}
 */
export function checkFolders(root) {
  /** @type {string[]} */
  const problems = [];
  /** @type {Map<string, Map<string, string>>} folder -> imported folder -> an example */
  const arrows = new Map();
  for (const [folder, files] of listSources(root)) {
    if (files.length > MAX_FILES_IN_FOLDER) {
      problems.push(
        `${folder}: ${files.length} source files of at most ${MAX_FILES_IN_FOLDER}. Split it by purpose.`,
      );
    }
    arrows.set(folder, new Map(files.flatMap((file) => listImportedFolders(root, folder, file))));
  }
  for (const [folder, targets] of arrows) {
    for (const [target, example] of targets) {
      const back = arrows.get(target)?.get(folder);
      if (back === undefined || folder > target) continue;
      problems.push(`${folder} and ${target} import each other: ${example}; ${back}`);
    }
  }
  return { problems };
}

/**
 * @param {string} root
 * @param {string} folder
 * @param {string} file
 * @returns {[string, string][]} the folders that a file imports from, each with an example
 */
function listImportedFolders(root, folder, file) {
  const path = join(root, folder, file);
  const { imports } = readModule(readFileSync(path, "utf8"), path);
  return imports.flatMap(({ specifier, line }) => {
    if (specifier === undefined || !specifier.startsWith(".")) return [];
    const target = relative(root, dirname(resolve(dirname(path), specifier)))
      .split(sep)
      .join("/");
    return target === folder ? [] : [[target, `${folder}/${file}:${line}`]];
  });
}

/**
 * @param {string} root
 * @returns {Map<string, string[]>} the source files of every folder, by its path
 */
function listSources(root) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  /** @param {string} folder */
  const visit = (folder) => {
    if (!existsSync(join(root, folder))) return;
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      if (entry.isDirectory()) {
        if (!IGNORED.has(entry.name)) visit(`${folder}/${entry.name}`);
      } else if (
        /\.(?:[mc]?tsx?|mjs)$/.test(entry.name) &&
        !/\.test(-d)?\.tsx?$/.test(entry.name)
      ) {
        found.set(folder, [...(found.get(folder) ?? []), entry.name]);
      }
    }
  };
  for (const top of ROOTS) visit(top);
  return found;
}
