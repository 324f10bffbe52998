import {
  closeSync,
  constants,
  type Dirent,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  type Stats,
} from "node:fs";
import { join } from "node:path";
import { findKind } from "./folder.ts";
import type { Entry, Workspace } from "./types.ts";

/** A folder that changed so short a time before it was listed may have changed again unseen. */
export const UNSETTLED_MS = 2_500;
/** Folders whose listings are kept; beyond that all are read again. */
const MAX_LISTINGS = 200_000;
/** A pipe that took the place of a folder does not block, a link is not followed. */
const OPEN = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);
const isLinux = process.platform === "linux";

/** What is in a folder. The same object for as long as nothing comes, goes or is renamed there. */
export interface Listing {
  /** Sorted by the bytes of their names. */
  readonly entries: readonly Entry[];
}

interface KnownListing extends Listing {
  /** Absolute. */
  path: string;
  dev: number;
  ino: number;
  size: number;
  ctimeMs: number;
  isSettled: boolean;
  /** By `performance.now`. */
  checkedAt: number;
}

/**
 * The listings of the folders of a workspace, kept from one look to the next. A folder is read
 * again when its inode or the time of its last change differ, which no program can set back, or
 * when it had changed just before it was read: a change within one tick of the clock leaves the
 * time as it was. Of what is in files this says nothing: writing to one leaves its folder as it is.
 */
export class Listings {
  readonly #root: string;
  readonly #known = new Map<string, KnownListing>();
  /** For tests: how often the system was asked. */
  readonly counts = { stats: 0, reads: 0 };
  /**
   * When, by `performance.now`, a check of all folders began after the last command had ended. A
   * walk that asks what the command did has this for `notBefore`: one check serves both.
   */
  checkedAfterCommand: number = -Infinity;

  constructor(root: string) {
    this.#root = root;
  }

  /**
   * What is in a folder, by its path from the workspace; nothing where it is gone, closed, or
   * reached through a link. `notBefore` (of `performance.now`): a check since then is enough.
   */
  list(folder: string, notBefore: number): Listing | undefined {
    const known = this.#known.get(folder);
    if (known && known.checkedAt >= notBefore) return known;
    const checkedAt = performance.now();
    const now = Date.now();
    const path = known?.path ?? (folder === "" ? this.#root : this.#locate(folder));
    this.counts.stats += 1;
    const stats = statFolder(path);
    if (!stats) {
      this.#known.delete(folder);
      return undefined;
    }
    if (known?.isSettled && isUnchanged(known, stats)) {
      known.checkedAt = checkedAt;
      return known;
    }
    this.counts.reads += 1;
    const entries = readEntries(path);
    if (!entries) {
      this.#known.delete(folder);
      return undefined;
    }
    const { dev, ino, size, ctimeMs } = stats;
    const isSettled = now - ctimeMs > UNSETTLED_MS;
    if (known && isSameEntries(known.entries, entries)) {
      return Object.assign(known, { dev, ino, size, ctimeMs, isSettled, checkedAt });
    }
    if (this.#known.size >= MAX_LISTINGS) this.#known.clear();
    const listing = { path, entries, dev, ino, size, ctimeMs, isSettled, checkedAt };
    this.#known.set(folder, listing);
    return listing;
  }

  /** The kernel names folders without `..`, by which those beside the workspace begin. */
  #locate(folder: string): string {
    return folder.startsWith("..") ? join(this.#root, folder) : `${this.#root}/${folder}`;
  }
}

const listingsByWorkspace = new WeakMap<object, Listings>();

/** When the folders of a workspace were checked after the last command: see `Listings`. */
export function findCheckAfterCommand(workspace: Pick<Workspace, "root">): number {
  return getListings(workspace).checkedAfterCommand;
}

/** Those of a workspace: all that walks through it shares them. */
export function getListings(workspace: Pick<Workspace, "root">): Listings {
  const listings = listingsByWorkspace.get(workspace) ?? new Listings(workspace.root);
  listingsByWorkspace.set(workspace, listings);
  return listings;
}

function isUnchanged(known: KnownListing, stats: Stats): boolean {
  return (
    known.ctimeMs === stats.ctimeMs &&
    known.ino === stats.ino &&
    known.size === stats.size &&
    known.dev === stats.dev
  );
}

function isSameEntries(a: readonly Entry[], b: readonly Entry[]): boolean {
  if (a.length !== b.length) return false;
  return a.every(({ name, kind }, index) => b[index]?.name === name && b[index]?.kind === kind);
}

function statFolder(path: string): Stats | undefined {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats?.isDirectory() ? stats : undefined;
  } catch {
    // Below a file, or in a folder that is closed to us.
    return undefined;
  }
}

/** Nothing where it is closed to us, or where a folder on the way was replaced by a link. */
function readEntries(path: string): Entry[] | undefined {
  try {
    const found = isLinux ? readHeld(path) : readCompared(path);
    return (
      found && sortByBytes(found.map((entry) => ({ name: entry.name, kind: findKind(entry) })))
    );
  } catch {
    return undefined;
  }
}

/** The kernel says where the folder is that was opened: what is listed is in the workspace. */
function readHeld(path: string): Dirent[] | undefined {
  const fd = openSync(path, OPEN);
  try {
    const held = `/proc/self/fd/${fd}`;
    return readlinkSync(held) === path ? readdirSync(held, { withFileTypes: true }) : undefined;
  } finally {
    closeSync(fd);
  }
}

/** Elsewhere the way is compared before and after, which leaves a window: see `holdByIdentity`. */
function readCompared(path: string): Dirent[] | undefined {
  if (realpathSync.native(path) !== path) return undefined;
  const entries = readdirSync(path, { withFileTypes: true });
  return realpathSync.native(path) === path ? entries : undefined;
}

/** Half of a surrogate pair sorts before some characters that its bytes come after. */
const BEYOND_PLANE = /[\ud800-\udfff]/;

function sortByBytes(entries: Entry[]): Entry[] {
  if (entries.some(({ name }) => BEYOND_PLANE.test(name))) {
    return entries.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
