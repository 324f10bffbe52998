import type { EntryInfo, ProcessIdentity } from "@gyre/sessions";
import { identifyProcess } from "@gyre/sessions";
import type {
  AppendOutcome,
  Change,
  ClaimOutcome,
  ClaimWish,
  FamilyRow,
  Fence,
  Finish,
  Hint,
  Inbox,
  Interest,
  LateReady,
  NewItem,
  NewRun,
  NewWorker,
  OpenCount,
  ReadySession,
  RunRow,
  RunRowFilter,
  SendOutcome,
  StartOutcome,
  Store,
  StoredEntry,
  SweptSession,
  TenantRow,
  WorkerRow,
} from "../contract/store.ts";
import type {
  DuePlace,
  DueSchedules,
  FireOutcome,
  Firing,
  NewSchedule,
  ScheduleRow,
} from "../contract/schedules.ts";
import type { StoreCheck } from "../contract/types.ts";
import { SocketBus } from "../live/socket-bus.ts";
import { SqliteToolClients } from "../clients/sqlite-clients.ts";
import { checkSqlite } from "./check.ts";
import { claimReady, isRegistered, listReady, readNext } from "./claim.ts";
import { Connection, type Statements } from "./driver/connection.ts";
import { assertWritable, type DriverName, explainError, openDriver } from "./driver/driver.ts";
import { hasItem, readInbox, readWakes, sendItem } from "./inbox.ts";
import { listEntries, readEntries, readEntriesAfter, readSeqs } from "./log.ts";
import { Followers, Notifier } from "./notifier.ts";
import {
  countOpen,
  listRuns,
  pruneRuns,
  readInboxMs,
  readFamily,
  readRun,
  retryRun,
} from "./runs.ts";
import {
  deleteSchedule,
  fireSchedule,
  listSchedules,
  pauseSchedule,
  readDue,
  readSchedule,
  setSchedule,
} from "./schedules.ts";
import { migrate } from "./schema.ts";
import { SqliteSessions } from "./sessions.ts";
import { startRun } from "./start.ts";
import { appendChange, finishClaim } from "./step.ts";
import { count, readReadyMs, setTenant } from "./tenants.ts";
import {
  type DeadWorker,
  findDead,
  listWorkers,
  registerWorker,
  removeWorker,
  type SeenLeases,
  renewLease,
  unregisterWorker,
} from "./workers.ts";

export interface SqliteOptions {
  migrate?: boolean;
  synchronous?: "full" | "normal";
  /** Default: what this Node has. */
  driver?: DriverName;
  onError?: (error: unknown, where: string) => void;
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

/** One SQLite file on a local disk. Each task is a function of a module beside this one. */
export class SqliteStore implements Store {
  readonly name = "sqlite";
  readonly sessions: SqliteSessions;
  readonly toolClients: SqliteToolClients;
  readonly bus: SocketBus;
  readonly #connection: Connection;
  readonly #notifier: Notifier;
  readonly #followers: Followers;
  readonly #process: ProcessIdentity = identifyProcess();
  readonly #seenLeases: SeenLeases = new Map();

  private constructor(connection: Connection, { onError = warn }: SqliteOptions) {
    this.#connection = connection;
    this.#followers = new Followers(connection);
    this.bus = new SocketBus(this.#followers, onError);
    this.sessions = new SqliteSessions(connection);
    this.#notifier = new Notifier(connection);
    this.toolClients = new SqliteToolClients(connection, (session) => {
      this.#notifier.notify("work", session);
      this.#notifier.notify("log", session);
    });
  }

  static async open(path: string, options: SqliteOptions = {}): Promise<SqliteStore> {
    try {
      assertWritable(path);
      const driver = await openDriver(path, options.driver);
      const connection = new Connection(path, driver);
      await connection.read(() => {
        driver.exec("pragma busy_timeout = 0");
        driver.exec("pragma journal_mode = wal");
        driver.exec(`pragma synchronous = ${options.synchronous ?? "full"}`);
        migrate(driver, path, options.migrate ?? true);
      });
      return new SqliteStore(connection, options);
    } catch (error) {
      throw explainError(path, error);
    }
  }

  check(): Promise<StoreCheck[]> {
    return checkSqlite(this.#connection);
  }

  /** Statements that were run so far, for measurements. */
  get statements(): number {
    return this.#connection.statements;
  }

  get notifications(): number {
    return this.#notifier.sent;
  }

  async start(run: NewRun): Promise<StartOutcome> {
    const outcome = await this.#connection.write((db) => startRun(db, run));
    if (outcome === "started" || outcome === "queued") this.#notifier.notify("work", run.session);
    return outcome;
  }

  async send(item: NewItem): Promise<SendOutcome> {
    const { outcome, session } = await this.#connection.write((db) => sendItem(db, item));
    if (outcome === "sent" && session !== undefined) {
      this.#notifier.notify("work", session);
      if (item.kind === "abort") this.#notifier.notify("log", session);
    }
    return outcome;
  }

  hasItem(run: string, key: string): Promise<boolean> {
    return this.#connection.read((db) => hasItem(db, run, key));
  }

  async retry(run: string, key?: string): Promise<"ready" | "open" | "known" | "not found"> {
    const { outcome, session } = await this.#connection.write((db) => retryRun(db, run, key));
    if (outcome === "ready" && session !== undefined) this.#notifier.notify("work", session);
    return outcome;
  }

  readRun(id: string): Promise<RunRow | undefined> {
    return this.#connection.read((db) => readRun(db, id));
  }

  readFamily(run: string): Promise<FamilyRow[]> {
    return this.#connection.read((db) => readFamily(db, run));
  }

  listRuns(filter: RunRowFilter): Promise<RunRow[]> {
    return this.#connection.read((db) => listRuns(db, filter));
  }

  listWorkers(): Promise<WorkerRow[]> {
    return this.#connection.read(listWorkers);
  }

  countOpen(): Promise<OpenCount[]> {
    return this.#connection.read(countOpen);
  }

  count(name: string): Promise<number> {
    return this.#connection.write((db) => count(db, name));
  }

  readInboxMs(): Promise<number> {
    return this.#connection.read(readInboxMs);
  }

  readReadyMs(tenant: string): Promise<number> {
    return this.#connection.read((db) => readReadyMs(db, tenant));
  }

  setTenant(tenant: TenantRow): Promise<void> {
    return this.#connection.write((db) => setTenant(db, tenant));
  }

  prune(endedBefore: number, limit: number): Promise<number> {
    return this.#connection.write((db) => pruneRuns(db, endedBefore, limit));
  }

  readEntriesAfter(session: string, after: number, limit: number): Promise<StoredEntry[]> {
    return this.#connection.read((db) => readEntriesAfter(db, session, after, limit));
  }

  readEntries(session: string, ids: readonly number[]): Promise<StoredEntry[]> {
    return this.#connection.read((db) => readEntries(db, session, ids));
  }

  listEntries(session: string): Promise<EntryInfo[]> {
    return this.#connection.read((db) => listEntries(db, session));
  }

  readSeqs(sessions: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#connection.read((db) => readSeqs(db, sessions));
  }

  register(worker: NewWorker): Promise<void> {
    return this.#connection.write((db) => registerWorker(db, this.#process, worker));
  }

  heartbeat(worker: string, leaseMs: number, live: number): Promise<boolean> {
    return this.#connection.writeOne((db) => renewLease(db, worker, leaseMs, live));
  }

  async unregister(worker: string): Promise<void> {
    await this.#connection.write((db) => unregisterWorker(db, worker));
    this.#notifier.notify("work");
  }

  async claim(wish: ClaimWish): Promise<ClaimOutcome> {
    // Most calls find nothing: they take no lock on the file.
    const nextInMs = wish.limit < 1 ? undefined : await this.#connection.read(readNext);
    if (!wish.only && (nextInMs === undefined || nextInMs > 0)) {
      return { claims: [], isAlive: true, ...(nextInMs !== undefined && { nextInMs }) };
    }
    return this.#connection.write((db) => {
      const isAlive = isRegistered(db, wish.worker);
      return { claims: isAlive ? claimReady(db, wish) : [], isAlive };
    });
  }

  async append(fence: Fence, change: Change): Promise<AppendOutcome> {
    const outcome = await this.#connection.write((db) => appendChange(db, fence, change));
    this.#notifier.notify("log", fence.session);
    return outcome;
  }

  async finish(fence: Fence, change: Change, finish: Finish): Promise<AppendOutcome | "woken"> {
    const woken = new Set<string>();
    const outcome = await this.#connection.write((db) => {
      woken.clear();
      return finishClaim(db, fence, change, finish, woken);
    });
    if (outcome !== "woken") this.#notifier.notify("log", fence.session);
    for (const session of woken) this.#notifier.notify("work", session);
    return outcome;
  }

  readInbox(session: string, after = 0): Promise<Inbox> {
    return this.#connection.read((db) => readInbox(db, session, after));
  }

  readWakes(worker: string): Promise<ReadonlyMap<string, number>> {
    return this.#connection.read((db) => readWakes(db, worker));
  }

  async sweep(options: { expired: boolean; maxDeaths: number }): Promise<SweptSession[]> {
    const find = (db: Statements): DeadWorker[] =>
      findDead(db, this.#process, options.expired, this.#seenLeases);
    if ((await this.#connection.read(find)).length === 0) return [];
    const swept = await this.#connection.write((db) =>
      find(db).flatMap((worker) => removeWorker(db, worker, options.maxDeaths)),
    );
    if (swept.length > 0) this.#notifier.notify("work");
    return swept;
  }

  readTime(): Promise<number> {
    return Promise.resolve(Date.now());
  }

  setSchedule(schedule: NewSchedule): Promise<void> {
    return this.#connection.write((db) => setSchedule(db, schedule));
  }

  readSchedule(id: string): Promise<ScheduleRow | undefined> {
    return this.#connection.read((db) => readSchedule(db, id));
  }

  listSchedules({ after = "", limit }: { after?: string; limit: number }): Promise<ScheduleRow[]> {
    return this.#connection.read((db) => listSchedules(db, after, limit));
  }

  pauseSchedule(id: string, isPaused: boolean, nextAt: number): Promise<boolean> {
    return this.#connection.write((db) => pauseSchedule(db, id, isPaused, nextAt));
  }

  deleteSchedule(id: string): Promise<boolean> {
    return this.#connection.write((db) => deleteSchedule(db, id));
  }

  readDue(limit: number, after?: DuePlace): Promise<DueSchedules> {
    return this.#connection.read((db) => readDue(db, limit, after));
  }

  async fire(firing: Firing): Promise<FireOutcome> {
    const outcome = await this.#connection.write((db) => fireSchedule(db, firing));
    const { run } = firing;
    if ("session" in run && (outcome === "started" || outcome === "queued")) {
      this.#notifier.notify("work", run.session);
    }
    return outcome;
  }

  onReady(listener: (session: string | undefined) => void): () => void {
    return this.#notifier.onReady(listener);
  }

  listReady(of: readonly string[] | LateReady): Promise<ReadySession[]> {
    return this.#connection.read((db) => listReady(db, of));
  }

  listen(interest: Interest, listener: (hint: Hint) => void): () => void {
    return this.#notifier.listen(interest, listener);
  }

  async close(): Promise<void> {
    await this.bus.close();
    await this.#connection.close();
    this.#notifier.close();
    this.#followers.close();
  }
}
