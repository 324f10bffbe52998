import { closeSync, constants, type FSWatcher, openSync, watch, writeSync } from "node:fs";

const FILE_MODE = 0o600;

/**
 * A file beside the database that processes write to when something has changed, so that others
 * need not ask the database. It has no content that counts.
 */
export class Bell {
  readonly #path: string;
  readonly #listeners = new Set<() => void>();
  #file: number | undefined;
  #watcher: FSWatcher | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  ring(): void {
    try {
      writeSync(this.#open(), "x", 0);
    } catch {
      // The disk is full, or the file cannot be made: others look now and then anyway.
    }
  }

  /** Where a system cannot watch files, the listener is not called: callers look now and then anyway. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    this.#watcher ??= this.#watch();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#watcher?.close();
      this.#watcher = undefined;
    };
  }

  close(): void {
    this.#listeners.clear();
    this.#watcher?.close();
    this.#watcher = undefined;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #open(): number {
    this.#file ??= openSync(this.#path, constants.O_RDWR | constants.O_CREAT, FILE_MODE);
    return this.#file;
  }

  #watch(): FSWatcher | undefined {
    try {
      this.#open();
      const watcher = watch(this.#path, { persistent: false }, () => {
        for (const listener of [...this.#listeners]) listener();
      });
      watcher.on("error", () => watcher.close());
      return watcher;
    } catch {
      // The system has no more watchers to give.
      return undefined;
    }
  }
}
