/** What the agent was last shown of a file. */
export interface SeenFile {
  /** The whole content at that time. */
  text: string;
}

/** Files are kept up to this many characters in all; the longest unused go first. */
const MAX_KEPT_CHARS = 32 * 1024 * 1024;

/**
 * What an agent has seen of files, so that an edit knows whether the place it
 * changes is still what the agent thinks it is. Keys are paths as `Workspace` gives
 * them: relative, links followed.
 */
export class SeenFiles {
  readonly #files = new Map<string, SeenFile>();
  #chars = 0;

  /** The agent was shown this file, or wrote it. */
  note(path: string, text: string): void {
    this.forget(path);
    this.#files.set(path, { text });
    this.#chars += text.length;
    for (const [oldest] of this.#files) {
      if (this.#chars <= MAX_KEPT_CHARS) break;
      this.forget(oldest);
    }
  }

  get(path: string): SeenFile | undefined {
    return this.#files.get(path);
  }

  forget(path: string): void {
    this.#chars -= this.#files.get(path)?.text.length ?? 0;
    this.#files.delete(path);
  }
}
