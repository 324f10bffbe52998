import type { DurableError, Runs, Worker } from "@gyre/durable";
import { SessionService, type SessionServiceOptions } from "@gyre/server";
import { version } from "@gyre/coding/internal/core/version";
import type { Models } from "@gyre/coding/internal/models/models";
import { explainDatabaseError } from "../../core/database.ts";
import type { RpcHost } from "../rpc/host.ts";
import type { ServeLog } from "./log.ts";
import type { ServeDatabase } from "./options.ts";

export interface SharedSessionsOptions {
  database: ServeDatabase;
  host: RpcHost;
  models: Models;
  log: ServeLog;
  service: SessionServiceOptions;
}

/** Sessions that other servers of the same database have as well, and the work on them. */
export class SharedSessions {
  readonly service: SessionService;
  readonly #runs: Runs;
  readonly #worker: Worker | undefined;

  private constructor(service: SessionService, runs: Runs, worker: Worker | undefined) {
    this.service = service;
    this.#runs = runs;
    this.#worker = worker;
  }

  /** Throws `UsageError` and `ExitError`. */
  static async open(options: SharedSessionsOptions): Promise<SharedSessions> {
    const { database, host, models, log, service } = options;
    const onError = (error: unknown, where: string): void => log.error(error, where);
    // Loaded here alone: no other server needs a database.
    const [{ openRuns, ...durable }, { DurableHost }, { CODING_AGENT, defineHarnessAgent }] =
      await Promise.all([
        import("@gyre/durable"),
        import("@gyre/server/durable"),
        import("@gyre/coding/internal/define-coding-agent"),
      ]);
    const runs = await openRuns(database.url, { onError }).catch((error: unknown) => {
      throw error instanceof durable.DurableError ? explain(error) : error;
    });
    const shared = new DurableHost({
      ...{ runs, agent: CODING_AGENT, pool: database.pool, cwd: host.ownFolder, onError },
      prepare: (asked) => host.plan(asked, models),
      // Folders of other machines are for their servers to check, before a run works there.
      check: ({ cwd, pool }) => {
        if (pool === database.pool) host.checkFolder(cwd || host.ownFolder);
      },
      readChanges: (changes) => host.readChanges(changes, models),
    });
    const agent = defineHarnessAgent(CODING_AGENT, version(), ({ transcript }) =>
      host.readHarness(transcript.header.cwd || host.ownFolder),
    );
    const pools = [database.pool];
    const worker = database.isWorker
      ? new durable.Worker(runs, {
          ...{ agents: [agent], pools, onError },
          onLog: (line) => log.info(line),
        })
      : undefined;
    await worker?.start();
    return new SharedSessions(new SessionService(shared, service), runs, worker);
  }

  /** What the database has, and what this server's worker has done, for Prometheus. */
  async metrics(): Promise<string> {
    return `${this.#worker?.metrics() ?? ""}${await this.#runs.metrics()}`;
  }

  /** Works on nothing more: other servers continue what this one had, at once. */
  async drain(drainMs: number): Promise<void> {
    await this.#worker?.stop({ drainMs });
  }

  /** After the service is closed. */
  async close(): Promise<void> {
    await this.#runs.close();
  }
}

function explain(error: DurableError): Error {
  return explainDatabaseError(error);
}
