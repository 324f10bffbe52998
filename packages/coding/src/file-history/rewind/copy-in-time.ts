import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { carryPaths, copyAll } from "../../copies/copy-folder.ts";
import type { HistoryLine } from "../lines/line.ts";
import { sessionHistoryFolder } from "../lines/folders.ts";
import { HistoryStore } from "../lines/store.ts";
import { clearPath, putState } from "./put-state.ts";

/**
 * A copy of a folder, in which the files that a session has changed are put as they were at any time. The
 * folder itself is only read.
 */
export class CopyInTime {
  readonly folder: string;
  readonly #original: string;
  readonly #store: HistoryStore;

  private constructor(original: string, folder: string, store: HistoryStore) {
    this.#original = original;
    this.folder = folder;
    this.#store = store;
    this.lines = store.lines.filter(({ by }) => by === "agent" || by === "rewind");
  }

  /** Copies the folder to a temporary one; blocks are shared where the file system can do that. */
  static async make(
    original: string,
    session: string,
    env: Readonly<Record<string, string | undefined>>,
  ): Promise<CopyInTime> {
    const store = await HistoryStore.open(sessionHistoryFolder(env, session));
    const folder = await realpath(await mkdtemp(join(tmpdir(), "gyre-copy-")));
    await copyAll(original, folder);
    return new CopyInTime(original, folder, store);
  }

  /** What was changed, the oldest first. */
  readonly lines: readonly HistoryLine[];

  /** Puts the files as they were before a line; at the number of lines, as they are now. Gives those it could not put. */
  async goTo(line: number): Promise<string[]> {
    const failed: string[] = [];
    const paths = new Set(this.lines.flatMap(({ changes }) => changes.map(({ path }) => path)));
    for (const path of paths) {
      const change = this.lines
        .slice(line)
        .flatMap(({ changes }) => changes)
        .find((each) => each.path === path);
      try {
        await (change
          ? putState(this.#store, this.folder, path, change.before)
          : this.#restore(path));
      } catch {
        // A content that was not kept, or a place that is closed: the caller reports the path.
        failed.push(path);
      }
    }
    return failed;
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }

  async #restore(path: string): Promise<void> {
    await clearPath(this.folder, path);
    await carryPaths(this.#original, this.folder, [path]);
  }
}
