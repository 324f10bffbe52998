import { existsSync } from "node:fs";
import { isAbsolute, join, posix } from "node:path";
import type { CommandPart } from "../command/parts.ts";
import type { Word } from "../command/parse.ts";
import type { Workspace } from "../../workspace/workspace.ts";
import { listEntries } from "../follow/search.ts";

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
  workspace: (Pick<Workspace, "resolve"> & Partial<Pick<Workspace, "root">>) | undefined;
  isConfined: boolean;
  /** What was found out of places before: the same ones are named again and again. */
  known?: Map<string, boolean>;
  /** It only reads: folders that may be read without a question are not outside. Default false. */
  onlyReads?: boolean;
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
    const links = first?.literal && KEEPS_LINKS.has(first.text) ? listLinks(first.text, named) : [];
    const followed = named.filter((word) => !links.includes(word));
    const place =
      (await findWordOutside([...programs, ...followed, ...files, ...values], ground)) ??
      (await findWordOutside(links, ground, true));
    if (place !== undefined) return place;
  }
  return undefined;
}

/** Take a link that they are given for itself, and not for what it leads to. */
const KEEPS_LINKS = new Set(["rm", "unlink", "readlink", "mv"]);

function listLinks(program: string, args: readonly Word[]): Word[] {
  // Where something is moved to is followed.
  if (args.some(({ text }) => /^-\w*t|^--target/.test(text))) return [];
  const own = program === "mv" ? args.slice(0, -1) : args;
  return own.filter(({ text, literal }) => literal && !text.endsWith("/"));
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

const DIVIDES = new Set("awk gawk mawk nawk cut sort paste column join".split(" "));
const SEPARATOR = /^-[Fdts]\/$/;

/** The arguments without those that are texts, whatever they look like. */
function dropTexts(program: string, args: readonly Word[]): readonly Word[] {
  if (program === "echo" || program === "printf") {
    // What they print is read by no program. A folder stands for what a pattern finds there.
    return args.filter(({ text, literal }) => !literal || /^\S+\/$/.test(text));
  }
  const [command] = args;
  if (program === "git" && /^(?:commit|tag|stash|merge)$/.test(command?.text ?? "")) {
    return args.filter((_, index) => !/^(?:-\w*m|--message)$/.test(args[index - 1]?.text ?? ""));
  }
  // A slash at which lines are divided.
  if (DIVIDES.has(program) && args.some(({ text }) => SEPARATOR.test(text)))
    return dropTexts(
      program,
      args.filter(({ text }) => !SEPARATOR.test(text)),
    );
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
  keepLink = false,
): Promise<string | undefined> {
  for (const word of words) {
    const place = await findOutside(word, ground, keepLink);
    if (place !== undefined) return place;
  }
  return undefined;
}

/** The part of a word that names something outside of the workspace, if there is one. */
async function findOutside(
  word: Word,
  ground: Ground,
  keepLink: boolean,
): Promise<string | undefined> {
  const { text, literal, prefix } = word;
  // What a command prints, as a file: the command is looked at by itself.
  if (!literal && /^[<>]\(/.test(text)) return undefined;
  if (!literal && mayLeadOut(text)) return text;
  if (!literal && !/[$`]/.test(text) && (await matchesLinkOut(text, ground))) return text;
  const folder = literal || isAbsolute(prefix) ? "" : prefix.slice(0, prefix.lastIndexOf("/") + 1);
  if (await isOutside(folder, ground)) return text;
  // An option may have its value behind "=", or behind its letter.
  const known = literal ? text : prefix;
  const values = [known, known.slice(known.indexOf("=") + 1), known.replace(/^-\w/, "")];
  for (const path of new Set(values)) {
    if (!isAbsolute(path) && !/(?:^|\/)\.\.(?:\/|$)/.test(path) && !literal) continue;
    if (await isOutside(path, ground, keepLink)) return path;
  }
  return undefined;
}

/** Whether what the shell makes of a word may be in the user's folder, or above. */
function mayLeadOut(text: string): boolean {
  return (
    /^~|\$\{?(?:HOME|OLDPWD|XDG_\w+)\b/.test(text) ||
    /(?:[\w})"]\/|[{,])\.\.["']?(?:[/,}]|$)/.test(text) ||
    // What is in a command there is no pattern of this word.
    /(?:^|\/)\.[?*[][^/]*\//.test(text.replaceAll(/\$\([^()]*\)|`[^`]*`/g, ""))
  );
}

/** Whether a path leads out of the workspace. What is no path does not. */
export async function isOutside(path: string, ground: Ground, keepLink = false): Promise<boolean> {
  const key = `${keepLink}\0${ground.onlyReads ?? false}\0${ground.cwd}\0${path}`;
  const known = ground.known?.get(key);
  if (known !== undefined) return known;
  const found = await findOut(path, ground, keepLink);
  ground.known?.set(key, found);
  return found;
}

async function findOut(
  path: string,
  { cwd, workspace, isConfined, onlyReads = false }: Ground,
  keepLink: boolean,
): Promise<boolean> {
  if (path === "" || path.includes("\0")) return false;
  const plain = posix.normalize(path);
  const isPrivate = (isConfined ? PRIVATE : SINK).test(plain);
  if (isPrivate && !isAround(plain, workspace?.root)) return false;
  // What begins with a slash may be a pattern: no such place, no file.
  if (isAbsolute(path) && !existsSync(`/${path.split("/")[1] ?? ""}`)) return false;
  if (!workspace) return true;
  // Not joined: behind a link, ".." is not the folder that the link is in.
  const target = isAbsolute(path) ? path : `${cwd || "."}/${path}`;
  const resolved = await workspace.resolve(target, { keepLink }).catch(() => undefined);
  if (resolved || !isPlace(path)) return false;
  if (!onlyReads || !isAbsolute(path) || plain !== path) return true;
  const place = await workspace.resolve(path, { outside: true }).catch(() => undefined);
  return place === undefined || place.outside === true;
}

/** Whether a path in /tmp leads to the folder there that the workspace is in. */
function isAround(path: string, root = ""): boolean {
  const [, top, folder] = path.split("/");
  return top === "tmp" && folder !== undefined && root.startsWith(`/tmp/${folder}/`);
}

/** Not a text that happens to be no path at all, as one that is too long. */
function isPlace(path: string): boolean {
  return path.length < 4096 && !path.includes("\n");
}

/** Whether a pattern may stand for a link that leads out, or for something behind one. */
async function matchesLinkOut(text: string, ground: Ground): Promise<boolean> {
  const { cwd, workspace } = ground;
  const at = text.search(/[*?[]|\{(?!\})/);
  if (at < 0 || !workspace) return false;
  const start = text.lastIndexOf("/", at) + 1;
  const places = [{ folder: text.slice(0, start), rest: text.slice(start).split("/") }];
  let left = MAX_MATCHES;
  for (let place = places.pop(); place; place = places.pop()) {
    const [pattern = "", ...rest] = place.rest;
    const { absolute, exists } =
      (await workspace.resolve(join(cwd, place.folder)).catch(() => undefined)) ?? {};
    if (absolute === undefined || !exists) continue;
    for (const entry of listEntries(absolute)) {
      if (!mayMatch(entry.name, pattern)) continue;
      if (--left < 0) return true;
      const path = join(place.folder, entry.name);
      if (entry.isSymbolicLink() && (await isOutside(path, ground))) return true;
      if (rest.length > 0 && !entry.isFile()) places.push({ folder: `${path}/`, rest });
    }
  }
  return false;
}

/** Files and folders that a pattern may stand for, before a person is asked. */
const MAX_MATCHES = 2_000;

/** Whether the shell may find a file by a pattern: what is before and behind its signs is the same. */
function mayMatch(name: string, pattern: string): boolean {
  if (/[{}]/.test(pattern)) return true;
  const before = pattern.slice(0, pattern.search(/[*?[\\]|$/));
  const behind = /[^*?[\]\\]*$/.exec(pattern)?.[0] ?? "";
  return before === pattern ? name === pattern : name.startsWith(before) && name.endsWith(behind);
}
