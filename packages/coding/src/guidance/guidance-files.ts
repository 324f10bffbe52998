import { type Dirent, lstatSync, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { realPath } from "../settings/project-file.ts";
import { LOCAL_NAME } from "./imports.ts";
import { INSTRUCTION_NAMES } from "./instructions.ts";

/** Folders that one look goes through, those nearest to the top first. */
const MAX_FOLDERS = 20_000;
/** No one works in these. */
const LEFT_OUT: ReadonlySet<string> = new Set([".git", "node_modules"]);
/** A folder that changed so short a time before it was listed may have changed again unseen. */
const UNSETTLED_MS = 1_000;
const NAMES: ReadonlySet<string> = new Set(
  [...INSTRUCTION_NAMES, LOCAL_NAME].map((name) => name.toLowerCase()),
);
const SYSTEM_FILE = /(?:^|\/)(?:gyre|\.gyre)\/SYSTEM\.md$/i;
const IN_SKILLS =
  /(?:^|\/)(?:(?:gyre|\.gyre|\.agents|\.claude)\/skills|(?:gyre|\.gyre|\.claude)\/agents)\//i;
/** Folders on the way to a skill: skills are found there by a link as well. */
const WAY_TO_SKILL =
  /(?:^|\/)(?:gyre|\.gyre|\.agents|\.claude)(?:\/skills(?:\/[^/]+)?|\/agents)?$/i;
/** Links on the way to one folder that are followed: they may lead into a circle. */
const MAX_LINKS = 3;

/** Whether a path is that of a text for agents, wherever it is: some file systems overlook case. */
export function isGuidancePath(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return NAMES.has(name.toLowerCase()) || IN_SKILLS.test(path) || SYSTEM_FILE.test(path);
}

/** By path, absolute: what is another one after each change. */
export type GuidanceFiles = ReadonlyMap<string, string>;

interface Listing {
  identity: string;
  isSettled: boolean;
  folders: readonly string[];
  /** Links to folders that a skill may be in. */
  links: readonly string[];
  files: readonly string[];
}

/** Where texts for agents may be. */
export interface GuidancePlaces {
  /** Looked through with all below them; the first is the one that is worked in. */
  whole: readonly [string, ...string[]];
  /** Of these, only what is in them itself. */
  single: readonly string[];
  /** Files of any name that are texts for agents: others import them. */
  files?: readonly string[];
}

/**
 * Finds the texts for agents in a folder. Listings are kept from one look to the next, so that
 * only folders that changed are read again.
 */
export class GuidanceFinder {
  readonly #places: GuidancePlaces;
  #listings = new Map<string, Listing>();
  #linked: readonly string[] = [];

  constructor(places: GuidancePlaces) {
    this.#places = places;
  }

  /** The folders that links to skills lead to, as the last look found them. */
  get linked(): readonly string[] {
    return this.#linked;
  }

  find(): GuidanceFiles {
    const found = new Map<string, string>();
    const listings = new Map<string, Listing>();
    const { whole, single, files = [] } = this.#places;
    for (const path of files) {
      const identity = identifyFile(path);
      if (identity !== undefined) found.set(path, identity);
    }
    for (const folder of single) this.#look(folder, found, listings);
    // Breadth first: what is cut off at the limit is what lies deepest.
    const queue = whole.map((path) => ({ path, links: 0 }));
    const linked = new Set<string>();
    for (const { path: folder, links } of queue) {
      const listing = this.#look(folder, found, listings);
      const below = (listing?.folders ?? []).map((name) => ({ path: `${folder}/${name}`, links }));
      for (const name of links < MAX_LINKS ? (listing?.links ?? []) : []) {
        below.push({ path: `${folder}/${name}`, links: links + 1 });
        linked.add(realPath(`${folder}/${name}`));
      }
      queue.push(...below.slice(0, Math.max(0, MAX_FOLDERS - queue.length)));
    }
    this.#listings = listings;
    this.#linked = [...linked];
    return found;
  }

  /** The same texts as they are now, without a look for further ones. */
  refresh(known: ReadonlyMap<string, unknown>): GuidanceFiles {
    const now = [...known.keys()].map((path) => [path, identifyFile(path) ?? ""] as const);
    return new Map(now);
  }

  /** Adds the texts in a folder; gives what else is in it. */
  #look(
    folder: string,
    found: Map<string, string>,
    listings: Map<string, Listing>,
  ): Listing | undefined {
    const listing = this.#list(folder);
    if (!listing) return undefined;
    listings.set(folder, listing);
    for (const name of listing.files) {
      const path = join(folder, name);
      const identity = identifyFile(path);
      if (identity !== undefined) found.set(path, identity);
    }
    return listing;
  }

  #list(folder: string): Listing | undefined {
    const stats = readStats(folder, statSync);
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
      links: entries
        .filter((entry) => entry.isSymbolicLink() && WAY_TO_SKILL.test(`${folder}/${entry.name}`))
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
  const target = readStats(path, statSync);
  return identify(stats) + (target ? identify(target) : "");
}

function readStats(path: string, stat: typeof statSync = lstatSync): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false });
  } catch {
    // In a folder that is closed to us, or in a circle of links: what is there is not read either.
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
