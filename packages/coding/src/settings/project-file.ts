import { constants, lstatSync, realpathSync, statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { describeCode, type FileContent, readSmallFile } from "./file.ts";

/** Where a project has its settings. */
export const PROJECT_FILE: string = join(".gyre", "config.json");

/** Where a project has its MCP servers, as other agents read them too. */
export const MCP_FILE = ".mcp.json";

/** A project's settings file, found but not yet looked into. */
export interface ProjectFile {
  /** The folder that it is for, with all links followed. */
  readonly folder: string;
  readonly path: string;
}

/**
 * The nearest settings file of a project: in `cwd`, or above it up to the root of the
 * repository, and always below the home folder, which is no project. Outside of both,
 * nothing above `cwd` is looked at: it may be anybody's.
 */
export function findProjectFile(
  cwd: string,
  home: string,
  name: string = PROJECT_FILE,
): ProjectFile | undefined {
  const start = realPath(cwd);
  const end = realPath(home);
  let found: ProjectFile | undefined;
  for (let folder = start; folder !== end; folder = dirname(folder)) {
    const path = join(folder, name);
    if (!found && isThere(path)) found = { folder, path };
    if (isThere(join(folder, ".git"))) return found;
    if (folder === dirname(folder)) return found?.folder === start ? found : undefined;
  }
  return found;
}

/**
 * Reads it, if it is a part of the project: a link that leads out of the folder is not
 * followed, and a file above `cwd` has to be of the same owner as `cwd`, or of root.
 * Whether others may write to it does not matter: what is trusted is its content.
 */
export function readProjectFile({ folder, path }: ProjectFile, cwd: string): FileContent {
  try {
    const real = realpathSync.native(path);
    const inside = folder.endsWith(sep) ? folder : folder + sep;
    if (!real.startsWith(inside)) return { problem: "is a link that leads out of the project" };
    const owner = statSync(real).uid;
    const isAbove = folder !== realPath(cwd);
    if (isAbove && owner !== 0 && owner !== statSync(cwd).uid) {
      return { problem: `has another owner than ${cwd}` };
    }
    return readSmallFile(real, constants.O_NOFOLLOW) ?? { problem: "is not there any more" };
  } catch (error) {
    const code = describeCode(error);
    return {
      problem: code === "ENOENT" ? "is a link that leads nowhere" : `cannot be read (${code})`,
    };
  }
}

/** The path with all links followed; as it is where there is nothing. */
export function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // The caller that opens it gets the error.
    return path;
  }
}

/** Whether there is anything: a link to nothing counts. */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // A folder that may not be looked into has nothing for us.
    return false;
  }
}
