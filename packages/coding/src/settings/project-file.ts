import { constants, lstatSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import type { Environment } from "../core/environment.ts";
import { describeCode, type FileContent, readSmallFile } from "./file.ts";

/** Where a project has its settings. */
export const PROJECT_FILE: string = join(".gyre", "config.json");

/** Where a project has its MCP servers, as other agents read them too. */
export const MCP_FILE = ".mcp.json";

/** Where Claude Code has the settings of a project, and those of one user for it. */
const CLAUDE_FILES: readonly string[] = ["settings.json", "settings.local.json"].map((name) =>
  join(".claude", name),
);

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

/** Whether a folder is one of others, or in one, links followed. Those are real paths. */
export function isInFolders(folder: string, others: readonly string[]): boolean {
  const real = realPlace(folder);
  if (real === undefined) return false;
  return others.some(
    (other) => real === other || real.startsWith(other.endsWith(sep) ? other : other + sep),
  );
}

/** The real path; of what is not there yet, that of the nearest folder which is. */
function realPlace(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path);
    // A link to nothing may lead anywhere later.
    if (isThere(path) || parent === path) return undefined;
    const real = realPlace(parent);
    return real === undefined ? undefined : join(real, basename(path));
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

export interface ClaudePlace {
  cwd: string;
  home: string;
  env: Environment;
}

/** A settings file of Claude Code that is there. Without `project` it is the user's own. */
export interface FoundFile {
  readonly path: string;
  readonly project?: ProjectFile;
}

/** Where Claude Code has what is the user's own. */
export function claudeFolder(env: Environment, home: string): string {
  return env["CLAUDE_CONFIG_DIR"] || join(home, ".claude");
}

/** What the trust file calls a project's rules of Claude Code: apart from the settings of the same folder. */
export function claudeTrustKey(folder: string): string {
  return join(folder, ".claude");
}

/** The settings files of Claude Code that count for a folder: the user's own first, then the project's. */
export function findClaudeFiles({ cwd, env, home }: ClaudePlace): readonly FoundFile[] {
  const own = join(claudeFolder(env, home), "settings.json");
  const found = CLAUDE_FILES.flatMap((name) => findProjectFile(cwd, home, name) ?? []);
  const projects = found.filter(({ path }) => realPath(path) !== realPath(own));
  return [
    ...(isThere(own) ? [{ path: own }] : []),
    ...projects.map((project) => ({ path: project.path, project })),
  ];
}
