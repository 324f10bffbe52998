import { existsSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { CommandPart, CommandParts } from "./command/parts.ts";
import { findDanger } from "./command/dangers.ts";
import { isHarmless } from "./command/harmless.ts";
import type { Word } from "./command/parse.ts";
import type { PathResolver } from "./permissions.ts";

/** Where commands in a sandbox read and write without an effect on anything else. */
const HARMLESS =
  /^(?:\/tmp(?:\/|$)|\/dev\/(?:null|zero|u?random|stdin|stdout|stderr|tty|fd\/\d+)$)/;

/**
 * Why a person is asked about a command line in mode `auto` although a sandbox confines it: it needs the
 * network, names something outside of the workspace, or cannot be undone. Nothing where it may run.
 */
export async function explainDanger(
  commands: readonly CommandParts[],
  cwd: string,
  workspace: PathResolver | undefined,
): Promise<string | undefined> {
  const parts = commands.flatMap((line) => line.parts);
  for (const { words } of parts) {
    const danger = findDanger(words);
    if (danger && !(await isInstalled(words, cwd, workspace))) return danger.why;
  }
  const place = await findPlaceOutside(parts, cwd, workspace);
  return place === undefined ? undefined : `"${place}" is outside of the workspace.`;
}

/**
 * Whether a command line only shows what is in the workspace, so that every mode allows it. Where rules forbid to
 * read some files, it may name files alone, and none of these.
 */
export async function onlyShows(
  commands: readonly CommandParts[],
  { cwd, isConfined, forbids }: ShowOptions,
  workspace: PathResolver | undefined,
): Promise<boolean> {
  const parts = commands.flatMap((line) => line.parts);
  const isPlain = commands.every(({ unclear, moves }) => unclear === undefined && !moves);
  if (!workspace || !isPlain || !parts.every((part) => isHarmless(part, isConfined))) return false;
  if ((await findPlaceOutside(parts, cwd, workspace)) !== undefined) return false;
  if (!forbids) return true;
  for (const { words } of parts) {
    const [program, ...args] = words.map(({ text }) => text);
    if (READS_NOTHING.has(program ?? "")) continue;
    if (program === "git") return false;
    const paths = args.filter((arg) => !arg.startsWith("-"));
    if (paths.length === 0 && !FILTERS.has(program ?? "")) return false;
    for (const path of paths) {
      const target = isAbsolute(path) ? path : join(cwd, path);
      const {
        exists = false,
        path: inside = "",
        absolute = "",
      } = (await workspace.resolve(target).catch(() => undefined)) ?? {};
      if (exists && (forbids(inside) || !statSync(absolute).isFile())) return false;
    }
  }
  return true;
}

/** What is known of the place where a command line would run. */
export interface ShowOptions {
  cwd: string;
  isConfined: boolean;
  /** Which files of the workspace are not to be read. */
  forbids?: (path: string) => boolean;
}

const READS_NOTHING = new Set(
  "pwd whoami id uname arch nproc uptime date echo printf true false :".split(" "),
);
/** Read what comes by a pipe where no file is named. */
const FILTERS = new Set(
  "cat head tail wc sort uniq cut tr nl tac rev fold fmt paste column".split(" "),
);

async function findPlaceOutside(
  parts: readonly CommandPart[],
  cwd: string,
  workspace: PathResolver | undefined,
): Promise<string | undefined> {
  for (const { words, redirects } of parts) {
    const files = redirects.filter(({ kind }) => kind !== "input").map(({ target }) => target);
    for (const word of [...words.slice(1), ...files]) {
      const place = await findOutside(word, cwd, workspace);
      if (place !== undefined) return place;
    }
  }
  return undefined;
}

/** The part of a word that names something outside of the workspace, if there is one. */
async function findOutside(
  { text, literal, prefix }: Word,
  cwd: string,
  workspace: PathResolver | undefined,
): Promise<string | undefined> {
  if (!literal && /^~|\$\{?(?:HOME|OLDPWD|XDG_\w+)\b/.test(text)) return text;
  // An option may have its value behind "=", or behind its letter.
  const known = literal ? text : prefix;
  const values = [known, known.slice(known.indexOf("=") + 1), known.replace(/^-\w/, "")];
  for (const path of new Set(values)) {
    if (!isAbsolute(path) && !/(?:^|\/)\.\.(?:\/|$)/.test(path) && !literal) continue;
    if (path === "" || path.includes("\0") || HARMLESS.test(path)) continue;
    // What begins with a slash may be a pattern: no such place, no file.
    if (isAbsolute(path) && !existsSync(`/${path.split("/")[1] ?? ""}`)) continue;
    if (!workspace) return path;
    const target = isAbsolute(path) ? path : join(cwd, path);
    const resolved = await workspace.resolve(target).catch(() => undefined);
    if (!resolved && isPlace(path)) return path;
  }
  return undefined;
}

/** Not a text that happens to be no path at all, as one that is too long. */
function isPlace(path: string): boolean {
  return path.length < 4096 && !path.includes("\n");
}

/** `npx` of a program that the project has installed fetches nothing. */
async function isInstalled(
  [program, name]: readonly Word[],
  cwd: string,
  workspace: PathResolver | undefined,
): Promise<boolean> {
  if (program?.text !== "npx" || !name?.literal || !/^[\w.-]+$/.test(name.text)) return false;
  const path = join(cwd, "node_modules/.bin", name.text);
  return (await workspace?.resolve(path).catch(() => undefined))?.exists ?? false;
}
