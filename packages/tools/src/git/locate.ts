import {
  constants,
  lstatSync,
  openSync,
  closeSync,
  fstatSync,
  readFileSync,
  realpathSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isWithin } from "../sandbox/places.ts";

/** Of a file that says where something is. */
const MAX_POINTER_BYTES = 4_096;
/** Of the config of a submodule. */
const MAX_CONFIG_BYTES = 1024 * 1024;

/** Where the repository around a folder is; all of it real paths. */
export interface RepositoryPlace {
  /** The working tree: the folder with `.git`. */
  tree: string;
  /** Of this working tree. */
  folder: string;
  /** Of the repository: the same, but for a linked worktree. */
  commonFolder: string;
}

/**
 * The repository that git would use in the workspace `root`, wherever its folder is. A `.git` file
 * can be made by a command: it leads out of the workspace only to a folder that points back to
 * this working tree. Gives nothing where there is no such repository.
 */
export function locateRepository(root: string): RepositoryPlace | undefined {
  for (let tree = root; ; tree = dirname(tree)) {
    const at = join(tree, ".git");
    const stats = lstatSync(at, { throwIfNoEntry: false });
    if (stats) {
      // git makes no `commondir` here: one that is here leads elsewhere, and is not read.
      if (stats.isDirectory())
        return isRepository(at) ? { tree, folder: at, commonFolder: at } : undefined;
      // A link can be replaced, and git's own ones are files.
      const folder = stats.isFile() ? readPointed(at, root) : undefined;
      return folder === undefined ? undefined : locateCommon(tree, folder, root);
    }
    if (tree === dirname(tree)) return undefined;
  }
}

function locateCommon(tree: string, folder: string, root: string): RepositoryPlace | undefined {
  const common = readPointer(join(folder, "commondir"));
  if (common === undefined)
    return isRepository(folder) ? { tree, folder, commonFolder: folder } : undefined;
  const commonFolder = realPath(resolve(folder, common.trim()));
  if (commonFolder === undefined || !isRepository(commonFolder)) return undefined;
  // A folder elsewhere, made by a command, could name any repository as its own.
  const belongs = dirname(folder) === join(commonFolder, "worktrees");
  if (!belongs && !(isWithin(commonFolder, root) && isWithin(folder, root))) return undefined;
  return { tree, folder, commonFolder };
}

/** The folder that a `.git` file names, if it is in the workspace or points back to the file. */
function readPointed(at: string, root: string): string | undefined {
  const target = /^gitdir: (.+?)[\r\n]*$/s.exec(readPointer(at) ?? "")?.[1];
  const folder = target === undefined ? undefined : realPath(resolve(dirname(at), target));
  if (folder === undefined) return undefined;
  const isInside = isWithin(folder, root) && isWithin(at, root);
  return isInside || pointsBack(folder, at) ? folder : undefined;
}

function pointsBack(folder: string, at: string): boolean {
  const back = readPointer(join(folder, "gitdir"));
  if (back !== undefined) return realPath(resolve(folder, back.trim())) === at;
  // A submodule: its config has the working tree.
  if (!dirname(folder).split("/").includes("modules")) return false;
  const config = readSmall(join(folder, "config"), MAX_CONFIG_BYTES) ?? "";
  const tree = /^\s*worktree = ([^"\\;#\r\n]+?)\s*$/m.exec(config)?.[1];
  return tree !== undefined && realPath(resolve(folder, tree)) === dirname(at);
}

function isRepository(folder: string): boolean {
  const readKind = (name: string) => lstatSync(join(folder, name), { throwIfNoEntry: false });
  return (
    (readKind("HEAD")?.isFile() ?? false) &&
    readKind("objects") !== undefined &&
    readKind("refs") !== undefined
  );
}

function readPointer(path: string): string | undefined {
  return readSmall(path, MAX_POINTER_BYTES);
}

function readSmall(path: string, maxBytes: number): string | undefined {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = fstatSync(file);
    return stats.isFile() && stats.size <= maxBytes ? readFileSync(file, "utf8") : undefined;
  } catch {
    // Missing, a link, or closed to us: it says nothing.
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // It leads nowhere.
    return undefined;
  }
}
