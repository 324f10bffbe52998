import { listAdded } from "./added.ts";
import {
  keptEntries,
  type KeptEntry,
  type IgnoreRules,
  rulesAbove,
  rulesInside,
} from "./ignore-files.ts";
import { type Listing, type Listings, getListings } from "./listings.ts";
import { Slices } from "./slices.ts";
import type { Entry, Workspace } from "./types.ts";

/** A walk ends after so many entries: it says so, and a narrower one is asked for. */
export const MAX_WALK_ENTRIES = 200_000;
/** Entries that are given at a time: callers match their paths together. */
const BATCH_ENTRIES = 1_000;

/** Something beneath a folder, as `walkFiles` gives it. */
export interface WalkedEntry {
  /** From the workspace. */
  path: string;
  kind: Entry["kind"];
}

export interface WalkOptions {
  signal: AbortSignal;
  maxEntries?: number;
  /** A check of a folder since then, by `performance.now`, is enough. Default: since the walk began. */
  notBefore?: number;
  /** See `Slices`. */
  restMs?: () => number;
}

/** What is beneath a folder, some at a time. */
export interface Walk<T = WalkedEntry> extends AsyncIterable<readonly T[]> {
  /** The limit was reached: there is more than was given. */
  readonly stopped: boolean;
}

/**
 * Everything beneath `folder` (from the workspace, resolved) that no ignore file leaves
 * out: hidden files too, `.git` not. Links are listed and never followed. Sorted by the
 * bytes of names, what is in a folder right after it. A folder that cannot be read or
 * goes away meanwhile is passed over.
 */
export function walk(workspace: Workspace, folder: string, options: WalkOptions): Walk {
  const tour = new Tour(workspace, options);
  return {
    get stopped() {
      return tour.stopped;
    },
    [Symbol.asyncIterator]: () => walkEntries(tour, folder),
  };
}

/** A folder that a walk went through, and what no ignore file leaves out of it. */
export interface WalkedFolder {
  /** From the workspace. */
  path: string;
  /** The same object as in the walk before where nothing came, went or is newly ignored. */
  kept: readonly KeptEntry[];
}

/** The folders of a workspace that no ignore file leaves out, those of added folders too, as `walk` goes through them. */
export function walkFolders(workspace: Workspace, options: WalkOptions): Walk<WalkedFolder> {
  const tour = new Tour(workspace, options);
  return {
    get stopped() {
      return tour.stopped;
    },
    [Symbol.asyncIterator]: () => tourFolders(tour),
  };
}

async function* walkEntries(tour: Tour, start: string): AsyncGenerator<readonly WalkedEntry[]> {
  let batch: WalkedEntry[] = [];
  // A stack of our own: folders can be nested deeper than generators should be.
  const stack: { kept: readonly KeptEntry[]; at: number }[] = [];
  const enter = (inside: Inside | undefined): void => {
    if (inside) stack.push({ kept: inside.kept, at: 0 });
  };
  enter(await tour.enter(start, await tour.rulesAbove(start)));
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const next = top.kept[top.at++];
    if (!next) {
      stack.pop();
      continue;
    }
    batch.push(next);
    if (batch.length >= BATCH_ENTRIES) {
      yield batch;
      batch = [];
    }
    if (next.kind !== "folder") continue;
    if (tour.slices.isDue) await tour.slices.pause();
    const inside = tour.enter(next.path, next.rules);
    enter(inside instanceof Promise ? await inside : inside);
  }
  if (batch.length > 0) yield batch;
}

async function* tourFolders(tour: Tour): AsyncGenerator<readonly WalkedFolder[]> {
  let batch: WalkedFolder[] = [];
  const ahead: { path: string; rules: IgnoreRules }[] = [];
  // The last of them is gone through first.
  for (const path of tour.starts.toReversed()) {
    ahead.push({ path, rules: await tour.rulesAbove(path) });
  }
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const { path, rules } = next;
    const entered = tour.enter(path, rules);
    const inside = entered instanceof Promise ? await entered : entered;
    if (!inside) continue;
    batch.push({ path, kept: inside.kept });
    // The last that is added is gone through first.
    ahead.push(...inside.folders);
    if (batch.length < BATCH_ENTRIES && !tour.slices.isDue) continue;
    yield batch;
    batch = [];
    if (tour.slices.isDue) await tour.slices.pause();
  }
  if (batch.length > 0) yield batch;
}

/** What no rule leaves out of a folder. */
interface Inside {
  kept: readonly KeptEntry[];
  /** The folders of it, the last one first. */
  folders: readonly KeptEntry[];
}

/** What is left of a folder by the rules that were asked last. */
const insideByListing = new WeakMap<Listing, Inside & { rules: IgnoreRules }>();

/** One way through a workspace. */
class Tour {
  stopped = false;
  readonly slices: Slices;
  readonly #workspace: Workspace;
  readonly #listings: Listings;
  readonly #signal: AbortSignal;
  readonly #notBefore: number;
  #left: number;

  constructor(workspace: Workspace, options: WalkOptions) {
    const { signal, maxEntries = MAX_WALK_ENTRIES, notBefore, restMs } = options;
    this.slices = new Slices(restMs);
    this.#workspace = workspace;
    this.#listings = getListings(workspace);
    this.#signal = signal;
    this.#notBefore = notBefore ?? performance.now();
    this.#left = maxEntries;
  }

  /** The workspace itself, and the folders that were added to it. */
  get starts(): readonly string[] {
    return ["", ...listAdded(this.#workspace)];
  }

  rulesAbove(folder: string): Promise<IgnoreRules> {
    return rulesAbove(this.#workspace, folder);
  }

  /** What no rule leaves out of a folder; waits only where an ignore file has to be read. */
  enter(folder: string, above: IgnoreRules): Inside | undefined | Promise<Inside> {
    this.#signal.throwIfAborted();
    if (this.#workspace.isHidden(folder)) return undefined;
    const listing = this.#listings.list(folder, this.#notBefore);
    if (!listing) return undefined;
    const rules = rulesInside(this.#workspace, folder, above, listing.entries);
    if (rules instanceof Promise) return rules.then((read) => this.#take(folder, listing, read));
    return this.#take(folder, listing, rules);
  }

  #take(folder: string, listing: Listing, rules: IgnoreRules): Inside {
    const known = insideByListing.get(listing);
    const isKnown = known?.rules === rules;
    const inside = isKnown ? known : findInside(keptEntries(folder, listing.entries, rules));
    if (!isKnown) insideByListing.set(listing, { ...inside, rules });
    if (inside.kept.length > this.#left) this.stopped = true;
    const taken = this.stopped ? findInside(inside.kept.slice(0, this.#left)) : inside;
    this.#left -= taken.kept.length;
    return taken;
  }
}

function findInside(kept: readonly KeptEntry[]): Inside {
  return { kept, folders: kept.filter(({ kind }) => kind === "folder").reverse() };
}
