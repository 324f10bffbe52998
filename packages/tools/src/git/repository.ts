import { lstatSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import type { ToolEnv } from "../contract/env.ts";
import { locateRepository, type RepositoryPlace } from "./locate.ts";
import { isWithin } from "../sandbox/places.ts";
import { listedName } from "../text/truncate.ts";

/** Of a file that says where a repository is. */
const MAX_POINTER_BYTES = 4_096;

/** git ran and did not do what was asked. */
export class GitError extends Error {
  readonly exitCode: number | null;
  constructor(message: string, exitCode: number | null = null) {
    super(message);
    this.name = "GitError";
    this.exitCode = exitCode;
  }
}

/** The folders of a repository. */
export interface RepositoryFolders {
  /** The working tree: the workspace, or a folder around it. */
  tree: string;
  folder: string;
  commonFolder: string;
}

/** Places in a repository that would carry what is written elsewhere, if they were links. */
const INNER_PLACES = [
  "HEAD",
  "config",
  "index",
  "info",
  "logs",
  "logs/HEAD",
  "logs/refs",
  "objects",
  "objects/info",
  "objects/pack",
  "packed-refs",
  "refs",
  "refs/heads",
  "refs/tags",
  "refs/remotes",
  "refs/gyre",
];

/**
 * The repository of a workspace, at its root or further up. Throws where there is none, and where
 * a file or link in it leads to a place that is neither in the workspace, nor among `allowed`, nor
 * points back to this working tree as that of a linked worktree does.
 */
export async function findRepository(
  env: ToolEnv,
  allowed: readonly string[],
): Promise<RepositoryFolders> {
  const { workspace } = env;
  const at = await workspace.resolve(".git");
  const located = locateRepository(workspace.root);
  if (!at.exists) return checkOuter(workspace.root, located);
  const { kind } = await workspace.stat(".git");
  const usable = [...allowed, ...(located ? [located.folder, located.commonFolder] : [])];
  let folder = at.absolute;
  let commonFolder = folder;
  if (kind === "file") {
    const { bytes } = await workspace.read(".git", MAX_POINTER_BYTES);
    const target = /^gitdir: (.+?)\s*$/.exec(new TextDecoder().decode(bytes))?.[1];
    if (target === undefined) {
      throw new GitError('The file .git does not say where the repository is ("gitdir: ...").');
    }
    folder = await allowedFolder(env, usable, resolve(dirname(folder), target));
    const common = await readCommonFolder(folder);
    commonFolder =
      common === undefined ? folder : await allowedFolder(env, usable, resolve(folder, common));
  } else refuseLed(folder);
  for (const place of new Set([folder, commonFolder])) {
    if (!isWithin(place, workspace.root)) continue;
    const path = relative(workspace.root, place);
    for (const inner of INNER_PLACES) await workspace.resolve(join(path, inner));
  }
  return { tree: workspace.root, folder, commonFolder };
}

/** A repository further up is used where git itself would use it: its owner is the user. */
function checkOuter(root: string, located: RepositoryPlace | undefined): RepositoryFolders {
  if (!located) throw new GitError(`There is no git repository at ${root} or further up.`);
  const owner = process.geteuid?.();
  const isForeign = [located.tree, located.folder, located.commonFolder].some(
    (place) => owner !== undefined && lstatSync(place).uid !== owner,
  );
  if (isForeign) {
    throw new GitError(
      `The git repository at ${located.tree}, further up than the workspace, belongs to another user and is not used.`,
    );
  }
  if (located.folder === located.commonFolder) refuseLed(located.folder);
  return located;
}

/** git follows such a file, and makes none in the folder of a whole repository. */
function refuseLed(folder: string): void {
  const path = join(folder, "commondir");
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  throw new GitError(
    `The file ${path} leads git to another repository, and git itself makes none there: nothing is done. Ask the user to look at it.`,
  );
}

async function readCommonFolder(folder: string): Promise<string | undefined> {
  try {
    return (await readFile(join(folder, "commondir"), "utf8")).trim();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** A folder that a file of the repository names, if it is in the workspace or among those allowed. */
async function allowedFolder(
  env: ToolEnv,
  allowed: readonly string[],
  folder: string,
): Promise<string> {
  const real = await realpath(folder);
  const inside = [env.workspace.root, ...allowed];
  for (const place of inside) {
    if (isWithin(real, await realpath(place))) return real;
  }
  throw new GitError(
    `The repository of this working tree is at ${real}, outside of the workspace, and is not used. It has to be allowed as one of \`repositories\` in the settings of the git tool.`,
  );
}

/** A path as the model gave it, in the form for git: from the root of the workspace. */
export async function gitPath(env: ToolEnv, path: string): Promise<string> {
  const { path: resolved } = await env.workspace.resolve(path, { keepLink: true });
  return resolved === "" ? "." : resolved;
}

/** A pathspec that means this path and nothing else, whatever letters it has. */
export function literal(path: string): string {
  return path === "." ? ":(top)" : `:(top,literal)${path}`;
}

/** The name of a revision or branch, in a form that is safe to pass to git. */
export function checkedRef(ref: string): string {
  // oxlint-disable-next-line no-control-regex -- these are what is refused
  if (ref === "" || ref.startsWith("-") || /[\u0000-\u0020\u007f:?*[\\]/.test(ref)) {
    throw new GitError(
      `"${listedName(ref)}" is not the name of a branch, tag or commit. Give it without options, spaces or any of : ? * [ \\.`,
    );
  }
  return ref;
}
