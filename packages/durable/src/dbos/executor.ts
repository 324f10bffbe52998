import type * as Dbos from "@dbos-inc/dbos-sdk";
import { errorMessage } from "@gyre/ai";
import type { Activate, EngineWork } from "../contract/engine.ts";
import { DurableError } from "../contract/errors.ts";
import { watchClock } from "../engines/clock.ts";
import { EngineMembers } from "../engines/members.ts";

export const APPLICATION = "gyre";
/** Nothing is replayed, so that workers of all versions share the queue. */
export const VERSION = "gyre";
export const ACTIVATE = "gyre.activate";
/** After this time a launch that has failed is tried again. */
const RELAUNCH_MS = 1_000;
/** Longer than a worker waits for what it works on. */
const STOP_MS = 2_000_000_000;
/** A run that ends its workers is set aside by the store. */
const MAX_RECOVERIES = 1_000_000;

export interface ExecutorOptions {
  readonly url: string;
  readonly schema: string | undefined;
  readonly executor: string;
}

/** DBOS reports what goes wrong by its promises, too. */
export const silentLogger: Dbos.Logger = {
  info: () => {},
  debug: () => {},
  warn: () => {},
  error: () => {},
};

/** `load`: for tests. */
export async function loadDbos(
  load: () => Promise<typeof Dbos & { default?: typeof Dbos }> = () => import("@dbos-inc/dbos-sdk"),
): Promise<typeof Dbos> {
  try {
    const loaded = await load();
    return loaded.default ?? loaded;
  } catch (error) {
    throw new DurableError(
      "no_driver",
      "The engine DBOS needs the package @dbos-inc/dbos-sdk: run `npm install @dbos-inc/dbos-sdk`.",
      { cause: error },
    );
  }
}

/** What is wrong with DBOS's database, and what to do. */
export function explainDbos(url: string, error: unknown): Error {
  if (error instanceof DurableError) return error;
  const { host, pathname } = new URL(url);
  return new DurableError(
    "unavailable",
    `DBOS cannot use the database ${host}${pathname}: ${errorMessage(error)}. Start that server, or give another \`url\` to dbosEngine().`,
    { cause: error },
  );
}

interface Member {
  readonly queues: readonly string[];
  readonly activate: Activate;
}

/** The DBOS of this process, which has one at a time, and the workers that share it. */
export class DbosExecutor {
  static #shared: DbosExecutor | undefined;
  /** Launches and shutdowns follow each other. */
  static #last: Promise<unknown> = Promise.resolve();

  readonly #options: ExecutorOptions;
  readonly #dbos: typeof Dbos.DBOS;
  readonly #members = new EngineMembers<Member>();
  #listened: readonly string[] = [];
  #unwatch: () => void = () => {};

  private constructor(options: ExecutorOptions, dbos: typeof Dbos.DBOS) {
    this.#options = options;
    this.#dbos = dbos;
  }

  /** Has a worker activate what comes into its queues. */
  static async join(
    options: ExecutorOptions,
    queues: readonly string[],
    activate: Activate,
  ): Promise<EngineWork> {
    const member: Member = { queues, activate };
    const { DBOS } = await loadDbos();
    const executor = await DbosExecutor.#inTurn(async () => {
      const shared = (DbosExecutor.#shared ??= new DbosExecutor(options, DBOS));
      if (shared.#options.url !== options.url || shared.#options.schema !== options.schema) {
        throw new DurableError(
          "invalid",
          "A process has one DBOS: give all its engines the same `url` and `schema`.",
        );
      }
      await shared.#add(member);
      return shared;
    });
    return { stop: () => DbosExecutor.#inTurn(() => executor.#remove(member)) };
  }

  static #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(act);
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #add(member: Member): Promise<void> {
    const isNew = member.queues.some((queue) => !this.#listened.includes(queue));
    this.#members.add(member);
    if (!isNew) return;
    await this.#launch([...new Set([...this.#listened, ...member.queues])]);
    this.#unwatch();
    this.#unwatch = watchClock(() => this.#relaunch());
  }

  /**
   * DBOS looks into its queues at times of the machine's clock: it would do nothing until a clock
   * that was set back has reached the next of them. What is under way goes on, and DBOS calls again for it.
   */
  #relaunch(): void {
    const relaunch = async (): Promise<void> => {
      if (this.#members.size > 0) await this.#launch(this.#listened);
    };
    DbosExecutor.#inTurn(relaunch).catch(() => {
      // Its database is away, which is reported by what else needs it.
      setTimeout(() => this.#relaunch(), RELAUNCH_MS).unref();
    });
  }

  async #launch(queues: readonly string[]): Promise<void> {
    const { url, schema, executor } = this.#options;
    const dbos = this.#dbos;
    if (this.#listened.length > 0) await dbos.shutdown();
    else if (dbos.isInitialized()) {
      throw new DurableError(
        "invalid",
        "This process has launched DBOS itself: start the worker in a process of its own.",
      );
    } else {
      registerActivate(dbos, (queue, session) => this.#activate(queue, session));
    }
    dbos.setConfig({
      ...{ name: APPLICATION, systemDatabaseUrl: url, applicationVersion: VERSION },
      ...(schema !== undefined && { systemDatabaseSchemaName: schema }),
      ...{
        executorID: executor,
        listenQueues: [...queues],
        logger: silentLogger,
        runMigrations: false,
      },
    });
    await dbos.launch();
    this.#listened = queues;
  }

  async #remove(member: Member): Promise<void> {
    this.#members.delete(member);
    if (this.#members.size > 0) return;
    DbosExecutor.#shared = undefined;
    this.#unwatch();
    await this.#dbos.shutdown({ workflowCompletionTimeoutMS: STOP_MS });
  }

  /** DBOS tries nothing again: what a worker that stops leaves, others find. */
  #activate(queue: string, session: string): Promise<void> {
    const isListening = ({ queues }: Member): boolean => queues.includes(queue);
    return this.#members.activate(isListening, session, this.#dbos.workflowID ?? "");
  }
}

type OnActivate = (queue: string, session: string) => Promise<void>;
let onActivate: OnActivate | undefined;

/** A workflow is registered once a process. */
function registerActivate(dbos: typeof Dbos.DBOS, act: OnActivate): void {
  if (!onActivate) {
    dbos.registerWorkflow(async (queue: string, session: string) => onActivate?.(queue, session), {
      name: ACTIVATE,
      maxRecoveryAttempts: MAX_RECOVERIES,
    });
  }
  onActivate = act;
}
