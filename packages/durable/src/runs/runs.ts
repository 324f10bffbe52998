import type { PromptInput } from "@gyre/agent";
import { DurableError } from "../contract/errors.ts";
import { checkWork } from "./check.ts";
import { LiveHub } from "../live/hub.ts";
import { LogHub } from "./log-hub.ts";
import { formatMetrics, listStoreMetrics } from "./metrics.ts";
import { assertName } from "../contract/messages.ts";
import { assertCount, assertNumber } from "../contract/numbers.ts";
import { toNewRun } from "../contract/new-run.ts";
import { RunHandle } from "./run.ts";
import { SessionReader } from "./session-reader.ts";
import { type SessionsOptions, StoreSessions } from "../sessions/store-sessions.ts";
import { planNextTime, toNewSchedule, toScheduleInfo } from "../schedules/schedule.ts";
import { explainStart } from "./start-error.ts";
import { explainStuck } from "./stuck.ts";
import { toSummary, toWorkerInfo } from "./summary.ts";
import { Waker } from "./waker.ts";
import type { RunRowFilter, Store } from "../contract/store.ts";
import type {
  Retention,
  Run,
  RunFilter,
  RunPage,
  ScheduleInfo,
  ScheduleOptions,
  SchedulePage,
  StartOptions,
  StoreCheck,
  StoreOptions,
  TenantLimits,
  WorkerInfo,
} from "../contract/types.ts";

const DEFAULT_PAGE = 100;
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
/** Runs that are deleted in one transaction. */
const PRUNED_AT_ONCE = 1_000;

/** The runs of a store: start them and find them, from any process. */
export class Runs {
  /** What keeps them. For workers, and for tools of one's own. */
  readonly store: Store;
  /** Passes on events that are not stored. */
  readonly live: LiveHub;
  /** Notices what others write. */
  readonly logs: LogHub;
  /** Has an engine wake sessions, where there is one. */
  readonly waker: Waker | undefined;
  readonly #onError: StoreOptions["onError"];

  constructor(store: Store, { onError, engine }: Pick<StoreOptions, "onError" | "engine"> = {}) {
    this.store = store;
    this.live = new LiveHub(store.bus);
    this.logs = new LogHub(store);
    this.#onError = onError;
    if (!engine) return;
    this.waker = new Waker(store, engine, (error) => this.report(error, `wake by ${engine.name}`));
  }

  /**
   * Starts a run. It is stored when the promise settles, and a worker will work on it. With an id
   * that is known already nothing is done: the run of that id is returned. Rejects with `exists`
   * where that has another prompt.
   */
  async start(input: PromptInput, options: StartOptions): Promise<Run> {
    const run = toNewRun(input, options);
    const outcome = await this.store.start(run);
    if (outcome === "full") throw await this.#explainFull(run.tenant);
    const error = explainStart(outcome, run);
    if (error) throw error;
    return this.get(run.id);
  }

  /**
   * Starts a run at each time of a schedule, once, whichever worker is there. Times that pass while
   * no worker is there are made up for by one run. Set again under the same id nothing happens
   * where it is the same, so that every start of a program may set it; otherwise it is replaced.
   */
  async schedule(input: PromptInput, options: ScheduleOptions): Promise<ScheduleInfo> {
    const schedule = toNewSchedule(input, options, await this.store.readTime());
    await this.store.setSchedule(schedule);
    const row = await this.store.readSchedule(schedule.id);
    if (!row) throw noSchedule(schedule.id);
    return toScheduleInfo(row);
  }

  /** Schedules, by id. */
  async schedules({
    after,
    limit = DEFAULT_PAGE,
  }: { after?: string; limit?: number } = {}): Promise<SchedulePage> {
    const rows = await this.store.listSchedules({ limit, ...(after !== undefined && { after }) });
    const last = rows.at(-1);
    return {
      schedules: rows.map(toScheduleInfo),
      ...(last && rows.length === limit && { next: last.id }),
    };
  }

  /** No run is started until `resumeSchedule`. Rejects with `not_found`. */
  async pauseSchedule(id: string): Promise<void> {
    if (!(await this.store.pauseSchedule(id, true, 0))) throw noSchedule(id);
  }

  /** Goes on with the next time from now on. Rejects with `not_found`. */
  async resumeSchedule(id: string): Promise<void> {
    const { store } = this;
    const row = await store.readSchedule(id);
    if (!row) throw noSchedule(id);
    await store.pauseSchedule(id, false, planNextTime(row, await store.readTime()));
  }

  /** Runs that were started go on. Rejects with `not_found`. */
  async deleteSchedule(id: string): Promise<void> {
    if (!(await this.store.deleteSchedule(id))) throw noSchedule(id);
  }

  /** Reads the log of a session. */
  read(session: string): SessionReader {
    return new SessionReader(this.store, session);
  }

  /** In the time that the oldest run has waited, those before a new one are claimed, more or less. */
  async #explainFull(tenant: string): Promise<DurableError> {
    const readyMs = await this.store.readReadyMs(tenant);
    const retryAfterMs = Math.min(Math.max(readyMs, MIN_RETRY_MS), MAX_RETRY_MS);
    return new DurableError(
      "rate_limited",
      `The tenant "${tenant}" has as many runs that wait for a worker as it may: start it again in ${Math.ceil(retryAfterMs / 1_000)} s.`,
      { retryAfterMs },
    );
  }

  /** The run of an id. Whether there is one shows when it is used. */
  get(id: string): Run {
    return new RunHandle(this, id);
  }

  /** Runs, the newest first. */
  async list(filter: RunFilter = {}): Promise<RunPage> {
    const limit = filter.limit ?? DEFAULT_PAGE;
    const rows = await this.store.listRuns({ ...toRowFilter(filter), limit });
    const last = rows.at(-1);
    const next =
      last && rows.length === limit ? { next: `${last.startedAt} ${last.id}` } : undefined;
    if (!filter.stuck) return { runs: rows.map(toSummary), ...next };
    const workers = await this.store.listWorkers();
    const runs = rows.flatMap((row) => {
      const stuck = explainStuck(row, workers);
      return stuck === undefined ? [] : { ...toSummary(row), stuck };
    });
    return { runs, ...next };
  }

  /** Sessions that programs make, open and write to themselves. */
  sessions(options: SessionsOptions = {}): StoreSessions {
    return new StoreSessions(this.store, options, (error, where) => this.report(error, where));
  }

  async workers(): Promise<WorkerInfo[]> {
    return (await this.store.listWorkers()).map(toWorkerInfo);
  }

  /**
   * Declares a worker dead: what it works on is ready for others at once. One that is alive notices,
   * stops what it does there, and goes on under another id. Rejects with `not_found`.
   */
  async release(worker: string): Promise<void> {
    const workers = await this.store.listWorkers();
    if (!workers.some(({ id }) => id === worker)) {
      throw new DurableError(
        "not_found",
        `There is no worker "${worker}": workers() has those that there are.`,
      );
    }
    await this.store.unregister(worker);
  }

  /** Looks at what can be wrong: the store, its workers, and runs that none of them will claim. */
  async check(): Promise<StoreCheck[]> {
    return [...(await this.store.check()), ...(await checkWork(this))];
  }

  /**
   * What the store has now, as Prometheus reads it: open runs by status and agent, and with `tenants`
   * by tenant; the waits of the oldest ready run and of the oldest message; workers.
   * `Worker.metrics` has what one worker has done.
   */
  async metrics({ tenants = false }: { tenants?: boolean } = {}): Promise<string> {
    const { store } = this;
    const figures = {
      counts: await store.countOpen(),
      workers: await store.listWorkers(),
      inboxMs: await store.readInboxMs(),
    };
    const { notifications } = store;
    return formatMetrics(listStoreMetrics({ ...figures, notifications, hasTenants: tenants }));
  }

  /** Limits what a tenant may have at once. What runs already goes on. */
  async limitTenant(id: string, limits: TenantLimits): Promise<void> {
    assertName("The id of a tenant", id);
    for (const [name, value] of Object.entries(limits)) {
      if (value !== undefined) assertCount(name, value, 0);
    }
    await this.store.setTenant({ id, ...limits });
  }

  /** Deletes runs that have ended, with their messages. One with an open child stays. */
  async prune(retention: Retention): Promise<{ deleted: number }> {
    // Without a number all of them would be deleted, or none.
    assertNumber("olderThanMs", retention?.olderThanMs);
    const { olderThanMs, onProgress, signal } = retention;
    const before = (await this.store.readTime()) - olderThanMs;
    let deleted = 0;
    for (;;) {
      const count = await this.store.prune(before, PRUNED_AT_ONCE);
      deleted += count;
      onProgress?.(deleted);
      if (count < PRUNED_AT_ONCE || signal?.aborted) return { deleted };
    }
  }

  /** Closes the store and the engine. Stop workers first. */
  async close(): Promise<void> {
    await this.waker?.close();
    await this.store.close();
  }

  /** Reports an error that no caller waits for. */
  report(error: unknown, where: string): void {
    if (this.#onError) this.#onError(error, where);
    else process.emitWarning(error instanceof Error ? error : String(error), { detail: where });
  }
}

function noSchedule(id: string): DurableError {
  return new DurableError(
    "not_found",
    `There is no schedule "${id}": schedules() has those that there are.`,
  );
}

function toRowFilter(filter: RunFilter): Omit<RunRowFilter, "limit"> {
  const { status, agent, tenant, session, parent, since, after } = filter;
  const [, startedAt = "", id = ""] = /^(\d+) (.+)$/.exec(after ?? "") ?? [];
  if (after !== undefined && id === "") {
    throw new DurableError("invalid", `${JSON.stringify(after)} is not the \`next\` of a page.`);
  }
  return {
    ...(status && { statuses: typeof status === "string" ? [status] : status }),
    ...(agent !== undefined && { agent }),
    ...(tenant !== undefined && { tenant }),
    ...(session !== undefined && { session }),
    ...(parent !== undefined && { parent }),
    ...(since && { startedSince: since.getTime() }),
    ...(after !== undefined && { after: { startedAt: Number(startedAt), id } }),
  };
}
