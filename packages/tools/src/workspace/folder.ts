import { type BigIntStats, readlinkSync } from "node:fs";
import { type FileHandle, readdir } from "node:fs/promises";
import { errnoOf } from "@gyre/ai";
import type { Entry } from "./types.ts";

/** What was found under a name, links not followed. Held until `close`. */
export type Spot = FolderSpot | FileSpot | OtherSpot;

interface Held {
  readonly stats: BigIntStats;
  close(): void;
}

export interface OtherSpot extends Held {
  readonly kind: "link" | "other";
}

export interface FileSpot extends Held {
  readonly kind: "file";
  /** This very file, for reading. */
  open(): Promise<FileHandle>;
  /** Throws where this user may not change it. */
  checkWritable(): Promise<void>;
}

/**
 * A folder that was checked, and its entries by name: one component, never `.` or `..`.
 * What is done to an entry is done in this folder, whatever its path leads to by then.
 *
 * The walk and the last step of a write are synchronous: they are a few short calls, and
 * nothing of this process comes between them.
 */
export interface FolderSpot extends Held {
  readonly kind: "folder";
  /** Throws `ReplacedError` where what was seen here may not have been this folder's. */
  verify(): void;
  look(name: string): Spot | undefined;
  /** The bytes of a link; undefined where it is no link any more. */
  readLink(name: string): Buffer | undefined;
  list(): Promise<Entry[]>;
  makeFolder(name: string): void;
  /** A new file, for writing. Whatever has the name already is an error. */
  create(name: string, mode: number): Promise<FileHandle>;
  rename(from: string, to: string): void;
  /** Gives a file a second name. Whatever has that name already is an error. */
  link(from: string, to: string): void;
  unlink(name: string): void;
  /** Makes what was done to its entries last. */
  sync(): Promise<void>;
}

/** The folder was replaced by another one while it was in use. */
export class ReplacedError extends Error {
  constructor() {
    super("It was replaced while it was in use.");
    this.name = "ReplacedError";
  }
}

export function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

export function findKind(entry: {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}): Entry["kind"] {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "folder";
  return entry.isSymbolicLink() ? "link" : "other";
}

export async function listEntries(path: string): Promise<Entry[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.map((entry) => ({ name: entry.name, kind: findKind(entry) }));
}

export function readLink(path: string): Buffer | undefined {
  try {
    return readlinkSync(path, "buffer");
  } catch (error) {
    // Windows does not name what is wrong with a file that is no link.
    if (["EINVAL", "ENOENT", "UNKNOWN"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

/** Syncs the folder that `open` opens. */
export async function syncFolder(open: () => Promise<FileHandle>): Promise<void> {
  let handle: FileHandle;
  try {
    handle = await open();
  } catch (error) {
    // A folder that may be changed but not read cannot be synced by its user.
    if (errnoOf(error) === "EACCES") return;
    throw error;
  }
  try {
    await handle.sync();
  } catch (error) {
    // Some file systems have no such thing for folders.
    if (errnoOf(error) !== "EINVAL" && errnoOf(error) !== "ENOTSUP") throw error;
  } finally {
    await handle.close();
  }
}
