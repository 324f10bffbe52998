import { errorMessage } from "@gyre/ai";
import { type EntryLog, type EntryRow, isBeside, SessionError } from "@gyre/sessions";
import { isUnavailable } from "../contract/errors.ts";
import { assertFits } from "../contract/messages.ts";
import type { AppendOutcome, Change, Claim, Finish, Store } from "../contract/store.ts";
import type { Holder } from "./holder.ts";
import { insist } from "./insist.ts";

/**
 * The entries of a session that a program has claimed. Where the claim is lost and no other has
 * written, it is claimed again.
 */
export class HeldLog implements EntryLog {
  readonly #store: Store;
  readonly #holder: Holder;
  #claim: Claim;
  #seq: number;
  #leaf: number | null;
  #failure: SessionError | undefined;

  constructor(store: Store, claim: Claim, holder: Holder) {
    this.#store = store;
    this.#claim = claim;
    this.#holder = holder;
    this.#seq = claim.seq;
    this.#leaf = claim.leaf;
  }

  read(ids: readonly number[]): Promise<readonly EntryRow[]> {
    return this.#store.readEntries(this.#claim.session, ids);
  }

  async append(rows: readonly EntryRow[]): Promise<void> {
    if (this.#failure) throw this.#failure;
    const leaf = rows.reduce(leafAfter, this.#leaf);
    const change: Change = { seq: this.#seq, entries: rows, leaf };
    const write = (): Promise<AppendOutcome> =>
      this.#write(() => {
        for (const row of rows) assertFits(`An entry of type "${row.type}"`, row.data);
        return this.#store.append(this.#claim, change);
      });
    const isLost =
      (await write()) === "fenced" && !((await this.#regain()) && (await write()) !== "fenced");
    if (isLost) throw this.#lose();
    this.#seq += rows.length;
    this.#leaf = leaf;
  }

  /** A run that was started meanwhile goes on from here. */
  async close(): Promise<void> {
    try {
      if (!this.#failure) await this.#finish();
    } finally {
      await this.#holder.release();
    }
  }

  /** Whether it is ours again, with nothing written by another meanwhile. */
  async #regain(): Promise<boolean> {
    const claim = await this.#write(() => this.#holder.regain(this.#claim.session));
    if (!claim) return false;
    this.#claim = claim;
    if (claim.seq === this.#seq) return true;
    // Another has written, and closed it again: so is this claim.
    [this.#seq, this.#leaf] = [claim.seq, claim.leaf];
    await this.#finish();
    return false;
  }

  async #finish(): Promise<void> {
    const change: Change = { seq: this.#seq, entries: [], leaf: this.#leaf };
    for (;;) {
      const { wakes, items } = await insist(() => this.#store.readInbox(this.#claim.session));
      const dues = items.flatMap(({ kind, dueInMs }) => (kind === "prompt" ? dueInMs : []));
      const readyInMs = Math.min(...dues);
      const finish: Finish = {
        seen: wakes,
        status: dues.length > 0 ? "ready" : "idle",
        ...(dues.length > 0 && readyInMs > 0 && { readyInMs }),
      };
      const outcome = await insist(() => this.#store.finish(this.#claim, change, finish));
      if (outcome !== "woken") return;
    }
  }

  async #write<T>(commit: () => Promise<T>): Promise<T> {
    try {
      return await insist(commit);
    } catch (error) {
      const message = `The session ${this.#claim.session} cannot be written: ${errorMessage(error)}`;
      const failure = new SessionError("write_failed", message, { cause: error });
      // Whether it was stored is not known: what would follow it might stand in its place.
      if (isUnavailable(error)) this.#failure = failure;
      throw failure;
    }
  }

  #lose(): SessionError {
    const message = `The session ${this.#claim.session} was taken over by another process: open it again.`;
    this.#failure = new SessionError("lock_lost", message);
    return this.#failure;
  }
}

function leafAfter(leaf: number | null, { id, type, parentId }: EntryRow): number | null {
  if (type === "leaf") return parentId;
  return isBeside(type) ? leaf : id;
}
