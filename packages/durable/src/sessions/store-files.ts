import type { FileStore } from "@gyre/ai";
import type { Store } from "../contract/store.ts";
import { insist } from "./insist.ts";

/** The contents of the large files of one session, in the store of its entries. */
export class StoreFiles implements FileStore {
  readonly #store: Store;
  readonly #session: string;
  readonly #signal: AbortSignal | undefined;

  /** With a signal, a store that does not answer is waited for until that is aborted. */
  constructor(store: Store, session: string, signal?: AbortSignal) {
    this.#store = store;
    this.#session = session;
    this.#signal = signal;
  }

  write(sha256: string, bytes: Uint8Array): Promise<void> {
    return insist(() => this.#store.sessions.writeFile(this.#session, sha256, bytes), this.#signal);
  }

  read(sha256: string): Promise<Uint8Array | undefined> {
    return insist(() => this.#store.sessions.readFile(this.#session, sha256), this.#signal);
  }
}
