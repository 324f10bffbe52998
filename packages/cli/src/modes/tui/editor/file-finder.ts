import type { Clock } from "@gyre/ai";
import type { Workspace } from "@gyre/tools";
import { fuzzyRank } from "./fuzzy.ts";

/** Names that are looked through; what comes later is not found. */
export const MAX_FILES = 200_000;
/** An older list is made anew. */
export const MAX_AGE_MS = 10_000;
/** What a search gives at most. */
export const MAX_FOUND = 50;
/** Names that are compared before a key may have its turn. */
const PATHS_AT_ONCE = 10_000;

export interface FileFinderOptions {
  /** What there is below the folder, paths from it, as it is found. Called anew for each list. */
  list: () => AsyncIterable<readonly FoundEntry[]>;
  clock: Pick<Clock, "now" | "turn">;
}

export interface FoundEntry {
  path: string;
  kind: string;
}

/**
 * Finds files and folders by parts of their names. The list is made when it is first asked
 * for. An old one still answers while the next is made, so that only the first search waits.
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
   * Paths from the folder, the best first; folders end with a slash. With nothing to look
   * for, or a folder and its slash, what is in that folder. Throws what `list` threw, and the
   * reason of a signal that has fired.
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
    // It fails as the first did not; the list that is there goes on answering.
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

/** A finder for what is in a workspace and not left out by its ignore files. */
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

/** What is right in a folder, hidden things last. */
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
