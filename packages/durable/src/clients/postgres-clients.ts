import type {
  NewToolClient,
  RegisterOutcome,
  ToolClientRow,
  ToolClientTable,
} from "../contract/client-tools.ts";
import { type Database, NOW, Rollback, type Session } from "../postgres/driver/database.ts";
import { findTaken, type ToolClientRecord, toToolClient } from "./rows.ts";

const CHANGED = `update gyre_session set tool_changes = tool_changes + 1, wakes = wakes + 1
  where id = $1`;

/** Clients with tools in a Postgres. */
export class PostgresToolClients implements ToolClientTable {
  readonly #database: Database;
  readonly #onChange: (session: string) => void;

  /** `onChange` is called after the tools of a session have changed. */
  constructor(database: Database, onChange: (session: string) => void) {
    this.#database = database;
    this.#onChange = onChange;
  }

  async register(given: NewToolClient): Promise<RegisterOutcome> {
    const outcome = await this.#database.transact(async (db) => {
      const done = await register(db, given);
      return done === "registered" ? done : new Rollback(done);
    });
    if (outcome instanceof Rollback) return outcome.value;
    this.#onChange(given.session);
    return outcome;
  }

  remove({ session, client, holder }: Parameters<ToolClientTable["remove"]>[0]): Promise<void> {
    return this.#delete(session, "client = $2 and holder = $3", client, holder);
  }

  async renew(holders: readonly string[], graceMs: number): Promise<void> {
    await this.#database.run(
      `update gyre_tool_client set until = ${NOW} + $2 where holder = any($1)`,
      ...[holders, Math.ceil(graceMs)],
    );
  }

  sweep(session: string): Promise<void> {
    return this.#delete(session, `until <= ${NOW}`);
  }

  read(session: string): Promise<ToolClientRow[]> {
    return list(this.#database, session);
  }

  /** The row of the session is locked first, as a registration does. */
  async #delete(session: string, which: string, ...values: readonly string[]): Promise<void> {
    const isChanged = await this.#database.transact(async (db) => {
      await db.run(CHANGED, session);
      const sql = `delete from gyre_tool_client where session = $1 and ${which}`;
      return (await db.run(sql, session, ...values)) > 0 || undefined;
    });
    if (isChanged) this.#onChange(session);
  }
}

async function list(db: Session, session: string): Promise<ToolClientRow[]> {
  const rows = await db.all<ToolClientRecord>(
    `select client, holder, keeps_calls, tools, until - ${NOW} as left_ms from gyre_tool_client
      where session = $1 and until > ${NOW} order by nth`,
    session,
  );
  return rows.map(toToolClient);
}

async function register(db: Session, given: NewToolClient): Promise<RegisterOutcome> {
  const { session, client, holder, keepsCalls, tools, graceMs } = given;
  if ((await db.run(CHANGED, session)) === 0) return "not found";
  const taken = findTaken(given, await list(db, session));
  if (taken !== undefined) return { taken };
  await db.run(
    `insert into gyre_tool_client (session, client, nth, holder, keeps_calls, tools, until)
      select $1, $2, tool_changes, $3, $4, $5, ${NOW} + $6 from gyre_session where id = $1
      on conflict (session, client) do update set holder = excluded.holder,
      keeps_calls = excluded.keeps_calls, tools = excluded.tools, until = excluded.until`,
    ...[session, client, holder, keepsCalls ? 1 : 0, JSON.stringify(tools), Math.ceil(graceMs)],
  );
  return "registered";
}
