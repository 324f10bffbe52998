import { createHash } from "node:crypto";
import type * as Pg from "pg";
import { Turns } from "./turns.ts";
import { DurableError } from "../../contract/errors.ts";

/** After this time without an answer a connection counts as dead. */
const QUERY_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How often a transaction is tried again that met another one. */
const MAX_CONFLICTS = 20;
/** int8, which `pg` reads as text. No number here comes near the largest safe integer. */
const BIGINT_OID = 20;

/** Two transactions wait for each other, or one has changed what the other read. */
const CONFLICTS: ReadonlySet<string> = new Set(["40001", "40P01"]);
const READ_ONLY = "25006";
/** It is read-only for now, or another transaction took too long. */
const AWAY: ReadonlySet<string> = new Set([READ_ONLY, "25P03", "55P03"]);
/** The connection itself, out of disk or memory, shut down or canceled, an error of the system. */
const AWAY_CLASSES: ReadonlySet<string> = new Set(["08", "53", "57", "58"]);
/** A statement has no such name, or the name is another one's. */
const LOST_NAMES: ReadonlySet<string> = new Set(["26000", "42P05"]);
const NO_ACCESS: Readonly<Record<string, string>> = {
  "28000": "the database does not let this user in",
  "28P01": "the password is wrong",
  "3D000": "there is no such database: create it first",
  "3F000":
    "there is no schema that this user may use: create one, or grant it CREATE and USAGE on it",
  "42501":
    "the user has no right to do that: grant it SELECT, INSERT, UPDATE and DELETE on the tables that begin with gyre_, and, where it makes them, CREATE and USAGE on the schema",
};

/** By the clock of the database, at the beginning of the transaction. */
export const NOW = "(extract(epoch from now()) * 1000)::bigint";

export interface DatabaseOptions {
  readonly url: string;
  readonly schema?: string | undefined;
  readonly pool: number;
  /** Behind a pooler no statement may be kept by name. */
  readonly isPooled: boolean;
  readonly onError: (error: unknown, where: string) => void;
}

/** What runs statements: a connection in a transaction, or the pool itself. */
export interface Session {
  all<Row>(sql: string, ...values: readonly unknown[]): Promise<Row[]>;
  first<Row>(sql: string, ...values: readonly unknown[]): Promise<Row | undefined>;
  /** Resolves to the number of changed rows. */
  run(sql: string, ...values: readonly unknown[]): Promise<number>;
}

/** What a transaction came to that is taken back. */
export class Rollback<T> {
  readonly value: T;
  constructor(value: T) {
    this.value = value;
  }
}

/** Connections to one Postgres, with names of tables in the schema that was asked for. */
export class Database implements Session {
  /** For messages: without a password. */
  readonly place: string;
  readonly #pool: Pg.Pool;
  readonly #turns: Turns;
  readonly #schema: string | undefined;
  #isPooled: boolean;
  readonly #texts = new Map<string, { text: string; name?: string }>();
  #isClosed = false;
  /** Statements that were run, for measurements. */
  statements = 0;

  constructor(pg: typeof Pg, options: DatabaseOptions) {
    this.place = describePlace(options.url);
    this.#schema = options.schema;
    this.#isPooled = options.isPooled;
    this.#turns = new Turns(options.pool);
    this.#pool = new pg.Pool({
      ...clientConfig(pg, options.url),
      max: options.pool,
      allowExitOnIdle: true,
    });
    // A connection that breaks between two uses is replaced when it is needed.
    this.#pool.on("error", () => {});
    // One that breaks between two statements of a transaction fails the next of them.
    this.#pool.on("connect", (client) => client.on("error", () => {}));
  }

  async all<Row>(sql: string, ...values: readonly unknown[]): Promise<Row[]> {
    return (await this.#withClient((client) => this.#query(client, sql, values))).rows as Row[];
  }

  async first<Row>(sql: string, ...values: readonly unknown[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...values))[0];
  }

  async run(sql: string, ...values: readonly unknown[]): Promise<number> {
    return (await this.#withClient((client) => this.#query(client, sql, values))).rowCount ?? 0;
  }

  /**
   * Runs statements that are made all or not at all. The work may run again where another
   * transaction was in its way. A `Rollback`, or nothing, from it takes everything back.
   */
  async transact<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#withClient(async (client) => {
      await this.#query(client, "begin", []);
      try {
        const value = await work(this.#bind(client));
        const isTakenBack = value === undefined || value instanceof Rollback;
        await this.#query(client, isTakenBack ? "rollback" : "commit", []);
        return value;
      } catch (error) {
        // A connection that does not answer is closed, which takes everything back as well.
        if (!isAway(error) || CONFLICTS.has(readCode(error) ?? "")) {
          await this.#query(client, "rollback", []).catch(() => {});
        }
        throw error;
      }
    });
  }

  /** A statement as it is sent, with the schema of each table. */
  toText(sql: string): string {
    return this.#prepare(sql).text;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#pool.end();
  }

  #bind(client: Pg.Client): Session {
    const query = (sql: string, values: readonly unknown[]): Promise<Pg.QueryResult> =>
      this.#query(client, sql, values);
    return {
      all: async <Row>(sql: string, ...values: readonly unknown[]) =>
        (await query(sql, values)).rows as Row[],
      first: async <Row>(sql: string, ...values: readonly unknown[]) =>
        (await query(sql, values)).rows[0] as Row | undefined,
      run: async (sql, ...values) => (await query(sql, values)).rowCount ?? 0,
    };
  }

  async #withClient<T>(work: (client: Pg.PoolClient) => Promise<T>): Promise<T> {
    for (let conflicts = 0; ; conflicts++) {
      let client: Pg.PoolClient | undefined;
      try {
        client = await this.#connect();
        const value = await work(client);
        this.#release(client);
        return value;
      } catch (error) {
        const isConflict = CONFLICTS.has(readCode(error) ?? "");
        const isBroken = !isConflict && !(error instanceof DurableError) && isAway(error);
        if (client) this.#release(client, isBroken);
        const hasLostName = LOST_NAMES.has(readCode(error) ?? "");
        if (hasLostName && !this.#isPooled) {
          // A pooler gives each transaction another connection, which does not have the name.
          this.#isPooled = true;
          this.#texts.clear();
        }
        if ((isConflict || hasLostName) && conflicts < MAX_CONFLICTS) continue;
        throw explainError(this.place, error);
      }
    }
  }

  /** The pool would count the wait for a connection that is in use as one for the database. */
  async #connect(): Promise<Pg.PoolClient> {
    this.#assertOpen();
    await this.#turns.begin();
    try {
      this.#assertOpen();
      return await this.#pool.connect();
    } catch (error) {
      this.#turns.fail(error);
      this.#turns.end();
      throw explainConnect(this.place, explainError(this.place, error));
    }
  }

  #assertOpen(): void {
    if (!this.#isClosed) return;
    throw new DurableError("closed", `The store ${this.place} is closed: open it again.`);
  }

  #release(client: Pg.PoolClient, isBroken = false): void {
    client.release(isBroken);
    this.#turns.end();
  }

  async #query(
    client: Pg.Client,
    sql: string,
    values: readonly unknown[],
  ): Promise<Pg.QueryResult> {
    this.statements++;
    return client.query({ ...this.#prepare(sql), values });
  }

  /** The statement for the schema, under a name by which a connection keeps its plan. */
  #prepare(sql: string): { text: string; name?: string } {
    let prepared = this.#texts.get(sql);
    if (!prepared) {
      const text = this.#schema === undefined ? sql : qualify(sql, this.#schema);
      const isKept = !this.#isPooled && /^\s*(?:select|with|update|insert|delete)\b/.test(sql);
      const name = createHash("sha256").update(text).digest("hex").slice(0, 32);
      prepared = { text, ...(isKept && { name }) };
      this.#texts.set(sql, prepared);
    }
    return prepared;
  }
}

export function clientConfig(pg: typeof Pg, url: string): Pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "gyre",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    types: {
      getTypeParser: (oid, format) =>
        oid === BIGINT_OID ? Number : pg.types.getTypeParser(oid, format),
    },
  };
}

/** Loads `pg`, which is installed by those who use it. */
export async function loadPg(): Promise<typeof Pg> {
  try {
    const loaded = await import("pg");
    return (loaded.default ?? loaded) as typeof Pg;
  } catch (error) {
    throw new DurableError("no_driver", "Postgres needs the package pg: run `npm install pg`.", {
      cause: error,
    });
  }
}

/** Names the schema of each table, also where a name is a text. */
function qualify(sql: string, schema: string): string {
  const name = `"${schema.replaceAll('"', '""')}".gyre_`;
  return sql.replace(/'?\bgyre_/g, (found) =>
    found.startsWith("'") ? `'${name.replaceAll("'", "''")}` : name,
  );
}

/** Host, port and name, without what is secret. */
export function describePlace(url: string): string {
  try {
    const { protocol, hostname, port, pathname } = new URL(url);
    return `${protocol}//${hostname}${port === "" ? "" : `:${port}`}${pathname}`;
  } catch {
    return "the database";
  }
}

export function explainError(place: string, error: unknown): unknown {
  if (error instanceof DurableError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const reason = NO_ACCESS[readCode(error) ?? ""];
  if (reason !== undefined) {
    return new DurableError(
      "no_access",
      `${place} cannot be used: ${reason}. The database says: ${message}`,
      { cause: error },
    );
  }
  if (!isAway(error)) return error;
  if (readCode(error) === READ_ONLY) {
    return new DurableError(
      "unavailable",
      `${place} takes no writes: it is a replica, or this user or database is read-only. Give the address of the primary, or a user that may write. The database says: ${message}`,
      { cause: error },
    );
  }
  return new DurableError(
    "unavailable",
    `${place} does not answer: ${message || readCode(error)}. Check that it runs and that the address is right.`,
    { cause: error },
  );
}

/** What the driver itself says of a connection that could not be made. */
function explainConnect(place: string, error: unknown): DurableError {
  if (error instanceof DurableError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const reason = /password must be a (?:non-empty )?string/.test(message)
    ? "it asks for a password, and the address has none. Write postgres://USER:PASSWORD@HOST/NAME, or set PGPASSWORD."
    : `the connection could not be made. The driver says: ${message}`;
  return new DurableError("no_access", `${place} cannot be used: ${reason}`, { cause: error });
}

function readCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Whether the database cannot be reached now. */
export function isAway(error: unknown): boolean {
  const code = readCode(error);
  // Of the system, such as ECONNRESET: no code of Postgres begins with E.
  if (code?.startsWith("E")) return true;
  if (code !== undefined) {
    return AWAY.has(code) || AWAY_CLASSES.has(code.slice(0, 2)) || CONFLICTS.has(code);
  }
  const message = error instanceof Error ? error.message : "";
  return /timeout|terminated|not queryable|connection (?:error|ended|closed)/i.test(message);
}
