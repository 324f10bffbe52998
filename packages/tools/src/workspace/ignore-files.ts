import ignore, { type Ignore } from "ignore";
import { withTimeLimit } from "../text/time-limit.ts";
import { type Entry, PathError, type Workspace } from "./workspace.ts";

/** The files that say what to leave out, the weaker first. */
export const IGNORE_FILES = [".gitignore", ".ignore"] as const;
/** What git leaves out in one clone alone. */
const EXCLUDE_FILE = ".git/info/exclude";
/** A longer one is not read. */
export const MAX_IGNORE_FILE_BYTES: number = 1024 * 1024;

/** The rules of one folder, for what is in and beneath it. */
interface Rules {
  /** The folder, from the workspace; "" is the workspace. */
  folder: string;
  matcher: Ignore;
}

/** What is to be left out at one place: the rules of its folders, the outermost first. */
export type IgnoreRules = readonly Rules[];

/** What is left of a folder. `rules` are those for the inside of a folder. */
export interface KeptEntry {
  entry: Entry;
  rules: IgnoreRules;
}

/** A path in a folder. */
export function pathIn(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}

/**
 * The rules that hold for what is in `folder`, its own ignore files not yet counted.
 * A folder that was asked for by name is looked into even where rules leave it out:
 * then those rules say nothing about what is in it.
 */
export async function rulesAbove(workspace: Workspace, folder: string): Promise<IgnoreRules> {
  if (folder === "") return [];
  const names = folder.split("/");
  let rules: IgnoreRules = [];
  for (let depth = 0; depth < names.length; depth += 1) {
    const above = names.slice(0, depth).join("/");
    const inside = await rulesInside(workspace, above, rules);
    const entry: Entry = { name: names[depth] ?? "", kind: "folder" };
    const [kept] = keptEntries(above, [entry], inside);
    rules = kept?.rules ?? [];
  }
  return rules;
}

/**
 * Adds the ignore files of `folder` itself, where it has some. `entries` are what is in
 * it, if that is known: most folders have none, and need not be asked.
 */
export async function rulesInside(
  workspace: Workspace,
  folder: string,
  rules: IgnoreRules,
  entries?: readonly Entry[],
): Promise<IgnoreRules> {
  const files = folder === "" ? [EXCLUDE_FILE, ...IGNORE_FILES] : IGNORE_FILES;
  const texts: string[] = [];
  for (const file of files) {
    const [name] = file.split("/");
    if (entries && !entries.some((entry) => entry.name === name)) continue;
    const text = await readIgnoreFile(workspace, pathIn(folder, file));
    if (text !== undefined) texts.push(text);
  }
  if (texts.length === 0) return rules;
  // Paths come from us, clean; the check would stumble over a file named "...".
  const matcher = ignore({ ignorecase: false, allowRelativePaths: true });
  for (const text of texts) matcher.add(text);
  return [...rules, { folder, matcher }];
}

/** The entries of `folder` that no rule leaves out. `.git` never is among them. */
export function keptEntries(
  folder: string,
  entries: readonly Entry[],
  rules: IgnoreRules,
): KeptEntry[] {
  const judge = (): KeptEntry[] =>
    entries.flatMap((entry) => {
      if (entry.name === ".git") return [];
      const inner = rulesFor(pathIn(folder, entry.name), entry.kind === "folder", rules);
      return inner ? [{ entry, rules: inner }] : [];
    });
  if (rules.length === 0) return judge();
  return withTimeLimit(`An ignore file for "${folder || "."}"`, judge);
}

/** The rules for the inside of what is at `path`; none where it is left out. */
function rulesFor(path: string, isFolder: boolean, rules: IgnoreRules): IgnoreRules | undefined {
  for (let index = rules.length - 1; index >= 0; index -= 1) {
    const { folder, matcher } = rules[index] ?? {};
    if (folder === undefined || !matcher) continue;
    const relative = folder === "" ? path : path.slice(folder.length + 1);
    const verdict = matcher.test(isFolder ? `${relative}/` : relative);
    if (verdict.ignored) return undefined;
    // Outer rules that leave this folder out would leave out all that is in it.
    if (verdict.unignored) return isFolder ? rules.slice(index) : rules;
  }
  return rules;
}

async function readIgnoreFile(workspace: Workspace, path: string): Promise<string | undefined> {
  try {
    const { bytes } = await workspace.read(`./${path}`, MAX_IGNORE_FILE_BYTES);
    return new TextDecoder().decode(bytes);
  } catch (error) {
    // Not there, a folder, a link out, too long: then it has no say.
    if (error instanceof PathError) return undefined;
    throw error;
  }
}
