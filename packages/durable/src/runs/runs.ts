import { createHash, randomUUID } from "node:crypto";
import type { PromptInput } from "@gyre/agent";
import { DurableError } from "../contract/errors.ts";
import { checkWork } from "./check.ts";
import { LiveHub } from "../live/hub.ts";
import { LogHub } from "./log-hub.ts";
import { formatMetrics, listStoreMetrics } from "./metrics.ts";
import { assertName, encodeMessages } from "../contract/messages.ts";
import { RunHandle } from "./run.ts";
import { SessionReader } from "./session-reader.ts";
import { type SessionsOptions, StoreSessions } from "../sessions/store-sessions.ts";
import { explainStuck } from "./stuck.ts";
import { toSummary, toWorkerInfo } from "./summary.ts";
import type { NewRun, RunRowFilter, Store } from "../contract/store.ts";
import type {
  Retention,
  Run,
  RunFilter,
  RunPage,
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
  readonly #onError: StoreOptions["onError"];

  constructor(store: Store, options: Pick<StoreOptions, "onError"> = {}) {
    this.store = store;
    this.live = new LiveHub(store.bus);
    this.logs = new LogHub(store);
    this.#onError = options.onError;
  }

  /**
   * Starts a run. It is stored when the promise settles, and a worker will work on it. With an id
   * that is known already nothing is done: the run of that id is returned. Rejects with `exists`
   * where that has another prompt.
   */
  async start(input: PromptInput, options: StartOptions): Promise<Run> {
    const run = toNewRun(input, options);
    const { id, session, agent, tenant } = run;
    const outcome = await this.store.start(run);
    switch (outcome) {
      case "started":
      case "queued":
      case "known":
        return this.get(id);
      case "other":
        throw new DurableError(
          "exists",
          `There is a run "${id}" with another prompt or other options: give this one another id, or go on with get("${id}").`,
        );
      case "agent":
        throw new DurableError(
          "invalid",
          `The session "${session}" belongs to another agent than "${agent}": leave \`session\` out, or name that agent.`,
        );
      case "tenant":
        throw new DurableError(
          "invalid",
          `The session "${session}" belongs to another tenant than "${tenant}": leave \`session\` out, or name one of that tenant's.`,
        );
      case "pool":
        throw new DurableError(
          "invalid",
          `The session "${session}" is bound to another pool than "${run.pool}": its files are there. Leave \`pool\` out, or start the run in a fork of the session.`,
        );
      case "busy":
        throw new DurableError(
          "busy",
          `The session "${session}" has an open run: wait for its end, or leave \`ifIdle\` out.`,
        );
      case "full":
        throw await this.#explainFull(tenant);
      default:
        return outcome satisfies never;
    }
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
   * What the store has now, as Prometheus reads it: open runs by status and agent, the wait of the
   * oldest ready one, workers. `Worker.metrics` has what one worker has done.
   */
  async metrics(): Promise<string> {
    const [counts, workers] = [await this.store.countOpen(), await this.store.listWorkers()];
    return formatMetrics(listStoreMetrics(counts, workers));
  }

  /** Limits what a tenant may have at once. What runs already goes on. */
  async limitTenant(id: string, limits: TenantLimits): Promise<void> {
    await this.store.setTenant({ id, ...limits });
  }

  /** Deletes runs that have ended, with their messages. One with an open child stays. */
  async prune({ olderThanMs, onProgress, signal }: Retention): Promise<{ deleted: number }> {
    const before = Date.now() - olderThanMs;
    let deleted = 0;
    for (;;) {
      const count = await this.store.prune(before, PRUNED_AT_ONCE);
      deleted += count;
      onProgress?.(deleted);
      if (count < PRUNED_AT_ONCE || signal?.aborted) return { deleted };
    }
  }

  /** Closes the store. Stop workers first. */
  async close(): Promise<void> {
    await this.store.close();
  }

  /** Reports an error that no caller waits for. */
  report(error: unknown, where: string): void {
    if (this.#onError) this.#onError(error, where);
    else process.emitWarning(error instanceof Error ? error : String(error), { detail: where });
  }
}

/** What is stored of a run that is started. */
export function toNewRun(
  input: PromptInput,
  options: StartOptions & { parent?: NewRun["parent"] },
): NewRun {
  const { agent, tenant = "", pool, priority = 0, at, limits, output, meta, ifIdle } = options;
  if (typeof agent !== "string" || agent === "") {
    throw new DurableError("invalid", "A run needs the name of an agent: give it as `agent`.");
  }
  const id = options.id ?? randomUUID();
  const { session = id, traceparent = "" } = options;
  for (const [name, value] of Object.entries({
    ...{ id, session, agent, tenant, traceparent },
    ...(pool !== undefined && { pool }),
  })) {
    assertName(`\`${name}\` of a run`, value);
  }
  if (id === "" || session === "") {
    throw new DurableError("invalid", "The id of a run, and that of its session, is not empty.");
  }
  if (!Number.isSafeInteger(priority)) {
    throw new DurableError("invalid", `\`priority\` is a whole number: got ${priority}.`);
  }
  if (at && Number.isNaN(at.getTime())) {
    throw new DurableError("invalid", "`at` is no date.");
  }
  const asked = { input, agent, tenant, session: options.session, output, limits };
  return {
    id,
    session: options.session ?? id,
    agent,
    tenant,
    ...(pool !== undefined && { pool }),
    priority,
    digest: createHash("sha256").update(JSON.stringify(asked)).digest("hex"),
    prompt: encodeMessages(input),
    ...(ifIdle && { ifIdle }),
    ...(at && { at: at.getTime() }),
    ...(limits && { limits: JSON.stringify(limits) }),
    ...(output && { output: JSON.stringify(output) }),
    ...(meta && { meta: JSON.stringify(meta) }),
    ...(options.traceparent !== undefined && { traceparent: options.traceparent }),
    ...(options.parent && { parent: options.parent }),
  };
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
