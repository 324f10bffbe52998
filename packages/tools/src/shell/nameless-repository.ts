import { isUtf8 } from "node:buffer";
import { type BigIntStats, lstatSync, realpathSync } from "node:fs";

/** Of a repository, what has git run something or leads it elsewhere. */
const RUNNING = ["config", "config.worktree", "hooks", "commondir"];

/** A repository that git finds by a name that is no text: no path that is a string leads there. */
export interface NamelessRepository {
  /** The folder that has its `.git`, byte for byte. */
  folder: Buffer;
  /** Another one after each change of what has git run something. */
  identity: string;
}

/** Looks for a repository in a folder of a working tree; nothing where there is none. */
export function findNameless(tree: string, name: Buffer): NamelessRepository | undefined {
  const folder = Buffer.concat([Buffer.from(`${tree}/`), name]);
  const git = statBytes(folder, "/.git");
  if (!git) return undefined;
  const parts = git.isDirectory()
    ? RUNNING.map((each) => statBytes(folder, `/.git/${each}`))
    : [git];
  return { folder, identity: parts.map((stats) => (stats ? identify(stats) : "")).join(",") };
}

/** Whether a path leads to a place whose name is no text, links followed. */
export function leadsToNameless(path: string): boolean {
  try {
    return !isUtf8(realpathSync.native(path, { encoding: "buffer" }));
  } catch {
    // It leads nowhere.
    return false;
  }
}

/** A program can set all of these back but the time of the change itself. */
export function identify({ dev, ino, size, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, ctimeNs].join(" ");
}

function statBytes(folder: Buffer, end: string): BigIntStats | undefined {
  try {
    return lstatSync(Buffer.concat([folder, Buffer.from(end)]), {
      bigint: true,
      throwIfNoEntry: false,
    });
  } catch {
    // Below a file, or closed: git cannot reach it either.
    return undefined;
  }
}
