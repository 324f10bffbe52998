import type { TenantRow } from "../contract/store.ts";
import type { Statements } from "./driver/connection.ts";

export function countSessions(db: Statements, tenant: string, status: "ready" | "running"): number {
  const row = db.first<{ n: number }>(
    "select count(*) as n from gyre_session where tenant = ? and status = ?",
    tenant,
    status,
  );
  return row?.n ?? 0;
}

export function readReadyMs(db: Statements, tenant: string): number {
  const row = db.first<{ oldest: number | null }>(
    "select min(ready_at) as oldest from gyre_session where tenant = ? and status = 'ready' and due is null",
    tenant,
  );
  const now = Date.now();
  return now - (row?.oldest ?? now);
}

/** How many more each tenant may have running, of those that have a limit. */
export function readLeft(db: Statements): Map<string, number> {
  const limits = db.all<{ id: string; max_running: number }>(
    "select id, max_running from gyre_tenant where max_running is not null",
  );
  return new Map(
    limits.map(({ id, max_running: most }) => [id, most - countSessions(db, id, "running")]),
  );
}

/** The next number of a counter. */
export function count(db: Statements, name: string): number {
  const key = `count:${name}`;
  db.run(
    `insert into gyre_meta values (?, '1') on conflict (key) do update
      set value = cast(value + 1 as text)`,
    key,
  );
  return Number(
    db.first<{ value: string }>("select value from gyre_meta where key = ?", key)?.value,
  );
}

export function setTenant(db: Statements, { id, maxRunning, maxReady }: TenantRow): void {
  db.run(
    "insert or replace into gyre_tenant values (?, ?, ?)",
    ...[id, maxRunning ?? null, maxReady ?? null],
  );
}
