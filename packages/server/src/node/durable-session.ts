import { DurableError, type Runs } from "@gyre/durable";
import {
  HostUnavailableError,
  type SessionChanges,
  type SessionInbox,
  type SharedNumbers,
  type SharedSession,
  type SharedSessionEvents,
} from "../sessions/session-host.ts";
import { EventNumbers, numberEntry } from "./event-numbers.ts";
import { DurableInbox } from "./durable-inbox.ts";
import { DurableTools } from "./durable-tools.ts";
import { refuseOnError } from "./refusal.ts";
import { SessionMirror, type Settings } from "./session-mirror.ts";
import type { ToolLeases } from "./tool-leases.ts";

export interface DurableSessionOptions {
  readonly runs: Runs;
  readonly id: string;
  /** The folder that it works in; "": none. */
  readonly cwd: string;
  /** The agent that works on it. */
  readonly agent: string;
  readonly tenant: string;
  readonly pool: string;
  readonly readChanges: (changes: SessionChanges) => Promise<Settings>;
  readonly leases: ToolLeases;
  readonly onError: (error: unknown, where: string) => void;
}

type Entries = Awaited<ReturnType<ReturnType<Runs["read"]>["read"]>>;

/**
 * A session of a durable store, followed by its log: what clients ask for is put into its inbox, and
 * a worker, here or elsewhere, acts on it.
 */
export class DurableSession implements SharedSession {
  readonly id: string;
  readonly view: SessionMirror;
  readonly numbers: SharedNumbers;
  readonly inbox: SessionInbox;
  readonly tools: DurableTools;
  readonly #options: DurableSessionOptions;
  readonly #reader: ReturnType<Runs["read"]>;
  /** Entries that were read, and are not published yet. */
  #ahead: Entries;
  #reading: Promise<void> | undefined;
  #shouldRead = false;
  #stops: (() => void)[] = [];
  #isClosed = false;
  /** Called after something was read. */
  readonly #waiting = new Set<() => void>();

  private constructor(
    options: DurableSessionOptions,
    reader: ReturnType<Runs["read"]>,
    nth: number,
    entries: Entries,
  ) {
    this.#options = options;
    this.id = options.id;
    this.#reader = reader;
    this.view = new SessionMirror(new EventNumbers(nth));
    const { view } = this;
    // The last run is published, so that clients which come back within it miss nothing.
    const split = findLastRun(entries);
    for (const entry of entries.slice(0, split)) view.apply(entry);
    this.#ahead = entries.slice(split);
    this.inbox = new DurableInbox({
      ...options,
      view,
      catchUpWith: (seq) => this.#catchUpWith(seq),
      synchronize: () => this.synchronize(),
      waitFor: (find) => this.#waitFor(find),
    });
    this.tools = new DurableTools({
      ...options,
      view,
      synchronize: () => this.synchronize(),
    });
    view.handleCalls(this.tools);
    this.numbers = {
      epoch: options.id,
      first: numberEntry(view.numbers.seq),
      get runAfter() {
        return view.runAfter;
      },
      take: () => view.takeNumber(),
    };
  }

  static async open(options: DurableSessionOptions): Promise<DurableSession> {
    const { runs, id } = options;
    const reader = runs.read(id);
    const nth = await runs.store.count("followed");
    return new DurableSession(options, reader, nth, await reader.read());
  }

  info(): Readonly<Record<string, unknown>> {
    const { cwd } = this.#options;
    const { mode } = this.view;
    return { ...(cwd !== "" && { cwd }), ...(mode !== undefined && { mode }) };
  }

  async follow(events: SharedSessionEvents): Promise<void> {
    const { runs } = this.#options;
    this.view.report(events);
    for (const entry of this.#ahead.splice(0)) this.view.apply(entry);
    this.#stops = [
      runs.logs.watch(this.id, this.#onHint),
      runs.live.listen(this.id, (event) => this.view.applyLive(event)),
    ];
    await this.synchronize();
  }

  async synchronize(): Promise<void> {
    // What is being read may have been asked for before.
    await this.#reading?.catch(() => {});
    await refuseOnError(() => this.#readSoon());
  }

  /** Always: a run goes on without it. */
  canReopen(): boolean {
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#stops.splice(0)) stop();
    await this.#reading?.catch(() => {});
    for (const look of [...this.#waiting]) look();
  }

  #readSoon(): Promise<void> {
    this.#shouldRead = true;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** The hub looks again soon where this fails. */
  readonly #onHint = (): void => {
    this.#readSoon().catch((error: unknown) => {
      // There is nothing to follow in a store that its program has closed.
      const isClosed = error instanceof DurableError && error.code === "closed";
      if (isClosed) void this.close();
      else this.#options.onError(error, `following session ${this.id}`);
    });
  };

  async #read(): Promise<void> {
    while (this.#shouldRead && !this.#isClosed) {
      this.#shouldRead = false;
      // What is taken from the inbox meanwhile is in the log.
      const { toolChanges, items } = await this.#options.runs.store.readInbox(this.id);
      const entries = await this.#reader.read();
      this.view.setInbox(items);
      for (const entry of entries) this.view.apply(entry);
      await this.tools.load(toolChanges);
    }
    for (const look of [...this.#waiting]) look();
  }

  /** Settles with what is found, after something was read at the latest. */
  async #waitFor<T>(find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (this.#isClosed) throw new HostUnavailableError("The session is closed here.");
      await new Promise<void>((resolve) => {
        const look = (): void => {
          this.#waiting.delete(look);
          resolve();
        };
        this.#waiting.add(look);
      });
    }
  }

  /** An entry that is stored is read, however busy the store is. */
  async #catchUpWith(seq: number): Promise<void> {
    while (this.view.numbers.seq < seq && !this.#isClosed) await this.synchronize();
  }
}

/** The entries before it are those of earlier runs. */
function findLastRun(entries: Entries): number {
  const ends = entries.flatMap(({ end }, at) => (end ? [at] : []));
  return (ends.at(-2) ?? -1) + 1;
}
