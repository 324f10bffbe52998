import type { Clock } from "@gyre/ai";
import type { Workspace } from "@gyre/tools";
import { fuzzyRank } from "./fuzzy.ts";

/** The most names that are searched; later ones are not found. */
const MAX_FILES = 200_000;
/** An older list is made again. */
export const MAX_AGE_MS = 10_000;
/** The most results of a search. */
export const MAX_FOUND = 50;
/** Names that are compared before the search yields to the event loop. */
const PATHS_AT_ONCE = 10_000;

export interface FileFinderOptions {
  /** Yields the entries below the folder as they are found, with paths relative to it. Called for each list. */
  list: () => AsyncIterable<readonly FoundEntry[]>;
  clock: Pick<Clock, "now" | "turn">;
}

export interface FoundEntry {
  path: string;
  kind: string;
}

/**
 * Finds files and folders by parts of their names. The first search makes the list and waits for it; later searches
 * use an old list while the next one is made.
 */
export class FileFinder {
  readonly #options: FileFinderOptions;
  #paths: readonly string[] | undefined;
  #madeAt = 0;
  #refreshing: Promise<readonly string[]> | undefined;

  constructor(options: FileFinderOptions) {
    this.#options = options;
  }

  /**
   * Paths relative to the folder, the best first; folders end with a slash. An empty query, or one that ends with a
   * slash, lists a folder. Throws the errors of `list`, and the reason of an aborted signal.
   */
  async find(query: string, signal: AbortSignal): Promise<string[]> {
    const paths = this.#readPaths() ?? (await this.#refresh());
    signal.throwIfAborted();
    if (query === "" || query.endsWith("/")) {
      const inside = listChildren(query, paths);
      if (inside.length > 0) return inside;
    }
    const best: string[] = [];
    for (let start = 0; start < paths.length; start += PATHS_AT_ONCE) {
      if (start > 0) await this.#options.clock.turn();
      signal.throwIfAborted();
      best.push(...fuzzyRank(query, paths.slice(start, start + PATHS_AT_ONCE), MAX_FOUND));
    }
    return fuzzyRank(query, best, MAX_FOUND);
  }

  #readPaths(): readonly string[] | undefined {
    const isOld = this.#options.clock.now() - this.#madeAt > MAX_AGE_MS;
    // If this fails, the list that succeeded stays in use.
    if (this.#paths && isOld) this.#refresh().catch(() => undefined);
    return this.#paths;
  }

  #refresh(): Promise<readonly string[]> {
    this.#refreshing ??= this.#collect().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #collect(): Promise<readonly string[]> {
    const paths: string[] = [];
    for await (const entries of this.#options.list()) {
      for (const { path, kind } of entries) paths.push(kind === "folder" ? `${path}/` : path);
      if (paths.length >= MAX_FILES) break;
    }
    paths.length = Math.min(paths.length, MAX_FILES);
    this.#paths = paths;
    this.#madeAt = this.#options.clock.now();
    return paths;
  }
}

/** A finder for the files of a workspace that its ignore files do not exclude. */
export function createWorkspaceFinder(
  workspace: Workspace,
  clock: FileFinderOptions["clock"],
): FileFinder {
  const { signal } = new AbortController();
  return new FileFinder({
    clock,
    async *list() {
      const { walkFiles } = await import("@gyre/tools");
      yield* walkFiles(workspace, "", { signal, maxEntries: MAX_FILES });
    },
  });
}

/** The direct children of a folder, hidden ones last. */
function listChildren(folder: string, paths: readonly string[]): string[] {
  const seen: string[] = [];
  const hidden: string[] = [];
  for (const path of paths) {
    if (!path.startsWith(folder) || path.length === folder.length) continue;
    const slash = path.indexOf("/", folder.length);
    if (slash >= 0 && slash < path.length - 1) continue;
    (path[folder.length] === "." ? hidden : seen).push(path);
    if (seen.length >= MAX_FOUND) break;
  }
  return [...seen, ...hidden].slice(0, MAX_FOUND);
}
