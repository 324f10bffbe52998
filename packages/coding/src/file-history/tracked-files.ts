import type { Workspace } from "@gyre/tools";
import { type FileChange, isSameState } from "./lines/line.ts";
import { computeSignature, snapshotPath } from "./lines/snapshot.ts";
import type { HistoryStore } from "./lines/store.ts";
import { FileTree, type PlacedSession } from "./rewind/file-tree.ts";
import { computeState } from "./rewind/plan.ts";
import { statFile } from "./scan.ts";

/** Files of the history that are looked at for a prompt at most; changes of others are found when a call changes them. */
const MAX_TRACKED_FILES = 2_000;
/** The times of some file systems are of whole seconds. */
const SETTLE_MS = 2_000;
const NS_PER_MS = 1_000_000n;

/**
 * Finds what others made of files of the history since its last line, at the time of a prompt. A file whose
 * system times are those of the last look is not read again.
 */
export class TrackedFiles {
  readonly #signatures = new Map<string, string>();

  /** The changes, with what is there now kept in the store. What is no file now, or cannot be kept, is left out. */
  async look(
    store: HistoryStore,
    session: PlacedSession,
    workspace: Workspace,
  ): Promise<FileChange[]> {
    const tree = new FileTree(store.lines, session);
    const changes: FileChange[] = [];
    for (const path of tree.paths.slice(-MAX_TRACKED_FILES)) {
      const stats = await statFile(workspace, path, true);
      const signature = stats ? computeSignature(stats) : "";
      if (this.#signatures.get(path) === signature) continue;
      const seen = await snapshotPath(workspace, path);
      if (seen.kind !== "file" && seen.kind !== "link" && seen.kind !== "nothing") continue;
      const after = computeState(seen);
      const before = tree.findLeft(path).state;
      if (!isSameState(before, after)) {
        if ("bytes" in seen) await store.put(seen.bytes);
        changes.push({ path, before, after });
      }
      // One that was just changed may change again without another signature.
      const changedAt = stats ? Number(stats.ctimeNs / NS_PER_MS) : 0;
      if (Date.now() - changedAt > SETTLE_MS) this.#signatures.set(path, signature);
    }
    return changes;
  }
}
