import { statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { CommandParts } from "./command/parts.ts";
import { isHarmless } from "./command/harmless.ts";
import { findPlaceOutside } from "./danger/outside.ts";
import type { PathResolver } from "./permissions.ts";

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
  if (
    (await findPlaceOutside(parts, { cwd, workspace, isConfined, onlyReads: true })) !== undefined
  )
    return false;
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
