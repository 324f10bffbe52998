import { statSync } from "node:fs";
import { DurableError } from "../../contract/errors.ts";
import type { SqlValue } from "../../sql/rows.ts";
import { type Driver, explainError, isBusy, type Statement } from "./driver.ts";

/** How long others may keep the file to themselves before a caller gets an error. */
const MAX_BUSY_MS = 30_000;
/** After as many reads the event loop gets a turn: a caller that only reads must not stop all others. */
const READS_IN_A_TURN = 16;
const MIN_PAUSE_MS = 1;
const MAX_PAUSE_MS = 4;

interface Work {
  /** It is one statement, which needs no transaction around it. */
  readonly isOne: boolean;
  readonly since: number;
  run(): void;
  reject(error: unknown): void;
}

/** What runs statements. */
export interface Statements {
  all<Row>(sql: string, ...values: SqlValue[]): Row[];
  first<Row>(sql: string, ...values: SqlValue[]): Row | undefined;
  /** The number of changed rows. */
  run(sql: string, ...values: SqlValue[]): number;
}

/**
 * One connection to a file. What is written by many callers in one turn of the event loop shares
 * one commit, and so one sync of the disk.
 */
export class Connection implements Statements {
  readonly path: string;
  readonly #driver: Driver;
  readonly #statements = new Map<string, Statement>();
  #queue: Work[] = [];
  #isScheduled = false;
  #isClosed = false;
  #file: string | undefined;
  #reads = 0;
  /** Statements that were run, for measurements. */
  statements = 0;

  constructor(path: string, driver: Driver) {
    this.path = path;
    this.#file = readIdentity(path);
    this.#driver = driver;
  }

  all<Row>(sql: string, ...values: SqlValue[]): Row[] {
    this.statements++;
    return this.#prepare(sql).all(...values) as Row[];
  }

  first<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.all<Row>(sql, ...values)[0];
  }

  run(sql: string, ...values: SqlValue[]): number {
    this.statements++;
    return Number(this.#prepare(sql).run(...values).changes);
  }

  /** Runs statements that only read. */
  read<T>(work: (db: Statements) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const since = Date.now();
      const attempt = (): void => {
        try {
          this.#assertOpen();
          const value = work(this);
          if (++this.#reads % READS_IN_A_TURN > 0) resolve(value);
          else setImmediate(() => resolve(value));
        } catch (error) {
          if (isBusy(error) && Date.now() - since < MAX_BUSY_MS) {
            setTimeout(attempt, pause());
          } else reject(this.#explain(error));
        }
      };
      attempt();
    });
  }

  /** Runs statements that are made all or not at all, and stored when the promise settles. */
  write<T>(work: (db: Statements) => T): Promise<T> {
    return this.#enqueue(work, false);
  }

  /** The same for one statement. */
  writeOne<T>(work: (db: Statements) => T): Promise<T> {
    return this.#enqueue(work, true);
  }

  #enqueue<T>(work: (db: Statements) => T, isOne: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      let value: T;
      this.#queue.push({
        isOne,
        since: Date.now(),
        run: () => {
          value = work(this);
          this.#settled.push(() => resolve(value));
        },
        reject: (error) => reject(this.#explain(error)),
      });
      this.#schedule();
    });
  }

  /** Waits for what is being written. */
  async close(): Promise<void> {
    while (this.#queue.length > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#driver.close();
  }

  readonly #settled: (() => void)[] = [];

  #schedule(ms?: number): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const flush = (): void => {
      this.#isScheduled = false;
      this.#flush();
    };
    if (ms === undefined) setImmediate(flush);
    else setTimeout(flush, ms);
  }

  #flush(): void {
    const group = this.#queue;
    if (group.length === 0) return;
    try {
      this.#assertOpen();
      this.#commit(group);
      this.#queue = [];
    } catch (error) {
      this.#rollback();
      if (isBusy(error)) return this.#retryLater(error);
      this.#queue = [];
      // One of them failed: each gets a commit of its own.
      if (group.length > 1) return this.#commitEach(group);
      group[0]?.reject(error);
    }
  }

  #commitEach(group: readonly Work[]): void {
    const left: Work[] = [];
    for (const work of group) {
      try {
        this.#assertOpen();
        this.#commit([work]);
      } catch (error) {
        this.#rollback();
        if (isBusy(error)) left.push(work);
        else work.reject(error);
      }
    }
    this.#queue = [...left, ...this.#queue];
    if (left.length > 0) this.#schedule(pause());
  }

  #commit(group: readonly Work[]): void {
    this.#settled.length = 0;
    const isOne = group.length === 1 && group[0]?.isOne === true;
    if (!isOne) this.exec("begin immediate");
    for (const work of group) work.run();
    if (!isOne) this.exec("commit");
    this.#assertThere();
    for (const settle of this.#settled) settle();
    this.#settled.length = 0;
  }

  /** Another process writes. */
  #retryLater(error: unknown): void {
    const now = Date.now();
    const [late, rest] = [[] as Work[], [] as Work[]];
    for (const work of this.#queue) (now - work.since > MAX_BUSY_MS ? late : rest).push(work);
    this.#queue = rest;
    for (const work of late) {
      work.reject(
        new DurableError(
          "unavailable",
          `The file ${this.path} was busy for ${MAX_BUSY_MS / 1000} s: another process writes to it and does not come to an end.`,
          { cause: error },
        ),
      );
    }
    if (rest.length > 0) this.#schedule(pause());
  }

  exec(sql: string): void {
    this.statements++;
    this.#driver.exec(sql);
  }

  #rollback(): void {
    try {
      this.#driver.exec("rollback");
    } catch {
      // No transaction was open.
    }
  }

  #prepare(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#driver.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** What is written to a file that has no name any more is lost with the last process that has it open. */
  #assertThere(): void {
    const file = readIdentity(this.path);
    this.#file ??= file;
    if (file !== undefined && file === this.#file) return;
    throw new DurableError(
      "no_access",
      `The file ${this.path} was deleted or replaced while it was open: what is written is lost. Put it back, or close the store and open it again.`,
    );
  }

  #assertOpen(): void {
    if (this.#isClosed) {
      throw new DurableError("closed", `The store ${this.path} is closed: open it again.`);
    }
  }

  #explain(error: unknown): unknown {
    return explainError(this.path, error);
  }
}

/** What identifies a file, whatever its name; undefined where there is none of this name. */
function readIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && `${stats.dev}:${stats.ino}`;
}

function pause(): number {
  return MIN_PAUSE_MS + Math.random() * (MAX_PAUSE_MS - MIN_PAUSE_MS);
}
