import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { CommandParts } from "./command/parts.ts";
import { findDanger } from "./command/dangers.ts";
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
  for (const { words, redirects } of parts) {
    const files = redirects.filter(({ kind }) => kind !== "input").map(({ target }) => target);
    for (const word of [...words.slice(1), ...files]) {
      const place = await findOutside(word, cwd, workspace);
      if (place !== undefined) return `"${place}" is outside of the workspace.`;
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
