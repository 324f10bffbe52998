import type { BigIntStats } from "node:fs";
import type { BytePath } from "./byte-path.ts";

/** What something is. */
export type EntryType = "file" | "folder" | "link" | "special";

/** A state of a file by which it is known again. Numbers are written as texts: they do not fit otherwise. */
export interface FileRecord {
  ino: string;
  size: string;
  mtime: string;
  ctime: string;
  mode: number;
}

/** One thing that a command did to the files of a workspace, in a layer: it is not done yet. */
export interface Effect {
  id: number;
  path: BytePath;
  /**
   * `replace`: something else is there now, a link where a folder was, say. `mode`: the rights alone.
   * `special`: a pipe, a socket or a device, which is never kept.
   */
  kind: "create" | "modify" | "replace" | "mode" | "delete" | "special";
  /** What is there after it; of what was deleted, what was there. */
  type: EntryType;
  /** What was there before. */
  before?: { type: EntryType; record: FileRecord; links: number };
  /** Rights after it, with the bits that are not kept. */
  mode?: number;
  /** Bytes of a file after it. */
  size?: number;
  /** Where a link leads. */
  target?: BytePath;
  /** What was in a folder that is gone. */
  below?: number;
}

export const RIGHTS = 0o7777;
/** What is kept of the rights: no program becomes another user by what a command made. */
export const KEPT_RIGHTS = 0o777;

export function findType(stats: BigIntStats): EntryType {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  return stats.isSymbolicLink() ? "link" : "special";
}

export function takeRecord(stats: BigIntStats): FileRecord {
  return {
    ino: String(stats.ino),
    size: String(stats.size),
    mtime: String(stats.mtimeNs),
    ctime: String(stats.ctimeNs),
    mode: Number(stats.mode) & RIGHTS,
  };
}

export function isSameRecord(one: FileRecord, other: FileRecord): boolean {
  return (
    one.ino === other.ino &&
    one.size === other.size &&
    one.mtime === other.mtime &&
    one.ctime === other.ctime &&
    one.mode === other.mode
  );
}
