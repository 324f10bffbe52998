import picomatch from "picomatch";
import { counted } from "../text/text.ts";
import { withTimeLimit } from "../text/time-limit.ts";

export const MAX_GLOB_CHARS = 1000;
/** What the matches of a bundle may take without a limit of their time, in steps of backtracking. */
const MAX_QUICK_STEPS = 1e7;

/** A glob pattern, ready for use. */
export interface Glob {
  /** The folder that all matches are beneath, as far as it has no wildcards; "" for none. */
  base: string;
  /** Asks for folders: written with a slash at its end. */
  foldersOnly: boolean;
  /** Which of these paths, relative to the folder that the pattern is relative to, match. */
  filter(paths: readonly string[]): boolean[];
}

/**
 * Understands a glob: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any folders. Without a
 * slash it is matched against names in every folder, else against the path. Hidden files
 * match like others. Throws where it would lead out.
 */
export function parseGlob(pattern: string, root: string): Glob {
  if (pattern.length > MAX_GLOB_CHARS) {
    throw new Error(
      `A pattern of ${counted(pattern.length, "character")} is too long: at most ${MAX_GLOB_CHARS} are taken.`,
    );
  }
  const isOurs = pattern === root || pattern.startsWith(`${root}/`);
  const relative = (isOurs ? pattern.slice(root.length) : pattern).replace(/^(\.?\/)+/, "");
  if (pattern.startsWith("/") && !isOurs) {
    throw new Error(`The pattern "${pattern}" is absolute. Write it relative to the workspace.`);
  }
  const foldersOnly = relative.endsWith("/");
  const plain = relative.replace(/\/+$/, "");
  if (plain.split("/").includes("..")) {
    throw new Error(`The pattern "${pattern}" has ".." in it. Give the folder as "path" instead.`);
  }
  if (plain === "") throw new Error(`The pattern "${pattern}" is empty. "*" matches every name.`);
  const anchored = isOurs || relative.slice(0, -1).includes("/");
  // Extended groups are left out: few know them, and they can be made to run for ever.
  const matches = picomatch(plain, { dot: true, nonegate: true, noextglob: true });
  const subject = (path: string): string =>
    anchored ? path : path.slice(path.lastIndexOf("/") + 1);
  return {
    base: anchored ? fixedFolders(plain) : "",
    foldersOnly,
    filter(paths) {
      const subjects = paths.map(subject);
      const match = (): boolean[] => subjects.map((each) => matches(each));
      return isQuick(plain, subjects) ? match() : withTimeLimit(`The pattern "${pattern}"`, match);
    },
  };
}

/** Whether no match can take long: a limit of time costs a thread, which a busy machine starts late. */
function isQuick(pattern: string, subjects: readonly string[]): boolean {
  if (/[{}()]/.test(pattern)) return false;
  const wildcards = pattern.match(/\*+/g)?.length ?? 0;
  const longest = subjects.reduce((most, { length }) => Math.max(most, length), 0);
  return subjects.length * longest ** wildcards <= MAX_QUICK_STEPS;
}

function fixedFolders(pattern: string): string {
  const names = pattern.split("/");
  const first = names.findIndex((name) => /[*?[\]{}()!+@\\]/.test(name));
  return names.slice(0, first < 0 ? -1 : first).join("/");
}
