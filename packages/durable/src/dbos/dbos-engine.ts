import { randomUUID } from "node:crypto";
import { setTimeout as later } from "node:timers/promises";
import type { DBOSClient } from "@dbos-inc/dbos-sdk";
import { isRecord } from "@gyre/ai";
import type {
  Activate,
  Engine,
  EngineWork,
  EngineWorkOptions,
  WakeOptions,
} from "../contract/engine.ts";
import { DurableError } from "../contract/errors.ts";
import { nameQueue } from "../engines/members.ts";
import { Database, loadPg } from "../postgres/driver/database.ts";
import {
  ACTIVATE,
  APPLICATION,
  DbosExecutor,
  explainDbos,
  loadDbos,
  silentLogger,
  VERSION,
} from "./executor.ts";

export interface DbosEngineOptions {
  /** The Postgres that DBOS has its queue in, "postgres://user@host/name": it may be that of the runs. */
  url: string;
  /** The schema of DBOS's tables. Default "dbos". */
  schema?: string;
  /** Its queue. Runs of a pool have one beside it, "queue-pool". Default "gyre". */
  queue?: string;
  /**
   * The name of this worker's process, the same after a restart and no other's: what it worked on
   * when it died is then continued at its start. Default: a fresh one; others continue after the lease.
   */
  executor?: string;
  /** How often a worker looks into the queue. Default 100. */
  pollMs?: number;
}

const DEFAULT_POLL_MS = 100;
/** DBOS has lower ones first, from 0 on. */
const MIDDLE_PRIORITY = 1_000_000_000;
/** Of the locks that a database has by number. */
const MIGRATION_LOCK = 4_715_020_213;
const MIGRATION_PAUSE_MS = 50;
const NAME = /^[\w.-]+$/;

/**
 * DBOS decides which worker runs a session next: each activation is a workflow of its queue. A
 * process has one DBOS, which the engine launches with its first worker.
 */
export function dbosEngine(options: DbosEngineOptions): Engine {
  const { url, queue = "gyre" } = options;
  if (!/^postgres(ql)?:/.test(url)) {
    throw new DurableError(
      "bad_url",
      "DBOS needs a Postgres: give `url` as postgres://user@host/name.",
    );
  }
  if (!NAME.test(queue)) {
    throw new DurableError(
      "invalid",
      `The queue "${queue}" has other characters than letters, digits, ".", "_" and "-".`,
    );
  }
  return new DbosEngine({ ...options, queue });
}

class DbosEngine implements Engine {
  readonly name = "dbos";
  readonly #options: DbosEngineOptions & { queue: string };
  readonly #executor: string;
  #client: Promise<DBOSClient> | undefined;

  constructor(options: DbosEngineOptions & { queue: string }) {
    this.#options = options;
    this.#executor = options.executor ?? randomUUID();
  }

  async wake(session: string, { inMs, priority, pool, key }: WakeOptions): Promise<void> {
    const client = await this.#connect();
    const { url, queue } = this.#options;
    const queueName = nameQueue(queue, pool);
    try {
      await client.enqueue(
        {
          ...{ queueName, workflowName: ACTIVATE, appVersion: VERSION },
          workflowID: `${queue}:${key ?? randomUUID()}`,
          priority: Math.min(2 * MIDDLE_PRIORITY, Math.max(0, MIDDLE_PRIORITY - priority)),
          ...(inMs !== undefined && { delaySeconds: inMs / 1_000 }),
        },
        queueName,
        session,
      );
    } catch (error) {
      throw explainDbos(url, error);
    }
  }

  async work(activate: Activate, options: EngineWorkOptions): Promise<EngineWork> {
    const { url, schema, pollMs = DEFAULT_POLL_MS } = this.#options;
    const client = await this.#connect();
    const queues = options.pools.map((pool) => nameQueue(this.#options.queue, pool));
    for (const queue of queues) {
      await client.registerQueue(queue, {
        workerConcurrency: options.concurrency,
        minPollingIntervalMs: pollMs,
      });
    }
    return DbosExecutor.join({ url, schema, executor: this.#executor }, queues, activate);
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await (await client?.catch(() => undefined))?.destroy();
  }

  #connect(): Promise<DBOSClient> {
    this.#client ??= this.#open().catch((error: unknown) => {
      this.#client = undefined;
      throw explainDbos(this.#options.url, error);
    });
    return this.#client;
  }

  async #open(): Promise<DBOSClient> {
    const { url, schema } = this.#options;
    const { DBOS, DBOSClient } = await loadDbos();
    const place = schema === undefined ? {} : { schemaName: schema };
    await migrate(url, () => DBOS.migrate(url, place));
    return DBOSClient.create({
      systemDatabaseUrl: url,
      ...(schema !== undefined && { systemDatabaseSchemaName: schema }),
      applicationName: APPLICATION,
      logger: silentLogger,
    });
  }
}

async function migrate(url: string, act: () => Promise<void>): Promise<void> {
  try {
    await migrateLocked(url, act);
  } catch (error) {
    if (!isMissingDatabase(error)) throw error;
    // DBOS makes that, too, and another process may be faster.
    await act().catch(() => migrateLocked(url, act));
  }
}

/**
 * DBOS makes its tables without a lock: of processes that start at the same time, one does it and
 * the others look again. DBOS would wait for one that waits inside of a statement, where it makes
 * an index.
 */
async function migrateLocked(url: string, act: () => Promise<void>): Promise<void> {
  const options = { url, pool: 1, isPooled: true, onError: () => {} };
  const database = new Database(await loadPg(), options);
  const tryOnce = (): Promise<boolean | undefined> =>
    database.transact(async (session) => {
      await session.run("set transaction isolation level read committed");
      const lock = await session.first<{ mine: boolean }>(
        `select pg_try_advisory_xact_lock(${MIGRATION_LOCK}) as mine`,
      );
      if (!lock?.mine) return undefined;
      await act();
      return true;
    });
  try {
    while (!(await tryOnce())) await later(MIGRATION_PAUSE_MS);
  } finally {
    await database.close();
  }
}

function isMissingDatabase(error: unknown): boolean {
  const cause = error instanceof DurableError ? error.cause : undefined;
  return isRecord(cause) && cause["code"] === "3D000";
}
