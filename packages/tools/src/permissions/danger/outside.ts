import { existsSync, readdirSync } from "node:fs";
import { isAbsolute, join, posix } from "node:path";
import type { CommandPart } from "../command/parts.ts";
import type { Word } from "../command/parse.ts";
import type { Workspace } from "../../workspace/workspace.ts";

/** Where commands in a sandbox, which has a /tmp of its own, read and write without an effect on anything else. */
const PRIVATE = /^\/(?:tmp(?:\/|$)|dev\/(?:null|zero|u?random|stdin|stdout|stderr|tty|fd\/\d+)$)/;
/** The same where there is none. */
const SINK = /^\/dev\/null$/;
/** Folders with the programs of the system. */
const PROGRAMS = /^(?:\/usr(?:\/local)?)?\/s?bin\/[^/]+$/;
/** Variables with places of the system that programs are found in, or with options. */
const SETTINGS = /^PATH$|^LD_|FLAGS$/;

/** Where a command line runs. */
export interface Ground {
  /** Where its paths begin, from the workspace. */
  cwd: string;
  workspace: Pick<Workspace, "resolve"> | undefined;
  isConfined: boolean;
}

/** What in a command line leads out of the workspace, as it was written. */
export async function findPlaceOutside(
  parts: readonly CommandPart[],
  ground: Ground,
): Promise<string | undefined> {
  for (const { words, redirects, assignments } of parts) {
    const [first, ...args] = words;
    const files = redirects.filter(({ kind }) => kind !== "input").map(({ target }) => target);
    if (first?.text === "cd" && args.length === 0) return "~";
    const programs = first && /[/~]/.test(first.text) && !PROGRAMS.test(first.text) ? [first] : [];
    const values = assignments.flatMap(listValues);
    const named = first?.literal ? dropTexts(first.text, args) : args;
    const place = await findWordOutside([...programs, ...named, ...files, ...values], ground);
    if (place !== undefined) return place;
  }
  return undefined;
}

/** Take a pattern or a program before the files, unless options say otherwise. */
const SEARCHES: ReadonlyMap<string, RegExp> = new Map([
  ...["grep", "egrep", "fgrep", "rg", "ag"].map((name): [string, RegExp] => [
    name,
    /^-[^-]*[ef]|^--[refpt]/,
  ]),
  ["sed", /^-[^-]*[ef]|^--[ef]/],
  ...["awk", "gawk", "mawk", "nawk"].map((name): [string, RegExp] => [name, /^-[^-]*[fievl]|^--/]),
]);

/** The arguments without those that are texts, whatever they look like. */
function dropTexts(program: string, args: readonly Word[]): readonly Word[] {
  if (program === "echo" || program === "printf") {
    return args.filter(({ text, literal }) => !literal || !/[\s=]/.test(text));
  }
  const [command] = args;
  if (program === "git" && /^(?:commit|tag|stash|merge)$/.test(command?.text ?? "")) {
    return args.filter((_, index) => !/^(?:-\w*m|--message)$/.test(args[index - 1]?.text ?? ""));
  }
  const names = SEARCHES.get(program);
  if (!names || args.some(({ text }) => names.test(text))) return args;
  const end = args.findIndex(({ text }) => text === "--");
  const at = args.findIndex(({ text }, index) => (end >= 0 && index > end) || !/^-./.test(text));
  return args[at]?.literal ? args.toSpliced(at, 1) : args;
}

/** What may be a path in an assignment. */
function listValues({ text, literal, prefix }: Word): Word[] {
  const from = text.indexOf("=") + 1;
  const name = text.slice(0, text.search(/\+?=/));
  if (SETTINGS.test(name)) return [];
  const value = { text: text.slice(from), literal, prefix: prefix.slice(from) };
  if (!name.endsWith("PATH")) return [value];
  const known = literal ? value.text : value.prefix;
  return known.split(":").map((path) => ({ text: path, literal: true, prefix: path }));
}

/** What leads out of the workspace among words that are no command, as those of a loop. */
export async function findWordOutside(
  words: readonly Word[],
  ground: Ground,
): Promise<string | undefined> {
  for (const word of words) {
    const place = await findOutside(word, ground);
    if (place !== undefined) return place;
  }
  return undefined;
}

/** The part of a word that names something outside of the workspace, if there is one. */
async function findOutside(word: Word, ground: Ground): Promise<string | undefined> {
  const { text, literal, prefix } = word;
  if (!literal && mayLeadOut(text)) return text;
  if (!literal && !/[$`]/.test(text) && (await matchesLinkOut(text, ground))) return text;
  // An option may have its value behind "=", or behind its letter.
  const known = literal ? text : prefix;
  const values = [known, known.slice(known.indexOf("=") + 1), known.replace(/^-\w/, "")];
  for (const path of new Set(values)) {
    if (!isAbsolute(path) && !/(?:^|\/)\.\.(?:\/|$)/.test(path) && !literal) continue;
    if (await isOutside(path, ground)) return path;
  }
  return undefined;
}

/** Whether what the shell makes of a word may be in the user's folder, or above. */
function mayLeadOut(text: string): boolean {
  return (
    /^~|\$\{?(?:HOME|OLDPWD|XDG_\w+)\b/.test(text) ||
    /(?:[\w})"]\/|[{,])\.\.["']?(?:[/,}]|$)/.test(text) ||
    /(?:^|\/)\.[?*[][^/]*\//.test(text)
  );
}

/** Whether a path leads out of the workspace. What is no path does not. */
export async function isOutside(
  path: string,
  { cwd, workspace, isConfined }: Ground,
): Promise<boolean> {
  if (path === "" || path.includes("\0")) return false;
  if ((isConfined ? PRIVATE : SINK).test(posix.normalize(path))) return false;
  // What begins with a slash may be a pattern: no such place, no file.
  if (isAbsolute(path) && !existsSync(`/${path.split("/")[1] ?? ""}`)) return false;
  if (!workspace) return true;
  const target = isAbsolute(path) ? path : join(cwd, path);
  const resolved = await workspace.resolve(target).catch(() => undefined);
  return !resolved && isPlace(path);
}

/** Not a text that happens to be no path at all, as one that is too long. */
function isPlace(path: string): boolean {
  return path.length < 4096 && !path.includes("\n");
}

/** Whether a link that leads out stands where a pattern looks first. */
async function matchesLinkOut(text: string, ground: Ground): Promise<boolean> {
  const { cwd, workspace } = ground;
  const at = text.search(/[*?[{]/);
  if (at < 0 || !workspace || !text.slice(at).includes("/")) return false;
  const folder = text.slice(0, text.lastIndexOf("/", at) + 1);
  const { absolute, exists } =
    (await workspace.resolve(join(cwd, folder)).catch(() => undefined)) ?? {};
  if (absolute === undefined || !exists) return false;
  try {
    for (const entry of readdirSync(absolute, { withFileTypes: true })) {
      if (entry.isSymbolicLink() && (await isOutside(join(folder, entry.name), ground)))
        return true;
    }
  } catch {
    // A file, or a folder that may not be listed: the shell finds nothing there either.
  }
  return false;
}
