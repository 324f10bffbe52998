import { type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import ignore, { type Ignore } from "ignore";
import { withTimeLimit } from "../text/time-limit.ts";
import { findStart, isBeside, listAdded } from "./added.ts";
import { UNSETTLED_MS } from "./listings.ts";
import { type Entry, PathError, type Workspace } from "./types.ts";

/** The files that say what to leave out, the weaker first. */
export const IGNORE_FILES = [".gitignore", ".ignore"] as const;
/** What git leaves out in one clone alone. */
const EXCLUDE_FILE = ".git/info/exclude";
/** A longer one is not read. */
export const MAX_IGNORE_FILE_BYTES: number = 1024 * 1024;

/** Paths come from us, clean; the check would stumble over a file named "...". */
const MATCHING = { ignorecase: false, allowRelativePaths: true };
/** What a match may take without a limit of its time, in steps of backtracking. */
const MAX_QUICK_STEPS = 1e7;

/** The rules of one folder, for what is in and beneath it. */
interface Rules {
  /** The folder, from the workspace; "" is the workspace. */
  folder: string;
  matcher: Ignore;
  /** By names alone: what it does not match no rule matches. Absent where that cannot be said. */
  names: Ignore | undefined;
  /** The most that one of them has. */
  wildcards: number;
}

/** What is to be left out at one place: the rules of its folders, the outermost first. */
export type IgnoreRules = readonly Rules[];

/** One object, so that what was found with no rules is found again. */
const NO_RULES: IgnoreRules = [];

/** What is left of a folder. `rules` are those for the inside of a folder. */
export interface KeptEntry extends Entry {
  /** From the workspace. */
  path: string;
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
  const start = findStart(workspace, folder);
  if (folder === start) return NO_RULES;
  const names = folder.split("/");
  let rules = NO_RULES;
  for (let depth = start === "" ? 0 : start.split("/").length; depth < names.length; depth += 1) {
    const above = names.slice(0, depth).join("/");
    const inside = await rulesInside(workspace, above, rules);
    const entry: Entry = { name: names[depth] ?? "", kind: "folder" };
    const [kept] = keptEntries(above, [entry], inside);
    rules = kept?.rules ?? NO_RULES;
  }
  return rules;
}

/**
 * Adds the ignore files of `folder` itself, where it has some. `entries` are what is in
 * it, if that is known: most folders have none, and need not be asked. The same rules are the
 * same object for as long as the files stay as they are.
 */
export function rulesInside(
  workspace: Workspace,
  folder: string,
  rules: IgnoreRules,
  entries?: readonly Entry[],
): IgnoreRules | Promise<IgnoreRules> {
  const isStart = folder === "" || (isBeside(folder) && listAdded(workspace).includes(folder));
  if (entries && !isStart && !IGNORE_FILES.some((name) => hasEntry(entries, name))) {
    return rules;
  }
  const files = isStart ? [EXCLUDE_FILE, ...IGNORE_FILES] : IGNORE_FILES;
  const found = files.filter((file) => {
    const [name] = file.split("/");
    return !entries || hasEntry(entries, name ?? "");
  });
  if (found.length === 0) return rules;
  const known = rulesByWorkspace.get(workspace) ?? new Map<string, KnownRules>();
  rulesByWorkspace.set(workspace, known);
  const identity = identifyFiles(found.map((file) => join(workspace.root, folder, file)));
  const last = known.get(folder);
  const isSame = identity !== undefined && last?.identity === identity;
  if (last?.above === rules && isSame) return last.rules;
  return readTexts(workspace, folder, found).then((texts) => {
    const isUnchanged = last?.above === rules && isDeepStrictEqual(last.texts, texts);
    const read = isUnchanged ? last.rules : addRules(folder, rules, texts);
    known.set(folder, { above: rules, identity, texts, rules: read });
    return read;
  });
}

interface KnownRules {
  above: IgnoreRules;
  identity: string | undefined;
  texts: readonly string[];
  rules: IgnoreRules;
}

const rulesByWorkspace = new WeakMap<Workspace, Map<string, KnownRules>>();

/** Another text after each change; nothing where a change may not show yet. */
function identifyFiles(paths: readonly string[]): string | undefined {
  const now = Date.now();
  let identity = "";
  for (const path of paths) {
    let stats: Stats | undefined;
    try {
      // A link is followed, as it is when the file is read.
      stats = statSync(path, { throwIfNoEntry: false });
    } catch {
      // It cannot be reached, and so it cannot be read either.
    }
    if (stats && now - stats.ctimeMs <= UNSETTLED_MS) return undefined;
    identity += stats ? `${stats.dev} ${stats.ino} ${stats.size} ${stats.ctimeMs},` : ",";
  }
  return identity;
}

async function readTexts(
  workspace: Workspace,
  folder: string,
  files: readonly string[],
): Promise<string[]> {
  const texts: string[] = [];
  for (const file of files) {
    const text = await readIgnoreFile(workspace, pathIn(folder, file));
    if (text !== undefined) texts.push(text);
  }
  return texts;
}

function addRules(folder: string, rules: IgnoreRules, texts: readonly string[]): IgnoreRules {
  if (texts.length === 0) return rules;
  const matcher = ignore(MATCHING);
  for (const text of texts) matcher.add(text);
  const wildcards = Math.max(...texts.map(countWildcards));
  return [...rules, { folder, matcher, names: createNameMatcher(texts), wildcards }];
}

/**
 * Matches the last name of each rule, whether it ignores or takes back: most names in a workspace
 * are those of no rule, and a name comes again in many folders, a path does not.
 */
function createNameMatcher(texts: readonly string[]): Ignore | undefined {
  const names = ignore(MATCHING);
  for (const line of texts.flatMap((text) => text.split(/\r?\n/))) {
    const rule = line.trimEnd();
    if (rule === "" || rule.startsWith("#")) continue;
    const name = /[^/]+(?=\/*$)/.exec(rule.replace(/^!/, ""))?.[0];
    // A slash in a set separates nothing, and what is escaped is read by the matcher alone.
    if (name === undefined || /[[\]\\]/.test(rule) || /^[#!\s]/.test(name)) return undefined;
    names.add(name.replace(/\*+/g, "*"));
  }
  return names;
}

/** The most wildcards that one line has: each multiplies the time that a match can take. */
function countWildcards(text: string): number {
  const lines = text.split("\n");
  return lines.reduce((most, line) => Math.max(most, line.match(/\*+/g)?.length ?? 0), 0);
}

/** By name, in entries that are sorted by it. */
function hasEntry(entries: readonly Entry[], name: string): boolean {
  // These names begin with a dot: few come before them.
  for (const entry of entries) {
    if (entry.name === name) return true;
    if (entry.name > name) return false;
  }
  return false;
}

/** The entries of `folder` that no rule leaves out. `.git` never is among them. */
export function keptEntries(
  folder: string,
  entries: readonly Entry[],
  rules: IgnoreRules,
): KeptEntry[] {
  const judge = (): KeptEntry[] => {
    const kept: KeptEntry[] = [];
    for (const { name, kind } of entries) {
      if (name === ".git") continue;
      const path = pathIn(folder, name);
      const inner = rulesFor(path, kind === "folder", rules);
      if (inner) kept.push({ name, kind, path, rules: inner });
    }
    return kept;
  };
  if (isQuick(folder, entries, rules)) return judge();
  return withTimeLimit(`An ignore file for "${folder || "."}"`, judge);
}

/** Whether no match can take long, whatever the patterns are: a limit of time costs more. */
function isQuick(folder: string, entries: readonly Entry[], rules: IgnoreRules): boolean {
  const wildcards = rules.reduce((most, rule) => Math.max(most, rule.wildcards), 0);
  if (wildcards <= 1) return true;
  const longest = entries.reduce((most, { name }) => Math.max(most, name.length), 0);
  return (folder.length + longest) ** wildcards <= MAX_QUICK_STEPS;
}

/** The rules for the inside of what is at `path`; none where it is left out. */
function rulesFor(path: string, isFolder: boolean, rules: IgnoreRules): IgnoreRules | undefined {
  for (let index = rules.length - 1; index >= 0; index -= 1) {
    const { folder, matcher, names } = rules[index] ?? {};
    if (folder === undefined || !matcher) continue;
    if (names && !names.test(path.slice(path.lastIndexOf("/") + 1)).ignored) continue;
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
