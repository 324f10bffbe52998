import { constants } from "node:fs";
import {
  chmod,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import type { FileState, HistoryLine } from "./line.ts";
import { sessionHistoryFolder } from "./recorder.ts";
import { HistoryStore } from "./store.ts";

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
  }

  /** Copies the folder to a temporary one; blocks are shared where the file system can do that. */
  static async make(
    original: string,
    session: string,
    env: Readonly<Record<string, string | undefined>>,
  ): Promise<CopyInTime> {
    const store = await HistoryStore.open(sessionHistoryFolder(env, session));
    const folder = await realpath(await mkdtemp(join(tmpdir(), "gyre-copy-")));
    await cp(original, folder, {
      recursive: true,
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
      // A socket or a pipe is no file to copy.
      filter: async (path) => isCopied(await lstat(path)),
    });
    return new CopyInTime(original, folder, store);
  }

  /** What was changed, the oldest first. */
  get lines(): readonly HistoryLine[] {
    return this.#store.lines;
  }

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
        await (change ? this.#put(path, change.before) : this.#restore(path));
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

  async #put(path: string, state: FileState | null): Promise<void> {
    const at = await this.#clear(path);
    if (!state) return;
    const bytes = await this.#store.get(state.hash);
    if (state.kind === "link") return symlink(Buffer.from(bytes), at);
    await writeFile(at, bytes);
    await chmod(at, state.mode);
  }

  async #restore(path: string): Promise<void> {
    const at = await this.#clear(path);
    const from = join(this.#original, path);
    const stats = await lstat(from).catch(() => undefined);
    if (stats) await cp(from, at, { recursive: true, verbatimSymlinks: true });
  }

  /** Removes what is at a path of the copy, and makes its folder. */
  async #clear(path: string): Promise<string> {
    const at = join(this.folder, path);
    await mkdir(dirname(at), { recursive: true });
    // A link on the way may lead out of the copy.
    const folder = await realpath(dirname(at));
    if (folder !== this.folder && !folder.startsWith(this.folder + sep)) {
      throw new Error("A link on the way leads elsewhere.");
    }
    await rm(at, { recursive: true, force: true });
    return at;
  }
}

function isCopied(stats: Awaited<ReturnType<typeof lstat>>): boolean {
  return stats.isFile() || stats.isDirectory() || stats.isSymbolicLink();
}
