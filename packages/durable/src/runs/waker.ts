import type { Engine } from "../contract/engine.ts";
import type { LateReady, ReadySession, Store } from "../contract/store.ts";

/** An engine that is quiet has this long before its wake is taken for lost. */
const LATE_MS = 1_000;
/** One that is busy: what it was asked for may wait behind other work. */
const LATE_WHEN_BUSY_MS = 10_000;
/** Sessions that are looked for at once. */
const MOST_LATE = 100;
/** Sessions that a worker was called for in vain, of which one is woken. */
const MISSED_AT_ONCE = 20;
/** Of more sessions nothing is remembered here: they are found late, or woken twice. */
const MOST_REMEMBERED = 10_000;
/** A session that stays ready is woken after 1, 2, 4, 8 and 16 s, and then each 16 s. */
const LONGEST_PAUSE_S = 16;
/** The clock of an engine may be a little ahead. */
const SLACK_MS = 5;

/** Has an engine wake the sessions that commits of this process make ready. */
export class Waker {
  readonly engine: Engine;
  readonly #store: Store;
  readonly #report: (error: unknown) => void;
  readonly #unlisten: () => void;
  #changed = new Set<string>();
  #isAnyChanged = false;
  #waking: Promise<void> | undefined;
  #calledAt = 0;
  /** Up to which session those that are late have been woken, so that some that stay late do not hide others. */
  #lateAfter = "";
  readonly #missed = new Set<string>();
  /** The last key that each late session was woken under. */
  readonly #lateKeys = new Map<string, string>();

  constructor(store: Store, engine: Engine, report: (error: unknown) => void) {
    this.engine = engine;
    this.#store = store;
    this.#report = report;
    this.#unlisten = store.onReady((session) => {
      if (session === undefined) this.#isAnyChanged = true;
      else this.#changed.add(session);
      this.#waking ??= this.#wakeChanged().finally(() => (this.#waking = undefined));
    });
  }

  /** Wakes sessions whose wake was lost, or that a process without an engine has made ready. */
  async wakeLate(): Promise<void> {
    const isQuiet = performance.now() - this.#calledAt > LATE_MS;
    const lateMs = isQuiet ? LATE_MS : LATE_WHEN_BUSY_MS;
    const late = await this.#wakeReady({ lateMs, limit: MOST_LATE, after: this.#lateAfter });
    this.#lateAfter = late.length < MOST_LATE ? "" : (late.at(-1)?.session ?? "");
  }

  /** The engine has called a worker. */
  noteCall(): void {
    this.#calledAt = performance.now();
  }

  /** The engine has called a worker that could not claim the session: of a tenant at its cap, for example. */
  noteMissed(session: string): void {
    if (this.#missed.size < MOST_REMEMBERED) this.#missed.add(session);
  }

  /** Something has ended: one of those that were missed may have its place. */
  async wakeMissed(): Promise<void> {
    const sessions = [...this.#missed].slice(0, MISSED_AT_ONCE);
    if (sessions.length === 0) return;
    for (const session of sessions) this.#missed.delete(session);
    try {
      const ready = (await this.#store.listReady(sessions)).filter(({ inMs }) => inMs <= 0);
      const [next, ...others] = ready.toSorted(
        (a, b) => sessions.indexOf(a.session) - sessions.indexOf(b.session),
      );
      for (const { session } of others) this.#missed.add(session);
      if (next) await this.#wake(next, false);
    } catch (error) {
      this.#report(error);
    }
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    this.#unlisten();
    await this.#waking;
    await this.engine.close?.();
  }

  async #wakeChanged(): Promise<void> {
    // Commits of one turn of the event loop are looked at together.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#changed.size > 0 || this.#isAnyChanged) {
      const sessions = [...this.#changed];
      const isAnyChanged = this.#isAnyChanged;
      this.#changed = new Set();
      this.#isAnyChanged = false;
      if (sessions.length > 0) await this.#wakeReady(sessions);
      if (isAnyChanged) await this.#wakeReady({ lateMs: 0, limit: MOST_LATE, after: "" });
    }
  }

  /** What fails is reported, and found by workers later. */
  async #wakeReady(of: readonly string[] | LateReady): Promise<ReadySession[]> {
    try {
      const ready = await this.#store.listReady(of);
      const isLate = "lateMs" in of;
      await Promise.all(ready.map((session) => this.#wake(session, isLate)));
      return ready;
    } catch (error) {
      this.#report(error);
      return [];
    }
  }

  async #wake(ready: ReadySession, isLate: boolean): Promise<void> {
    const { session, tenant, pool, priority, inMs } = ready;
    const key = isLate ? formatKey(ready) : undefined;
    if (key !== undefined && this.#lateKeys.get(session) === key) return;
    await this.engine.wake(session, {
      ...{ tenant, pool, priority },
      ...(inMs > 0 && { inMs: inMs + SLACK_MS }),
      ...(key !== undefined && { key }),
    });
    if (key === undefined) return;
    if (this.#lateKeys.size >= MOST_REMEMBERED) this.#lateKeys.clear();
    this.#lateKeys.set(session, key);
  }
}

/** The same for all workers that find a session late. */
function formatKey({ session, at, inMs }: ReadySession): string {
  const seconds = Math.max(1, Math.floor(-inMs / 1_000));
  const pause = Math.min(LONGEST_PAUSE_S, 2 ** Math.floor(Math.log2(seconds)));
  return `${session}:${at}:${Math.floor(seconds / pause) * pause}`;
}
