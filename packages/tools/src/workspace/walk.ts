import { keptEntries, pathIn, rulesAbove, rulesInside, type IgnoreRules } from "./ignore-files.ts";
import { type Entry, PathError, type Workspace } from "./workspace.ts";

/** A walk ends after so many entries: it says so, and a narrower one is asked for. */
export const MAX_WALK_ENTRIES = 200_000;

/** Something beneath a folder, as `walkFiles` gives it. */
export interface WalkedEntry {
  /** From the workspace. */
  path: string;
  kind: Entry["kind"];
}

export interface WalkOptions {
  signal: AbortSignal;
  maxEntries?: number;
}

/** What is beneath a folder, a folder's worth at a time. */
export interface Walk extends AsyncIterable<readonly WalkedEntry[]> {
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
  const budget = { left: options.maxEntries ?? MAX_WALK_ENTRIES, stopped: false };
  return {
    get stopped() {
      return budget.stopped;
    },
    async *[Symbol.asyncIterator]() {
      const rules = await rulesAbove(workspace, folder);
      yield* beneath(workspace, folder, rules, options.signal, budget);
    },
  };
}

interface Budget {
  left: number;
  stopped: boolean;
}

async function* beneath(
  workspace: Workspace,
  start: string,
  above: IgnoreRules,
  signal: AbortSignal,
  budget: Budget,
): AsyncGenerator<readonly WalkedEntry[]> {
  // A stack of our own: folders can be nested deeper than generators should be.
  const ahead: Pending[] = [{ folder: start, rules: above }];
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    if ("entries" in next) {
      yield next.entries;
      continue;
    }
    signal.throwIfAborted();
    const { folder } = next;
    const entries = await listed(workspace, folder);
    if (!entries) continue;
    const rules = await rulesInside(workspace, folder, next.rules, entries);
    const kept = keptEntries(folder, entries, rules).sort((a, b) =>
      Buffer.compare(Buffer.from(a.entry.name), Buffer.from(b.entry.name)),
    );
    if (kept.length > budget.left) {
      budget.stopped = true;
      kept.length = budget.left;
    }
    budget.left -= kept.length;
    const later: Pending[] = [];
    let run: WalkedEntry[] = [];
    for (const { entry, rules } of kept) {
      const path = pathIn(folder, entry.name);
      run.push({ path, kind: entry.kind });
      if (entry.kind !== "folder") continue;
      later.push({ entries: run }, { folder: path, rules });
      run = [];
    }
    if (run.length > 0) later.push({ entries: run });
    for (const pending of later.reverse()) ahead.push(pending);
  }
}

type Pending = { folder: string; rules: IgnoreRules } | { entries: readonly WalkedEntry[] };

async function listed(workspace: Workspace, folder: string): Promise<Entry[] | undefined> {
  try {
    return await workspace.list(`./${folder}`);
  } catch (error) {
    if (error instanceof PathError) return undefined;
    throw error;
  }
}
