import { accessSync, constants } from "node:fs";
import nodePath from "node:path";

/** `node:path`, or its `posix` or `win32`. */
interface PathSystem {
  readonly delimiter: string;
  join(...parts: string[]): string;
}

/** The first bash on the PATH that programs are given; without one `sh`, wherever it is found. */
export function shellOn(
  path: string,
  isProgram: (path: string) => boolean = isExecutable,
  system: PathSystem = nodePath,
): string {
  const folders = path.split(system.delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => system.join(folder, "bash")).find(isProgram) ?? "sh";
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
