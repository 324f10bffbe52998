import { statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { describeCode } from "../settings/file.ts";
import { isThere, realPath } from "../settings/project-file.ts";

/**
 * The folders whose own files count for work in `cwd`, the outermost first and `cwd` last,
 * all links followed: up to the root of the repository, and below the home folder. Outside
 * of both it is `cwd` alone: what is above may be anybody's.
 */
export function projectFolders(cwd: string, home: string): readonly [string, ...string[]] {
  const start = realPath(cwd);
  const end = realPath(home);
  let folders: [string, ...string[]] = [start];
  if (start === end) return folders;
  for (let folder = start; !isThere(join(folder, ".git")); folder = folders[0]) {
    const above = dirname(folder);
    if (above === end) break;
    if (above === folder) return [start];
    folders = [above, ...folders];
  }
  return folders;
}

/**
 * Why a file is no part of the project that its user works in: `real`, its path with all
 * links followed, is outside of it, or it belongs to one who is neither the user, nor
 * root, nor the owner of the folder that is worked in.
 */
export function untrustedReason(real: string, root: string, cwd: string): string | undefined {
  if (!real.startsWith(root.endsWith(sep) ? root : root + sep)) {
    return "is a link that leads out of the project";
  }
  try {
    const owner = statSync(real).uid;
    const known = [0, process.getuid?.() ?? owner, statSync(cwd).uid];
    return known.includes(owner) ? undefined : "belongs to another user";
  } catch (error) {
    return `cannot be read (${describeCode(error)})`;
  }
}
