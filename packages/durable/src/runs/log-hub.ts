import type { Store } from "../contract/store.ts";

/** Hints may be lost, and behind a pooler none arrives: logs are looked at this often in any case. */
const LOOK_EVERY_MS = 250;

interface Watched {
  seq: number;
  readonly listeners: Set<() => void>;
}

/** Notices that logs have grown, for all that watch runs in this process. */
export class LogHub {
  readonly #store: Store;
  readonly #watched = new Map<string, Watched>();
  #unlisten: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  #shouldLook = false;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Calls the listener soon after the log of a session has grown, and perhaps without a reason. */
  watch(session: string, listener: () => void): () => void {
    const watched = this.#watched.get(session) ?? { seq: -1, listeners: new Set() };
    this.#watched.set(session, watched);
    watched.listeners.add(listener);
    this.#unlisten ??= this.#store.listen("log", (hint) => {
      if (hint.session === undefined) this.#lookSoon();
      else for (const each of this.#watched.get(hint.session)?.listeners ?? []) each();
    });
    this.#timer ??= setInterval(() => this.#lookSoon(), LOOK_EVERY_MS);
    return () => {
      watched.listeners.delete(listener);
      if (watched.listeners.size === 0 && this.#watched.get(session) === watched) {
        this.#watched.delete(session);
      }
      if (this.#watched.size === 0) this.#stop();
    };
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#unlisten?.();
    this.#unlisten = undefined;
  }

  #lookSoon(): void {
    this.#shouldLook = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#look().finally(() => (this.#isLooking = false));
  }

  async #look(): Promise<void> {
    while (this.#shouldLook && this.#watched.size > 0) {
      this.#shouldLook = false;
      try {
        const seqs = await this.#store.readSeqs([...this.#watched.keys()]);
        for (const [session, watched] of this.#watched) {
          const seq = seqs.get(session) ?? -1;
          if (seq === watched.seq) continue;
          watched.seq = seq;
          for (const listener of watched.listeners) listener();
        }
      } catch {
        // Those that watch find out themselves: they read next.
        for (const { listeners } of this.#watched.values()) for (const each of listeners) each();
      }
    }
  }
}
