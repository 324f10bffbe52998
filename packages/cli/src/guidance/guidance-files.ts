import { type Dirent, lstatSync, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { INSTRUCTION_NAMES } from "./instructions.ts";

/** Folders that one look goes through, those nearest to the top first. */
const MAX_FOLDERS = 20_000;
/** No one works in these. */
const LEFT_OUT: ReadonlySet<string> = new Set([".git", "node_modules"]);
/** A folder that changed so short a time before it was listed may have changed again unseen. */
const UNSETTLED_MS = 1_000;
const NAMES: ReadonlySet<string> = new Set(INSTRUCTION_NAMES.map((name) => name.toLowerCase()));
const IN_SKILLS = /(?:^|\/)(?:gyre|\.gyre|\.agents|\.claude)\/skills\//i;

/** Whether a path is that of a text for agents, wherever it is: some file systems overlook case. */
export function isGuidancePath(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return NAMES.has(name.toLowerCase()) || IN_SKILLS.test(path);
}

/** By path, absolute: what is another one after each change. */
export type GuidanceFiles = ReadonlyMap<string, string>;

interface Listing {
  identity: string;
  isSettled: boolean;
  folders: readonly string[];
  files: readonly string[];
}

/** Where texts for agents may be. */
export interface GuidancePlaces {
  /** Looked through with all below them; the first is the one that is worked in. */
  whole: readonly [string, ...string[]];
  /** Of these, only what is in them itself. */
  single: readonly string[];
}

/**
 * Finds the texts for agents in a folder. Listings are kept from one look to the next, so that
 * only folders that changed are read again.
 */
export class GuidanceFinder {
  readonly #places: GuidancePlaces;
  #listings = new Map<string, Listing>();

  constructor(places: GuidancePlaces) {
    this.#places = places;
  }

  find(): GuidanceFiles {
    const found = new Map<string, string>();
    const listings = new Map<string, Listing>();
    const { whole, single } = this.#places;
    for (const folder of single) this.#look(folder, found, listings);
    // Breadth first: what is cut off at the limit is what lies deepest.
    const queue: string[] = [...whole];
    for (const folder of queue) {
      for (const name of this.#look(folder, found, listings)) {
        if (queue.length < MAX_FOLDERS) queue.push(`${folder}/${name}`);
      }
    }
    this.#listings = listings;
    return found;
  }

  /** The same texts as they are now, without a look for further ones. */
  refresh(known: GuidanceFiles): GuidanceFiles {
    const now = [...known.keys()].map((path) => [path, identifyFile(path) ?? ""] as const);
    return new Map(now);
  }

  /** Adds the texts in a folder; gives the folders in it. */
  #look(
    folder: string,
    found: Map<string, string>,
    listings: Map<string, Listing>,
  ): readonly string[] {
    const listing = this.#list(folder);
    if (!listing) return [];
    listings.set(folder, listing);
    for (const name of listing.files) {
      const path = join(folder, name);
      const identity = identifyFile(path);
      if (identity !== undefined) found.set(path, identity);
    }
    return listing.folders;
  }

  #list(folder: string): Listing | undefined {
    const stats = readStats(folder);
    if (!stats?.isDirectory()) return undefined;
    const identity = identify(stats);
    const known = this.#listings.get(folder);
    if (known?.isSettled && known.identity === identity) return known;
    const now = Date.now();
    const entries = listEntries(folder);
    return {
      identity,
      isSettled: now - stats.ctimeMs > UNSETTLED_MS,
      folders: entries
        .filter((entry) => entry.isDirectory() && !LEFT_OUT.has(entry.name))
        .map(({ name }) => name),
      files: entries
        .filter((entry) => !entry.isDirectory() && isGuidancePath(`${folder}/${entry.name}`))
        .map(({ name }) => name),
    };
  }
}

/** A program can set all of these back but the time of the change itself. */
function identify({ dev, ino, size, ctimeMs }: Stats): string {
  return `${dev} ${ino} ${size} ${ctimeMs}`;
}

/** Of a file, and of what a link leads to. */
function identifyFile(path: string): string | undefined {
  const stats = readStats(path);
  if (!stats) return undefined;
  if (!stats.isSymbolicLink()) return identify(stats);
  try {
    const target = statSync(path, { throwIfNoEntry: false });
    return identify(stats) + (target ? identify(target) : "");
  } catch {
    // It leads into a circle, or where nothing can be read.
    return identify(stats);
  }
}

function readStats(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // In a folder that is closed to us: what is there is not read either.
    return undefined;
  }
}

function listEntries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Gone meanwhile, or closed to us.
    return [];
  }
}
