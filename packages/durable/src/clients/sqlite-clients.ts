import type {
  NewToolClient,
  RegisterOutcome,
  ToolClientRow,
  ToolClientTable,
} from "../contract/client-tools.ts";
import type { Connection, Statements } from "../sqlite/driver/connection.ts";
import { findTaken, type ToolClientRecord, toToolClient } from "./rows.ts";

const CHANGED = `update gyre_session set tool_changes = tool_changes + 1, wakes = wakes + 1
  where id = ?`;

/** Clients with tools in a SQLite file. */
export class SqliteToolClients implements ToolClientTable {
  readonly #connection: Connection;
  readonly #onChange: (session: string) => void;

  /** `onChange` is called after the tools of a session have changed. */
  constructor(connection: Connection, onChange: (session: string) => void) {
    this.#connection = connection;
    this.#onChange = onChange;
  }

  async register(given: NewToolClient): Promise<RegisterOutcome> {
    const { session } = given;
    const outcome = await this.#connection.write((db) => register(db, given));
    if (outcome === "registered") this.#onChange(session);
    return outcome;
  }

  async remove({
    session,
    client,
    holder,
  }: Parameters<ToolClientTable["remove"]>[0]): Promise<void> {
    const isChanged = await this.#connection.write((db) => {
      const removed = db.run(
        "delete from gyre_tool_client where session = ? and client = ? and holder = ?",
        ...[session, client, holder],
      );
      return removed > 0 && db.run(CHANGED, session) > 0;
    });
    if (isChanged) this.#onChange(session);
  }

  async renew(holders: readonly string[], graceMs: number): Promise<void> {
    await this.#connection.writeOne((db) =>
      db.run(
        "update gyre_tool_client set until = ? where holder in (select value from json_each(?))",
        ...[Date.now() + graceMs, JSON.stringify(holders)],
      ),
    );
  }

  async sweep(session: string): Promise<void> {
    const isChanged = await this.#connection.write((db) => {
      const removed = db.run(
        "delete from gyre_tool_client where session = ? and until <= ?",
        ...[session, Date.now()],
      );
      return removed > 0 && db.run(CHANGED, session) > 0;
    });
    if (isChanged) this.#onChange(session);
  }

  read(session: string): Promise<ToolClientRow[]> {
    return this.#connection.read((db) => list(db, session));
  }
}

function list(db: Statements, session: string): ToolClientRow[] {
  const now = Date.now();
  const rows = db.all<ToolClientRecord>(
    `select client, holder, keeps_calls, tools, until - ? as left_ms from gyre_tool_client
      where session = ? and until > ? order by nth`,
    ...[now, session, now],
  );
  return rows.map(toToolClient);
}

function register(db: Statements, given: NewToolClient): RegisterOutcome {
  const { session, client, holder, keepsCalls, tools, graceMs } = given;
  const found = db.first<{ tool_changes: number }>(
    "select tool_changes from gyre_session where id = ?",
    session,
  );
  if (!found) return "not found";
  const taken = findTaken(given, list(db, session));
  if (taken !== undefined) return { taken };
  db.run(CHANGED, session);
  db.run(
    `insert into gyre_tool_client (session, client, nth, holder, keeps_calls, tools, until)
      values (?, ?, ?, ?, ?, ?, ?) on conflict (session, client) do update set
      holder = excluded.holder, keeps_calls = excluded.keeps_calls, tools = excluded.tools,
      until = excluded.until`,
    ...[session, client, found.tool_changes, holder, keepsCalls ? 1 : 0, JSON.stringify(tools)],
    Date.now() + graceMs,
  );
  return "registered";
}
