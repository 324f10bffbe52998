import type { Hint, Interest } from "../contract/store.ts";
import type { Follower, FollowerRegistry } from "../live/socket-bus.ts";
import { Bell } from "./bell.ts";
import type { Connection } from "./driver/connection.ts";

/** Rings of a bell within this time are answered together. Those that watch can wait a little. */
const CHECK_MS: Readonly<Record<Interest, number>> = { work: 2, log: 8 };

/** Hints between the processes that have a file open. */
export class Notifier {
  readonly #connection: Connection;
  readonly #listeners: Record<Interest, Set<(hint: Hint) => void>> = {
    work: new Set(),
    log: new Set(),
  };
  readonly #ready = new Set<(session: string | undefined) => void>();
  readonly #bells: Record<Interest, Bell>;
  readonly #isChecking: Record<Interest, boolean> = { work: false, log: false };
  /** What `data_version` was at the last look: it changes with commits of others alone. */
  readonly #versions: Record<Interest, number | undefined> = { work: undefined, log: undefined };

  /** Bells that were rung. */
  sent = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
    const { path } = connection;
    this.#bells = { work: new Bell(`${path}-wake`), log: new Bell(`${path}-log`) };
  }

  listen(interest: Interest, listener: (hint: Hint) => void): () => void {
    this.#listeners[interest].add(listener);
    const stop = this.#bells[interest].listen(() => this.#checkOthers(interest));
    return () => {
      this.#listeners[interest].delete(listener);
      stop();
    };
  }

  onReady(listener: (session: string | undefined) => void): () => void {
    this.#ready.add(listener);
    return () => this.#ready.delete(listener);
  }

  /** Reports a change to listeners here and in other processes. */
  notify(interest: Interest, session?: string): void {
    this.#bells[interest].ring();
    this.sent++;
    if (interest === "work") for (const listener of [...this.#ready]) listener(session);
    const hint = session === undefined ? {} : { session };
    for (const listener of [...this.#listeners[interest]]) listener(hint);
  }

  close(): void {
    for (const interest of ["work", "log"] as const) {
      this.#listeners[interest].clear();
      this.#bells[interest].close();
    }
  }

  /** A bell was rung, perhaps by this process: only what others have committed is news. */
  #checkOthers(interest: Interest): void {
    if (this.#isChecking[interest]) return;
    this.#isChecking[interest] = true;
    setTimeout(() => {
      this.#isChecking[interest] = false;
      void this.#connection
        .read(() => this.#connection.first<{ data_version: number }>("pragma data_version"))
        .then(
          (row) => {
            if (row?.data_version === this.#versions[interest]) return;
            this.#versions[interest] = row?.data_version;
            for (const listener of [...this.#listeners[interest]]) listener({});
          },
          () => {
            // It is closed, or busy for long: callers look now and then anyway.
          },
        );
    }, CHECK_MS[interest]);
  }
}

/** The processes that follow live events, in a table; a bell is rung for a new one. */
export class Followers implements FollowerRegistry {
  readonly #connection: Connection;
  readonly #bell: Bell;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#bell = new Bell(`${connection.path}-live`);
  }

  async add({ id, address }: Follower): Promise<void> {
    await this.#connection.writeOne((db) =>
      db.run("insert or replace into gyre_watch values (?, ?)", id, address),
    );
    this.#bell.ring();
  }

  async remove(id: string): Promise<void> {
    await this.#connection.writeOne((db) => db.run("delete from gyre_watch where watcher = ?", id));
  }

  list(): Promise<Follower[]> {
    return this.#connection.read((db) => db.all("select watcher as id, address from gyre_watch"));
  }

  listen(listener: () => void): () => void {
    return this.#bell.listen(listener);
  }

  close(): void {
    this.#bell.close();
  }
}
