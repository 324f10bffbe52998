import type { EntryInfo } from "@gyre/sessions";
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
  LeaseKeeper,
  LeaseWish,
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
import type { StoreCheck, StoreOptions } from "../contract/types.ts";
import { PostgresToolClients } from "../clients/postgres-clients.ts";
import { checkPostgres } from "./check.ts";
import { Claims, listReady } from "./claim.ts";
import { Database, explainError, loadPg } from "./driver/database.ts";
import { hasItem, readInbox, readWakes, send } from "./inbox.ts";
import { startLeaseKeeper } from "./lease-keeper.ts";
import { listEntries, readEntries, readEntriesAfter, readSeqs } from "./log.ts";
import { Notifier } from "./notifier.ts";
import { PostgresBus } from "./postgres-bus.ts";
import {
  count,
  countOpen,
  listRuns,
  pruneRuns,
  readFamily,
  readInboxMs,
  readReadyMs,
  readRun,
  retryRun,
  setTenant,
} from "./runs.ts";
import {
  deleteSchedule,
  fireSchedule,
  listSchedules,
  pauseSchedule,
  readDue,
  readSchedule,
  readTime,
  setSchedule,
} from "./schedules.ts";
import { migrate } from "./schema.ts";
import { PostgresSessions } from "./sessions.ts";
import { start } from "./start.ts";
import { appendChange, finish } from "./step.ts";
import {
  listWorkers,
  registerWorker,
  RENEW_LEASE,
  renewLease,
  sweepWorkers,
  unregisterWorker,
} from "./workers.ts";

const DEFAULT_POOL = 10;
const STAY_MS = 1_000;

/**
 * One Postgres, for workers on any number of machines. Each task is a function of a module beside
 * this one.
 */
export class PostgresStore implements Store {
  readonly name = "postgres";
  readonly #url: string;
  readonly sessions: PostgresSessions;
  readonly #database: Database;
  /** Leases do not wait behind work. */
  readonly #leases: Database;
  readonly #notifier: Notifier;
  readonly toolClients: PostgresToolClients;
  readonly bus: PostgresBus;
  readonly #claims: Claims;

  private constructor(
    url: string,
    database: Database,
    leases: Database,
    notifier: Notifier,
    bus: PostgresBus,
  ) {
    this.#url = url;
    this.#database = database;
    this.sessions = new PostgresSessions(database);
    this.#leases = leases;
    this.#notifier = notifier;
    this.toolClients = new PostgresToolClients(database, (session) => {
      notifier.notify("work", session);
      notifier.notify("log", session);
    });
    this.bus = bus;
    this.#claims = new Claims(database);
  }

  static async open(url: string, options: StoreOptions = {}): Promise<PostgresStore> {
    const pg = await loadPg();
    const { schema, listenUrl, pool = DEFAULT_POOL } = options;
    const onError = options.onError ?? ((error) => process.emitWarning(String(error)));
    const shared = { url, schema, isPooled: listenUrl !== undefined, onError };
    const database = new Database(pg, { ...shared, pool });
    try {
      const place = database.place;
      await database.transact(async (session) => {
        await migrate(session, place, options.migrate ?? true);
        return true;
      });
    } catch (error) {
      await database.close();
      throw explainError(database.place, error);
    }
    const leases = new Database(pg, { ...shared, pool: 1 });
    const notifier = new Notifier({
      ...{ pg, database, onError },
      listenUrl: listenUrl ?? url,
      schema: schema ?? "",
    });
    const bus = new PostgresBus(new Database(pg, { ...shared, pool: 1 }), notifier);
    return new PostgresStore(url, database, leases, notifier, bus);
  }

  check(): Promise<StoreCheck[]> {
    return checkPostgres(this.#database, this.#notifier);
  }

  /** Statements that were run so far, for measurements. */
  get statements(): number {
    return this.#database.statements + this.#leases.statements + this.#notifier.sent;
  }

  get notifications(): number {
    return this.#notifier.sent;
  }

  async start(run: NewRun): Promise<StartOutcome> {
    const outcome = await start(this.#database, run);
    if (outcome === "started" || outcome === "queued") this.#notifier.notify("work", run.session);
    return outcome;
  }

  async send(item: NewItem): Promise<SendOutcome> {
    const { outcome, session } = await send(this.#database, item);
    if (session !== undefined) {
      this.#notifier.notify("work", session);
      if (item.kind === "abort") this.#notifier.notify("log", session);
    }
    return outcome;
  }

  hasItem(run: string, key: string): Promise<boolean> {
    return hasItem(this.#database, run, key);
  }

  async retry(run: string, key?: string): Promise<"ready" | "open" | "known" | "not found"> {
    const found = await this.readRun(run);
    if (!found) return "not found";
    const isReady = await this.#database.transact((db) => retryRun(db, found, key));
    if (!isReady) return key !== undefined && (await this.hasItem(run, key)) ? "known" : "open";
    this.#notifier.notify("work", found.session);
    return "ready";
  }

  readRun(id: string): Promise<RunRow | undefined> {
    return readRun(this.#database, id);
  }

  readFamily(run: string): Promise<FamilyRow[]> {
    return readFamily(this.#database, run);
  }

  listRuns(filter: RunRowFilter): Promise<RunRow[]> {
    return listRuns(this.#database, filter);
  }

  listWorkers(): Promise<WorkerRow[]> {
    return listWorkers(this.#database);
  }

  countOpen(): Promise<OpenCount[]> {
    return countOpen(this.#database);
  }

  count(name: string): Promise<number> {
    return count(this.#database, name);
  }

  readInboxMs(): Promise<number> {
    return readInboxMs(this.#database);
  }

  readReadyMs(tenant: string): Promise<number> {
    return readReadyMs(this.#database, tenant);
  }

  setTenant(tenant: TenantRow): Promise<void> {
    return setTenant(this.#database, tenant);
  }

  prune(endedBefore: number, limit: number): Promise<number> {
    return pruneRuns(this.#database, endedBefore, limit);
  }

  readEntriesAfter(session: string, after: number, limit: number): Promise<StoredEntry[]> {
    return readEntriesAfter(this.#database, session, after, limit);
  }

  readEntries(session: string, ids: readonly number[]): Promise<StoredEntry[]> {
    return readEntries(this.#database, session, ids);
  }

  listEntries(session: string): Promise<EntryInfo[]> {
    return listEntries(this.#database, session);
  }

  readSeqs(sessions: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return readSeqs(this.#database, sessions);
  }

  register(worker: NewWorker): Promise<void> {
    return registerWorker(this.#leases, worker);
  }

  heartbeat(worker: string, leaseMs: number, live: number): Promise<boolean> {
    return renewLease(this.#leases, worker, leaseMs, live);
  }

  async keepLease(wish: LeaseWish): Promise<LeaseKeeper> {
    return startLeaseKeeper(this.#url, this.#leases.toText(RENEW_LEASE), wish);
  }

  async unregister(worker: string): Promise<void> {
    const sessions = await unregisterWorker(this.#database, worker);
    for (const session of sessions) this.#notifier.notify("work", session);
  }

  claim(wish: ClaimWish): Promise<ClaimOutcome> {
    return this.#claims.claim(wish);
  }

  async append(fence: Fence, change: Change): Promise<AppendOutcome> {
    const outcome = await appendChange(this.#database, fence, change);
    if (outcome === "done") this.#notifier.notify("log", fence.session);
    return outcome;
  }

  async finish(fence: Fence, change: Change, how: Finish): Promise<AppendOutcome | "woken"> {
    const { outcome, woken } = await finish(this.#database, fence, change, how);
    if (outcome === "done") this.#notifier.notify("log", fence.session);
    for (const session of woken) this.#notifier.notify("work", session);
    return outcome;
  }

  readInbox(session: string, after = 0): Promise<Inbox> {
    return readInbox(this.#database, session, after);
  }

  readWakes(worker: string): Promise<ReadonlyMap<string, number>> {
    return readWakes(this.#database, worker);
  }

  async sweep(options: { expired: boolean; maxDeaths: number }): Promise<SweptSession[]> {
    // Whether a process on another machine lives, its lease alone says.
    if (!options.expired) return [];
    const swept = await sweepWorkers(this.#leases, options.maxDeaths);
    for (const { session } of swept) this.#notifier.notify("work", session);
    return swept;
  }

  readTime(): Promise<number> {
    return readTime(this.#database);
  }

  setSchedule(schedule: NewSchedule): Promise<void> {
    return setSchedule(this.#database, schedule);
  }

  readSchedule(id: string): Promise<ScheduleRow | undefined> {
    return readSchedule(this.#database, id);
  }

  listSchedules({ after = "", limit }: { after?: string; limit: number }): Promise<ScheduleRow[]> {
    return listSchedules(this.#database, after, limit);
  }

  pauseSchedule(id: string, isPaused: boolean, nextAt: number): Promise<boolean> {
    return pauseSchedule(this.#database, id, isPaused, nextAt);
  }

  deleteSchedule(id: string): Promise<boolean> {
    return deleteSchedule(this.#database, id);
  }

  readDue(limit: number, after?: DuePlace): Promise<DueSchedules> {
    return readDue(this.#database, limit, after);
  }

  async fire(firing: Firing): Promise<FireOutcome> {
    const outcome = await fireSchedule(this.#database, firing);
    const { run } = firing;
    if ("session" in run && (outcome === "started" || outcome === "queued")) {
      this.#notifier.notify("work", run.session);
    }
    return outcome;
  }

  onReady(listener: (session: string) => void): () => void {
    return this.#notifier.onReady(listener);
  }

  listReady(of: readonly string[] | LateReady): Promise<ReadySession[]> {
    return listReady(this.#database, of);
  }

  listen(interest: Interest, listener: (hint: Hint) => void): () => void {
    return this.#notifier.listen(interest, listener);
  }

  async close(): Promise<void> {
    // Idle connections keep no program alive, and their end is to be seen.
    const alive = setInterval(() => {}, STAY_MS);
    try {
      await this.bus.close();
      await this.#notifier.close();
      await Promise.all([this.#database.close(), this.#leases.close()]);
    } finally {
      clearInterval(alive);
    }
  }
}
