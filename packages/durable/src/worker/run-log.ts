import { setTimeout as sleep } from "node:timers/promises";
import { type EntryInfo, type EntryLog, type EntryRow, isBeside } from "@gyre/sessions";
import { DurableError, isUnavailable } from "../contract/errors.ts";
import { assertFits } from "../contract/messages.ts";
import type { StoredEnd } from "../runs/read-log.ts";
import type {
  AppendOutcome,
  Change,
  Claim,
  Finish,
  RunProgress,
  Store,
} from "../contract/store.ts";
import type { WorkerMeter } from "./meter.ts";
import type { Outage } from "./outage.ts";

const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;
/** What waits for another commit anyway is committed after this time at the latest. */
const MAX_HELD_MS = 5;

/** Above as many entries only those are read that are needed. */
const READ_WHOLE = 500;

/** The claim of an activation is lost: nothing of it is written any more. */
export class FencedError extends DurableError {
  constructor(session: string) {
    super("fenced", `The session "${session}" is worked on by another worker.`);
  }
}

/**
 * The log of a claimed session. Entries are held until `flush`, so that those of one step share
 * one commit; a commit is tried again while the store is away, until it is made or the claim is
 * lost.
 */
export class RunLog implements EntryLog {
  readonly #store: Store;
  readonly #claim: Claim;
  /** Fires when the activation is to end without a further commit. */
  readonly #signal: AbortSignal;
  readonly #outage: Outage;
  readonly #meter: WorkerMeter | undefined;
  #seq: number;
  #last = 0;
  #leaf: number | null;
  /** The leaf of what is stored. */
  #storedLeaf: number | null;
  #held: EntryRow[] = [];
  #taken: number[] = [];
  #opens: Change["opens"];
  #progress: RunProgress | undefined;
  /** Deliveries that are being noted: until they are, nothing is committed. */
  readonly #deliveries = new Set<Promise<void>>();
  #draining: Promise<void> | undefined;
  #isDraining = false;
  #timer: NodeJS.Timeout | undefined;
  #end: StoredEnd | undefined;
  #failure: unknown;
  #known: ReadonlyMap<number, EntryRow> | undefined;

  constructor(
    store: Store,
    claim: Claim,
    signal: AbortSignal,
    outage: Outage,
    meter?: WorkerMeter,
  ) {
    this.#store = store;
    this.#claim = claim;
    this.#signal = signal;
    this.#outage = outage;
    this.#meter = meter;
    this.#seq = claim.seq;
    this.#leaf = claim.leaf;
    this.#storedLeaf = claim.leaf;
  }

  /** The last entry that is stored. */
  get seq(): number {
    return this.#seq;
  }

  /** The last entry that was taken, stored or not. */
  get last(): number {
    return Math.max(this.#last, this.#seq);
  }

  /** What a session is opened from. */
  async load(): Promise<EntryInfo[]> {
    const { session, seq } = this.#claim;
    if (seq > READ_WHOLE) return this.#store.listEntries(session);
    const rows = await this.#store.readEntriesAfter(session, 0, READ_WHOLE);
    this.#known = new Map(rows.map((row) => [row.id, row]));
    return rows.map((row) => ({ ...row, bytes: row.data.length }));
  }

  async read(ids: readonly number[]): Promise<readonly EntryRow[]> {
    // An entry may be read before it is stored: a compaction looks at earlier ones.
    const rows = new Map([
      ...(this.#known ?? []),
      ...this.#held.map((row) => [row.id, row] as const),
    ]);
    const missing = ids.filter((id) => !rows.has(id));
    if (missing.length > 0) {
      for (const row of await this.#store.readEntries(this.#claim.session, missing)) {
        rows.set(row.id, row);
      }
    }
    return ids.flatMap((id) => rows.get(id) ?? []);
  }

  /** Takes entries; they are stored with the next commit. */
  async append(rows: readonly EntryRow[]): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    for (const row of rows) assertFits(`An entry of type "${row.type}"`, row.data);
    for (const row of rows) {
      this.#held.push(
        row.type === "end" && this.#end ? { ...row, data: encodeEnd(this.#end) } : row,
      );
      this.#leaf = leafAfter(row, this.#leaf);
      this.#last = row.id;
    }
  }

  /** The agent's run ends: its entry says this, and is committed together with the end of the claim alone. */
  describeEnd(end: StoredEnd): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#end = end;
  }

  /** The agent runs again: an end that was not committed was one of a part of the run. */
  resume(): void {
    this.#end = undefined;
    this.#held = this.#held.map((row) =>
      row.type === "end" ? { ...row, data: JSON.stringify({ stop: "stopped" }) } : row,
    );
  }

  /** The run begins with the next commit, or goes on with this version of its agent. */
  open(opens: NonNullable<Change["opens"]>): void {
    this.#opens = opens;
  }

  /** Counts from here on, with the next commit. */
  report(progress: RunProgress): void {
    this.#progress = progress;
  }

  /** Items of the inbox that the next commit delivers. */
  take(...ids: readonly number[]): void {
    this.#taken.push(...ids);
  }

  /** Notes a delivery: an item is taken in the very commit that has its entry. */
  async deliver(id: number, note: () => void | Promise<void>): Promise<void> {
    const noting = Promise.resolve(note()).then(() => this.take(id));
    const settled = noting.catch(() => {});
    this.#deliveries.add(settled);
    try {
      await noting;
    } finally {
      this.#deliveries.delete(settled);
    }
  }

  /** Commits all that is held. Rejects with `FencedError` where the claim is lost. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#draining) return this.#draining;
    const draining = this.#drain();
    if (this.#isDraining) this.#draining = draining;
    return draining;
  }

  /** Commits soon, with what comes next if that is soon. */
  flushSoon(): void {
    this.#timer ??= setTimeout(() => {
      // What fails here fails every later commit, too.
      this.flush().catch(() => {});
    }, MAX_HELD_MS);
  }

  /** Commits what is held, with an entry of an end where there is one, and releases the claim. */
  async finish(finish: Finish, end?: StoredEnd): Promise<"done" | "woken"> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#draining;
    while (this.#deliveries.size > 0) await Promise.all(this.#deliveries);
    const change = this.#takeChange();
    const whole = end ? withEnd(change, end) : change;
    const outcome = await this.#insist(() => this.#store.finish(this.#claim, whole, finish));
    if (outcome === "fenced") throw this.#fail(new FencedError(this.#claim.session));
    if (outcome === "woken") {
      this.#putBack(change);
      return "woken";
    }
    this.#failure = new FencedError(this.#claim.session);
    return "done";
  }

  /**
   * Releases the claim after a failure: what was not stored is not part of the run. It is tried
   * until it is done, as the claim of a worker that lives has no other end. False: it was lost.
   */
  async release(finish: Finish, report: (error: unknown) => void): Promise<boolean> {
    clearTimeout(this.#timer);
    await this.#draining?.catch(() => {});
    const change: Change = { seq: this.#seq, entries: [], leaf: this.#storedLeaf };
    this.#failure ??= new FencedError(this.#claim.session);
    for (;;) {
      try {
        const commit = (): ReturnType<Store["finish"]> =>
          this.#store.finish(this.#claim, change, finish);
        return (await this.#insist(commit)) === "done";
      } catch (error) {
        const isOver = error instanceof DurableError && ["fenced", "closed"].includes(error.code);
        if (isOver) return false;
        report(error);
      }
      await new Promise((resolve) => setTimeout(resolve, MAX_PAUSE_MS));
    }
  }

  /** It is over in the moment when it finds nothing more: what comes then is the next one's. */
  async #drain(): Promise<void> {
    this.#isDraining = true;
    try {
      for (;;) {
        // Nothing is awaited between this and the commit: an entry whose item is not yet taken would be in it.
        while (this.#deliveries.size > 0) await Promise.all(this.#deliveries);
        if (this.#failure !== undefined) throw this.#failure;
        const isEmpty = this.#held.length === 0 && this.#taken.length === 0 && !this.#opens;
        if (isEmpty || this.#end) return;
        await this.#commit(this.#takeChange());
      }
    } finally {
      this.#isDraining = false;
      this.#draining = undefined;
    }
  }

  async #commit(change: Change): Promise<void> {
    let outcome;
    try {
      outcome = await this.#insist(() => this.#store.append(this.#claim, change));
    } catch (error) {
      throw this.#fail(error);
    }
    if (outcome === "fenced") throw this.#fail(new FencedError(this.#claim.session));
    this.#seq = change.seq + change.entries.length;
    this.#storedLeaf = change.leaf;
  }

  #takeChange(): Change {
    const change: Change = {
      seq: this.#seq,
      entries: this.#held,
      leaf: this.#leaf,
      taken: this.#taken,
      ...(this.#opens && { opens: this.#opens }),
      ...(this.#progress && { progress: this.#progress }),
    };
    this.#held = [];
    this.#taken = [];
    this.#opens = undefined;
    this.#progress = undefined;
    return change;
  }

  #putBack({ entries, taken = [], opens, progress }: Change): void {
    this.#held = [...entries, ...this.#held];
    this.#taken = [...taken, ...this.#taken];
    this.#opens ??= opens;
    this.#progress ??= progress;
  }

  #fail(error: unknown): unknown {
    this.#failure ??= error;
    return this.#failure;
  }

  /** While the store is away the step waits: the claim is ours until another worker has it. */
  async #insist<T extends AppendOutcome | "woken">(commit: () => Promise<T>): Promise<T> {
    const from = performance.now();
    let waited: "late" | "woken" = "late";
    for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
      if (this.#signal.aborted) throw new FencedError(this.#claim.session);
      try {
        const outcome = await commit();
        this.#outage.end();
        this.#meter?.countCommit(performance.now() - from, outcome);
        return outcome;
      } catch (error) {
        if (!isUnavailable(error)) throw error;
      }
      // One that fails while others are made waits its whole time.
      waited = waited === "late" ? await this.#outage.wait(pause) : await sleep(pause, "late");
    }
  }
}

function leafAfter({ id, type, parentId }: EntryRow, leaf: number | null): number | null {
  if (type === "leaf") return parentId;
  return isBeside(type) ? leaf : id;
}

function withEnd(change: Change, end: StoredEnd): Change {
  const id = change.seq + change.entries.length + 1;
  const head = { id, parentId: change.leaf, type: "end", timestamp: Date.now() } as const;
  return { ...change, entries: [...change.entries, { ...head, data: encodeEnd(end) }] };
}

function encodeEnd(end: StoredEnd): string {
  return JSON.stringify(end);
}
