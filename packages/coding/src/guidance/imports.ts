import { basename, dirname, join, resolve } from "node:path";

/** Imports of imports, as far as Claude Code follows them. */
export const MAX_IMPORT_DEPTH = 5;
/** Names of the files whose imports are followed. */
export const LOCAL_NAME = "CLAUDE.local.md";
const WITH_IMPORTS: ReadonlySet<string> = new Set(["CLAUDE.md", LOCAL_NAME]);
/** What is between fences or backticks is an example. */
const CODE =
  /^(?: {0,3})(```+|~~~+)[^\n]*\n[^]*?(?:^ {0,3}\1[`~]*[ \t]*$|$(?![^]))|(`+)(?!`)[^]*?(?<!`)\2(?!`)/gm;
const IMPORT = /(?<=^|\s)@((?:[^\s\\]|\\ )+)/gm;

/** Whether a file of this name says what it imports. */
export function hasImports(path: string): boolean {
  return WITH_IMPORTS.has(basename(path));
}

/** The paths that a text imports by `@path`, absolute: from the folder of its file, or from home. */
export function listImports(text: string, file: string, home: string): string[] {
  const named = [...text.replaceAll(CODE, "").matchAll(IMPORT)].map(([, path = ""]) =>
    path.replaceAll("\\ ", " ").replace(/[.,;:!?)\]]+$/, ""),
  );
  const paths = named
    .filter((path) => path !== "")
    .map((path) =>
      path.startsWith("~/") ? join(home, path.slice(2)) : resolve(dirname(file), path),
    );
  return [...new Set(paths)];
}
