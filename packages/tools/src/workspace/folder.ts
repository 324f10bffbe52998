import type { BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
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
