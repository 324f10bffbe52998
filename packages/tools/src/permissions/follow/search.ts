import { type Dirent, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { basename, isAbsolute, join, sep } from "node:path";
import { compilePattern } from "./expand.ts";
import { isMadeAgain, searchesMadeAgain } from "./made-again.ts";
import { ifThere } from "./if-there.ts";

/** Entries that are looked at for all searches of a command line. */
const MAX_ENTRIES = 20_000;

/** Where something is searched, and how much of it may still be looked at. */
export interface SearchPlace {
  root: string;
  /** From there. */
  cwd: string;
  budget: { entries: number };
}

/** What a command line may look at. */
export function createBudget(): SearchPlace["budget"] {
  return { entries: MAX_ENTRIES };
}

/** Of a workspace. */
const MAX_FOLDERS = 1_000;
/** Of a pattern. */
const MAX_MATCHES = 2_000;

/** What a search finds. */
export interface FoundPath {
  /** As the program prints it. */
  path: string;
  isLink: boolean;
}

/** The files that a pattern of the shell finds in a folder; undefined where there are too many. */
export function findByPattern(
  pattern: string,
  { root, cwd, budget }: SearchPlace,
): string[] | undefined {
  const parts = pattern.split("/");
  let found = [""];
  let hasPattern = false;
  const ends: string[] = [];
  for (const [index, part] of parts.entries()) {
    const isLast = index === parts.length - 1;
    // Of slashes behind a pattern, the shell keeps one.
    if (part === "" && hasPattern && !isLast) continue;
    if (!/(?<!\\)[*?[]/.test(part)) {
      const name = part.replaceAll(/\\(.)/gs, "$1");
      found = found.map((before) => (isLast ? before + name : `${before}${name}/`));
      // Behind a pattern there are only files that are there.
      if (hasPattern) found = found.filter((path) => isThere(path, join(root, cwd)));
      continue;
    }
    hasPattern = true;
    const whole = compilePattern(part);
    if (!whole) return undefined;
    const next: string[] = [];
    for (const before of found) {
      const folder = isAbsolute(before) ? before : `${join(root, cwd)}/${before}`;
      if (!isInside(folder, root)) {
        // What is in there is not looked at: its folder stands for it.
        ends.push(before);
        continue;
      }
      for (const entry of listEntries(folder)) {
        if (--budget.entries < 0) return undefined;
        const { name } = entry;
        if (name.startsWith(".") && !part.startsWith(".")) continue;
        if (!whole.test(name)) continue;
        if (!isLast && !entry.isDirectory() && !entry.isSymbolicLink()) continue;
        next.push(isLast ? before + name : `${before}${name}/`);
      }
      if (next.length > MAX_MATCHES) return undefined;
    }
    found = next;
  }
  return [...found, ...ends];
}

function isThere(path: string, folder: string): boolean {
  const stats = ifThere(() => lstatSync(isAbsolute(path) ? path : `${folder}/${path}`));
  return stats !== undefined;
}

/** Whether a folder is in the workspace, links followed, or is not there. */
function isInside(folder: string, root: string): boolean {
  try {
    const real = realpathSync(folder);
    return real === root || real.startsWith(root + sep);
  } catch {
    // Then there is nothing in it.
    return true;
  }
}

/** What is in a folder; nothing where there is no folder. */
export function listEntries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // A file, or a folder that may not be listed: the shell finds nothing there either.
    return [];
  }
}

/** The folders of a workspace, without those that programs make again; undefined stands for more of them. */
export function* listFolders(root: string): Generator<string | undefined> {
  const waiting = ["."];
  let left = MAX_FOLDERS;
  for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
    if (--left < 0) {
      yield undefined;
      return;
    }
    yield folder;
    for (const entry of listEntries(join(root, folder))) {
      const { name } = entry;
      if (entry.isDirectory() && name !== ".git" && !isMadeAgain(name))
        waiting.push(join(folder, name));
    }
  }
}

/** Tests of `find` that are looked at; all others count as met. */
interface Tests {
  names: RegExp[];
  paths: RegExp[];
  targets: RegExp[];
  types: string;
  maxDepth: number;
}

/** What `find` may give of these words; undefined where that is not known. */
export function findBySearch(args: readonly string[], place: SearchPlace): FoundPath[] | undefined {
  const first = args.findIndex((arg) => /^[-!(]/.test(arg) && !/^-[LHP]$/.test(arg));
  const roots = args.slice(0, first < 0 ? undefined : first).filter((arg) => !/^-[LHP]$/.test(arg));
  const tests = readTests(first < 0 ? [] : args.slice(first));
  if (!tests) return undefined;
  const found: FoundPath[] = [];
  const waiting = (roots.length === 0 ? ["."] : roots).map((path) => ({ path, depth: 0 }));
  for (const { path, depth } of waiting.slice()) {
    const stats = statKind(isAbsolute(path) ? path : join(place.root, place.cwd, path));
    if (stats && meets(tests, path, basename(path), stats, "")) found.push({ path, isLink: false });
    if (depth >= tests.maxDepth) waiting.length = 0;
  }
  for (let at = waiting.pop(); at; at = waiting.pop()) {
    const folder = isAbsolute(at.path) ? at.path : join(place.root, place.cwd, at.path);
    for (const entry of listEntries(folder)) {
      if (--place.budget.entries < 0) return undefined;
      const path = at.path.endsWith("/") ? at.path + entry.name : `${at.path}/${entry.name}`;
      const isLink = entry.isSymbolicLink();
      const kind = isLink ? "l" : entry.isDirectory() ? "d" : "f";
      const target = isLink && tests.targets.length > 0 ? readTarget(join(folder, entry.name)) : "";
      if (meets(tests, path, entry.name, kind, target)) found.push({ path, isLink });
      if (kind === "d" && at.depth + 1 < tests.maxDepth)
        waiting.push({ path, depth: at.depth + 1 });
    }
  }
  return found;
}

/** Whether a search goes through the workspace as a whole, for more than what programs make again. */
export function isWideSearch(args: readonly string[], cwd: string): boolean {
  const [first = "."] = args.filter((arg) => !/^-[LHP]$/.test(arg));
  const isHere = /^[-!(]/.test(first) || /^(?:\.\/?)+$/.test(first);
  return isHere && (cwd === "" || cwd === ".") && !searchesMadeAgain(args);
}

function meets(tests: Tests, path: string, name: string, kind: string, target: string): boolean {
  return (
    (tests.types === "" || tests.types.includes(kind)) &&
    tests.names.every((each) => each.test(name)) &&
    tests.paths.every((each) => each.test(path)) &&
    tests.targets.every((each) => each.test(target))
  );
}

function statKind(path: string): string | undefined {
  const stats = ifThere(() => statSync(path));
  return stats && (stats.isDirectory() ? "d" : "f");
}

function readTarget(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // It is gone meanwhile.
    return "";
  }
}

/** Ends what `find` runs. */
const RUNS = /^-(?:exec|ok)(?:dir)?$/;

/** What has to be true of all that is found. What stands behind a negation is not known. */
function readTests(args: readonly string[]): Tests | undefined {
  const tests: Tests = { names: [], paths: [], targets: [], types: "", maxDepth: Infinity };
  // Then some of it has to be true, or none.
  if (args.some((arg) => /^(?:-o|-or|\(|-prune|,)$/.test(arg))) return undefined;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    const value = args[at + 1] ?? "";
    const isNegated = /^(?:!|-not)$/.test(args[at - 1] ?? "");
    if (RUNS.test(arg)) {
      while (at < args.length && !/^[;+]$/.test(args[at] ?? "")) at++;
      continue;
    }
    const list = /^-i?name$/.test(arg)
      ? tests.names
      : /^-i?(?:whole)?path$|^-iwholename$/.test(arg)
        ? tests.paths
        : /^-i?lname$/.test(arg)
          ? tests.targets
          : undefined;
    if (list && !isNegated) {
      const whole = compilePattern(value);
      if (whole) list.push(arg.startsWith("-i") ? new RegExp(whole.source, "is") : whole);
    }
    if (arg === "-type" && !isNegated) tests.types += value.replaceAll(",", "");
    // What a link leads to is no link.
    if (arg === "-xtype" && !isNegated) tests.types += `${value}l`;
    if (arg === "-maxdepth") tests.maxDepth = Number(value);
  }
  return Number.isNaN(tests.maxDepth) ? undefined : tests;
}

/** What `ls` prints of folders, as names; undefined where it prints more. */
export function findByList(args: readonly string[], place: SearchPlace): FoundPath[] | undefined {
  const options = args.filter((arg) => arg.startsWith("-"));
  if (options.some((arg) => /^-\w*[lRsigonm]|^--/.test(arg))) return undefined;
  const isAll = options.some((arg) => /^-\w*[aA]/.test(arg));
  const operands = args.filter((arg) => !arg.startsWith("-"));
  if (options.some((arg) => /^-\w*d/.test(arg))) {
    return operands.map((path) => ({ path, isLink: true }));
  }
  return (operands.length === 0 ? ["."] : operands).flatMap((path) => {
    const absolute = isAbsolute(path) ? path : join(place.root, place.cwd, path);
    if (statKind(absolute) === "f") return [{ path, isLink: true }];
    const entries = listEntries(absolute);
    return entries
      .filter(({ name }) => isAll || !name.startsWith("."))
      .map((entry) => ({ path: entry.name, isLink: entry.isSymbolicLink() }));
  });
}
