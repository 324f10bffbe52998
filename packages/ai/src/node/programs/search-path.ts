import { realpathSync } from "node:fs";
import nodePath from "node:path";

/**
 * How a system writes its paths: `node:path`, or its `posix` or `win32`. The types of Node have
 * another name for it from version to version.
 */
interface PathSystem {
  readonly delimiter: string;
  readonly sep: string;
  isAbsolute(path: string): boolean;
  relative(from: string, to: string): string;
}

const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";
const WINDOWS_DEFAULT_PATH = "C:\\Windows\\System32;C:\\Windows";
/** Line breaks and other control characters: no honest value has them. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
export const CONTROL: RegExp = /[\u0000-\u001F\u007F]/;

/**
 * PATH without the folders that a project chooses: relative ones, and those inside of the
 * workspace, through links as well. Programs that we start ourselves are looked up in it.
 */
export function cleanPath(
  path: string | undefined,
  workspace: string | undefined,
  system: PathSystem = nodePath,
): string {
  const { delimiter } = system;
  const usual = delimiter === ";" ? WINDOWS_DEFAULT_PATH : DEFAULT_PATH;
  const kept = (path ?? usual)
    .split(delimiter)
    .filter((folder) => system.isAbsolute(folder) && !CONTROL.test(folder))
    .filter((folder) => workspace === undefined || !leadsInto(folder, workspace, system));
  return kept.join(delimiter) || usual;
}

/** Whether a folder is the workspace or inside of it, as it is written or where its links lead. */
export function leadsInto(
  folder: string,
  workspace: string,
  system: PathSystem = nodePath,
): boolean {
  const roots = [workspace, followLinks(workspace)];
  return [folder, followLinks(folder)].some((each) =>
    roots.some((root) => {
      const way = system.relative(root, each);
      // Between two drives there is no way but the whole path.
      return way !== ".." && !way.startsWith(`..${system.sep}`) && !system.isAbsolute(way);
    }),
  );
}

function followLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // It does not exist, so it leads nowhere.
    return path;
  }
}
