import { type Schedule, scheduleFrame } from "./frames.ts";

/** When and how listeners are called. */
export interface StoreOptions {
  /** When listeners are called after changes. Default: with the next frame of the browser. */
  readonly schedule?: Schedule;
  /** Gets what a listener throws. Default `console.error`. */
  readonly onError?: (error: unknown) => void;
}

interface FeedOptions<Snapshot> extends StoreOptions {
  /** The snapshot of now: `before` itself where nothing has changed. */
  build(before: Snapshot | undefined): Snapshot;
  /** The last listener is gone, and none has come in its place. */
  onUnused(): void;
}

/** Snapshots for listeners: however much changes, at most one a frame. */
export class SnapshotFeed<Snapshot> {
  readonly #options: FeedOptions<Snapshot>;
  #listeners: readonly ((snapshot: Snapshot) => void)[] = [];
  #cancelFrame: () => void = () => {};
  #isDue = false;
  #snapshot: Snapshot;

  constructor(options: FeedOptions<Snapshot>) {
    this.#options = options;
    this.#snapshot = options.build(undefined);
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  get hasListeners(): boolean {
    return this.#listeners.length > 0;
  }

  subscribe(listener: (snapshot: Snapshot) => void): () => void {
    const entry = (snapshot: Snapshot): void => listener(snapshot);
    this.#listeners = [...this.#listeners, entry];
    this.#call(entry);
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== entry);
      if (this.hasListeners) return;
      // A component that is mounted again at once, as StrictMode does, has not left.
      queueMicrotask(() => {
        if (!this.hasListeners) this.#options.onUnused();
      });
    };
  }

  /** Something may have changed: listeners get to know with the next frame. */
  refresh(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const { schedule = scheduleFrame } = this.#options;
    this.#cancelFrame = schedule(() => {
      this.#isDue = false;
      this.#flush();
    });
  }

  /** No frame is waited for any more. */
  stop(): void {
    if (this.#isDue) this.#cancelFrame();
    this.#isDue = false;
  }

  report(error: unknown): void {
    const { onError = logError } = this.#options;
    onError(error);
  }

  #flush(): void {
    const snapshot = this.#options.build(this.#snapshot);
    if (snapshot === this.#snapshot) return;
    this.#snapshot = snapshot;
    for (const listener of this.#listeners) this.#call(listener);
  }

  #call(listener: (snapshot: Snapshot) => void): void {
    try {
      listener(this.#snapshot);
    } catch (error) {
      this.report(error);
    }
  }
}

function logError(error: unknown): void {
  console.error("@gyre/react:", error);
}
